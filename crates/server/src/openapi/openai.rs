//! The OpenAI endpoints: their requests, field by field, and the outlines of their answers.

use serde_json::{Value, json};

use super::schema::{
    Field, about, answer, count, count_to, either, filled, flag, free, idle, list, model, number, object,
    only, seed, some, stop, text, word,
};
use super::{EVENTS, Endpoint};

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let completion = |choice: Field| {
        let choice = answer([("index", count(0)), choice, ("finish_reason", text())]);
        answer([
            ("id", text()),
            ("object", text()),
            ("created", count(0)),
            ("model", text()),
            ("choices", list(choice)),
            ("usage", usage()),
        ])
    };
    let card = || answer([("id", text()), ("object", text()), ("created", count(0)), ("owned_by", text())]);
    let models = answer([("object", text()), ("data", list(card()))]);
    let vectors = answer([("object", text()), ("data", list(free())), ("model", text()), ("usage", free())]);
    let deleted = answer([("id", text()), ("object", text()), ("deleted", flag())]);
    let chat_example = json!({"model": "default", "messages": hello, "max_tokens": 4});
    let raw_example = json!({"model": "default", "prompt": "Hello", "max_tokens": 4});
    let response_example = json!({"model": "default", "input": "Hello", "max_output_tokens": 4});
    vec![
        Endpoint::new(
            "post",
            "/v1/chat/completions",
            "Answer a conversation",
            completion(("message", free())),
        )
        .or(EVENTS)
        .takes("ChatRequest", chat(), chat_example),
        Endpoint::new("post", "/v1/completions", "Continue a text", completion(("text", text())))
            .or(EVENTS)
            .takes("CompletionRequest", completions(), raw_example),
        Endpoint::new("post", "/v1/embeddings", "Vectors of texts", vectors).takes(
            "EmbeddingsRequest",
            embeddings(),
            json!({"model": "default", "input": "Hello"}),
        ),
        Endpoint::new("post", "/v1/responses", "Answer a conversation that may be kept", response())
            .or(EVENTS)
            .takes("ResponseRequest", responses(), response_example),
        Endpoint::new("get", "/v1/responses/{id}", "A kept response", response()),
        Endpoint::new("delete", "/v1/responses/{id}", "Forget a kept response", deleted),
        Endpoint::new("get", "/v1/models", "All models", models),
        Endpoint::new("get", "/v1/models/{id}", "One model", card()),
    ]
}

pub(super) fn error() -> Value {
    let nullable = || json!({"type": ["string", "null"]});
    let fields = [("message", text()), ("type", text()), ("param", nullable()), ("code", nullable())];
    answer([("error", answer(fields))])
}

fn usage() -> Value {
    answer([("prompt_tokens", count(0)), ("completion_tokens", count(0)), ("total_tokens", count(0))])
}

fn response() -> Value {
    answer([
        ("id", text()),
        ("object", text()),
        ("created_at", count(0)),
        ("status", text()),
        ("model", text()),
        ("output", list(free())),
        ("usage", free()),
    ])
}

/// Fields of all requests that sample.
fn sampling() -> Vec<Field> {
    vec![
        ("temperature", number(0.0, 2.0)),
        ("top_p", number(0.0, 1.0)),
        ("top_k", count(0)),
        ("min_p", number(0.0, 1.0)),
        ("repetition_penalty", json!({"type": "number", "exclusiveMinimum": 0, "example": 1})),
        ("presence_penalty", number(-2.0, 2.0)),
        ("frequency_penalty", number(-2.0, 2.0)),
        ("logit_bias", about(free(), "From a token id to a number from -100 to 100")),
        ("seed", seed()),
    ]
}

/// Fields that change nothing, or whose usual value does not.
fn harmless() -> Vec<Field> {
    vec![
        ("user", idle(text())),
        ("metadata", idle(free())),
        ("prompt_cache_key", idle(text())),
        ("prompt_cache_retention", idle(text())),
        ("safety_identifier", idle(text())),
        ("service_tier", word(&["auto", "default"])),
    ]
}

fn stream() -> Vec<Field> {
    let options = object(&[], [("include_usage", flag()), ("include_obfuscation", only(false))]);
    vec![("stream", flag()), ("stream_options", about(options, "With `stream: true` alone"))]
}

fn extras() -> Vec<Field> {
    vec![("reasoning_effort", word(&EFFORTS)), ("chat_template_kwargs", free())]
}

fn format() -> Value {
    let inner = object(
        &["schema"],
        [("name", text()), ("description", text()), ("strict", flag()), ("schema", free())],
    );
    either([
        object(&["type"], [("type", word(&["text", "json_object"]))]),
        object(&["type", "json_schema"], [("type", only("json_schema")), ("json_schema", inner)]),
        object(&["type", "pattern"], [("type", only("regex")), ("pattern", text())]),
        object(&["type", "grammar"], [("type", only("grammar")), ("grammar", text())]),
    ])
}

/// `nested`: with the function as an object of its own.
fn tools(nested: bool) -> Vec<Field> {
    let function = vec![
        ("name", text()),
        ("description", text()),
        ("parameters", about(free(), "A JSON schema")),
        ("strict", flag()),
    ];
    let kind = ("type", only("function"));
    let (tool, named) = if nested {
        let named = ("function", object(&["name"], [("name", text())]));
        let tool = object(&["type", "function"], [kind.clone(), ("function", object(&["name"], function))]);
        (tool, object(&["type", "function"], [kind, named]))
    } else {
        let named = object(&["type", "name"], [kind.clone(), ("name", text())]);
        (object(&["type", "name"], function.into_iter().chain([kind])), named)
    };
    vec![
        ("tools", list(tool)),
        ("tool_choice", either([word(&["auto", "none", "required"]), named])),
        ("parallel_tool_calls", flag()),
    ]
}

