//! How a server ends: running answers get the grace time, new connections none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use turbospark_server::ServerOptions;

use crate::client::{Running, chat_model, options, post, read};

/// A server and a stream of that many tokens that has begun.
fn begun(max_tokens: usize, grace: Duration) -> Option<(Running, TcpStream)> {
    let server = Running::start(ServerOptions { grace, ..options(chat_model()?) });
    let request =
        json!({"prompt": "One, two, three,", "max_tokens": max_tokens, "temperature": 0, "stream": true});
    let mut stream = server.connect();
    stream.write_all(&post("/v1/completions", "", request.to_string().as_bytes())).unwrap();
    let mut head = Vec::new();
    // The head and the first event have come.
    while !String::from_utf8_lossy(&head).contains("data: ") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    Some((server, stream))
}

#[test]
fn an_answer_within_the_grace_time_comes_whole() {
    let Some((mut server, stream)) = begun(60, Duration::from_secs(60)) else { return };
    server.end();
    let started = Instant::now();
    while TcpStream::connect(server.address).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10), "connections are still taken");
        std::thread::sleep(Duration::from_millis(10));
    }
    let rest = read(stream).head;
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("data: [DONE]"), "{rest}");
}

#[test]
fn an_answer_beyond_the_grace_time_is_told_that_the_server_ends() {
    let Some((server, stream)) = begun(4000, Duration::ZERO) else { return };
    let started = Instant::now();
    drop(server);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let rest = read(stream).head;
    assert!(rest.contains("shutting down") && !rest.contains("[DONE]"), "{rest}");
}
