//! System prompts and messages of the Anthropic API as the messages that chat templates know.
//!
//! Invariants: texts that follow one another in a message are joined by an empty line; a tool's result becomes a message of its own,
//! at its place, with the name of the tool that was called.

use std::collections::HashMap;

use serde_json::{Value, json};
use turbospark_text::Message;

use crate::Refusal;
use crate::fields::Fields;

/// Joins texts that the client cut apart.
const JOINT: &str = "\n\n";

/// The system prompt, a string or a list of text blocks; no message for none.
pub(crate) fn system(value: Value) -> Result<Vec<Message>, Refusal> {
    let text = match value {
        Value::Null => return Ok(Vec::new()),
        other => texts(other, "system")?,
    };
    Ok(if text.is_empty() { Vec::new() } else { vec![Message::new("system", text)] })
}

/// The conversation.
pub(crate) fn messages(list: Vec<Value>) -> Result<Vec<Message>, Refusal> {
    let mut out = Vec::new();
    let mut names = HashMap::new();
    let mut last = String::new();
    let n = list.len();
    for (i, message) in list.into_iter().enumerate() {
        let path = format!("messages[{i}]");
        let mut fields = Fields::of(&path, message)?;
        let role = fields.required_text("role")?;
        let content = fields.required("content")?;
        let at = fields.path("content");
        match role.as_str() {
            "user" => user(content, &at, &names, &mut out)?,
            "assistant" => out.push(assistant(content, &at, &mut names)?),
            "system" => out.push(Message::new("system", texts(content, &at)?)),
            _ => return Err(fields.wrong("role", "must be \"user\" or \"assistant\"")),
        }
        fields.finish()?;
        last = role;
    }
    if n == 0 {
        return Err(Refusal::bad("messages", "messages: must have at least one message"));
    }
    if last == "assistant" {
        let path = format!("messages[{}]", n - 1);
        let message =
            format!("{path}: an answer that the client began can't be continued; end with a user's message");
        return Err(Refusal::bad(path, message));
    }
    Ok(out)
}

fn user(
    content: Value,
    path: &str,
    names: &HashMap<String, String>,
    out: &mut Vec<Message>,
) -> Result<(), Refusal> {
    let blocks = match content {
        Value::String(text) => {
            out.push(Message::new("user", text));
            return Ok(());
        }
        other => blocks(other, path)?,
    };
    let mut text: Option<String> = None;
    for (mut block, kind) in blocks {
        match kind.as_str() {
            "text" => join(&mut text, &block.required_text("text")?),
            "tool_result" => {
                out.extend(text.take().map(|text| Message::new("user", text)));
                out.push(tool_result(&mut block, names)?);
            }
            other => return Err(refused(&block, other)),
        }
        block.ignore(&["cache_control"]);
        // No answer cites anything.
        block.refuse("citations", "citations are not supported; leave it out")?;
        block.finish()?;
    }
    out.extend(text.map(|text| Message::new("user", text)));
    Ok(())
}

fn tool_result(block: &mut Fields, names: &HashMap<String, String>) -> Result<Message, Refusal> {
    let id = block.required_text("tool_use_id")?;
    let Some(name) = names.get(&id) else {
        return Err(block.wrong("tool_use_id", format!("no earlier tool_use block has the id {id:?}")));
    };
    let at = block.path("content");
    let mut text = match block.take("content") {
        None => String::new(),
        Some(content) => texts(content, &at)?,
    };
    if block.flag("is_error")?.unwrap_or(false) {
        // Templates know no failed results.
        text.insert_str(0, "Error: ");
    }
    let mut message = Message::new("tool", text);
    message.fields.insert("tool_call_id".to_owned(), id.into());
    message.fields.insert("name".to_owned(), name.clone().into());
    Ok(message)
}

fn assistant(content: Value, path: &str, names: &mut HashMap<String, String>) -> Result<Message, Refusal> {
    let blocks = match content {
        Value::String(text) => return Ok(Message::new("assistant", text)),
        other => blocks(other, path)?,
    };
    let (mut text, mut thinking, mut calls) = (None, None, Vec::new());
    for (mut block, kind) in blocks {
        match kind.as_str() {
            "text" => join(&mut text, &block.required_text("text")?),
            "thinking" => {
                join(&mut thinking, &block.required_text("thinking")?);
                block.ignore(&["signature"]);
            }
            "tool_use" => {
                let id = block.required_text("id")?;
                let name = block.required_text("name")?;
                let input = block.required_object("input")?.rest();
                calls.push(json!({
                    "id": id, "type": "function", "function": {"name": name, "arguments": input},
                }));
                names.insert(id, name);
                block.ignore(&["caller"]);
            }
            other => return Err(refused(&block, other)),
        }
        block.ignore(&["cache_control", "citations"]);
        block.finish()?;
    }
    let mut message = Message::new("assistant", text.unwrap_or_default());
    if let Some(thinking) = thinking {
        message.fields.insert("reasoning_content".to_owned(), thinking.into());
    }
    if !calls.is_empty() {
        message.fields.insert("tool_calls".to_owned(), calls.into());
    }
    Ok(message)
}

/// A string, or the texts of text blocks.
fn texts(value: Value, path: &str) -> Result<String, Refusal> {
    let blocks = match value {
        Value::String(text) => return Ok(text),
        other => blocks(other, path)?,
    };
    let mut text = None;
    for (mut block, kind) in blocks {
        if kind != "text" {
            return Err(refused(&block, &kind));
        }
        join(&mut text, &block.required_text("text")?);
        block.ignore(&["cache_control"]);
        block.refuse("citations", "citations are not supported; leave it out")?;
        block.finish()?;
    }
    Ok(text.unwrap_or_default())
}

/// A list's blocks, each with its type.
fn blocks(value: Value, path: &str) -> Result<Vec<(Fields, String)>, Refusal> {
    let Value::Array(list) = value else {
        let message = format!("{path}: expected a string or a list of blocks");
        return Err(Refusal::bad(path, message));
    };
    let one = |(i, block): (usize, Value)| {
        let mut block = Fields::of(format!("{path}[{i}]"), block)?;
        let kind = block.required_text("type")?;
        Ok((block, kind))
    };
    list.into_iter().enumerate().map(one).collect()
}

fn refused(block: &Fields, kind: &str) -> Refusal {
    match kind {
        "image" | "document" => {
            block.wrong("type", format!("the model reads text alone, and this is \"{kind}\""))
        }
        other => block.wrong("type", format!("blocks of type {other:?} are not supported here")),
    }
}

fn join(text: &mut Option<String>, more: &str) {
    match text {
        None => *text = Some(more.to_owned()),
        Some(text) => {
            text.push_str(JOINT);
            text.push_str(more);
        }
    }
}
