//! `/api/chat` and `/api/generate`: from the parts of an answer to lines, or to one object.
//!
//! Invariants: the last line, and no other, has `done`; the one object has the fields of the last line and all the texts.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::time::{nanos, rfc3339};
use crate::{Finish, Part, Refusal, TokenInfo, Usage};

/// Which of the two endpoints answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Text stands in `message.content`.
    Chat,
    /// Text stands in `response`.
    Generate,
}

impl Endpoint {
    /// An object of the answer.
    fn object(
        self,
        model: &str,
        at: SystemTime,
        text: &str,
        thinking: &str,
        calls: Vec<Value>,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("model".to_owned(), model.into());
        out.insert("created_at".to_owned(), rfc3339(at).into());
        let mut inner = Map::new();
        if self == Endpoint::Chat {
            inner.insert("role".to_owned(), "assistant".into());
            inner.insert("content".to_owned(), text.into());
        } else {
            inner.insert("response".to_owned(), text.into());
        }
        if !thinking.is_empty() {
            inner.insert("thinking".to_owned(), thinking.into());
        }
        if !calls.is_empty() {
            inner.insert("tool_calls".to_owned(), calls.into());
        }
        match self {
            Endpoint::Chat => {
                out.insert("message".to_owned(), inner.into());
            }
            Endpoint::Generate => out.extend(inner),
        }
        out
    }

    /// The answer to a request that only loads a model.
    pub(crate) fn loaded(self, model: &str, at: SystemTime) -> Value {
        let mut out = self.object(model, at, "", "", Vec::new());
        out.insert("done".to_owned(), true.into());
        out.insert("done_reason".to_owned(), "load".into());
        out.into()
    }
}

/// Turns parts into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    endpoint: Endpoint,
    model: String,
    /// The calls that have begun: name and JSON text of the arguments so far.
    calls: Vec<(usize, String, String, String)>,
}

impl Lines {
    /// For an answer of `model`.
    pub(crate) fn new(endpoint: Endpoint, model: String) -> Lines {
        Lines { endpoint, model, calls: Vec::new() }
    }

    /// The line of a part, where it has one.
    pub(crate) fn push(&mut self, part: Part, at: SystemTime) -> Option<Value> {
        let plain =
            |text: &str, thinking: &str, calls| self.endpoint.object(&self.model, at, text, thinking, calls);
        let mut line = match part {
            Part::Started { .. } => return None,
            Part::Text { text, tokens } => {
                if text.is_empty() && tokens.is_empty() {
                    return None;
                }
                let mut line = plain(&text, "", Vec::new());
                if !tokens.is_empty() {
                    line.insert("logprobs".to_owned(), tokens.iter().map(logprob).collect());
                }
                line
            }
            Part::Reasoning(text) if text.is_empty() => return None,
            Part::Reasoning(text) => plain("", &text, Vec::new()),
            Part::CallStart { index, id, name } => {
                self.calls.push((index, id, name, String::new()));
                return None;
            }
            Part::CallArguments { index, delta } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.0 == index) {
                    call.3.push_str(&delta);
                }
                return None;
            }
            // Clients take a call whole.
            Part::CallEnd { index } => {
                let place = self.calls.iter().position(|call| call.0 == index)?;
                let (_, id, name, json) = self.calls.remove(place);
                match call(index, &id, &name, &json) {
                    Ok(call) => self.endpoint.object(&self.model, at, "", "", vec![call]),
                    Err(refusal) => return Some(error(&refusal)),
                }
            }
            Part::Finished { finish: Finish::Cancelled, .. } => {
                return Some(error(&Refusal::Unavailable("the answer was cancelled".to_owned())));
            }
            Part::Finished { finish, usage } => {
                let mut line = plain("", "", Vec::new());
                line.insert("done".to_owned(), true.into());
                let reason = if finish == Finish::Length { "length" } else { "stop" };
                line.insert("done_reason".to_owned(), reason.into());
                line.extend(counts(&usage));
                return Some(line.into());
            }
            Part::Failed(refusal) => return Some(error(&refusal)),
        };
        line.insert("done".to_owned(), false.into());
        Some(line.into())
    }
}

