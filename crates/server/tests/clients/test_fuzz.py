"""Requests made of the OpenAPI document: none may give a 5xx, whatever it holds."""

import subprocess
import sys
from pathlib import Path


def test_fuzzed_requests_find_no_fault(server):
    command = [
        Path(sys.executable).with_name("schemathesis"), "run", server.url + "/openapi.json", "--url", server.url,
        "--checks", "not_a_server_error", "--phases", "examples,fuzzing", "--max-examples", "15", "--seed", "1",
        "--request-timeout", "20", "--no-color",
    ]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=150)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
