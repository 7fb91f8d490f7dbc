//! Messages and tools of the Ollama API as chat templates know them.

use serde_json::{Map, Value, json};
use turbospark_text::Message;

use crate::Refusal;
use crate::fields::Fields;

/// The conversation.
pub(crate) fn messages(list: Vec<Value>) -> Result<Vec<Message>, Refusal> {
    list.into_iter().enumerate().map(|(i, message)| one(message, &format!("messages[{i}]"))).collect()
}

fn one(message: Value, path: &str) -> Result<Message, Refusal> {
    let mut fields = Fields::of(path, message)?;
    let role = fields.required_text("role")?;
    if !matches!(role.as_str(), "system" | "user" | "assistant" | "tool") {
        return Err(fields.wrong("role", "must be \"system\", \"user\", \"assistant\" or \"tool\""));
    }
    let content = fields.text("content")?.unwrap_or_default();
    fields.refuse("images", "the model reads text alone")?;
    let mut message = Message::new(&role, content);
    if let Some(thinking) = fields.text("thinking")?.filter(|text| !text.is_empty()) {
        message.fields.insert("reasoning_content".to_owned(), thinking.into());
    }
    let calls = fields.list("tool_calls")?.unwrap_or_default();
    if !calls.is_empty() {
        let calls = calls.into_iter().enumerate();
        let calls: Result<Vec<_>, _> =
            calls.map(|(i, c)| call(c, &format!("{path}.tool_calls[{i}]"))).collect();
        message.fields.insert("tool_calls".to_owned(), calls?.into());
    }
    // Older clients write `name`.
    let name = fields.text("tool_name")?;
    if let Some(name) = fields.text("name")?.or(name) {
        message.fields.insert("name".to_owned(), name.into());
    }
    if let Some(id) = fields.text("tool_call_id")? {
        message.fields.insert("tool_call_id".to_owned(), id.into());
    }
    fields.finish()?;
    Ok(message)
}

fn call(value: Value, path: &str) -> Result<Value, Refusal> {
    let mut call = Fields::of(path, value)?;
    let mut function = call.required_object("function")?;
    let name = function.required_text("name")?;
    let arguments = function.map("arguments")?.unwrap_or_default();
    function.ignore(&["index"]);
    function.finish()?;
    let id = call.text("id")?;
    call.ignore(&["type"]);
    call.finish()?;
    let mut out = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    if let Some(id) = id {
        out["id"] = id.into();
    }
    Ok(out)
}

/// Tools in the neutral form, which is Ollama's too.
pub(crate) fn tools(list: Vec<Value>) -> Result<Vec<Value>, Refusal> {
    let one = |(i, tool): (usize, Value)| {
        let mut tool = Fields::of(format!("tools[{i}]"), tool)?;
        if tool.text("type")?.is_some_and(|kind| kind != "function") {
            return Err(tool.wrong("type", "must be \"function\""));
        }
        let mut function = tool.required_object("function")?;
        let mut out = Map::new();
        out.insert("name".to_owned(), function.required_text("name")?.into());
        if let Some(description) = function.text("description")? {
            out.insert("description".to_owned(), description.into());
        }
        if let Some(parameters) = function.map("parameters")? {
            out.insert("parameters".to_owned(), without_nulls(parameters).into());
        }
        function.finish()?;
        tool.finish()?;
        Ok(json!({"type": "function", "function": out}))
    };
    list.into_iter().enumerate().map(one).collect()
}

/// A client that knows a few keywords of schemas writes those that are not there as null.
fn without_nulls(map: Map<String, Value>) -> Map<String, Value> {
    let clean = |value| match value {
        Value::Object(map) => Value::Object(without_nulls(map)),
        other => other,
    };
    map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, clean(v))).collect()
}
