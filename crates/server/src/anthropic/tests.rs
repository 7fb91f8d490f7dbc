//! Requests and answers as exact JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::request;
use super::response::{Events, Whole};
use crate::fields::Fields;
use crate::{Finish, Format, Part, Prompt, Refusal, ToolUse, Usage};

fn fields(body: Value) -> Fields {
    Fields::of("", body).unwrap()
}

fn minimal() -> Value {
    json!({"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "Hi"}]})
}

fn with(field: &str, value: Value) -> Value {
    let mut body = minimal();
    body[field] = value;
    body
}

fn refused_field(body: Value) -> String {
    match request::messages(fields(body)) {
        Err(Refusal::Bad { field: Some(field), .. }) => field,
        other => panic!("expected a refusal of a field, got {other:?}"),
    }
}

fn chat(body: Value) -> (Value, ToolUse, bool, Value) {
    match request::messages(fields(body)).unwrap().ask.prompt {
        Prompt::Chat { messages, tools, tool_use, parallel, extras } => {
            (json!({"messages": messages, "tools": tools}), tool_use, parallel, Value::Object(extras))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocks_become_messages_that_templates_know() {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "system": [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "B"}],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "calling"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "42"}]},
                {"type": "tool_result", "tool_use_id": "t1", "content": "bad", "is_error": true},
                {"type": "text", "text": "go on"},
            ]},
        ],
    });
    let (prompt, tool_use, parallel, extras) = chat(body);
    assert_eq!(
        prompt,
        json!({
            "messages": [
                {"role": "system", "content": "A\n\nB"},
                {"role": "user", "content": "one\n\ntwo"},
                {"role": "assistant", "content": "calling", "reasoning_content": "hm", "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
                ]},
                {"role": "tool", "content": "42", "tool_call_id": "t1", "name": "f"},
                {"role": "tool", "content": "Error: bad", "tool_call_id": "t1", "name": "f"},
                {"role": "user", "content": "go on"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true,
            }}],
        })
    );
    assert_eq!((tool_use, parallel, extras), (ToolUse::Auto, true, json!({"enable_thinking": false})));
}

#[test]
fn settings_reach_the_ask() {
    let mut body = minimal();
    for (field, value) in [
        ("temperature", json!(0.5)),
        ("top_p", json!(0.25)),
        ("top_k", json!(7)),
        ("stop_sequences", json!(["END"])),
        ("stream", json!(true)),
        ("metadata", json!({"user_id": "u"})),
        ("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
        ("output_config", json!({"format": {"type": "json_schema", "schema": {"type": "object"}}})),
        ("tools", json!([{"name": "f", "input_schema": {}}])),
        ("tool_choice", json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true})),
    ] {
        body[field] = value;
    }
    let request = request::messages(fields(body.clone())).unwrap();
    let s = &request.ask.sampling;
    assert_eq!((s.temperature, s.top_p, s.top_k), (0.5, 0.25, 7));
    assert_eq!(request.ask.stop, ["END"]);
    assert_eq!(request.ask.max_tokens, Some(2000));
    assert_eq!(request.ask.format, Format::JsonSchema(json!({"type": "object"})));
    assert_eq!((request.stream, request.thinking, request.user.as_deref()), (true, true, Some("u")));
    let (_, tool_use, parallel, extras) = chat(body);
    assert_eq!((tool_use, parallel), (ToolUse::Named("f".to_owned()), false));
    assert_eq!(extras, json!({"enable_thinking": true, "reasoning_effort": "low"}));
}

