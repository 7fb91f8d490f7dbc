//! `POST /v1/chat/completions`.
//!
//! Fields that change nothing here and are accepted: `user`, `metadata`, `prompt_cache_key`, `prompt_cache_retention`,
//! `safety_identifier`, `verbosity`-free defaults: `store: false`, `service_tier: auto | default`, `modalities: ["text"]`.

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use turbospark_text::Message;

use super::sampling::{self, MOST_ANSWERS, MOST_STOPS, Tools};
use super::usage::{chat_logprobs, finish_reason, usage};
use super::{cut_off, error, messages, respond};
use crate::app::Client;
use crate::stream::{Out, written};
use crate::{Answer, App, Ask, Fields, Finish, Part, Prompt, Refusal, TokenInfo, Usage, ids};

/// A request as it was understood.
struct Chat {
    model: String,
    ask: Ask,
    n: usize,
    stream: bool,
    include_usage: bool,
}

pub(super) async fn create(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    body: Bytes,
) -> Response {
    respond(answer(&app, client, &body).await)
}

async fn answer(app: &App, client: u64, body: &[u8]) -> Result<Response, Refusal> {
    let chat = read(body)?;
    let mut answers = Vec::with_capacity(chat.n);
    for i in 0..chat.n {
        answers.push(app.answer(&chat.model, choice(&chat.ask, i), client).await?);
    }
    let head = Head::of(&answers, "chatcmpl-");
    if chat.stream {
        let write = move |out| stream(out, head, answers, chat.include_usage);
        return Ok(written("text/event-stream", write));
    }
    let (mut choices, mut counts) = (Vec::new(), Vec::new());
    for (i, answer) in answers.into_iter().enumerate() {
        let whole = Whole::read(answer).await?;
        counts.push(whole.usage);
        choices.push(json!({
            "index": i,
            "message": whole.message(),
            "logprobs": chat.ask.logprobs.map(|_| json!({"content": chat_logprobs(&whole.tokens), "refusal": null})),
            "finish_reason": finish_reason(&whole.finish),
        }));
    }
    let mut object = head.object("chat.completion");
    object["choices"] = choices.into();
    object["usage"] = usage(&counts);
    Ok(Json(object).into_response())
}

fn read(body: &[u8]) -> Result<Chat, Refusal> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.text("model")?.unwrap_or_default();
    let messages = messages::messages(&mut fields)?;
    let Tools { tools, tool_use, parallel } = sampling::tools(&mut fields)?;
    let extras = sampling::extras(&mut fields)?;
    let n = fields.count("n")?.unwrap_or(1);
    if !(1..=MOST_ANSWERS).contains(&n) {
        return Err(fields.wrong("n", format!("expected 1 to {MOST_ANSWERS}")));
    }
    let max_tokens = match (fields.count("max_completion_tokens")?, fields.count("max_tokens")?) {
        (Some(0), _) => return Err(fields.wrong("max_completion_tokens", "expected 1 or more")),
        (None, Some(0)) => return Err(fields.wrong("max_tokens", "expected 1 or more")),
        (newer, older) => newer.or(older),
    };
    let stream = fields.flag("stream")?.unwrap_or(false);
    let include_usage = stream_options(&mut fields, stream)?;
    let wants_logprobs = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.count("top_logprobs")?;
    if top.is_some_and(|top| top > 20) {
        return Err(fields.wrong("top_logprobs", "expected 0 to 20"));
    }
    if top.is_some_and(|top| top > 0) && !wants_logprobs {
        return Err(fields.wrong("top_logprobs", "it needs logprobs: true"));
    }
    let ask = Ask {
        sampling: sampling::sampling(&mut fields)?,
        max_tokens,
        stop: fields.texts("stop", MOST_STOPS)?,
        logprobs: wants_logprobs.then(|| top.unwrap_or(0)),
        format: sampling::format(&mut fields, "response_format")?,
        prompt: Prompt::Chat { messages, tools, tool_use, parallel, extras },
    };
    harmless(&mut fields)?;
    fields.only("modalities", &[json!(["text"])], "only text can be answered")?;
    fields.only("verbosity", &[json!("medium")], "this can't be set for this model")?;
    fields.only("prediction", &[], "predicted output is not supported")?;
    fields.finish()?;
    Ok(Chat { model, ask, n, stream, include_usage })
}

/// Fields that change nothing here, or whose usual value does not.
pub(super) fn harmless(fields: &mut Fields) -> Result<(), Refusal> {
    fields.ignore(&["user", "metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"]);
    fields.only("store", &[json!(false)], "completions are not stored")?;
    fields.only("service_tier", &[json!("auto"), json!("default")], "there is one tier: auto")
}

/// Whether the stream ends with counts.
pub(super) fn stream_options(fields: &mut Fields, stream: bool) -> Result<bool, Refusal> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(false) };
    if !stream {
        return Err(fields.wrong("stream_options", "it needs stream: true"));
    }
    let include = options.flag("include_usage")?.unwrap_or(false);
    options.only("include_obfuscation", &[json!(false)], "obfuscation is not supported")?;
    options.finish()?;
    Ok(include)
}

/// What all objects of one completion begin with.
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
}

/// What is asked for choice `i` of `n`: each has a seed of its own.
pub(super) fn choice(ask: &Ask, i: usize) -> Ask {
    let mut ask = ask.clone();
    ask.sampling.seed = ask.sampling.seed.wrapping_add(i as u64);
    ask
}

impl Head {
    /// Of a completion that begins now; its id begins with `prefix`.
    pub(super) fn of(answers: &[Answer], prefix: &str) -> Head {
        let model = answers.first().map(|a| a.model().to_owned()).unwrap_or_default();
        Head { id: ids::new(prefix), created: ids::now(), model }
    }

