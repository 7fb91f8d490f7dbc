"""Clients that die, stall, flood and lie: each gets a clear status or nothing, and the others are answered all the same."""

import json
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

CHAT = "/v1/chat/completions"
BODIES = {CHAT: {"max_tokens": 4, "temperature": 0}, "/v1/messages": {"max_tokens": 4}, "/api/chat": {"stream": False}}


def body(model, path=CHAT, **extra):
    return {"model": model, "messages": [{"role": "user", "content": "Count to a hundred."}]} | BODIES[path] | extra


def answers(server, model):
    answer = httpx.post(server.url + CHAT, json=body(model), timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


@pytest.fixture(autouse=True)
def others_are_answered(server, model):
    before = answers(server, model)
    yield
    assert answers(server, model) == before


def raw(server, data, seconds=10):
    """What the server answers to bytes; it may close before it has read them all."""
    with socket.create_connection(("127.0.0.1", server.port), seconds) as s:
        try:
            s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        out = b""
        try:
            while chunk := s.recv(65536):
                out += chunk
                if b"\r\n\r\n" in out:
                    break
        except (ConnectionResetError, TimeoutError):
            pass
        return out


def request(body, path=CHAT, headers=b""):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + headers + b"\r\n" + body


def running(server):
    for line in httpx.get(server.url + "/metrics").text.splitlines():
        if "running" in line and not line.startswith("#"):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError("no gauge of running requests")


def soon(check, seconds=10):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "did not become true in time"
        time.sleep(0.05)


def test_a_killed_client_frees_its_place(server, model):
    code = (
        "import httpx, sys\n"
        f"with httpx.stream('POST', {server.url + CHAT!r}, json={body(model, stream=True, max_tokens=1500)!r}, timeout=60) as r:\n"
        "    for line in r.iter_lines():\n"
        "        print(line, flush=True)\n"
    )
    clients = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    for client in clients:
        assert client.stdout.readline().startswith(b"data:")
    for client in clients:
        client.kill()
        client.wait()
        client.stdout.close()
    soon(lambda: running(server) == 0)


def test_a_reader_of_one_byte_a_second_stops_nobody(server, model):
    slow = socket.create_connection(("127.0.0.1", server.port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    slow.sendall(request(json.dumps(body(model, stream=True, max_tokens=1500)).encode()))
    end = time.monotonic() + 4
    while time.monotonic() < end:
        slow.recv(1)
        started = time.monotonic()
        answers(server, model)
        assert time.monotonic() - started < 20
        time.sleep(1)
    slow.close()
    soon(lambda: running(server) == 0)


def test_a_body_of_100_mb_is_too_large(server):
    size = 100 << 20
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    before = server.memory()
    assert b" 413 " in raw(server, head.encode() + b'{"model": "' + b"x" * size).split(b"\r\n")[0]
    assert server.memory() - before < 64 << 20
    chunked = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += (b"100000\r\n" + b"x" * (1 << 20) + b"\r\n") * 100 + b"0\r\n\r\n"
    first = raw(server, chunked).split(b"\r\n")[0]
    assert b" 413 " in first or first == b"", first


@pytest.mark.parametrize("path", BODIES)
def test_a_prompt_of_a_million_tokens_is_refused(server, model, path):
    prompt = [{"role": "user", "content": "a b " * 500_000}]
    answer = httpx.post(server.url + path, json=body(model, path, messages=prompt), timeout=60)
    assert answer.status_code in (400, 413), answer.text[:500]
    assert answer.json()["error"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("data", [
    b"", b"{", b"null", b"[]", b'{"model": "\xff\xfe"}', b'{"model": "\\ud800"}', b'{"a": 1e999}', b"\x00" * 64,
    b'{"x":' * 100_000, b"[" * 100_000, b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
], ids=range(11))
def test_broken_json_is_a_400(server, path, data):
    answer = httpx.post(server.url + path, content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


def nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


def constrained(server, model, schema):
    format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    started = time.monotonic()
    answer = httpx.post(server.url + CHAT, json=body(model, response_format=format), timeout=60)
    assert time.monotonic() - started < 20
    return answer


@pytest.mark.parametrize("schema", [
    {"type": "string", "minLength": 5, "maxLength": 2},
    {"type": "integer", "minimum": 5, "maximum": 2},
    {"enum": []},
    False,
    {"$ref": "#/$defs/none"},
    {"$ref": "http://example.com/schema"},
    {"type": "string", "pattern": "(" * 50},
    {"type": "no-such-type"},
], ids=range(8))
def test_a_schema_that_cannot_be_kept_is_a_400(server, model, schema):
    answer = constrained(server, model, schema)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("schema", [{"type": "string", "pattern": "(a{1000}){1000}"}, nested(55)], ids=range(2))
def test_a_schema_that_costs_much_is_kept_or_refused(server, model, schema):
    assert constrained(server, model, schema).status_code in (200, 400)


def test_header_bombs_are_refused(server):
    many = b"".join(b"X-H%d: y\r\n" % i for i in range(20_000))
    assert raw(server, request(b"{}", headers=many)).split(b" ")[1:2] in ([b"431"], [b"400"], [])
    long = b"X-Long: " + b"y" * (8 << 20) + b"\r\n"
    assert raw(server, request(b"{}", headers=long)).split(b" ")[1:2] in ([b"431"], [b"400"], [])
    endless = b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert raw(server, endless).split(b" ")[1:2] in ([b"414"], [b"431"], [b"400"], [])


def test_bytes_that_are_no_http_are_refused(server):
    for data in (b"\x16\x03\x01\x02\x00\x01", b"\x00" * 1000, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        assert b" 200 " not in raw(server, data, 2)


def test_many_silent_connections_stop_nobody(server, model):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for s in idle[:100]:
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n")
    answers(server, model)
    for s in idle:
        s.close()


def test_a_result_does_not_depend_on_what_else_runs(server, model):
    prompts = [[{"role": "user", "content": text}] for text in ("Name a city.", "Why is the sky blue?", "Say hi. " * 60, "2+2?")]

    def ask(messages):
        answer = httpx.post(server.url + CHAT, json=body(model, messages=messages, max_tokens=24, temperature=0), timeout=120)
        return answer.json()["choices"][0]["message"]["content"]

    alone = [ask(messages) for messages in prompts]
    together = [None] * 8

    def into(i):
        together[i] = ask(prompts[i % 4])

    threads = [threading.Thread(target=into, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone * 2
