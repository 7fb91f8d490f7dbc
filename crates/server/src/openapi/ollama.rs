//! The Ollama endpoints.

use serde_json::{Value, json};

use super::Endpoint;
use super::schema::{
    Field, about, answer, count, count_to, either, flag, free, idle, list, model, number, object, only, seed,
    stop, text, word,
};

const LINES: &str = "application/x-ndjson";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let models = || answer([("models", list(answer([("name", text()), ("size", count(0))])))]);
    let shown = answer([("details", free()), ("model_info", free()), ("capabilities", list(text()))]);
    let ended = |said: Field| {
        answer([("model", text()), ("created_at", text()), said, ("done", flag()), ("done_reason", text())])
    };
    let few = json!({"num_predict": 4});
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let show = object(&["model"], [("model", model()), ("name", text()), ("verbose", only(false))]);
    vec![
        Endpoint::new("post", "/api/chat", "Answer a conversation", ended(("message", free())))
            .or(LINES)
            .takes(
                "OllamaChatRequest",
                chat(),
                json!({"model": "default", "messages": hello, "options": few}),
            ),
        Endpoint::new("post", "/api/generate", "Answer a prompt", ended(("response", text())))
            .or(LINES)
            .takes(
                "OllamaGenerateRequest",
                generate(),
                json!({"model": "default", "prompt": "Hello", "options": few}),
            ),
        Endpoint::new("post", "/api/embed", "Vectors of texts", answer([("embeddings", list(free()))]))
            .takes(
                "OllamaEmbedRequest",
                embed("input", either([text(), list(text())])),
                json!({"model": "default", "input": "Hello"}),
            ),
        Endpoint::new("post", "/api/embeddings", "The vector of a text", answer([("embedding", free())]))
            .takes(
                "OllamaEmbeddingsRequest",
                embed("prompt", text()),
                json!({"model": "default", "prompt": "Hello"}),
            ),
        Endpoint::new("post", "/api/show", "About a model", shown).takes(
            "OllamaShowRequest",
            show,
            json!({"model": "default"}),
        ),
        Endpoint::new("get", "/api/tags", "All models", models()),
        Endpoint::new("get", "/api/ps", "Models in memory", models()),
        Endpoint::new("get", "/api/version", "The server's version", answer([("version", text())])),
    ]
}

pub(super) fn error() -> Value {
    answer([("error", text())])
}

fn options() -> Value {
    let above = |high: Option<u32>| {
        let mut schema = json!({"type": "number", "exclusiveMinimum": 0, "example": 1});
        if let Some(high) = high {
            schema["maximum"] = high.into();
        }
        schema
    };
    object(
        &[],
        [
            ("num_predict", about(json!({"type": "integer", "minimum": -2, "example": 4}), "-1: no limit")),
            ("temperature", json!({"type": "number", "minimum": 0})),
            ("top_k", count(0)),
            ("top_p", above(Some(1))),
            ("min_p", number(0.0, 1.0)),
            ("seed", seed()),
            ("stop", stop()),
            ("repeat_penalty", above(None)),
            ("presence_penalty", json!({"type": "number", "example": 0})),
            ("frequency_penalty", json!({"type": "number", "example": 0})),
            ("num_ctx", about(count(0), "At most what the server gives")),
        ],
    )
}

fn keep_alive() -> Value {
    idle(either([
        json!({"type": "number", "example": 60}),
        json!({"type": "string", "pattern": "^-?[0-9]+[smh]$", "example": "5m"}),
    ]))
}

/// Fields of both requests for answers.
fn common() -> Vec<Field> {
    vec![
        ("model", model()),
        ("stream", about(flag(), "Default true")),
        ("format", either([only("json"), about(free(), "A JSON schema")])),
        ("options", options()),
        ("think", either([flag(), word(&["low", "medium", "high"])])),
        ("logprobs", flag()),
        ("top_logprobs", count_to(0, 20)),
        ("keep_alive", keep_alive()),
        ("truncate", only(false)),
        ("shift", only(false)),
    ]
}

fn chat() -> Value {
    let named = || object(&["name"], [("name", text()), ("arguments", free()), ("index", idle(count(0)))]);
    let call =
        object(&["function"], [("id", text()), ("type", idle(only("function"))), ("function", named())]);
    let message = object(
        &["role"],
        [
            ("role", word(&["user", "system", "assistant", "tool"])),
            ("content", text()),
            ("thinking", text()),
            ("tool_calls", list(call)),
            ("tool_name", text()),
            ("name", about(text(), "The older name of `tool_name`")),
            ("tool_call_id", text()),
        ],
    );
    let function = object(&["name"], [("name", text()), ("description", text()), ("parameters", free())]);
    let tool = object(&["type", "function"], [("type", only("function")), ("function", function)]);
    object(&["model"], common().into_iter().chain([("messages", list(message)), ("tools", list(tool))]))
}

fn generate() -> Value {
    let own = [("prompt", text()), ("system", text()), ("raw", flag())];
    object(&["model"], common().into_iter().chain(own))
}

fn embed(field: &'static str, input: Value) -> Value {
    let fields = [
        ("model", model()),
        (field, input),
        ("keep_alive", keep_alive()),
        ("truncate", only(false)),
        ("options", object(&[], [])),
    ];
    object(&["model", field], fields)
}
