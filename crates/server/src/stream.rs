//! Bodies that are written as they are read.
//!
//! Invariant: the writer runs inside the body, so it ends, and with it the answers it reads, the moment the client is gone; it never
//! runs ahead of a slow reader by more than a few pieces.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, Sleep, sleep};

/// After this long without a word a comment is sent, so that nobody between takes the stream for dead.
const QUIET: Duration = Duration::from_secs(10);

/// Where a body is written.
#[derive(Debug, Clone)]
pub struct Out(Sender<Bytes>);

impl Out {
    /// Writes a piece; waits for the reader.
    pub async fn send(&self, piece: impl Into<Bytes>) {
        // The receiver lives in the same body as the writer.
        let _ = self.0.send(piece.into()).await;
    }

    /// Writes one server-sent event without a name.
    pub async fn data(&self, data: &impl serde::Serialize) {
        self.send(format!("data: {}\n\n", json(data))).await;
    }

    /// Writes one server-sent event.
    pub async fn event(&self, name: &str, data: &impl serde::Serialize) {
        self.send(format!("event: {name}\ndata: {}\n\n", json(data))).await;
    }
}

fn json(data: &impl serde::Serialize) -> String {
    serde_json::to_string(data).unwrap_or_default()
}

struct Written {
    pieces: Receiver<Bytes>,
    writer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Of event streams.
    quiet: Option<Pin<Box<Sleep>>>,
}

impl Stream for Written {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Poll::Ready(piece) = this.pieces.poll_recv(context) {
                if let Some(quiet) = &mut this.quiet {
                    quiet.as_mut().reset(Instant::now() + QUIET);
                }
                return Poll::Ready(piece.map(Ok));
            }
            let Some(writer) = &mut this.writer else { return Poll::Pending };
            if writer.as_mut().poll(context).is_ready() {
                this.writer = None;
                continue;
            }
            if let Poll::Ready(piece) = this.pieces.poll_recv(context) {
                return Poll::Ready(piece.map(Ok));
            }
            if let Some(quiet) = &mut this.quiet
                && quiet.as_mut().poll(context).is_ready()
            {
                quiet.as_mut().reset(Instant::now() + QUIET);
                return Poll::Ready(Some(Ok(Bytes::from_static(b": \n\n"))));
            }
            return Poll::Pending;
        }
    }
}

/// A response whose body `write` writes; `text/event-stream` gets comments where it is long silent.
pub fn written<F>(content_type: &'static str, write: impl FnOnce(Out) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, pieces) = channel(4);
    let writer = Some(Box::pin(write(Out(sender))) as Pin<Box<dyn Future<Output = ()> + Send>>);
    let quiet = (content_type == "text/event-stream").then(|| Box::pin(sleep(QUIET)));
    let mut response = Response::new(Body::from_stream(Written { pieces, writer, quiet }));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
