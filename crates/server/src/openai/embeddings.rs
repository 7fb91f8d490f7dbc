//! `POST /v1/embeddings`, by models whose file says how they pool.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::completions::prompts;
use super::respond;
use crate::{App, Fields, Refusal};

pub(super) async fn create(State(app): State<App>, body: Bytes) -> Response {
    respond(embed(&app, &body).await)
}

async fn embed(app: &App, body: &[u8]) -> Result<Response, Refusal> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.text("model")?.unwrap_or_default();
    let inputs = prompts(&mut fields, "input")?;
    let base64 = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(fields.wrong("encoding_format", "expected float or base64")),
    };
    let info = app.model_info(&model)?;
    fields.only("dimensions", &[json!(info.hidden)], "this model's vectors can't be shortened")?;
    fields.ignore(&["user"]);
    fields.finish()?;
    let vectors = app.embed(&model, inputs).await?;
    let tokens: usize = vectors.iter().map(|v| v.tokens).sum();
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(i, v)| {
            let embedding = if base64 { encoded(&v.vector).into() } else { json!(v.vector) };
            json!({"object": "embedding", "index": i, "embedding": embedding})
        })
        .collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(Json(json!({"object": "list", "data": data, "model": info.name, "usage": usage})).into_response())
}

/// Little-endian f32, as clients decode it.
fn encoded(vector: &[f32]) -> String {
    BASE64_STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}
