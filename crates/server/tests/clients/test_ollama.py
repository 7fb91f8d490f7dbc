"""The ollama package against a running server."""

import json

import httpx
import jsonschema
import ollama
import pytest

ASK = [{"role": "user", "content": "Name three colours."}]
OPTIONS = {"temperature": 0, "num_predict": 24, "seed": 1, "num_ctx": 512}


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


def test_what_there_is(client, server, model):
    listed = client.list().models
    assert model in [m.model for m in listed]
    assert listed[0].size > 0 and listed[0].details.format == "gguf" and listed[0].modified_at
    shown = client.show(model)
    assert "completion" in shown.capabilities and shown.modelinfo["general.architecture"]
    assert model in [m.model for m in client.ps().models]
    assert httpx.get(server.url + "/api/version").json()["version"]
    with pytest.raises(ollama.ResponseError) as error:
        client.show("none")
    assert error.value.status_code == 404


def test_chat(client, model):
    whole = client.chat(model=model, messages=ASK, options=OPTIONS)
    assert whole.message.content and whole.done and whole.done_reason in ("stop", "length")
    assert whole.prompt_eval_count > 0 and 0 < whole.eval_count <= 24
    assert whole.total_duration >= whole.eval_duration > 0
    parts = list(client.chat(model=model, messages=ASK, options=OPTIONS, stream=True))
    assert "".join(p.message.content or "" for p in parts) == whole.message.content
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True]


def test_generate(client, model):
    whole = client.generate(model=model, prompt="Name three colours.", options=OPTIONS)
    assert whole.response == client.chat(model=model, messages=ASK, options=OPTIONS).message.content
    parts = list(client.generate(model=model, prompt="Name three colours.", options=OPTIONS, stream=True))
    assert "".join(p.response for p in parts) == whole.response and parts[-1].done_reason
    assert client.generate(model=model, prompt="Once upon", raw=True, options=OPTIONS).response != whole.response
    assert client.generate(model=model, prompt="", keep_alive="5m").done_reason == "load"
    system = client.generate(model=model, prompt="Hi", system="Answer in French.", options=OPTIONS)
    assert system.prompt_eval_count > 0


def test_options_take_effect(client, model):
    def text(**options):
        return client.generate(model=model, prompt="Tell me a story.", options=OPTIONS | options).response

    hot = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    assert text(**hot, seed=3) == text(**hot, seed=3) != text(**hot, seed=4)
    assert text(**hot | {"top_k": 1}) == text()
    word = text().split()[1]
    assert text(stop=[word]) == text()[: text().index(word)]
    assert text(repeat_penalty=1.8, num_predict=60) != text(num_predict=60)


def test_formats(client, model):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    options = {"temperature": 0, "num_predict": 100}
    answer = client.chat(model=model, messages=ASK, format=schema, options=options)
    jsonschema.validate(json.loads(answer.message.content), schema)
    answer = client.generate(model=model, prompt="A person as JSON", format="json", options=options)
    if answer.done_reason == "stop":
        assert isinstance(json.loads(answer.response), dict)


def test_tools_go_through_the_template(client, model):
    tool = {"type": "function", "function": {
        "name": "get_weather", "description": "Weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    messages = [
        *ASK,
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]},
        {"role": "tool", "tool_name": "get_weather", "content": "sunny"},
    ]
    answer = client.chat(model=model, messages=messages, tools=[tool], options=OPTIONS)
    assert answer.message.content or answer.message.tool_calls


def test_logprobs(client, model):
    answer = client.chat(model=model, messages=ASK, options=OPTIONS | {"num_predict": 4}, logprobs=True, top_logprobs=2)
    assert len(answer.logprobs) == 4 and all(len(t.top_logprobs) == 2 for t in answer.logprobs)


def test_refusals_name_the_field(client, server, model):
    for extra, field in (
        ({"suffix": "x"}, "suffix"), ({"template": "x"}, "template"), ({"options": {"num_ctx": 10**6}}, "options.num_ctx"),
        ({"options": {"mirostat": 1}}, "options.mirostat"), ({"context": [1]}, "context"), ({"images": ["eA=="]}, "images"),
    ):
        answer = httpx.post(server.url + "/api/generate", json={"model": model, "prompt": "x", **extra})
        assert answer.status_code == 400 and field in answer.json()["error"]
    with pytest.raises(ollama.ResponseError) as error:
        client.chat(model="none", messages=ASK)
    assert error.value.status_code == 404


def test_embeddings_of_a_model_without_are_refused(client, model):
    with pytest.raises(ollama.ResponseError, match="embeddings") as error:
        client.embed(model=model, input="text")
    assert error.value.status_code == 400
