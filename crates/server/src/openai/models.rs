//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::respond;
use crate::{App, ModelInfo};

pub(super) async fn list(State(app): State<App>) -> Response {
    let data: Vec<Value> = app.models().iter().map(object).collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

pub(super) async fn one(State(app): State<App>, Path(id): Path<String>) -> Response {
    respond(app.model_info(&id).map(|info| Json(object(&info)).into_response()))
}

fn object(info: &ModelInfo) -> Value {
    json!({"id": info.name, "object": "model", "created": info.modified, "owned_by": "turbospark"})
}
