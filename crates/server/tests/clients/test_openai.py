"""The openai package against a running server."""

import json
import math

import jsonschema
import openai
import pytest

ASK = [{"role": "user", "content": "Name three colours."}]
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "get_time", "parameters": {
        "type": "object", "properties": {"zone": {"type": "string", "maxLength": 12}}, "required": ["zone"],
        "additionalProperties": False,
    }}},
]


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def chat(client, model):
    def ask(messages=ASK, **kwargs):
        kwargs = {"temperature": 0, "max_completion_tokens": 24} | kwargs
        return client.chat.completions.create(model=model, messages=messages, **kwargs)

    return ask


def test_models(client, model):
    assert model in [m.id for m in client.models.list()]
    assert client.models.retrieve(model).id == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_chat_and_usage(chat, model):
    answer = chat()
    assert answer.model == model
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content.strip()
    usage = answer.usage
    assert usage.prompt_tokens > 0 and 0 < usage.completion_tokens <= 24
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_stream_equals_whole(chat):
    whole = chat().choices[0]
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == whole.finish_reason
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices
    assert len({c.id for c in chunks}) == 1


def test_length_is_told(chat):
    answer = chat(max_completion_tokens=3)
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 3
    assert chat(max_completion_tokens=openai.omit, max_tokens=3).usage.completion_tokens == 3


def test_system_developer_and_parts(chat):
    for role in ("system", "developer"):
        messages = [{"role": role, "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
        assert chat(messages).choices[0].message.content
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    with pytest.raises(openai.BadRequestError, match="image_url"):
        chat(image)


def test_n_and_seed(chat):
    def texts(seed):
        answer = chat(n=3, seed=seed, temperature=1.0, top_p=1.0)
        assert [c.index for c in answer.choices] == [0, 1, 2]
        return [c.message.content for c in answer.choices]

    first = texts(7)
    assert first == texts(7)
    assert len(set(first)) > 1, "choices differ from one another"
    assert first != texts(8)


def test_stop(chat):
    whole = chat().choices[0].message.content
    word = whole.split()[1]
    answer = chat(stop=[word]).choices[0]
    assert answer.finish_reason == "stop" and answer.message.content == whole[: whole.index(word)]


def test_logprobs(chat):
    choice = chat(logprobs=True, top_logprobs=3, max_completion_tokens=5).choices[0]
    tokens = choice.logprobs.content
    assert len(tokens) == 5
    assert b"".join(bytes(t.bytes) for t in tokens).decode() == choice.message.content
    for token in tokens:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        likeliest = [t.logprob for t in token.top_logprobs]
        assert likeliest == sorted(likeliest, reverse=True)
        assert math.isclose(token.logprob, likeliest[0], abs_tol=1e-4), "temperature 0 takes the likeliest"
    streamed = [c.choices[0].logprobs for c in chat(logprobs=True, max_completion_tokens=5, stream=True) if c.choices]
    assert sum(len(lp.content) for lp in streamed if lp) == 5


def test_logit_bias(chat):
    # The token of greatest bias is all that is left.
    text = chat(logit_bias={"30": 100}, max_completion_tokens=4).choices[0].message.content
    assert len(set(text)) == 1 and text != chat(max_completion_tokens=4).choices[0].message.content


def test_penalties_change_the_answer(chat):
    messages = [{"role": "user", "content": "Repeat: ha ha ha ha ha ha"}]
    plain = chat(messages, max_completion_tokens=40).choices[0].message.content
    for field in ("frequency_penalty", "presence_penalty"):
        assert chat(messages, max_completion_tokens=40, **{field: 2.0}).choices[0].message.content != plain


def test_json_object_and_schema(chat):
    answer = chat(response_format={"type": "json_object"}, max_completion_tokens=200, frequency_penalty=0.5)
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    format = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}
    for temperature in (0, 1.5):
        choice = chat(response_format=format, temperature=temperature, max_completion_tokens=100).choices[0]
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), schema)


