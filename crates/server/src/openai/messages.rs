//! Chat messages: checked, and in the form that templates know.
//!
//! Invariant: content that a text model can't read is refused with its place.

use serde_json::{Map, Value, json};
use turbospark_text::Message;

use crate::{Fields, Refusal};

/// Reads `messages`.
pub(super) fn messages(fields: &mut Fields) -> Result<Vec<Message>, Refusal> {
    let list = fields.list("messages")?.ok_or_else(|| fields.wrong("messages", "this field is required"))?;
    if list.is_empty() {
        return Err(fields.wrong("messages", "expected at least one message"));
    }
    list.into_iter().enumerate().map(|(i, m)| message(format!("messages[{i}]"), m)).collect()
}

fn message(at: String, value: Value) -> Result<Message, Refusal> {
    let mut fields = Fields::of(at, value)?;
    let role = fields.required_text("role")?;
    let role = match role.as_str() {
        // Templates know only the older name.
        "developer" | "system" => "system",
        "user" => "user",
        "assistant" => "assistant",
        "tool" | "function" => "tool",
        _ => return Err(fields.wrong("role", "expected system, developer, user, assistant or tool")),
    };
    let mut more = Map::new();
    let content = content(&mut fields)?;
    for name in ["name", "tool_call_id", "refusal"] {
        if let Some(text) = fields.text(name)?
            && name != "refusal"
        {
            more.insert(name.to_owned(), text.into());
        }
    }
    // Both names are in use for what a model thought in an earlier turn.
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = fields.text(name)? {
            more.insert("reasoning_content".to_owned(), text.into());
        }
    }
    if role == "assistant"
        && let Some(calls) = fields.list("tool_calls")?
        && !calls.is_empty()
    {
        let at = fields.path("tool_calls");
        let calls = calls.into_iter().enumerate().map(|(i, c)| call(format!("{at}[{i}]"), c));
        more.insert("tool_calls".to_owned(), Value::Array(calls.collect::<Result<_, _>>()?));
    }
    if content.is_none() && role != "assistant" {
        return Err(fields.wrong("content", "this field is required"));
    }
    fields.ignore(&["audio", "annotations", "function_call"]);
    fields.finish()?;
    Ok(Message {
        role: role.to_owned(),
        content: Some(content.map_or(Value::Null, Value::String)),
        fields: more,
    })
}

/// The text of `content`: a string, or a list of text parts.
pub(super) fn content(fields: &mut Fields) -> Result<Option<String>, Refusal> {
    let at = fields.path("content");
    match fields.take("content") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Array(parts)) => {
            let mut text = String::new();
            for (i, part) in parts.into_iter().enumerate() {
                let mut part = Fields::of(format!("{at}[{i}]"), part)?;
                match part.required_text("type")?.as_str() {
                    "text" | "input_text" | "output_text" => text.push_str(&part.required_text("text")?),
                    "refusal" => text.push_str(&part.required_text("refusal")?),
                    kind => {
                        let why = format!("this model reads text alone, {kind} can't be used");
                        return Err(part.wrong("type", why));
                    }
                }
            }
            Ok(Some(text))
        }
        Some(_) => Err(fields.wrong("content", "expected a string or a list of parts")),
    }
}

fn call(at: String, value: Value) -> Result<Value, Refusal> {
    let mut call = Fields::of(at, value)?;
    let id = call.text("id")?.unwrap_or_default();
    if call.text("type")?.is_some_and(|kind| kind != "function") {
        return Err(call.wrong("type", "only function calls are supported"));
    }
    let mut function =
        call.object("function")?.ok_or_else(|| call.wrong("function", "this field is required"))?;
    let name = function.required_text("name")?;
    let arguments = function.take("arguments").unwrap_or_else(|| "{}".into());
    if !arguments.is_string() && !arguments.is_object() {
        return Err(function.wrong("arguments", "expected a string of JSON"));
    }
    Ok(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
}
