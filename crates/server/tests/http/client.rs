//! A server in this process, and a client that reads whole responses or events.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use turbospark_server::{ModelSource, Server, ServerOptions};

/// A fixture of testdata/oracle.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle").join(name)
}

/// A real chat model, or a loud note that the test is skipped.
pub(crate) fn chat_model() -> Option<PathBuf> {
    let name = "smollm2-135m-instruct-q4_1.gguf";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    if path.exists() {
        return Some(path);
    }
    let _ =
        writeln!(std::io::stderr(), "SKIPPED: models/{name} is not there; tools/fetch-models downloads it");
    None
}

/// A running server, which ends with it.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Options for one model on a free port.
pub(crate) fn options(model: PathBuf) -> ServerOptions {
    ServerOptions {
        models: vec![ModelSource { name: "m".to_owned(), path: model }],
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        grace: Duration::from_secs(1),
        ..ServerOptions::default()
    }
}

impl Running {
    pub(crate) fn start(options: ServerOptions) -> Running {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let server = Server::bind(options).await.unwrap();
                tell.send(server.local_addr().unwrap()).unwrap();
                server.run(async { drop(stopped.await) }).await;
            });
        });
        Running { address: told.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    /// Lets it end, as a signal does.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
    }

    /// Sends a request as it stands and reads until the server closes.
    pub(crate) fn raw(&self, request: &[u8]) -> Response {
        let mut stream = self.connect();
        // A server that refuses a request early may close before all of it is sent.
        let _ = stream.write_all(request);
        read(stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.raw(&post(path, "", body.to_string().as_bytes()))
    }
}

/// The bytes of a request.
pub(crate) fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The data of each server-sent event, as text.
    pub(crate) fn events(&self) -> Vec<String> {
        self.body.lines().filter_map(|l| l.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    /// Asserts that it is an error about `field`.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, field: Option<&str>) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.json()["error"]["param"].as_str(), field, "{self:?}");
    }
}

/// Reads to the end of the connection.
pub(crate) fn read(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    // What came before a reset counts.
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..n]);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body) } else { body.to_owned() };
    Response { status, head: head.to_owned(), body }
}

fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        body.push_str(&rest[..size.min(rest.len())]);
        chunks = rest.get(size + 2..).unwrap_or_default();
    }
    body
}
