//! What every request passes before its handler: its id and log line, panics, keys, origins, the body's size and time.
//!
//! Invariant: whatever comes in gives a response in the form of the API that was asked; nothing in a request is logged but its
//! method, its path and its id.

use std::future::{Future, poll_fn};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use tracing::Instrument;

use crate::app::{App, Client};
use crate::{Refusal, ids, openapi, origin, shape};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What is checked.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// Any of them opens; none: no key is asked for.
    pub(crate) keys: Arc<Vec<String>>,
    /// The origin whose pages may read answers; `*` is all.
    pub(crate) cors: Option<HeaderValue>,
    /// Whether only this machine, without a key, is let in: pages of other sites have to be kept out.
    pub(crate) local: bool,
    /// Bytes of a body.
    pub(crate) max_body: usize,
    /// Time to send it.
    pub(crate) body_time: Duration,
}

/// The guard of all routes.
pub(crate) async fn guard(
    State((app, guard)): State<(App, Guard)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    // Paths that no route has are counted as one: clients could make up any number of them.
    let endpoint = request.extensions().get::<MatchedPath>().map_or("other", |p| p.as_str()).to_owned();
    let id = request_id(request.headers());
    let client = client(&request);
    request.extensions_mut().insert(client);
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let answer = caught(passed(&guard, request, next)).instrument(span.clone()).await;
    let mut response = answer.unwrap_or_else(|refusal| shape::refuse(&path, &refusal));
    let status = response.status().as_u16();
    app.metrics().request(&endpoint, status);
    span.in_scope(|| {
        let seconds = started.elapsed().as_secs_f64();
        let path = path.chars().take(200).collect::<String>();
        tracing::info!(%method, path, status, seconds, "request");
    });
    if path.starts_with("/v1/messages") {
        // Anthropic's own name of it.
        response.headers_mut().insert("request-id", id.clone());
    }
    response.headers_mut().insert(REQUEST_ID, id);
    if let Some(origin) = &guard.cors {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

async fn passed(guard: &Guard, request: Request, next: Next) -> Result<Response, Refusal> {
    if guard.local {
        origin::check(request.uri(), request.headers(), guard.cors.as_ref())?;
    }
    if request.method() == Method::OPTIONS && guard.cors.is_some() {
        return Ok(preflight());
    }
    let path = request.uri().path();
    let open = matches!(path, "/" | "/health" | "/ready" | openapi::PATH) || path.starts_with("/page/");
    if !open {
        check_key(&guard.keys, request.headers())?;
    }
    let (parts, body) = request.into_parts();
    let too_large = || {
        Refusal::TooLarge(format!("the body has more than the {} bytes that are accepted", guard.max_body))
    };
    let announced =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|n| n > guard.max_body as u64) {
        return Err(too_large());
    }
    let body = match tokio::time::timeout(guard.body_time, to_bytes(body, guard.max_body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let limit = std::error::Error::source(&error).is_some_and(|e| e.to_string().contains("limit"));
            let message = format!("the body could not be read: {error}");
            return Err(if limit { too_large() } else { Refusal::Bad { field: None, message } });
        }
        Err(_) => {
            let message = format!("the body did not come within {} s", guard.body_time.as_secs());
            return Ok(
                (StatusCode::REQUEST_TIMEOUT, [(header::CONNECTION, "close")], message).into_response()
            );
        }
    };
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, HEAD, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*, authorization, content-type, x-api-key, x-request-id"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets pass who has a key. All keys are compared whole, so that time tells nothing of them but their lengths.
fn check_key(keys: &[String], headers: &HeaderMap) -> Result<(), Refusal> {
    if keys.is_empty() {
        return Ok(());
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let bearer =
        bearer.and_then(|v| v.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let own = headers.get("x-api-key").and_then(|v| v.to_str().ok());
    let given = bearer
        .map(|(_, key)| key.trim())
        .or(own)
        .ok_or(Refusal::Key("none was sent: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`"))?;
    let fits =
        keys.iter().fold(subtle::Choice::from(0), |fits, key| fits | key.as_bytes().ct_eq(given.as_bytes()));
    if bool::from(fits) { Ok(()) } else { Err(Refusal::Key("the one that was sent is wrong")) }
}

/// The client's own id where it is one, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|v| {
        let bytes = v.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    given.cloned().unwrap_or_else(|| {
        HeaderValue::try_from(ids::new("req_")).unwrap_or(HeaderValue::from_static("req_0"))
    })
}

/// Programs on one machine are told apart by what they call themselves.
fn client(request: &Request) -> Client {
    let mut hasher = DefaultHasher::new();
    if let Some(Peer(address)) = request.extensions().get::<Peer>() {
        address.ip().hash(&mut hasher);
    }
    for name in [header::AUTHORIZATION, header::USER_AGENT] {
        request.headers().get(name).map(HeaderValue::as_bytes).hash(&mut hasher);
    }
    Client(hasher.finish())
}

/// Turns a panic of `work` into a refusal.
async fn caught(work: impl Future<Output = Result<Response, Refusal>>) -> Result<Response, Refusal> {
    let mut work = pin!(work);
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll,
        // The panic hook has written what happened.
        Err(_) => Poll::Ready(Err(Refusal::Internal("the server failed at this request".to_owned()))),
    })
    .await
}
