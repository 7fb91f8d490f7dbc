"""The anthropic package against a running server."""

import anthropic
import jsonschema
import pytest

ASK = [{"role": "user", "content": "Name three colours."}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"enum": ["c", "f"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS = [{"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}]
NAMED = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}


@pytest.fixture(scope="module")
def client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def ask(client, model):
    def ask(messages=ASK, **kwargs):
        kwargs = {"temperature": 0, "max_tokens": 24} | kwargs
        extra = kwargs.setdefault("extra_body", {})
        # Newer models of the API have lost these fields, and the package warns of them.
        for field in ("temperature", "top_p", "top_k"):
            if field in kwargs:
                extra[field] = kwargs.pop(field)
        return client.messages.create(model=model, messages=messages, **kwargs)

    return ask


def test_message(ask, model):
    message = ask(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
    assert message.role == "assistant" and message.model == model and message.id.startswith("msg_")
    assert message.content[0].type == "text" and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert 0 < message.usage.output_tokens <= 24
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens > 0


def test_stream_equals_whole(ask, client, model):
    whole = ask(system="Be brief.")
    with client.messages.stream(
        model=model, max_tokens=24, messages=ASK, system="Be brief.", extra_body={"temperature": 0}
    ) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text
    assert final.stop_reason == whole.stop_reason and final.usage.output_tokens == whole.usage.output_tokens
    raw = [event for event in events if event in ("message_start", "content_block_start", "content_block_stop", "message_stop")]
    assert raw == ["message_start", "content_block_start", "content_block_stop", "message_stop"]


def test_stop_sequences(ask):
    whole = ask().content[0].text
    word = whole.split()[1]
    message = ask(stop_sequences=[word])
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == word
    assert "".join(block.text for block in message.content) == whole[: whole.index(word)]
    assert ask(max_tokens=2).stop_reason == "max_tokens"


def test_tools_and_results(ask, client, model):
    for choice in (NAMED, {"type": "any", "disable_parallel_tool_use": True}):
        message = ask(tools=TOOLS, tool_choice=choice, max_tokens=200)
        call = message.content[-1]
        assert message.stop_reason == "tool_use" and call.type == "tool_use" and call.name == "get_weather"
        jsonschema.validate(call.input, SCHEMA)
    with client.messages.stream(
        model=model, max_tokens=200, messages=ASK, tools=TOOLS, tool_choice=NAMED, extra_body={"temperature": 0}
    ) as stream:
        streamed = stream.get_final_message().content[-1]
    jsonschema.validate(streamed.input, SCHEMA)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    turns = [
        *ASK,
        {"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
        {"role": "user", "content": [result, {"type": "text", "text": "Well?"}]},
    ]
    answer = ask(turns, tools=TOOLS, tool_choice={"type": "none"})
    assert answer.content[0].type == "text" and answer.content[0].text


def test_thinking_is_accepted_from_a_model_without(ask):
    for thinking in ({"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}):
        assert ask(thinking=thinking, max_tokens=1100, stop_sequences=["."]).content
    history = [
        *ASK,
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "red", "signature": "x"}, {"type": "text", "text": "Red."},
        ]},
        {"role": "user", "content": "More."},
    ]
    assert ask(history, metadata={"user_id": "u1"}).content


def test_count_tokens_is_what_is_fed(ask, client, model):
    counted = client.messages.count_tokens(model=model, messages=ASK, system="Be brief.")
    usage = ask(system="Be brief.").usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


def test_errors_have_their_classes(ask, client):
    with pytest.raises(anthropic.NotFoundError) as error:
        client.messages.create(model="none", messages=ASK, max_tokens=1)
    assert error.value.body["error"]["type"] == "not_found_error" and error.value.request_id
    image = [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]
    with pytest.raises(anthropic.BadRequestError, match="messages\\[0\\].content\\[0\\]"):
        ask(image)
    for field, value in (("temperature", 9), ("no_such_field", 1), ("mcp_servers", [1])):
        with pytest.raises(anthropic.BadRequestError, match=field) as error:
            ask(extra_body={field: value}) if field != "temperature" else ask(temperature=value)
        assert error.value.body["error"]["type"] == "invalid_request_error"


def test_api_key(start, model):
    server = start("--api-key", "secret")
    with pytest.raises(anthropic.AuthenticationError) as error:
        anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0).messages.create(
            model=model, messages=ASK, max_tokens=1
        )
    assert error.value.body["error"]["type"] == "authentication_error"
    client = anthropic.Anthropic(base_url=server.url, api_key="secret", max_retries=0)
    assert client.messages.create(model=model, messages=ASK, max_tokens=1).content
