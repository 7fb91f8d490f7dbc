//! Endpoints for who runs the server: `/health`, `/ready`, `/metrics`, `/api/stats`.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use crate::App;
use crate::model::blocking;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/api/stats", get(stats))
}

/// Whether some model is in memory.
async fn ready(State(app): State<App>) -> Response {
    let ready = app.models().iter().any(|m| m.loaded);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": ready}))).into_response()
}

async fn metrics(State(app): State<App>) -> Response {
    match blocking(move || app.prometheus()).await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn stats(State(app): State<App>) -> Response {
    match blocking(move || app.stats()).await {
        Ok(stats) => Json(stats).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
