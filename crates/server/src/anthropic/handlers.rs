//! The endpoints of the Anthropic API.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::json;

use super::error;
use super::request::{self, Request};
use super::response::{Events, Whole};
use crate::app::Client;
use crate::stream::{Out, written};
use crate::{Answer, App, Fields, Refusal, ids, shape};

/// The endpoints under `/v1/messages`.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/v1/messages", post(create)).route("/v1/messages/count_tokens", post(count))
}

/// A refusal in Anthropic's form.
pub(crate) fn refuse(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error::body(refusal))).into_response()
}

async fn create(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    body: Bytes,
) -> Response {
    respond(answer(&app, client, &body).await)
}

async fn answer(app: &App, client: u64, body: &[u8]) -> Result<Response, Refusal> {
    let Request { model, ask, stream, thinking, user } = request::messages(Fields::of_body(body)?)?;
    let answer = app.answer(&model, ask, for_user(client, user.as_deref())).await?;
    let (id, model) = (ids::new("msg_"), answer.model().to_owned());
    if stream {
        let events = Events::new(id, model, thinking);
        return Ok(written("text/event-stream", move |out| write(out, events, answer)));
    }
    let mut answer = answer;
    let mut whole = Whole::new(id, model, thinking);
    while let Some(part) = answer.next().await {
        if let Some(message) = whole.push(part)? {
            return Ok(Json(message).into_response());
        }
    }
    Err(Refusal::Internal("the answer has no end".to_owned()))
}

async fn write(out: Out, mut events: Events, mut answer: Answer) {
    while let Some(part) = answer.next().await {
        for (name, data) in events.push(part) {
            out.event(name, &data).await;
        }
    }
}

async fn count(State(app): State<App>, body: Bytes) -> Response {
    let counted = async {
        let (model, prompt) = request::count_tokens(Fields::of_body(&body)?)?;
        let tokens = app.count_tokens(&model, &prompt).await?;
        Ok(Json(json!({"input_tokens": tokens})).into_response())
    };
    respond(counted.await)
}

/// A client that serves several users gets a turn for each of them.
fn for_user(client: u64, user: Option<&str>) -> u64 {
    let Some(user) = user else { return client };
    let mut hasher = DefaultHasher::new();
    (client, user).hash(&mut hasher);
    hasher.finish()
}

fn respond(result: Result<Response, Refusal>) -> Response {
    result.unwrap_or_else(|refusal| shape::refuse("/v1/messages", &refusal))
}