def test_a_schema_that_nothing_satisfies_is_refused(chat):
    format = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "properties": 3}}}
    with pytest.raises(openai.BadRequestError):
        chat(response_format=format)


def test_tools_required_and_named(chat):
    choice = chat(tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_completion_tokens=200).choices[0]
    assert choice.finish_reason == "tool_calls" and len(choice.message.tool_calls) == 1
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    call = choice.message.tool_calls[0]
    jsonschema.validate(json.loads(call.function.arguments), schemas[call.function.name])
    named = {"type": "function", "function": {"name": "get_time"}}
    call = chat(tools=TOOLS, tool_choice=named, max_completion_tokens=200).choices[0].message.tool_calls[0]
    assert call.function.name == "get_time"
    jsonschema.validate(json.loads(call.function.arguments), schemas["get_time"])


def test_tool_calls_stream(chat):
    named = {"type": "function", "function": {"name": "get_time"}}
    chunks = list(chat(tools=TOOLS, tool_choice=named, max_completion_tokens=200, stream=True))
    deltas = [d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or []]
    assert deltas[0].function.name == "get_time" and deltas[0].id
    arguments = "".join(d.function.arguments or "" for d in deltas if d.index == 0)
    jsonschema.validate(json.loads(arguments), TOOLS[1]["function"]["parameters"])
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_tool_results_go_back(chat):
    ask = [{"role": "user", "content": "Weather in Rome?"}]
    first = chat(ask, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_completion_tokens=200)
    message = first.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}
    answer = chat([*ask, message.model_dump(exclude_none=True), result], tools=TOOLS, tool_choice="none")
    assert answer.choices[0].message.content and not answer.choices[0].message.tool_calls


def test_completions(client, model):
    def ask(**kwargs):
        kwargs = {"max_tokens": 8, "temperature": 0} | kwargs
        return client.completions.create(model=model, prompt="Once upon a time", **kwargs)

    text = ask().choices[0].text
    assert text and "".join(c.choices[0].text for c in ask(stream=True) if c.choices) == text
    assert ask(echo=False, n=2).choices[1].text == text


def test_responses(client, model):
    first = client.responses.create(model=model, input="My name is Ada.", max_output_tokens=16, temperature=0)
    assert first.output_text and first.usage.output_tokens <= 16
    second = client.responses.create(
        model=model, input="What is my name?", previous_response_id=first.id, max_output_tokens=16, temperature=0
    )
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.input_tokens
    events = list(client.responses.create(
        model=model, input="My name is Ada.", max_output_tokens=16, temperature=0, stream=True
    ))
    assert events[0].type == "response.created"
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == first.output_text
    assert events[-1].type in ("response.completed", "response.incomplete")
    assert client.responses.retrieve(first.id).output_text == first.output_text
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=model, input="x", previous_response_id="resp_none")


def test_embeddings_of_a_model_without_are_refused(client, model):
    with pytest.raises(openai.BadRequestError, match="embeddings"):
        client.embeddings.create(model=model, input="text", encoding_format="float")


def test_errors_have_their_classes(client, chat):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="none", messages=ASK)
    for field, value in (("temperature", 9), ("no_such_field", 1), ("n", 0), ("top_logprobs", 3)):
        with pytest.raises(openai.BadRequestError, match=field) as error:
            chat(extra_body={field: value})
        assert error.value.type == "invalid_request_error" and error.value.request_id
    with pytest.raises(openai.BadRequestError, match="context|token"):
        chat([{"role": "user", "content": "word " * 5000}])


def test_request_ids(client, model, server):
    raw = client.chat.completions.with_raw_response.create(
        model=model, messages=ASK, max_completion_tokens=1, extra_headers={"X-Request-Id": "mine-1"}
    )
    assert raw.headers["x-request-id"] == "mine-1" and raw.parse().choices


def test_api_key(start, model):
    server = start("--api-key", "secret")
    for key in ("wrong", "secre", "secret1"):
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0).models.list()
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="secret", max_retries=0)
    assert client.chat.completions.create(model=model, messages=ASK, max_completion_tokens=1).choices
