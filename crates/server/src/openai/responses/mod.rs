//! `/v1/responses`: create, get, delete. What came before is found by `previous_response_id`.
//!
//! Fields that change nothing here and are accepted: `user`, `metadata`, `prompt_cache_key`, `safety_identifier`, `include`
//! of encrypted reasoning, `truncation: disabled`, `service_tier: auto | default`, `background: false`.

mod input;
mod items;
mod stream;

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use turbospark_text::Message;

use super::chat::Whole;
use super::respond;
use super::sampling::{self, Tools};
use super::store::Kept;
use crate::app::Client;
use crate::stream::written;
use crate::{App, Ask, Fields, Finish, Format, Prompt, Refusal, Usage, ids};

/// What a response says of its request.
#[derive(Debug, Clone)]
struct Head {
    id: String,
    created: u64,
    model: String,
    /// Fields of the request that are repeated.
    asked: Map<String, Value>,
    store: bool,
    /// The conversation up to the answer, without instructions, which are never inherited.
    messages: Vec<Message>,
}

pub(super) async fn create(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    body: Bytes,
) -> Response {
    respond(answer(app, client, &body).await)
}

pub(super) async fn one(State(app): State<App>, Path(id): Path<String>) -> Response {
    respond(kept(&app, &id).map(|kept| Json(kept.response).into_response()))
}

pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Response {
    let gone = || Json(json!({"id": id, "object": "response", "deleted": true})).into_response();
    respond(if app.stored().remove(&id) { Ok(gone()) } else { Err(unknown(&id)) })
}

fn kept(app: &App, id: &str) -> Result<Kept, Refusal> {
    app.stored().get(id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    let id: String = id.chars().take(100).collect();
    Refusal::NotFound(format!(
        "there is no stored response {id:?}: it was never stored, or older ones have left"
    ))
}

async fn answer(app: App, client: u64, body: &[u8]) -> Result<Response, Refusal> {
    let (mut head, ask, wants_stream) = read(&app, body)?;
    let answer = app.answer(&head.model, ask, client).await?;
    head.model = answer.model().to_owned();
    if wants_stream {
        return Ok(written("text/event-stream", move |out| stream::stream(out, app, head, answer)));
    }
    let whole = Whole::read(answer).await?;
    let items = items::of(&whole);
    Ok(Json(finished(&app, head, &whole, &items)).into_response())
}

fn read(app: &App, body: &[u8]) -> Result<(Head, Ask, bool), Refusal> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.text("model")?.unwrap_or_default();
    let mut asked = Map::new();
    let mut messages = match fields.text("previous_response_id")? {
        Some(id) => {
            asked.insert("previous_response_id".to_owned(), id.clone().into());
            kept(app, &id)?.messages
        }
        None => Vec::new(),
    };
    input::messages(&mut fields, &mut messages)?;
    let instructions = fields.text("instructions")?;
    asked.insert("instructions".to_owned(), json!(instructions));
    let Tools { tools, tool_use, parallel } = sampling::tools(&mut fields)?;
    asked.insert("tools".to_owned(), tools.iter().map(flat).collect());
    asked.insert("tool_choice".to_owned(), items::tool_choice(&tool_use));
    asked.insert("parallel_tool_calls".to_owned(), parallel.into());
    let mut extras = sampling::extras(&mut fields)?;
    if let Some(mut reasoning) = fields.object("reasoning")? {
        if let Some(effort) = reasoning.text("effort")? {
            sampling::effort_extras(&effort, &mut extras).map_err(|why| reasoning.wrong("effort", why))?;
        }
        // The model's own reasoning is told whole, so there is no summary to choose.
        reasoning.ignore(&["summary", "generate_summary"]);
        reasoning.finish()?;
    }
    let format = text_format(&mut fields)?;
    let max_tokens = fields.count("max_output_tokens")?;
    if max_tokens == Some(0) {
        return Err(fields.wrong("max_output_tokens", "expected 1 or more"));
    }
    asked.insert("max_output_tokens".to_owned(), json!(max_tokens));
    let stream = fields.flag("stream")?.unwrap_or(false);
    let store = fields.flag("store")?.unwrap_or(true);
    let metadata = fields.take("metadata").unwrap_or_else(|| json!({}));
    asked.insert("metadata".to_owned(), metadata);
    let sampling = sampling::sampling(&mut fields)?;
    asked.insert("temperature".to_owned(), json!(sampling.temperature));
    asked.insert("top_p".to_owned(), json!(sampling.top_p));
    fields.ignore(&[
        "user",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "stream_options",
    ]);
    fields.only(
        "include",
        &[json!([]), json!(["reasoning.encrypted_content"])],
        "nothing more can be included",
    )?;
    fields.only("truncation", &[json!("disabled")], "conversations are never cut")?;
    fields.only("service_tier", &[json!("auto"), json!("default")], "there is one tier: auto")?;
    fields.only("background", &[json!(false)], "responses are not made in the background")?;
    fields.only("top_logprobs", &[json!(0)], "use chat completions for log-probabilities")?;
    fields.finish()?;
    let with_instructions =
        instructions.map(|text| Message::new("system", text)).into_iter().chain(messages.clone());
    let prompt = Prompt::Chat { messages: with_instructions.collect(), tools, tool_use, parallel, extras };
    let ask = Ask { prompt, sampling, max_tokens, stop: Vec::new(), logprobs: None, format };
    let head = Head { id: ids::new("resp_"), created: ids::now(), model, asked, store, messages };
    Ok((head, ask, stream))
}

fn text_format(fields: &mut Fields) -> Result<Format, Refusal> {
    let Some(mut text) = fields.object("text")? else { return Ok(Format::Text) };
    let format = sampling::format(&mut text, "format")?;
    text.only("verbosity", &[json!("medium")], "this can't be set for this model")?;
    text.finish()?;
    Ok(format)
}

/// A tool as the Responses API writes it.
fn flat(tool: &Value) -> Value {
    let mut flat = json!({"type": "function"});
    if let (Some(flat), Some(function)) = (flat.as_object_mut(), tool["function"].as_object()) {
        flat.extend(function.clone());
    }
    flat
}

impl Head {
    fn object(&self, status: &str, output: &[Value], usage: Option<&Usage>) -> Value {
        let mut object = json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": output, "error": null, "incomplete_details": null, "usage": usage.map(counts),
        });
        if let Some(map) = object.as_object_mut() {
            map.extend(self.asked.clone());
            map.insert("store".to_owned(), self.store.into());
        }
        object
    }
}

fn counts(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    })
}

/// The whole response, which is kept if that was asked.
fn finished(app: &App, head: Head, whole: &Whole, items: &[Value]) -> Value {
    let cut = whole.finish == Finish::Length;
    let mut object = head.object(if cut { "incomplete" } else { "completed" }, items, Some(&whole.usage));
    if cut {
        object["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    if head.store {
        let mut messages = head.messages;
        messages.push(whole.as_message());
        app.stored().put(head.id, Kept { messages, response: object.clone() });
    }
    object
}
