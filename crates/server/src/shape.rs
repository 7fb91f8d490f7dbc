//! Which API's form an error takes: by the path that was asked for, so that errors of the server's own guards fit too.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::{Refusal, anthropic, ollama, openai};

/// A refusal in the form that clients of `path` read.
pub(crate) fn refuse(path: &str, refusal: &Refusal) -> Response {
    let refuse = match path {
        _ if path.starts_with("/v1/messages") => anthropic::refuse,
        _ if path.starts_with("/api/") => ollama::refuse,
        _ => openai::refuse,
    };
    with_retry(refuse(refusal), refusal)
}

/// Adds `Retry-After` where waiting helps.
fn with_retry(mut response: Response, refusal: &Refusal) -> Response {
    if let Refusal::Busy { retry_after } = refusal {
        let seconds = retry_after.as_secs().max(1);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
