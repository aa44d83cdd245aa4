"""The `anthropic` SDK against a live gateway, with the scripted engine and with the embedded model."""

from __future__ import annotations

import pytest

from .gateways import answering

pytestmark = pytest.mark.xdist_group("clients")

QUESTION = [{"role": "user", "content": "what is 2 + 2?"}]
WEATHER = {
    "name": "get_weather",
    "description": "Weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>"
GREEDY = {"temperature": 0}  # the SDK has no argument for it
THINKING = {"type": "enabled", "budget_tokens": 1024}


def client_of(gateway):
    return anthropic.Anthropic(base_url=gateway.url, api_key="unused", max_retries=0, timeout=30)


@pytest.fixture(scope="module", autouse=True)
def sdk():
    """Imported by the one worker that runs these: it takes seconds."""
    global anthropic
    anthropic = pytest.importorskip("anthropic", reason="the extra `clients` is not installed")


@pytest.fixture
def client(scripted):
    return client_of(scripted)


def test_message_with_usage(scripted, client):
    scripted.plan(answering("4", "."))
    message = client.messages.create(model="served", max_tokens=8, messages=QUESTION)
    assert [(block.type, block.text) for block in message.content] == [("text", "4.")]
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 2)
    assert message.id.startswith("msg_")


def test_stream_helper_gives_the_same_message(scripted, client):
    scripted.plan(answering("so</think>", "Hé", "llo"))
    with client.messages.stream(
        model="served", max_tokens=2048, messages=QUESTION, thinking=THINKING
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == "Héllo"
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].thinking == "so"
    assert message.content[0].signature
    assert message.usage.output_tokens == 3


def test_every_event_is_strictly_typed(scripted, client):
    scripted.plan(answering("t</think>", "a", CALL))
    events = client.messages.create(
        model="served", max_tokens=2048, messages=QUESTION, thinking=THINKING, tools=[WEATHER], stream=True
    )
    names = []
    for event in events:
        type(event).model_validate(event.model_dump(exclude_unset=True), strict=True)
        names.append(event.type)
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 3


def test_tools_and_the_loop_back(scripted, client):
    scripted.plan(answering("Looking. ", CALL), answering("Sunny."))
    messages = [{"role": "user", "content": "Weather in Rome?"}]
    options = {"model": "served", "max_tokens": 64, "tools": [WEATHER]}
    first = client.messages.create(messages=messages, **options)
    use = first.content[-1]
    assert first.stop_reason == "tool_use"
    assert (use.type, use.name, use.input) == ("tool_use", "get_weather", {"city": "Rome"})
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]},
    ]
    second = client.messages.create(messages=messages, **options)
    assert second.content[0].text == "Sunny."
    assert f"{CALL}<|observation|><tool_response>sunny</tool_response>" in scripted.prompts()[1]


def test_streamed_tool_input_adds_up(scripted, client):
    scripted.plan(answering(CALL[:30], CALL[30:]))
    with client.messages.stream(model="served", max_tokens=64, messages=QUESTION, tools=[WEATHER]) as stream:
        message = stream.get_final_message()
    assert message.content[0].input == {"city": "Rome"}
    assert message.stop_reason == "tool_use"


def test_stop_sequence_is_named(scripted, client):
    scripted.plan(
        ["ACCEPT <id> 7", "DATA <id> <n> => one END two", "@wait STOP", "DONE <id> STAT 1 2.5 0 1.0 7 0"]
    )
    message = client.messages.create(model="served", max_tokens=8, messages=QUESTION, stop_sequences=["END"])
    assert message.content[0].text == "one "
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "END")


@pytest.mark.parametrize(
    ("kind", "request_fields"),
    [
        ("BadRequestError", {"max_tokens": 0}),
        ("BadRequestError", {"extra_body": {"top_k": 5}}),
        ("NotFoundError", {"model": "other"}),
    ],
)
def test_refusals_are_the_sdks_own_exceptions(client, kind, request_fields):
    with pytest.raises(getattr(anthropic, kind)) as caught:
        client.messages.create(**{"model": "served", "max_tokens": 8, "messages": QUESTION, **request_fields})
    assert caught.value.body["type"] == "error"
    assert caught.value.body["request_id"].startswith("req_")


def test_a_prompt_that_does_not_fit_is_a_400_in_words_agents_know(scripted, client):
    scripted.plan(["ERROR <id> CONTEXT_EXCEEDED 5000 4094"])
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model="served", max_tokens=8, messages=QUESTION, stream=True)
    assert "prompt is too long: 5000 tokens > 4094 maximum" in str(caught.value)


def test_a_truncated_stream_raises(scripted, client):
    scripted.plan(["ACCEPT <id> 7", "DATA <id> <n> => half", "ERROR <id> SLOT_BUSY"])
    seen = []
    with pytest.raises(Exception) as caught:  # which layer of the SDK notices is its own affair
        for event in client.messages.create(model="served", max_tokens=8, messages=QUESTION, stream=True):
            seen.append(event.type)
    assert "content_block_delta" in seen and "message_stop" not in seen
    assert "incomplete" in str(caught.value) or isinstance(caught.value, anthropic.APIConnectionError)


# ---------------------------------------------------------------- the embedded model


def test_embedded_model_counts_the_tokens_it_reports(embedded):
    client = client_of(embedded)
    counted = client.messages.count_tokens(model="nano", messages=QUESTION)
    message = client.messages.create(model="nano", max_tokens=16, messages=QUESTION, extra_body=GREEDY)
    assert counted.input_tokens == message.usage.input_tokens > 0
    assert "4" in message.content[0].text


def test_embedded_model_streams_what_it_answers_whole(embedded):
    client = client_of(embedded)
    options = {"model": "nano", "max_tokens": 64, "messages": QUESTION, "extra_body": GREEDY}
    whole = client.messages.create(**options)
    with client.messages.stream(**options) as stream:
        streamed = stream.get_final_message()
    assert [block.text for block in streamed.content] == [block.text for block in whole.content]
    assert streamed.usage.output_tokens == whole.usage.output_tokens