/// The body of an error answer, and a line that ends an answer.
pub(crate) fn error(refusal: &Refusal) -> Value {
    json!({"error": refusal.to_string()})
}

fn call(index: usize, id: &str, name: &str, json: &str) -> Result<Value, Refusal> {
    let arguments: Value = match json {
        "" => json!({}),
        text => serde_json::from_str(text)
            .map_err(|e| Refusal::Internal(format!("the arguments of a tool call are no JSON: {e}")))?,
    };
    Ok(json!({"id": id, "function": {"index": index, "name": name, "arguments": arguments}}))
}

fn logprob(token: &TokenInfo) -> Value {
    let one = |bytes: &[u8], logprob: f32| json!({"token": String::from_utf8_lossy(bytes), "logprob": logprob, "bytes": bytes});
    let mut out = one(&token.bytes, token.logprob);
    if !token.top.is_empty() {
        out["top_logprobs"] = token.top.iter().map(|(bytes, p)| one(bytes, *p)).collect();
    }
    out
}

fn counts(usage: &Usage) -> [(String, Value); 6] {
    // A model is loaded before its queue is entered; waiting counts as loading.
    let prompt = usage.first_token - usage.queued;
    [
        ("total_duration", nanos(usage.total).into()),
        ("load_duration", nanos(usage.queued).into()),
        ("prompt_eval_count", usage.prompt_tokens.into()),
        ("prompt_eval_duration", nanos(prompt).into()),
        ("eval_count", usage.completion_tokens.into()),
        ("eval_duration", nanos(usage.total - usage.first_token).into()),
    ]
    .map(|(name, value): (&str, Value)| (name.to_owned(), value))
}

/// Folds parts into one object.
#[derive(Debug)]
pub(crate) struct Whole {
    lines: Lines,
    text: String,
    thinking: String,
    calls: Vec<Value>,
    logprobs: Vec<Value>,
}

impl Whole {
    /// As [`Lines::new`].
    pub(crate) fn new(endpoint: Endpoint, model: String) -> Whole {
        let lines = Lines::new(endpoint, model);
        Whole { lines, text: String::new(), thinking: String::new(), calls: Vec::new(), logprobs: Vec::new() }
    }

    /// Takes a part; the object once it is whole.
    ///
    /// # Errors
    /// Why the answer failed.
    pub(crate) fn push(&mut self, part: Part, at: SystemTime) -> Result<Option<Value>, Refusal> {
        match &part {
            Part::Failed(refusal) => return Err(refusal.clone()),
            Part::Text { text, .. } => self.text.push_str(text),
            Part::Reasoning(text) => self.thinking.push_str(text),
            _ => {}
        }
        let Some(mut line) = self.lines.push(part, at) else { return Ok(None) };
        if let Some(message) = line.get("error") {
            return Err(Refusal::Internal(message.as_str().unwrap_or_default().to_owned()));
        }
        if line["done"] == false {
            if let Some(Value::Array(tokens)) = line.get_mut("logprobs").map(Value::take) {
                self.logprobs.extend(tokens);
            }
            if let Some(Value::Array(calls)) = line.pointer_mut("/message/tool_calls").map(Value::take) {
                self.calls.extend(calls);
            }
            return Ok(None);
        }
        let Lines { endpoint, model, .. } = &self.lines;
        let mut whole =
            endpoint.object(model, at, &self.text, &self.thinking, std::mem::take(&mut self.calls));
        if !self.logprobs.is_empty() {
            whole.insert("logprobs".to_owned(), std::mem::take(&mut self.logprobs).into());
        }
        if let Value::Object(last) = line {
            for (field, value) in last {
                whole.entry(field).or_insert(value);
            }
        }
        Ok(Some(whole.into()))
    }
}