/// A text or text parts of these types.
fn content(kinds: &[&str]) -> Value {
    let part = object(&["type", "text"], [("type", word(kinds)), ("text", text())]);
    either([text(), list(part)])
}

fn message() -> Value {
    let call = object(
        &["function"],
        [
            ("id", text()),
            ("type", only("function")),
            ("function", object(&["name"], [("name", text()), ("arguments", either([text(), free()]))])),
        ],
    );
    let said = || content(&["text"]);
    either([
        object(
            &["role", "content"],
            [("role", word(&["user", "system", "developer"])), ("content", said()), ("name", text())],
        ),
        object(
            &["role"],
            [
                ("role", only("assistant")),
                ("content", said()),
                ("reasoning_content", text()),
                ("tool_calls", list(call)),
                ("refusal", text()),
                ("name", text()),
            ],
        ),
        object(
            &["role", "content"],
            [("role", only("tool")), ("content", said()), ("tool_call_id", text()), ("name", text())],
        ),
    ])
}

fn chat() -> Value {
    let own = [
        ("model", model()),
        ("messages", some(message())),
        ("max_completion_tokens", about(count(1), "Reasoning counts too")),
        ("max_tokens", about(count(1), "The older name of `max_completion_tokens`")),
        ("n", count_to(1, 16)),
        ("stop", stop()),
        ("logprobs", flag()),
        ("top_logprobs", count_to(0, 20)),
        ("response_format", format()),
        ("store", only(false)),
        ("modalities", only(json!(["text"]))),
        ("verbosity", only("medium")),
    ];
    let shared = [sampling(), stream(), tools(true), extras(), harmless()];
    object(&["messages"], own.into_iter().chain(shared.into_iter().flatten()))
}

/// Texts or token ids.
fn prompts(most: usize) -> Value {
    let tokens = || some(count_to(0, u32::MAX.into()));
    let several = |items: Value| {
        let mut list = some(items);
        list["maxItems"] = most.into();
        list
    };
    either([text(), several(text()), tokens(), several(tokens())])
}

fn completions() -> Value {
    let own = [
        ("model", model()),
        ("prompt", prompts(64)),
        ("max_tokens", about(count(0), "Default 16")),
        ("n", count_to(1, 16)),
        ("best_of", about(count_to(1, 16), "Equal to `n`")),
        ("suffix", only("")),
        ("echo", flag()),
        ("stop", stop()),
        ("logprobs", count_to(0, 20)),
        ("response_format", format()),
        ("store", only(false)),
    ];
    let shared = [sampling(), stream(), harmless()];
    object(&["prompt"], own.into_iter().chain(shared.into_iter().flatten()))
}

fn embeddings() -> Value {
    object(
        &["input"],
        [
            ("model", model()),
            ("input", prompts(2048)),
            ("encoding_format", word(&["float", "base64"])),
            ("dimensions", about(count(1), "The length of the model's vectors")),
            ("user", idle(text())),
        ],
    )
}

fn item() -> Value {
    let said = content(&["input_text", "output_text", "text"]);
    let texts = || list(answer([("text", text())]));
    let id = || [("id", idle(text())), ("status", idle(text()))];
    let with = |required: &[&str], fields: Vec<Field>| object(required, fields.into_iter().chain(id()));
    let role = word(&["user", "system", "developer", "assistant"]);
    either([
        with(&["role", "content"], vec![("type", only("message")), ("role", role), ("content", said)]),
        with(
            &["type", "call_id", "name", "arguments"],
            vec![
                ("type", only("function_call")),
                ("call_id", text()),
                ("name", text()),
                ("arguments", text()),
            ],
        ),
        with(
            &["type", "call_id", "output"],
            vec![("type", only("function_call_output")), ("call_id", text()), ("output", text())],
        ),
        with(
            &["type"],
            vec![
                ("type", only("reasoning")),
                ("content", texts()),
                ("summary", texts()),
                ("encrypted_content", idle(text())),
            ],
        ),
    ])
}

fn responses() -> Value {
    let flat = object(
        &["type", "schema"],
        [
            ("type", only("json_schema")),
            ("name", text()),
            ("description", text()),
            ("strict", flag()),
            ("schema", free()),
        ],
    );
    let format = either([object(&["type"], [("type", word(&["text", "json_object"]))]), flat]);
    let reasoning = object(
        &[],
        [("effort", word(&EFFORTS)), ("summary", idle(text())), ("generate_summary", idle(text()))],
    );
    let own = [
        ("model", model()),
        ("input", either([text(), list(item())])),
        ("previous_response_id", filled()),
        ("instructions", text()),
        ("max_output_tokens", count(1)),
        ("reasoning", reasoning),
        ("text", object(&[], [("format", format), ("verbosity", only("medium"))])),
        ("store", about(flag(), "Default true")),
        ("stream", flag()),
        ("stream_options", idle(free())),
        ("include", either([only(json!([])), only(json!(["reasoning.encrypted_content"]))])),
        ("truncation", only("disabled")),
        ("background", only(false)),
        ("top_logprobs", only(0)),
    ];
    let shared = [sampling(), tools(false), extras(), harmless()];
    object(&["input"], own.into_iter().chain(shared.into_iter().flatten()))
}
