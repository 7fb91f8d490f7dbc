//! Several models in one server: by name, loaded when asked for, unloaded when idle.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turbospark_server::{ModelSource, ServerOptions};

use crate::client::{Running, fixture, options};

fn two() -> ServerOptions {
    let mut options = options(fixture("llama-a-f32.gguf"));
    options.models.push(ModelSource { name: "other".to_owned(), path: fixture("gemma3-a-f32.gguf") });
    options
}

fn request(model: &str) -> Value {
    json!({"model": model, "prompt": [1, 2, 3], "max_tokens": 8, "temperature": 0, "logprobs": 1})
}

fn ask(server: &Running, model: &str) -> Value {
    let answer = server.post("/v1/completions", &request(model));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn each_model_answers_to_its_name_and_the_first_to_none() {
    let server = Running::start(two());
    let listed = server.get("/v1/models").json();
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(names, ["m", "other"]);
    for (asked, answers) in [("m", "m"), ("default", "m"), ("", "m"), ("other", "other")] {
        assert_eq!(ask(&server, asked)["model"], answers, "{asked}");
    }
    let alone = Running::start(options(fixture("gemma3-a-f32.gguf")));
    let other = ask(&server, "other")["choices"].clone();
    assert_eq!(other, ask(&alone, "m")["choices"]);
    assert_ne!(other, ask(&server, "m")["choices"]);
}

#[test]
fn an_unknown_model_is_refused_with_the_names_that_there_are() {
    let server = Running::start(two());
    let messages = json!([{"role": "user", "content": "x"}]);
    for path in ["/v1/completions", "/v1/chat/completions", "/v1/messages", "/api/chat"] {
        let body = match path {
            "/v1/completions" => request("nobody"),
            _ => json!({"model": "nobody", "messages": messages, "max_tokens": 4}),
        };
        let body = if path == "/api/chat" { json!({"model": "nobody", "messages": messages}) } else { body };
        let refused = server.post(path, &body);
        assert_eq!(refused.status, 404, "{path}: {refused:?}");
        assert!(refused.body.contains("nobody") && refused.body.contains("m, other"), "{path}: {refused:?}");
    }
    assert_eq!(server.get("/v1/models/nobody").status, 404);
}

#[test]
fn an_idle_model_leaves_and_comes_back_when_asked_for() {
    let idle = Some(Duration::from_millis(200));
    let server = Running::start(ServerOptions { idle_unload: idle, preload: false, ..two() });
    assert_eq!(server.get("/ready").status, 503);
    let first = ask(&server, "other")["choices"].clone();
    let started = Instant::now();
    while server.get("/ready").status != 503 {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(ask(&server, "other")["choices"], first);
}
