//! The splitter against what models of each dialect write, however it is cut.

#[path = "../support/bytes.rs"]
mod bytes;
mod golden;
mod hostile;
mod rounds;
mod vocabulary;

use serde_json::{Value, json};
use turbospark_text::{Dialect, Event, Splitter, Tool};

pub(crate) fn tools() -> Vec<Tool> {
    Tool::from_definitions(&json!([
        {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
            "hours": {"type": "array", "items": {"type": "integer"}},
            "where": {"$ref": "#/$defs/place"},
            "note": {"type": ["string", "null"]}
        }, "$defs": {"place": {"type": "object"}}}}},
        {"name": "ping", "parameters": {"type": "object", "properties": {}}},
        {"function": {"name": "write_file", "parameters": {"type": "object", "properties": {
            "path": {"type": "string"}, "content": {"type": "string"}
        }}}}
    ]))
}

/// Neighbouring pieces of the same kind put together.
pub(crate) fn merged(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        match (out.last_mut(), event) {
            (Some(Event::Text(a)), Event::Text(b)) | (Some(Event::Reasoning(a)), Event::Reasoning(b)) => {
                a.push_str(&b);
            }
            (
                Some(Event::ToolCallArguments { index: i, delta: a }),
                Event::ToolCallArguments { index, delta: b },
            ) if *i == index => a.push_str(&b),
            (_, event) => out.push(event),
        }
    }
    out
}

pub(crate) fn split(mut splitter: Splitter, pieces: &[&str]) -> Vec<Event> {
    let mut events: Vec<Event> = pieces.iter().flat_map(|p| splitter.push_text(p)).collect();
    events.extend(splitter.finish());
    merged(events)
}

/// The events of `raw`, which must be the same however it is cut in two, and in single characters.
pub(crate) fn events(make: impl Fn() -> Splitter, raw: &str) -> Vec<Event> {
    let whole = split(make(), &[raw]);
    for (at, _) in raw.char_indices() {
        assert_eq!(split(make(), &[&raw[..at], &raw[at..]]), whole, "cut at {at} of {raw:?}");
    }
    let characters: Vec<&str> = raw.split_inclusive(|_| true).collect();
    assert_eq!(split(make(), &characters), whole, "single characters of {raw:?}");
    whole
}

/// Events as short JSON: `{"text"}`, `{"think"}`, `{"call", "args", "id"?}`, `{"failed", "raw"}`.
pub(crate) fn summary(events: &[Event]) -> Value {
    let mut out = Vec::new();
    let mut arguments = String::new();
    for event in events {
        match event {
            Event::Text(text) => out.push(json!({ "text": text })),
            Event::Reasoning(text) => out.push(json!({ "think": text })),
            Event::ToolCallStart { id, name, .. } => {
                arguments.clear();
                let mut call = json!({ "call": name });
                if let Some(id) = id {
                    call["id"] = json!(id);
                }
                out.push(call);
            }
            Event::ToolCallArguments { delta, .. } => arguments.push_str(delta),
            Event::ToolCallEnd { .. } => {
                let parsed: Value = serde_json::from_str(&arguments)
                    .unwrap_or_else(|e| panic!("the arguments {arguments:?} are not JSON: {e}"));
                assert!(parsed.is_object(), "{arguments}");
                out.last_mut().unwrap()["args"] = parsed;
            }
            Event::ToolCallFailed { raw, .. } => out.push(json!({ "failed": raw })),
        }
    }
    Value::Array(out)
}

/// Checks one turn: what `raw`, which follows `prompt`, is split into.
#[track_caller]
pub(crate) fn turn(dialect: Dialect, prompt: &str, raw: &str, want: &Value) {
    let got = events(|| Splitter::new(dialect, &tools()).after_prompt(prompt), raw);
    let calls: Vec<usize> = got
        .iter()
        .filter_map(|e| if let Event::ToolCallStart { index, .. } = e { Some(*index) } else { None })
        .collect();
    assert!(calls.is_sorted_by(|a, b| a < b), "{calls:?}");
    assert_eq!(&summary(&got), want, "{raw:?}");
}
