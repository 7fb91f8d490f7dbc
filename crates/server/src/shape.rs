//! Which API's form an error takes: by the path that was asked for, so that errors of the server's own guards fit too.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::{Refusal, openai};

/// A refusal in the form that clients of `path` read.
pub(crate) fn refuse(_path: &str, refusal: &Refusal) -> Response {
    with_retry(openai::refuse(refusal), refusal)
}

/// Adds `Retry-After` where waiting helps.
fn with_retry(mut response: Response, refusal: &Refusal) -> Response {
    if let Refusal::Busy { retry_after } = refusal {
        let seconds = retry_after.as_secs().max(1);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
