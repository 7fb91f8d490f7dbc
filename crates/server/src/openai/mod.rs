//! The OpenAI API.
//!
//! Invariant: a field that can't take effect is refused with a 400 that names it; those that change nothing are listed where they
//! are read.

mod chat;
mod completions;
mod embeddings;
mod messages;
mod models;
mod responses;
mod sampling;
mod store;
mod usage;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

pub(crate) use store::Stored;

use crate::{App, Refusal};

/// The endpoints under `/v1`.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::one).delete(responses::delete))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
}

/// A refusal in OpenAI's form.
pub(crate) fn refuse(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({ "error": error(refusal) }))).into_response()
}

/// The error object.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal {
        Refusal::Bad { message, .. } if message.contains("context of") => {
            ("invalid_request_error", Some("context_length_exceeded"))
        }
        Refusal::Bad { .. } | Refusal::TooLarge(_) => ("invalid_request_error", None),
        Refusal::Key(_) => ("authentication_error", Some("invalid_api_key")),
        Refusal::Forbidden(_) => ("invalid_request_error", Some("forbidden")),
        Refusal::NotFound(_) => ("invalid_request_error", Some("not_found")),
        Refusal::Busy { .. } => ("rate_limit_error", Some("queue_full")),
        Refusal::Unavailable(_) => ("server_error", Some("unavailable")),
        Refusal::Internal(_) => ("server_error", None),
    };
    let param = match refusal {
        Refusal::Bad { field, .. } => field.as_deref(),
        _ => None,
    };
    json!({"message": refusal.to_string(), "type": kind, "param": param, "code": code})
}

/// Why an answer has no end of its own.
fn cut_off() -> Refusal {
    Refusal::Unavailable("the server ended this answer: it is shutting down".to_owned())
}

/// A handler's result as a response.
fn respond(result: Result<Response, Refusal>) -> Response {
    result.unwrap_or_else(|refusal| crate::shape::refuse("/v1/", &refusal))
}
