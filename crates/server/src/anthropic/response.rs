//! `/v1/messages`: from the parts of an answer to events, or to one message.
//!
//! Invariants: blocks are opened and closed one after the other and numbered from 0; `message_start` comes first, and `message_stop` or
//! `error` last. The message is folded out of the events, so both say the same.

use serde_json::{Map, Value, json};

use super::error;
use crate::{Finish, Part, Refusal, Usage};

/// What thinking blocks are signed with; nobody checks it, clients want to find one.
const SIGNATURE: &str = "unsigned";

/// An event: its name and its data.
pub(crate) type Event = (&'static str, Value);

/// What the open block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Call,
}

/// Turns parts into events.
#[derive(Debug)]
pub(crate) struct Events {
    id: String,
    model: String,
    thinking: bool,
    open: Option<Block>,
    index: usize,
}

impl Events {
    /// For an answer of `model`; without `thinking`, reasoning is left out.
    pub(crate) fn new(id: String, model: String, thinking: bool) -> Events {
        Events { id, model, thinking, open: None, index: 0 }
    }

    /// The events of one part.
    pub(crate) fn push(&mut self, part: Part) -> Vec<Event> {
        let mut out = Vec::new();
        match part {
            Part::Started { prompt_tokens, cached_tokens } => {
                let usage = Usage { prompt_tokens, cached_tokens, ..Usage::default() };
                let message = json!({
                    "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": counts(&usage),
                });
                out.push(("message_start", json!({"type": "message_start", "message": message})));
                out.push(("ping", json!({"type": "ping"})));
            }
            Part::Text { text, .. } if text.is_empty() => {}
            Part::Text { text, .. } => {
                self.ensure(Block::Text, &mut out);
                out.push(self.delta(&json!({"type": "text_delta", "text": text})));
            }
            Part::Reasoning(text) if !self.thinking || text.is_empty() => {}
            Part::Reasoning(text) => {
                self.ensure(Block::Thinking, &mut out);
                out.push(self.delta(&json!({"type": "thinking_delta", "thinking": text})));
            }
            Part::CallStart { id, name, .. } => {
                self.close(&mut out);
                self.start(
                    Block::Call,
                    &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    &mut out,
                );
            }
            Part::CallArguments { delta, .. } => {
                out.push(self.delta(&json!({"type": "input_json_delta", "partial_json": delta})));
            }
            Part::CallEnd { .. } => self.close(&mut out),
            Part::Finished { finish: Finish::Cancelled, .. } => {
                out.push(failed(&Refusal::Unavailable("the answer was cancelled".to_owned())));
            }
            Part::Finished { finish, usage } => {
                self.close(&mut out);
                let (reason, sequence) = stop_reason(&finish);
                out.push((
                    "message_delta",
                    json!({
                        "type": "message_delta",
                        "delta": {"stop_reason": reason, "stop_sequence": sequence},
                        "usage": counts(&usage),
                    }),
                ));
                out.push(("message_stop", json!({"type": "message_stop"})));
            }
            Part::Failed(refusal) => out.push(failed(&refusal)),
        }
        out
    }

    /// Opens a block of a kind where another or none is open.
    fn ensure(&mut self, kind: Block, out: &mut Vec<Event>) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        let block = match kind {
            Block::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            _ => json!({"type": "text", "text": ""}),
        };
        self.start(kind, &block, out);
    }

    fn start(&mut self, kind: Block, block: &Value, out: &mut Vec<Event>) {
        let start = json!({"type": "content_block_start", "index": self.index, "content_block": block});
        out.push(("content_block_start", start));
        self.open = Some(kind);
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        let Some(kind) = self.open.take() else { return };
        if kind == Block::Thinking {
            out.push(self.delta(&json!({"type": "signature_delta", "signature": SIGNATURE})));
        }
        out.push(("content_block_stop", json!({"type": "content_block_stop", "index": self.index})));
        self.index += 1;
    }

    fn delta(&self, delta: &Value) -> Event {
        ("content_block_delta", json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }
}

fn failed(refusal: &Refusal) -> Event {
    ("error", error::body(refusal))
}

fn stop_reason(finish: &Finish) -> (&'static str, Option<&str>) {
    match finish {
        Finish::Stop | Finish::Cancelled => ("end_turn", None),
        Finish::StopString(text) => ("stop_sequence", Some(text)),
        Finish::Length => ("max_tokens", None),
        Finish::Calls => ("tool_use", None),
    }
}

fn counts(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    })
}

/// Folds parts into one message.
#[derive(Debug)]
pub(crate) struct Whole {
    events: Events,
    message: Map<String, Value>,
    content: Vec<Value>,
    /// The JSON text of the open call.
    input: String,
}

impl Whole {
    /// As [`Events::new`].
    pub(crate) fn new(id: String, model: String, thinking: bool) -> Whole {
        let events = Events::new(id, model, thinking);
        Whole { events, message: Map::new(), content: Vec::new(), input: String::new() }
    }

    /// Takes a part; the message once it is whole.
    ///
    /// # Errors
    /// Why the answer failed.
    pub(crate) fn push(&mut self, part: Part) -> Result<Option<Value>, Refusal> {
        match part {
            Part::Failed(refusal) => return Err(refusal),
            Part::Finished { finish: Finish::Cancelled, .. } => {
                return Err(Refusal::Unavailable("the answer was cancelled".to_owned()));
            }
            _ => {}
        }
        for (name, mut data) in self.events.push(part) {
            match name {
                "message_start" => {
                    if let Value::Object(message) = data["message"].take() {
                        self.message = message;
                    }
                }
                "content_block_start" => self.content.push(data["content_block"].take()),
                "content_block_delta" => self.delta(&data["delta"]),
                "content_block_stop" => self.stop()?,
                "message_delta" => {
                    let mut message = std::mem::take(&mut self.message);
                    message.insert("content".to_owned(), std::mem::take(&mut self.content).into());
                    for field in ["stop_reason", "stop_sequence"] {
                        message.insert(field.to_owned(), data["delta"][field].take());
                    }
                    message.insert("usage".to_owned(), data["usage"].take());
                    return Ok(Some(message.into()));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn delta(&mut self, delta: &Value) {
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        let Some(block) = self.content.last_mut() else { return };
        for field in ["text", "thinking", "signature"] {
            if let Some(Value::String(whole)) = block.get_mut(field) {
                whole.push_str(text(field));
            }
        }
        self.input.push_str(text("partial_json"));
    }

    fn stop(&mut self) -> Result<(), Refusal> {
        let json = std::mem::take(&mut self.input);
        let Some(block) = self.content.last_mut().filter(|block| block["type"] == "tool_use") else {
            return Ok(());
        };
        if !json.is_empty() {
            let what = |e| Refusal::Internal(format!("the arguments of a tool call are no JSON: {e}"));
            block["input"] = serde_json::from_str(&json).map_err(what)?;
        }
        Ok(())
    }
}
