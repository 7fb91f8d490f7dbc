"""A server that answers as `turbospark serve` would, without a model: the page's own files, and answers that a test has prepared."""

import json
import pathlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = pathlib.Path(__file__).parents[2] / "src" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
STATS = {"model": "stand-in", "tokens_per_second": 12.34, "expert_hit_rate": 0.875, "memory_bytes": 5 << 30, "budget_bytes": 8 << 30,
         "running": 1, "queued": 0}


def text(content, size=4):
    """Deltas of a text, a few characters each."""
    return [{"content": content[i : i + size]} for i in range(0, len(content), size)]


class StandIn:
    """What is answered next, and what was asked."""

    def __init__(self):
        self.script = []
        self.asked = []
        self.keys = []
        self.broken_off = threading.Event()
        self.key = None
        self.stats = STATS
        standin = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                standin.get(self)

            def do_POST(self):
                standin.post(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answers(self, deltas, pause=0.0, finish="stop", end=True):
        """The next answer: deltas with a pause after each; `end=False` breaks off after them."""
        self.script.append(("stream", deltas, pause, finish, end))

    def refuses(self, status, message="no", headers=None):
        """The next request is refused."""
        self.script.append(("refuse", status, message, headers or {}))

    def get(self, http):
        if http.path == "/v1/models":
            if self.allowed(http):
                send_json(http, 200, {"object": "list", "data": [{"id": "stand-in"}, {"id": "another-model"}]})
        elif http.path == "/api/stats":
            if self.allowed(http):
                send_json(http, 200 if self.stats else 404, self.stats or {"error": {"message": "no such path"}})
        else:
            self.file(http)

    def file(self, http):
        name = "index.html" if http.path == "/" else http.path.removeprefix("/page/")
        path = PAGE / name
        if path.suffix not in TYPES or not path.is_file():
            return send_json(http, 404, {"error": {"message": f"no such path: {http.path}"}})
        policy = (PAGE / "csp.txt").read_text()
        send(http, 200, path.read_bytes(), {"Content-Type": TYPES[path.suffix], "Content-Security-Policy": policy, "Cache-Control": "no-cache"})

    def allowed(self, http):
        if self.key is None or http.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        send_json(http, 401, {"error": {"message": "no key"}})
        return False

    def post(self, http):
        body = json.loads(http.rfile.read(int(http.headers["Content-Length"])))
        if not self.allowed(http):
            return
        self.asked.append(body)
        kind, *rest = self.script.pop(0) if self.script else ("stream", text("Hello."), 0, "stop", True)
        if kind == "refuse":
            status, message, headers = rest
            return send_json(http, status, {"error": {"message": message}}, headers)
        self.stream(http, *rest)

    def stream(self, http, deltas, pause, finish, end):
        http.send_response(200)
        http.send_header("Content-Type", "text/event-stream")
        http.send_header("Connection", "close")
        http.end_headers()
        http.close_connection = True
        try:
            for delta in deltas:
                event(http, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                time.sleep(pause)
            if not end:
                return
            event(http, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            event(http, {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": len(deltas), "total_tokens": 5 + len(deltas)}})
            http.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            self.broken_off.set()


def event(http, value):
    http.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
    http.wfile.flush()


def send(http, status, body, headers):
    http.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(body)


def send_json(http, status, value, headers=None):
    send(http, status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})
