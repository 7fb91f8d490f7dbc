//! The endpoints of the Ollama API.

use std::time::{Duration, Instant, SystemTime};

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};

use super::request::{self, EmbedRequest, Request};
use super::response::{Endpoint, Lines, Whole, error};
use super::time::nanos;
use super::{models, name};
use crate::app::Client;
use crate::stream::{Out, written};
use crate::{Answer, App, Fields, Prompt, Refusal, shape};

/// The endpoints under `/api`.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/generate", post(generate))
        .route("/api/embed", post(embed))
        .route("/api/embeddings", post(embeddings))
        .route("/api/tags", get(tags))
        .route("/api/show", post(show))
        .route("/api/ps", get(ps))
        .route("/api/version", get(version))
}

/// A refusal in Ollama's form.
pub(crate) fn refuse(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error(refusal))).into_response()
}

async fn chat(State(app): State<App>, Extension(Client(client)): Extension<Client>, body: Bytes) -> Response {
    let read = |fields| request::chat(fields, |model| context(&app, model));
    respond(answer(&app, client, Endpoint::Chat, Fields::of_body(&body).and_then(read)).await)
}

async fn generate(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    body: Bytes,
) -> Response {
    let read = |fields| request::generate(fields, |model| context(&app, model));
    respond(answer(&app, client, Endpoint::Generate, Fields::of_body(&body).and_then(read)).await)
}

fn context(app: &App, model: &str) -> Option<usize> {
    app.model_info(name(model)).ok().map(|info| info.context)
}

async fn answer(
    app: &App,
    client: u64,
    endpoint: Endpoint,
    request: Result<Request, Refusal>,
) -> Result<Response, Refusal> {
    let Request { model, ask, stream } = request?;
    let Some(ask) = ask else {
        app.load(name(&model)).await?;
        return Ok(Json(endpoint.loaded(&model, SystemTime::now())).into_response());
    };
    let mut answer = app.answer(name(&model), ask, client).await?;
    if stream {
        let lines = Lines::new(endpoint, model);
        return Ok(written("application/x-ndjson", move |out| write(out, lines, answer)));
    }
    let mut whole = Whole::new(endpoint, model);
    while let Some(part) = answer.next().await {
        if let Some(object) = whole.push(part, SystemTime::now())? {
            return Ok(Json(object).into_response());
        }
    }
    Err(Refusal::Internal("the answer has no end".to_owned()))
}

async fn write(out: Out, mut lines: Lines, mut answer: Answer) {
    while let Some(part) = answer.next().await {
        if let Some(line) = lines.push(part, SystemTime::now()) {
            out.send(format!("{line}\n")).await;
        }
    }
}

async fn embed(State(app): State<App>, body: Bytes) -> Response {
    let started = Instant::now();
    let embedded = async {
        let EmbedRequest { model, input } = request::embed(Fields::of_body(&body)?, "input")?;
        let vectors = app.embed(name(&model), input.into_iter().map(Prompt::Text).collect()).await?;
        let tokens: usize = vectors.iter().map(|v| v.tokens).sum();
        let vectors: Vec<_> = vectors.into_iter().map(|v| v.vector).collect();
        Ok(Json(json!({
            "model": model, "embeddings": vectors, "total_duration": nanos(started.elapsed().as_secs_f64()),
            "load_duration": 0, "prompt_eval_count": tokens,
        }))
        .into_response())
    };
    respond(embedded.await)
}

async fn embeddings(State(app): State<App>, body: Bytes) -> Response {
    let embedded = async {
        let EmbedRequest { model, input } = request::embed(Fields::of_body(&body)?, "prompt")?;
        let vectors = app.embed(name(&model), input.into_iter().map(Prompt::Text).collect()).await?;
        Ok(Json(json!({"embedding": vectors.into_iter().next().map(|v| v.vector)})).into_response())
    };
    respond(embedded.await)
}

async fn tags(State(app): State<App>) -> Json<Value> {
    let list: Vec<Value> = app.models().iter().map(models::tag).collect();
    Json(json!({"models": list}))
}

async fn show(State(app): State<App>, body: Bytes) -> Response {
    let shown = || {
        let mut fields = Fields::of_body(&body)?;
        let older = fields.text("name")?;
        let model = fields.text("model")?.or(older);
        let model = model.ok_or_else(|| fields.wrong("model", "this field is required"))?;
        // The rest of the metadata, tokenizer included, is what `verbose` would add.
        fields.only("verbose", &[false.into()], "whole metadata is not told; leave it out")?;
        fields.finish()?;
        Ok(Json(models::show(&app.model_info(name(&model))?)).into_response())
    };
    respond(shown())
}

async fn ps(State(app): State<App>) -> Json<Value> {
    // A model stays until the server unloads it, for which clients have no better word than a distant time.
    let until = SystemTime::now() + Duration::from_secs(365 * 86_400);
    let list: Vec<Value> =
        app.models().iter().filter(|m| m.loaded).map(|m| models::running(m, until)).collect();
    Json(json!({"models": list}))
}

async fn version() -> Json<Value> {
    Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}

fn respond(result: Result<Response, Refusal>) -> Response {
    result.unwrap_or_else(|refusal| shape::refuse("/api/", &refusal))
}
