"""A running server for the tests, and clients of it.

TURBOSPARK_TEST_BIN names the program (default release/turbospark of cargo's target folder), TURBOSPARK_TEST_MODEL a model for conversations.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[4]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
BIN = Path(os.environ.get("TURBOSPARK_TEST_BIN", TARGET / "release/turbospark"))
MODEL_FILE = Path(os.environ.get("TURBOSPARK_TEST_MODEL", ROOT / "models/smollm2-135m-instruct-q4_1.gguf"))
CONTEXT = 2048


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A `turbospark serve` process on a free port."""

    def __init__(self, log, *flags, context=CONTEXT):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        command = [BIN, "serve", MODEL_FILE, "--port", str(self.port), "--context", str(context), *flags]
        with open(log, "wb") as out:
            self.process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=out)
        self.wait()

    def wait(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: {self.text()}")
            try:
                if httpx.get(self.url + "/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the server is not ready after 60 s: {self.text()}")

    def text(self):
        return Path(self.log).read_text(errors="replace")[-4000:]

    def memory(self):
        """Resident bytes of the process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server") / "log")
    yield server
    status = server.stop()
    assert status == 0, f"SIGTERM ended the server with {status}: {server.text()}"


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    """Starts servers with other flags; ends them after the test."""
    running = []

    def one(*flags, context=CONTEXT):
        server = Server(tmp_path_factory.mktemp("server") / "log", *flags, context=context)
        running.append(server)
        return server

    yield one
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def model():
    return MODEL_FILE.stem


@pytest.fixture(autouse=True)
def still_answers(request):
    """Whatever a test did, the server answers after it."""
    yield
    if "server" in request.fixturenames:
        server = request.getfixturevalue("server")
        assert server.process.poll() is None, server.text()
        assert httpx.get(server.url + "/health").status_code == 200
