"""Requests made of the OpenAPI document: none may give a 5xx, whatever it holds."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")


def narrowed(document):
    """The document with a model that is there and with short answers, so that most requests get far and none takes long."""
    for name, schema in document["components"]["schemas"].items():
        if not name.endswith("Request"):
            continue
        fields = schema["properties"]
        fields["model"] = {"enum": ["default"]}
        schema["required"] = sorted({*schema.get("required", []), "model"})
        if "n" in fields:
            fields["n"]["maximum"] = 2
        if "options" in fields and "num_predict" in fields["options"]["properties"]:
            schema["required"].append("options")
            schema = fields["options"]
            fields = schema["properties"]
        for length in LENGTHS:
            if length in fields:
                fields[length].update(minimum=1, maximum=4)
                schema["required"] = sorted({*schema.get("required", []), length})
    return document


def test_fuzzed_requests_find_no_fault(start, tmp_path):
    # What asks for more tokens all the same ends with the context.
    server = start(context=96)
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(narrowed(httpx.get(server.url + "/openapi.json").json())))
    command = [
        Path(sys.executable).with_name("schemathesis"), "run", document, "--url", server.url,
        "--checks", "not_a_server_error", "--phases", "examples,fuzzing", "--max-examples", "60", "--seed", "1",
        "--request-timeout", "20", "--no-color",
    ]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=150, cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    counts = httpx.get(server.url + "/metrics").text
    for endpoint in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"):
        assert f'endpoint="{endpoint}",status="200"' in counts, f"no request to {endpoint} was answered"
