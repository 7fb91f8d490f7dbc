//! `input`: a text, or a list of items, as messages of a conversation.

use serde_json::{Value, json};
use turbospark_text::Message;

use super::super::messages::content;
use crate::{Fields, Refusal};

/// Appends what `input` says to `messages`.
pub(super) fn messages(fields: &mut Fields, messages: &mut Vec<Message>) -> Result<(), Refusal> {
    match fields.take("input") {
        Some(Value::String(text)) => messages.push(Message::new("user", text)),
        Some(Value::Array(items)) => {
            for (i, value) in items.into_iter().enumerate() {
                item(Fields::of(format!("input[{i}]"), value)?, messages)?;
            }
        }
        Some(_) => return Err(fields.wrong("input", "expected a string or a list of items")),
        None => {}
    }
    if messages.is_empty() {
        return Err(fields.wrong("input", "there is nothing to answer"));
    }
    Ok(())
}

fn item(mut item: Fields, messages: &mut Vec<Message>) -> Result<(), Refusal> {
    let kind = item.text("type")?.unwrap_or_else(|| "message".to_owned());
    item.ignore(&["id", "status"]);
    match kind.as_str() {
        "message" => {
            let role = match item.required_text("role")?.as_str() {
                "developer" | "system" => "system",
                "user" => "user",
                "assistant" => "assistant",
                _ => return Err(item.wrong("role", "expected system, developer, user or assistant")),
            };
            let text = content(&mut item)?.ok_or_else(|| item.wrong("content", "this field is required"))?;
            item.finish()?;
            match messages.last_mut().filter(|m| role == "assistant" && is_open(m)) {
                Some(open) => open.content = Some(text.into()),
                None => messages.push(Message::new(role, text)),
            }
        }
        "function_call" => {
            let (id, name) = (item.required_text("call_id")?, item.required_text("name")?);
            let arguments = item.required_text("arguments")?;
            item.finish()?;
            let call =
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            let calls = assistant(messages).fields.entry("tool_calls").or_insert_with(|| json!([]));
            if let Some(calls) = calls.as_array_mut() {
                calls.push(call);
            }
        }
        "function_call_output" => {
            let id = item.required_text("call_id")?;
            let output = match item.take("output") {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => return Err(item.wrong("output", "this field is required")),
            };
            item.finish()?;
            let mut message = Message::new("tool", output);
            message.fields.insert("tool_call_id".to_owned(), id.into());
            messages.push(message);
        }
        "reasoning" => {
            let texts = [item.list("content")?, item.list("summary")?];
            item.ignore(&["encrypted_content"]);
            item.finish()?;
            let parts = texts.into_iter().flatten().flatten();
            let text: String = parts.filter_map(|p| p.get("text")?.as_str().map(str::to_owned)).collect();
            if !text.is_empty() {
                let mut message = Message::new("assistant", "");
                message.fields.insert("reasoning_content".to_owned(), text.into());
                messages.push(message);
            }
        }
        _ => return Err(item.wrong("type", format!("items of type {kind} are not supported"))),
    }
    Ok(())
}

/// Whether text may still come to this turn: it began with reasoning.
fn is_open(message: &Message) -> bool {
    message.role == "assistant"
        && message.content == Some("".into())
        && !message.fields.contains_key("tool_calls")
}

/// The assistant's turn that goes on, or a new one.
fn assistant(messages: &mut Vec<Message>) -> &mut Message {
    if messages.last().is_none_or(|m| m.role != "assistant") {
        messages.push(Message::new("assistant", ""));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}
