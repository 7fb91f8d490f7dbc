//! The OpenAI endpoints: streaming equals not streaming, fields take effect, others are named.

use serde_json::{Value, json};

use crate::client::{Running, chat_model, fixture, options};

fn chat(more: Value) -> Value {
    let mut request = json!({
        "model": "m", "temperature": 0, "max_tokens": 24, "messages": [{"role": "user", "content": "Name three colours."}],
    });
    let Value::Object(more) = more else { panic!("fields") };
    request.as_object_mut().unwrap().extend(more);
    request
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_stream_adds_up_to_the_whole_answer() {
    let Some(model) = chat_model() else { return };
    let server = Running::start(options(model));
    let whole = server.post("/v1/chat/completions", &chat(json!({}))).json();
    assert!(!content(&whole).is_empty(), "{whole}");
    let more = json!({"stream": true, "stream_options": {"include_usage": true}});
    let events = server.post("/v1/chat/completions", &chat(more)).events();
    assert_eq!(events.last().unwrap(), "[DONE]");
    let parts: Vec<Value> =
        events[..events.len() - 1].iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    let text: String = parts.iter().filter_map(|p| p["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, content(&whole));
    let usage = &parts.last().unwrap()["usage"];
    assert_eq!(usage["completion_tokens"], whole["usage"]["completion_tokens"]);
    assert!(usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap() > 0, "{usage}");
}

#[test]
fn a_format_is_kept() {
    let Some(model) = chat_model() else { return };
    let server = Running::start(options(model));
    let schema = json!({
        "type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "json_schema": {"name": "c", "schema": schema}});
    let answer = server.post("/v1/chat/completions", &chat(json!({"response_format": format}))).json();
    let parsed: Value = serde_json::from_str(content(&answer)).unwrap();
    assert!(["red", "green"].contains(&parsed["colour"].as_str().unwrap()), "{answer}");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[test]
fn a_required_tool_is_called_with_arguments_of_its_schema() {
    let Some(model) = chat_model() else { return };
    let server = Running::start(options(model));
    let parameters = json!({
        "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"],
        "additionalProperties": false,
    });
    let tools = json!([{"type": "function", "function": {"name": "weather", "parameters": parameters}}]);
    let more = json!({"tools": tools, "tool_choice": "required", "max_tokens": 64});
    let answer = server.post("/v1/chat/completions", &chat(more)).json();
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "weather", "{answer}");
    let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert!(["Rome", "Oslo"].contains(&arguments["city"].as_str().unwrap()));
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn stop_strings_seeds_and_log_probabilities_take_effect() {
    let Some(model) = chat_model() else { return };
    let server = Running::start(options(model));
    let whole = server.post("/v1/chat/completions", &chat(json!({}))).json();
    let text = content(&whole);
    let stop: String = text.chars().skip(4).take(3).collect();
    let more = json!({"stop": stop, "logprobs": true, "top_logprobs": 2});
    let stopped = server.post("/v1/chat/completions", &chat(more)).json();
    assert_eq!(content(&stopped), &text[..text.find(&stop).unwrap()]);
    let tokens = stopped["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert!(tokens.iter().all(|t| t["top_logprobs"].as_array().unwrap().len() == 2), "{stopped}");
    let seeded = json!({"temperature": 1, "seed": 7, "n": 2});
    let twice = [(); 2]
        .map(|()| server.post("/v1/chat/completions", &chat(seeded.clone())).json()["choices"].clone());
    assert_eq!(twice[0], twice[1]);
    assert_ne!(twice[0][0]["message"], twice[0][1]["message"]);
}

#[test]
fn responses_go_on_from_stored_ones() {
    let Some(model) = chat_model() else { return };
    let server = Running::start(options(model));
    let ask = |more: Value| {
        let mut request = json!({"model": "m", "temperature": 0, "max_output_tokens": 16});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/responses", &request)
    };
    let first = ask(json!({"input": "Name a colour."})).json();
    let id = first["id"].as_str().unwrap();
    let second = ask(json!({"input": "Another one.", "previous_response_id": id})).json();
    assert!(second["usage"]["input_tokens"].as_u64() > first["usage"]["input_tokens"].as_u64(), "{second}");
    assert_eq!(server.get(&format!("/v1/responses/{id}")).json(), first);
    ask(json!({"input": "x", "previous_response_id": "resp_0"})).refuses(404, None);
    let events = ask(json!({"input": "Name a colour.", "stream": true})).events();
    let events: Vec<Value> = events.iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    for (i, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], i, "{event}");
    }
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["output"][0]["content"], first["output"][0]["content"]);
}

#[test]
fn raw_text_is_continued() {
    let server = Running::start(options(fixture("llama-a-f32.gguf")));
    let request = json!({"prompt": ["a", [1, 2, 3]], "max_tokens": 4, "temperature": 0, "logprobs": 1});
    let answer = server.post("/v1/completions", &request).json();
    assert_eq!(answer["choices"].as_array().unwrap().len(), 2, "{answer}");
    assert_eq!(answer["usage"]["completion_tokens"].as_u64().map(|n| n <= 8), Some(true), "{answer}");
}

#[test]
fn fields_that_cannot_take_effect_are_named() {
    let server = Running::start(options(fixture("llama-a-f32.gguf")));
    let with = |name: &str, value: Value| chat(json!({name: value}));
    for (name, value) in [
        ("audio", json!({})),
        ("store", json!(true)),
        ("service_tier", json!("flex")),
        ("temperature", json!(3)),
        ("temperature", json!("hot")),
        ("n", json!(0)),
        ("stop", json!(["", "a"])),
        ("stream_options", json!({"include_usage": true})),
        ("tool_choice", json!("required")),
        ("logit_bias", json!({"x": 1})),
        ("reasoning_effort", json!("extreme")),
        ("top_logprobs", json!(3)),
    ] {
        server.post("/v1/chat/completions", &with(name, value)).refuses(400, Some(name));
    }
    let image = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]);
    let at = Some("messages[0].content[0].type");
    server.post("/v1/chat/completions", &with("messages", image)).refuses(400, at);
    server.post("/v1/chat/completions", &chat(json!({"model": "other"}))).refuses(404, None);
    server.post("/v1/embeddings", &json!({"model": "m", "input": "a"})).refuses(400, Some("model"));
}