#[test]
fn what_cannot_take_effect_is_named() {
    for (field, value, named) in [
        ("max_tokens", json!(null), "max_tokens"),
        ("max_tokens", json!(0), "max_tokens"),
        ("messages", json!([]), "messages"),
        ("messages", json!("x"), "messages"),
        ("temperature", json!(1.5), "temperature"),
        ("mcp_servers", json!([{}]), "mcp_servers"),
        ("container", json!("c"), "container"),
        ("metadata", json!({"x": 1}), "metadata.x"),
        ("stop_sequences", json!([""]), "stop_sequences"),
        ("thinking", json!({"type": "enabled", "budget_tokens": 5000}), "thinking.budget_tokens"),
        ("tools", json!([{"type": "web_search_20250305", "name": "web_search"}]), "tools[0].type"),
        ("tools", json!([{"name": "f"}]), "tools[0].input_schema"),
        ("tool_choice", json!({"type": "any"}), "tool_choice.type"),
        ("tool_choice", json!({"type": "tool", "name": "g"}), "tool_choice.name"),
        ("system", json!([{"type": "image"}]), "system[0].type"),
        ("messages", json!([{"role": "assistant", "content": "So"}]), "messages[0]"),
        ("messages", json!([{"role": "robot", "content": ""}]), "messages[0].role"),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image", "source": {}}]}]),
            "messages[0].content[0].type",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]),
            "messages[0].content[0].tool_use_id",
        ),
    ] {
        assert_eq!(refused_field(with(field, value.clone())), named, "{field} = {value}");
    }
    assert!(request::count_tokens(fields(minimal())).is_err(), "counting has no max_tokens");
}

fn parts() -> Vec<Part> {
    let usage = Usage { prompt_tokens: 10, cached_tokens: 4, completion_tokens: 7, ..Usage::default() };
    vec![
        Part::Started { prompt_tokens: 10, cached_tokens: 4 },
        Part::Reasoning("hm".to_owned()),
        Part::Text { text: "He".to_owned(), tokens: Vec::new() },
        Part::Text { text: "y".to_owned(), tokens: Vec::new() },
        Part::CallStart { index: 0, id: "t1".to_owned(), name: "f".to_owned() },
        Part::CallArguments { index: 0, delta: "{\"x\":".to_owned() },
        Part::CallArguments { index: 0, delta: "1}".to_owned() },
        Part::CallEnd { index: 0 },
        Part::Finished { finish: Finish::Calls, usage },
    ]
}

#[test]
fn parts_become_events() {
    let mut events = Events::new("msg_1".to_owned(), "m".to_owned(), true);
    let got: Vec<_> = parts().into_iter().flat_map(|part| events.push(part)).collect();
    assert!(got.iter().all(|(name, data)| data["type"] == *name));
    let usage = |output: u32| json!({"input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": output});
    let delta = |i: u32, delta: Value| json!({"type": "content_block_delta", "index": i, "delta": delta});
    let start =
        |i: u32, block: Value| json!({"type": "content_block_start", "index": i, "content_block": block});
    let stop = |i: u32| json!({"type": "content_block_stop", "index": i});
    let expected = vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage(0),
        }}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "unsigned"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "He"})),
        delta(1, json!({"type": "text_delta", "text": "y"})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\":"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "1}"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage(7)}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(got.into_iter().map(|(_, data)| data).collect::<Vec<_>>(), expected);
}

#[test]
fn parts_become_one_message() {
    let mut whole = Whole::new("msg_1".to_owned(), "m".to_owned(), false);
    let message = parts().into_iter().find_map(|part| whole.push(part).unwrap()).unwrap();
    assert_eq!(
        message,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "text", "text": "Hey"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 7},
        })
    );
}

#[test]
fn endings_have_their_names() {
    let reason = |finish| {
        let mut events = Events::new(String::new(), String::new(), false);
        let got = events.push(Part::Finished { finish, usage: Usage::default() });
        got[0].1["delta"].clone()
    };
    assert_eq!(reason(Finish::Stop), json!({"stop_reason": "end_turn", "stop_sequence": null}));
    assert_eq!(reason(Finish::Length), json!({"stop_reason": "max_tokens", "stop_sequence": null}));
    let stopped = reason(Finish::StopString("END".to_owned()));
    assert_eq!(stopped, json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}));
    let busy = Refusal::Busy { retry_after: Duration::from_secs(3) };
    let mut events = Events::new(String::new(), String::new(), false);
    let error = json!({
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "the queue is full: try again in 3 s"},
    });
    assert_eq!(events.push(Part::Failed(busy)), [("error", error)]);
}
