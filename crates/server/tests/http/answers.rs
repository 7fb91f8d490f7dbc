//! Answers do not depend on what else runs, and end with their clients.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Running, fixture, options, post};

fn request(i: usize) -> Value {
    let prompt: Vec<usize> = (0..5 + 3 * i).map(|t| 1 + (t * 7 + i * 11) % 40).collect();
    json!({"prompt": prompt, "max_tokens": 20, "temperature": 1, "seed": i, "logprobs": 2})
}

#[test]
fn answers_are_the_same_alone_and_together() {
    let server = Running::start(options(fixture("llama-a-f32.gguf")));
    let ask = |i| server.post("/v1/completions", &request(i)).json()["choices"].clone();
    let alone: Vec<Value> = (0..8).map(ask).collect();
    let together: Vec<Value> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|i| scope.spawn(move || ask(i))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
    assert!(alone[0][0]["logprobs"]["tokens"].as_array().is_some_and(|t| !t.is_empty()), "{}", alone[0]);
}

#[test]
fn who_goes_takes_the_request_along() {
    let server = Running::start(options(fixture("llama-a-f32.gguf")));
    let long = json!({"prompt": [1, 2, 3], "max_tokens": 100_000, "stream": true, "temperature": 1});
    for stream in [true, false] {
        let mut body = long.clone();
        body["stream"] = stream.into();
        let mut connection = server.connect();
        connection.write_all(&post("/v1/completions", "", body.to_string().as_bytes())).unwrap();
        if stream {
            connection.read_exact(&mut [0; 64]).unwrap();
        }
        drop(connection);
    }
    let started = Instant::now();
    loop {
        let stats = server.get("/api/stats").json();
        if stats["running"] == 0 && stats["queued"] == 0 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{stats}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
