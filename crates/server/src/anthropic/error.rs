//! Refusals in Anthropic's form.

use serde_json::{Value, json};

use crate::Refusal;

/// Anthropic's name of a kind of error.
fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Bad { .. } => "invalid_request_error",
        Refusal::Key(_) => "authentication_error",
        Refusal::Forbidden(_) => "permission_error",
        Refusal::NotFound(_) => "not_found_error",
        Refusal::TooLarge(_) => "request_too_large",
        Refusal::Busy { .. } => "rate_limit_error",
        Refusal::Unavailable(_) => "overloaded_error",
        Refusal::Internal(_) => "api_error",
    }
}

/// The body of an error answer, also the data of an `error` event.
pub(crate) fn body(refusal: &Refusal) -> Value {
    json!({"type": "error", "error": {"type": kind(refusal), "message": refusal.to_string()}})
}
