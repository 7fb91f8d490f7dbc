//! Keys, bounds, and requests that no one should send.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use turbospark_server::{Server, ServerError, ServerOptions};

use crate::client::{Running, fixture, options, post, read};

fn small() -> ServerOptions {
    options(fixture("llama-a-f32.gguf"))
}

#[test]
fn without_the_key_nothing_but_health_is_told() {
    let server = Running::start(ServerOptions { keys: vec!["secret".to_owned()], ..small() });
    assert_eq!(server.get("/health").status, 200);
    for path in ["/v1/models", "/metrics", "/api/stats"] {
        server.get(path).refuses(401, None);
    }
    for header in ["Authorization: Bearer secret", "x-api-key: secret"] {
        let request =
            format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n");
        assert_eq!(server.raw(request.as_bytes()).status, 200, "{header}");
    }
    let wrong =
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-api-key: secrets\r\n\r\n";
    server.raw(wrong.as_bytes()).refuses(401, None);
}

#[tokio::test]
async fn other_machines_need_a_key() {
    let open = ServerOptions { address: ([0, 0, 0, 0], 0).into(), ..small() };
    assert!(matches!(Server::bind(open.clone()).await, Err(ServerError::NoKey(_))));
    assert!(Server::bind(ServerOptions { no_key: true, ..open }).await.is_ok());
}

#[test]
fn bad_requests_get_clear_answers_and_the_server_lives() {
    let server = Running::start(ServerOptions { max_body: 10_000, ..small() });
    let path = "/v1/completions";
    assert_eq!(server.raw(&post(path, "", &[b'x'; 20_000])).status, 413);
    assert_eq!(server.raw(&post(path, "", b"{\"prompt\": ")).status, 400);
    assert_eq!(server.raw(&post(path, "", b"{\"prompt\": \"\xff\xfe\"}")).status, 400);
    assert_eq!(server.raw(&post(path, "", "[".repeat(9_000).as_bytes())).status, 400);
    assert_eq!(server.post(path, &json!({"prompt": "a ".repeat(4000)})).status, 400);
    let bomb = format!(
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {}\r\n\r\n",
        "y".repeat(1_000_000)
    );
    assert_eq!(server.raw(bomb.as_bytes()).status, 431);
    assert_eq!(server.raw(b"\x16\x03\x01 no HTTP\r\n\r\n").status, 400);
    assert_eq!(server.get("/nowhere").status, 404);
    assert_eq!(server.get(path).status, 405);
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("turbospark_http_requests_total{endpoint=\"/v1/completions\",status=\"413\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_request_keeps_its_id() {
    let server = Running::start(small());
    let given = server
        .raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: mine\r\n\r\n");
    assert!(given.head.contains("x-request-id: mine"), "{given:?}");
    assert!(server.get("/health").head.contains("x-request-id: req_"));
}

#[test]
fn pages_of_other_sites_are_kept_out_where_no_key_does_it() {
    let get = |server: &Running, headers: &str| {
        server.raw(format!("GET /v1/models HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
    };
    let rebound = "Host: evil.example:8080\r\n";
    let foreign = "Host: localhost\r\nOrigin: https://evil.example\r\n";
    let server = Running::start(small());
    get(&server, rebound).refuses(403, None);
    get(&server, foreign).refuses(403, None);
    assert_eq!(get(&server, "Host: 127.0.0.1:80\r\nOrigin: http://127.0.0.1:80\r\n").status, 200);
    let server = Running::start(ServerOptions { cors: Some("https://evil.example".to_owned()), ..small() });
    assert_eq!(get(&server, foreign).status, 200);
    get(&server, rebound).refuses(403, None);
    let server = Running::start(ServerOptions { no_key: true, ..small() });
    assert_eq!(get(&server, rebound).status, 200);
    let server = Running::start(ServerOptions { keys: vec!["k".to_owned()], ..small() });
    assert_eq!(get(&server, &format!("{rebound}x-api-key: k\r\n")).status, 200);
    assert_eq!(server.get("/openapi.json").json()["openapi"], "3.1.0");
}

#[test]
fn silent_connections_are_closed() {
    let server = Running::start(ServerOptions { idle_timeout: Duration::from_millis(300), ..small() });
    let started = Instant::now();
    let mut half = server.connect();
    half.write_all(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        .unwrap();
    assert_eq!(read(half).status, 408);
    read(server.connect());
    assert!(started.elapsed() < Duration::from_secs(20));
}
