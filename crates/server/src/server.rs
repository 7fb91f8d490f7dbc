//! [`Server`]: the socket, its connections, and their end.
//!
//! Invariant: a connection that does nothing, sends too slowly or reads too slowly is closed in bounded time; after
//! [`Server::run`] has returned nothing of the server runs.

use std::future::{Future, pending};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;
use turbospark_engine::EngineOptions;
use turbospark_engine::scheduler::{SchedulerOptions, Shutdown};

use crate::app::App;
use crate::guard::{Guard, Peer, guard};
use crate::model::blocking;
use crate::models::{ModelSource, Models};
use crate::timed::Timed;
use crate::{Refusal, anthropic, ollama, openai, openapi, operation, page, shape};

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Models that may be asked for; the first is the default.
    pub models: Vec<ModelSource>,
    /// How they are opened; `memory` is the budget of all together.
    pub engine: EngineOptions,
    /// How many requests run and wait.
    pub scheduling: SchedulerOptions,
    /// Bytes for the KV caches of more requests than one, taken out of the budget; default: what the plan leaves over.
    pub kv_memory: Option<u64>,
    /// Where to listen.
    pub address: SocketAddr,
    /// Keys of which requests must show one; none: no key is asked for.
    pub keys: Vec<String>,
    /// Whether others than this machine may connect without a key.
    pub no_key: bool,
    /// The origin whose pages may use the server; `*` is all.
    pub cors: Option<String>,
    /// Bytes of a body.
    pub max_body: usize,
    /// Connections at a time; more wait.
    pub max_connections: usize,
    /// After this long without a byte of a request, or with a full socket that nobody reads, a connection is closed.
    pub idle_timeout: Duration,
    /// Unload a model after this long without a request.
    pub idle_unload: Option<Duration>,
    /// How long running requests may go on when the server ends.
    pub grace: Duration,
    /// Whether the first model is loaded before connections are taken.
    pub preload: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            models: Vec::new(),
            engine: EngineOptions::default(),
            scheduling: SchedulerOptions::default(),
            kv_memory: None,
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            keys: Vec::new(),
            no_key: false,
            cors: None,
            max_body: 32 << 20,
            max_connections: 1024,
            idle_timeout: Duration::from_secs(75),
            idle_unload: None,
            grace: Duration::from_secs(20),
            preload: true,
        }
    }
}

/// Why a server doesn't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Others could use the server without a key.
    #[error("{0} can be reached from other machines: set an API key, or allow use without one by --no-key")]
    NoKey(IpAddr),
    /// A key that no header can carry.
    #[error("an API key must be visible ASCII characters")]
    BadKey,
    /// An origin that no header can carry.
    #[error("{0:?} is no origin: expected something like https://example.org")]
    BadOrigin(String),
    /// The models can't be used.
    #[error("{0}")]
    Models(String),
    /// The first model can't be loaded.
    #[error("{0}")]
    Load(Refusal),
    /// The address can't be had.
    #[error("can't listen on {0}")]
    Bind(SocketAddr, #[source] io::Error),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    app: App,
    router: Router,
    options: ServerOptions,
}

impl Server {
    /// Reads the models' headers, loads the first, and listens.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn bind(options: ServerOptions) -> Result<Server, ServerError> {
        let ip = options.address.ip();
        if !ip.is_loopback() && options.keys.is_empty() && !options.no_key {
            return Err(ServerError::NoKey(ip));
        }
        if options.keys.iter().any(|k| k.is_empty() || !k.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(ServerError::BadKey);
        }
        let cors = options
            .cors
            .as_ref()
            .map(|origin| HeaderValue::try_from(origin).map_err(|_| ServerError::BadOrigin(origin.clone())));
        let listener =
            TcpListener::bind(options.address).await.map_err(|e| ServerError::Bind(options.address, e))?;
        let models = Models::new(&options.models, options.engine, options.scheduling, options.kv_memory)
            .map_err(ServerError::Models)?;
        let app = App::new(models);
        let guarding = Guard {
            keys: Arc::new(options.keys.clone()),
            cors: cors.transpose()?,
            local: ip.is_loopback() && options.keys.is_empty() && !options.no_key,
            max_body: options.max_body,
            body_time: options.idle_timeout,
        };
        if options.preload {
            app.load("").await.map_err(ServerError::Load)?;
        }
        let router =
            router().layer(from_fn_with_state((app.clone(), guarding), guard)).with_state(app.clone());
        Ok(Server { listener, app, router, options })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system doesn't tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` ends; what runs then may go on for the grace time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Server { listener, app, router, options } = self;
        let (ending, end) = watch::channel(false);
        let places = Arc::new(Semaphore::new(options.max_connections.max(1)));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        let mut idle = pin!(unload_idle(app.clone(), options.idle_unload));
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                () = &mut idle => continue,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accept(&listener, &places) => accepted,
            };
            let Some((stream, peer, place)) = accepted else { continue };
            let serving = connection(stream, peer, router.clone(), end.clone(), options.idle_timeout);
            connections.spawn(async move {
                serving.await;
                drop(place);
            });
        }
        drop(listener);
        tracing::info!(connections = connections.len(), "shutting down");
        let _ = ending.send(true);
        let finished =
            tokio::time::timeout(options.grace, async { while connections.join_next().await.is_some() {} });
        let how = if finished.await.is_ok() { Shutdown::Finish } else { Shutdown::Cancel };
        let _ = blocking(move || app.shutdown(how)).await;
        // Clients are told that their answers were cancelled.
        let told = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
        connections.shutdown().await;
    }
}

/// The endpoints for programs.
pub(crate) fn api() -> Router<App> {
    Router::new()
        .merge(operation::router())
        .merge(openapi::router())
        .merge(openai::router())
        .merge(anthropic::router())
        .merge(ollama::router())
}

/// All endpoints.
fn router() -> Router<App> {
    api().merge(page::router()).fallback(any(nowhere)).method_not_allowed_fallback(wrong_method)
}

async fn nowhere(request: Request) -> axum::response::Response {
    let path = request.uri().path();
    let shown: String = path.chars().take(200).collect();
    shape::refuse(path, &Refusal::NotFound(format!("there is no endpoint {} {shown}", request.method())))
}

async fn wrong_method(request: Request) -> axum::response::Response {
    let path = request.uri().path();
    let message = format!("{} is not a method of this endpoint", request.method());
    let mut response = shape::refuse(path, &Refusal::NotFound(message));
    *response.status_mut() = axum::http::StatusCode::METHOD_NOT_ALLOWED;
    response
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<(TcpStream, SocketAddr, Place)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) => {
            // Out of file descriptors, mostly: connections that end give some back.
            tracing::warn!(%error, "can't accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    mut end: watch::Receiver<bool>,
    idle: Duration,
) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.clone().oneshot(request)
    });
    let io = TokioIo::new(Timed::new(stream, idle));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(64 << 10)
        .serve_connection(io, service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => Some(ended),
        _ = end.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

async fn unload_idle(app: App, after: Option<Duration>) {
    let Some(after) = after else { return pending().await };
    loop {
        tokio::time::sleep((after / 4).clamp(Duration::from_millis(100), Duration::from_secs(15))).await;
        let app = app.clone();
        let _ = blocking(move || app.unload_idle(after)).await;
    }
}
