//! Output items of a response.

use serde_json::{Value, json};

use super::super::chat::Whole;
use crate::{ToolUse, ids};

/// Items of a whole answer.
pub(super) fn of(whole: &Whole) -> Vec<Value> {
    let mut items = Vec::new();
    if !whole.reasoning.is_empty() {
        items.push(reasoning(&ids::new("rs_"), Some(&whole.reasoning)));
    }
    if !whole.text.is_empty() || whole.calls.is_empty() {
        items.push(message(&ids::new("msg_"), "completed", Some(&whole.text)));
    }
    items.extend(
        whole.calls.iter().map(|c| call(&ids::new("fc_"), "completed", &c.id, &c.name, &c.arguments)),
    );
    items
}

pub(super) fn reasoning(id: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> =
        text.map(|t| json!({"type": "reasoning_text", "text": t})).into_iter().collect();
    json!({"id": id, "type": "reasoning", "summary": [], "content": content})
}

pub(super) fn message(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(part).into_iter().collect();
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn call(id: &str, status: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name, "arguments": arguments})
}

pub(super) fn tool_choice(tool_use: &ToolUse) -> Value {
    match tool_use {
        ToolUse::None => json!("none"),
        ToolUse::Auto => json!("auto"),
        ToolUse::Required => json!("required"),
        ToolUse::Named(name) => json!({"type": "function", "name": name}),
    }
}