    pub(super) fn object(&self, kind: &str) -> Value {
        json!({"id": self.id, "object": kind, "created": self.created, "model": self.model})
    }
}

/// A call of a whole answer.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// An answer read to its end.
pub(super) struct Whole {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    pub(super) tokens: Vec<TokenInfo>,
    pub(super) finish: Finish,
    pub(super) usage: Usage,
}

impl Whole {
    /// One of which nothing has come: until its end does, it was cut off.
    pub(super) fn new() -> Whole {
        Whole {
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            tokens: Vec::new(),
            finish: Finish::Cancelled,
            usage: Usage::default(),
        }
    }

    pub(super) async fn read(mut answer: Answer) -> Result<Whole, Refusal> {
        let mut whole = Whole::new();
        while let Some(part) = answer.next().await {
            whole.take(part)?;
        }
        if whole.finish == Finish::Cancelled {
            return Err(cut_off());
        }
        Ok(whole)
    }

    pub(super) fn take(&mut self, part: Part) -> Result<(), Refusal> {
        match part {
            Part::Started { .. } | Part::CallEnd { .. } => {}
            Part::Text { text, tokens } => {
                self.text.push_str(&text);
                self.tokens.extend(tokens);
            }
            Part::Reasoning(text) => self.reasoning.push_str(&text),
            Part::CallStart { id, name, .. } => self.calls.push(Call { id, name, arguments: String::new() }),
            Part::CallArguments { delta, .. } => {
                if let Some(call) = self.calls.last_mut() {
                    call.arguments.push_str(&delta);
                }
            }
            Part::Finished { finish, usage } => (self.finish, self.usage) = (finish, usage),
            Part::Failed(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// The message in the form of chat completions.
    fn message(&self) -> Value {
        let content = if self.text.is_empty() && !self.calls.is_empty() { None } else { Some(&self.text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.clone().into();
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls_json();
        }
        message
    }

    pub(super) fn calls_json(&self) -> Value {
        let call = |c: &Call| json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}});
        self.calls.iter().map(call).collect()
    }

    /// The turn as a template reads it.
    pub(super) fn as_message(&self) -> Message {
        let mut message = Message::new("assistant", self.text.clone());
        if !self.reasoning.is_empty() {
            message.fields.insert("reasoning_content".to_owned(), self.reasoning.clone().into());
        }
        if !self.calls.is_empty() {
            message.fields.insert("tool_calls".to_owned(), self.calls_json());
        }
        message
    }
}

/// The next part of any of the answers, with its index; `None` when all have ended.
pub(super) async fn next_of(answers: &mut [Option<Answer>]) -> Option<(usize, Part)> {
    use std::future::{Future, poll_fn};
    use std::task::Poll;
    loop {
        if answers.iter().all(Option::is_none) {
            return None;
        }
        let (i, part) = poll_fn(|context| {
            for (i, answer) in answers.iter_mut().enumerate() {
                let Some(answer) = answer else { continue };
                if let Poll::Ready(part) = std::pin::pin!(answer.next()).poll(context) {
                    return Poll::Ready((i, part));
                }
            }
            Poll::Pending
        })
        .await;
        match part {
            Some(part) => return Some((i, part)),
            None => answers[i] = None,
        }
    }
}

async fn stream(out: Out, head: Head, answers: Vec<Answer>, include_usage: bool) {
    let mut counts = vec![Usage::default(); answers.len()];
    let mut answers: Vec<Option<Answer>> = answers.into_iter().map(Some).collect();
    let chunk = |index: usize, delta: Value, tokens: &[TokenInfo], finish: Option<&str>| {
        let mut object = head.object("chat.completion.chunk");
        let logprobs =
            (!tokens.is_empty()).then(|| json!({"content": chat_logprobs(tokens), "refusal": null}));
        object["choices"] =
            json!([{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]);
        if include_usage {
            object["usage"] = Value::Null;
        }
        object
    };
    for i in 0..answers.len() {
        out.data(&chunk(i, json!({"role": "assistant", "content": ""}), &[], None)).await;
    }
    while let Some((i, part)) = next_of(&mut answers).await {
        let call = |index: usize, rest: Value| json!({"tool_calls": [merged(json!({"index": index}), rest)]});
        let object = match part {
            Part::Started { .. } | Part::CallEnd { .. } => continue,
            Part::Text { text, tokens } => chunk(i, json!({"content": text}), &tokens, None),
            Part::Reasoning(text) => chunk(i, json!({"reasoning_content": text}), &[], None),
            Part::CallStart { index, id, name } => {
                let rest = json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                chunk(i, call(index, rest), &[], None)
            }
            Part::CallArguments { index, delta } => {
                chunk(i, call(index, json!({"function": {"arguments": delta}})), &[], None)
            }
            Part::Finished { finish, usage } => {
                counts[i] = usage;
                if finish == Finish::Cancelled {
                    out.data(&json!({"error": error(&cut_off())})).await;
                    return;
                }
                chunk(i, json!({}), &[], Some(finish_reason(&finish)))
            }
            Part::Failed(refusal) => {
                out.data(&json!({"error": error(&refusal)})).await;
                return;
            }
        };
        out.data(&object).await;
    }
    if include_usage {
        let mut object = head.object("chat.completion.chunk");
        object["choices"] = json!([]);
        object["usage"] = usage(&counts);
        out.data(&object).await;
    }
    out.send("data: [DONE]\n\n").await;
}

fn merged(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}
