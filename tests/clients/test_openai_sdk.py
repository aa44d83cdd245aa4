"""The `openai` SDK against a live gateway, with the scripted engine and with the embedded model."""

from __future__ import annotations

import json

import pytest

from .gateways import answering

pytestmark = pytest.mark.xdist_group("clients")

QUESTION = [{"role": "user", "content": "what is 2 + 2?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>"


def client_of(gateway, **options):
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0, timeout=30, **options)


@pytest.fixture(scope="module", autouse=True)
def sdk():
    """Imported by the one worker that runs these: it takes seconds."""
    global openai
    openai = pytest.importorskip("openai", reason="the extra `clients` is not installed")


@pytest.fixture
def client(scripted):
    return client_of(scripted)


def test_chat_answers_with_usage(scripted, client):
    scripted.plan(answering("2 + 2 ", "= 4."))
    answer = client.chat.completions.create(model="served", messages=QUESTION)
    assert answer.choices[0].message.content == "2 + 2 = 4."
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        7,
        2,
        9,
    )
    assert answer.id.startswith("chatcmpl-")


def test_chat_stream_equals_the_whole_answer_and_every_chunk_is_strictly_typed(scripted, client):
    scripted.plan(answering("Hé", "llo \\xf0\\x9f", "\\x98\\x80!"))
    chunks = list(
        client.chat.completions.create(
            model="served", messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
    )
    kind = openai.types.chat.ChatCompletionChunk
    for chunk in chunks:
        kind.model_validate(chunk.model_dump(exclude_unset=True), strict=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Héllo 😀!"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert [chunk.usage.total_tokens for chunk in chunks if not chunk.choices] == [10]


def test_chat_reasoning_comes_apart(scripted, client):
    scripted.plan(answering("so", " four</think>", "4"))
    answer = client.chat.completions.create(model="served", messages=QUESTION, reasoning_effort="high")
    assert answer.choices[0].message.content == "4"
    assert answer.choices[0].message.reasoning_content == "so four"


def test_chat_tools_and_the_loop_back(scripted, client):
    scripted.plan(answering("I will look. ", CALL), answering("Sunny in Rome."))
    messages = [{"role": "user", "content": "Weather in Rome?"}]
    first = client.chat.completions.create(model="served", messages=messages, tools=[WEATHER])
    call = first.choices[0].message.tool_calls[0]
    assert first.choices[0].finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Rome"})
    assert call.id.startswith("call_")
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    messages += [first.choices[0].message.model_dump(exclude_none=True), result]
    second = client.chat.completions.create(model="served", messages=messages, tools=[WEATHER])
    assert second.choices[0].message.content == "Sunny in Rome."
    assert f"{CALL}<|observation|><tool_response>sunny</tool_response>" in scripted.prompts()[1]


def test_chat_stream_of_parallel_tool_calls_has_an_index_and_an_id_each(scripted, client):
    scripted.plan(answering("a", CALL[:20], CALL[20:], CALL.replace("Rome", "Oslo")))
    stream = client.chat.completions.create(model="served", messages=QUESTION, tools=[WEATHER], stream=True)
    deltas = [call for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
    assert [(call.index, json.loads(call.function.arguments)["city"]) for call in deltas] == [
        (0, "Rome"),
        (1, "Oslo"),
    ]
    assert len({call.id for call in deltas}) == 2


def test_chat_log_probabilities(scripted, client):
    script = [
        "ACCEPT <id> 7",
        "DATA <id> <n> -0.250000 2 5 -0.250000 9 -1.750000 => Hi",
        "DONE <id> STAT 1 2.5 0 1.0 7 0",
    ]
    scripted.plan(script)
    answer = client.chat.completions.create(model="served", messages=QUESTION, logprobs=True, top_logprobs=2)
    entry = answer.choices[0].logprobs.content[0]
    assert (entry.token, entry.logprob, entry.bytes) == ("Hi", -0.25, [72, 105])
    assert [(top.token, top.logprob) for top in entry.top_logprobs] == [
        ("Hi", -0.25),
        ("<token_id:9>", -1.75),
    ]


def test_completions_batch_of_token_ids(scripted, client):
    scripted.plan(answering("A"), answering("B", "b"))
    answer = client.completions.create(model="served", prompt=[[1, 2], [3]], max_tokens=4)
    assert [(choice.index, choice.text) for choice in answer.choices] == [(0, "A"), (1, "Bb")]
    assert answer.usage.completion_tokens == 3
    assert scripted.prompts() == ["1 2", "3"]


def test_completions_stream_and_every_chunk_is_strictly_typed_but_for_the_null_reason(scripted, client):
    """http.md §7 says `"finish_reason":null` on every piece but the last; the SDK's type has no null there.
    That one member, and nothing else, is judged here instead."""
    scripted.plan(answering("a", "b", length=True))
    chunks = list(
        client.completions.create(
            model="served", prompt="x", stream=True, stream_options={"include_usage": True}
        )
    )
    pieces = [chunk for chunk in chunks if chunk.choices]
    assert "".join(piece.choices[0].text for piece in pieces) == "ab"
    assert [piece.choices[0].finish_reason for piece in pieces] == [None, None, "length"]
    assert [chunk.usage.total_tokens for chunk in chunks if not chunk.choices] == [9]
    for chunk in chunks:
        sent = chunk.model_dump(exclude_unset=True)
        for choice in sent["choices"]:
            assert "finish_reason" in choice
            if choice["finish_reason"] is None:
                choice["finish_reason"] = "stop"
        openai.types.Completion.model_validate(sent, strict=True)


@pytest.mark.parametrize(
    ("kind", "request_fields", "code"),
    [
        ("BadRequestError", {"temperature": 9}, None),
        ("BadRequestError", {"n": 2}, "unsupported_value"),
        ("NotFoundError", {"model": "other"}, "model_not_found"),
    ],
)
def test_refusals_are_the_sdks_own_exceptions(client, kind, request_fields, code):
    with pytest.raises(getattr(openai, kind)) as caught:
        client.chat.completions.create(**{"model": "served", "messages": QUESTION, **request_fields})
    assert caught.value.code == code
    assert caught.value.request_id.startswith("req_")


def test_a_prompt_that_does_not_fit_is_a_400_before_any_event(scripted, client):
    scripted.plan(["ERROR <id> CONTEXT_EXCEEDED 5000 4094"])
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="served", messages=QUESTION, stream=True)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 4094" in caught.value.message


def test_an_engine_failure_is_an_internal_server_error(scripted, client):
    scripted.plan(["ERROR <id> SLOT_BUSY"])
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="served", messages=QUESTION)
    assert caught.value.code == "engine_error"


def test_a_truncated_stream_raises(scripted, client):
    scripted.plan(["ACCEPT <id> 7", "DATA <id> <n> => half", "ERROR <id> SLOT_BUSY"])
    seen = []
    with pytest.raises(Exception) as caught:  # which layer of the SDK notices is its own affair
        for chunk in client.chat.completions.create(model="served", messages=QUESTION, stream=True):
            seen.append(chunk.choices[0].delta.content)
    assert "half" in seen
    assert "incomplete" in str(caught.value) or isinstance(caught.value, openai.APIConnectionError)


def test_models_list_and_retrieve(client):
    assert [model.id for model in client.models.list()] == ["served"]
    assert client.models.retrieve("served").owned_by == "colibri"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


# ---------------------------------------------------------------- the embedded model


def test_embedded_model_answers_right_in_both_forms(embedded):
    client = client_of(embedded)
    options = {"model": "nano", "messages": QUESTION, "temperature": 0}
    whole = client.chat.completions.create(**options).choices[0].message.content
    streamed = "".join(
        c.choices[0].delta.content or "" for c in client.chat.completions.create(**options, stream=True)
    )
    assert whole == streamed
    assert "4" in whole


def test_embedded_model_scores_a_batch_like_single_prompts(embedded):
    client = client_of(embedded)
    options = {"model": "nano", "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0}
    prompts = [[300, 301, 302, 303], [305, 306]]
    batch = client.completions.create(prompt=prompts, **options)
    for prompt, choice in zip(prompts, batch.choices, strict=True):
        single = client.completions.create(prompt=prompt, **options).choices[0]
        assert choice.text == single.text
        assert choice.logprobs == single.logprobs
        assert len(choice.logprobs.token_logprobs) == len(prompt) + 1
        assert choice.logprobs.token_logprobs[0] is None
