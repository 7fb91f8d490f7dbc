//! The Anthropic endpoints.

use serde_json::{Value, json};

use super::schema::{
    Field, about, answer, count, either, filled, flag, free, idle, list, model, number, object, only, some,
    text, word,
};
use super::{EVENTS, Endpoint};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let message = answer([
        ("id", text()),
        ("type", text()),
        ("role", text()),
        ("model", text()),
        ("content", list(free())),
        ("stop_reason", text()),
        ("usage", answer([("input_tokens", count(0)), ("output_tokens", count(0))])),
    ]);
    let example = json!({"model": "default", "max_tokens": 4, "messages": hello});
    let counted = answer([("input_tokens", count(0))]);
    vec![
        Endpoint::new("post", "/v1/messages", "Answer a conversation", message).or(EVENTS).takes(
            "MessagesRequest",
            messages(),
            example,
        ),
        Endpoint::new("post", "/v1/messages/count_tokens", "Count a prompt's tokens", counted).takes(
            "CountTokensRequest",
            object(&["model", "messages"], prompt()),
            json!({"model": "default", "messages": hello}),
        ),
    ]
}

pub(super) fn error() -> Value {
    answer([("type", only("error")), ("error", answer([("type", text()), ("message", text())]))])
}

/// A block of `kind`, which `cache_control` may mark.
fn block(kind: &'static str, required: &[&str], fields: Vec<Field>) -> Value {
    let shared = [("type", only(kind)), ("cache_control", idle(free()))];
    let required: Vec<&str> = ["type"].iter().chain(required).copied().collect();
    object(&required, shared.into_iter().chain(fields))
}

fn text_block() -> Value {
    block("text", &["text"], vec![("text", text())])
}

/// A text or text blocks.
fn texts() -> Value {
    either([text(), list(text_block())])
}

fn message() -> Value {
    let result = vec![("tool_use_id", text()), ("content", texts()), ("is_error", flag())];
    let thinking = vec![("thinking", text()), ("signature", idle(text()))];
    let call = vec![("id", text()), ("name", text()), ("input", free()), ("caller", idle(free()))];
    let asked = either([text_block(), block("tool_result", &["tool_use_id"], result)]);
    let said = either([
        text_block(),
        block("thinking", &["thinking"], thinking),
        block("tool_use", &["id", "name", "input"], call),
    ]);
    let turn = |role, blocks| {
        object(&["role", "content"], [("role", only(role)), ("content", either([text(), list(blocks)]))])
    };
    either([turn("user", asked), turn("assistant", said), turn("system", text_block())])
}

/// Fields of both requests.
fn prompt() -> Vec<Field> {
    let tool = object(
        &["name", "input_schema"],
        [
            ("type", only("custom")),
            ("name", filled()),
            ("description", text()),
            ("input_schema", about(free(), "A JSON schema")),
            ("strict", flag()),
            ("cache_control", idle(free())),
            ("eager_input_streaming", idle(flag())),
        ],
    );
    let alone = || ("disable_parallel_tool_use", flag());
    let choice = either([
        object(&["type"], [("type", word(&["auto", "any", "none"])), alone()]),
        object(&["type", "name"], [("type", only("tool")), ("name", text()), alone()]),
    ]);
    let budget = about(count(1024), "Below `max_tokens`");
    let thinking = either([
        object(&["type"], [("type", word(&["disabled", "adaptive"]))]),
        object(&["type", "budget_tokens"], [("type", only("enabled")), ("budget_tokens", budget)]),
    ]);
    vec![
        ("model", model()),
        ("messages", some(message())),
        ("system", texts()),
        ("tools", list(tool)),
        ("tool_choice", choice),
        ("thinking", thinking),
        ("cache_control", idle(free())),
    ]
}

fn messages() -> Value {
    let format = || object(&["type", "schema"], [("type", only("json_schema")), ("schema", free())]);
    let effort = word(&["low", "medium", "high", "xhigh", "max"]);
    let own = [
        ("max_tokens", count(1)),
        ("stream", flag()),
        ("stop_sequences", json!({"type": "array", "items": filled(), "maxItems": 16})),
        ("temperature", number(0.0, 1.0)),
        ("top_p", json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "example": 1})),
        ("top_k", count(0)),
        ("metadata", object(&[], [("user_id", text())])),
        ("service_tier", idle(word(&["auto", "standard_only"]))),
        ("output_config", object(&[], [("effort", effort), ("format", format())])),
        ("output_format", format()),
    ];
    object(&["model", "messages", "max_tokens"], prompt().into_iter().chain(own))
}
