"""The whole road with the reference engine and the embedded model (http.md §7, §9, §16)."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import jsonschema
import pytest

PROMPTS = ["2 + 2 =", "The capital of France is", "a", "2 + 2 ="]
SCORE = {"max_tokens": 1, "logprobs": 3, "echo": True, "temperature": 0, "seed": 1234, "cache_slot": 0}


def token_ids(gateway: Any, text: str) -> list[int]:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(gateway.parts.model.tokenizer_path))
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def same(one: Any, other: Any) -> bool:
    """Equal, numbers within what batched arithmetic may differ in the last printed digit."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=2e-6)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def test_the_embedded_model_answers_through_chat_and_streams_the_same(real_gateway: Any) -> None:
    fields = {"temperature": 0, "max_tokens": 32}
    whole = real_gateway.chat("what is 2 + 2?", **fields).json["choices"][0]
    assert "4" in whole["message"]["content"]
    assert whole["finish_reason"] == "stop"
    *chunks, last = real_gateway.chat("what is 2 + 2?", stream=True, **fields).events
    pieces = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "".join(pieces) == whole["message"]["content"]
    assert sum(bool(piece) for piece in pieces) > 1  # token by token
    assert last == "[DONE]"


def test_section_16_the_anthropic_dialect_gives_the_same_text_and_count_tokens_agrees(
    real_gateway: Any,
) -> None:
    message = real_gateway.message("what is 2 + 2?", temperature=0, max_tokens=32).json
    chat = real_gateway.chat("what is 2 + 2?", temperature=0, max_tokens=32).json
    assert message["content"] == [{"type": "text", "text": chat["choices"][0]["message"]["content"]}]
    assert message["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]
    body = {"model": "test-model", "messages": [{"role": "user", "content": "what is 2 + 2?"}]}
    counted = real_gateway.post("/v1/messages/count_tokens", body).json
    assert counted == {"input_tokens": message["usage"]["input_tokens"]}


@pytest.mark.parametrize("form", ["text", "ids"])
def test_section_7_singles_batch_reversed_and_repeated_agree_on_one_warm_slot(
    real_gateway: Any, form: str
) -> None:
    prompts: list[Any] = [p if form == "text" else token_ids(real_gateway, p) for p in PROMPTS]

    def batch(members: list[Any]) -> list[Any]:
        answer = real_gateway.complete(members, **SCORE).json
        assert answer["usage"]["completion_tokens"] == len(members)
        choices: list[Any] = answer["choices"]
        return choices

    def singles() -> list[Any]:
        return [real_gateway.complete(prompt, **SCORE).json["choices"][0] for prompt in prompts]

    first, together, backwards, again = singles(), batch(prompts), batch(prompts[::-1])[::-1], singles()
    for index, choice in enumerate(first):
        for other in (together[index], backwards[index], again[index]):
            assert same(choice | {"index": 0}, other | {"index": 0})
    assert same(first[0], first[3])  # duplicated members


@pytest.mark.parametrize("prompt", PROMPTS[:3])
def test_b55_b57_and_b73_scores_are_whole_bit_equal_and_hold_the_argmax(
    real_gateway: Any, prompt: str
) -> None:
    answer = real_gateway.complete(prompt, **SCORE | {"logprobs": 1})
    choice, usage = answer.json["choices"][0], answer.json["usage"]
    scores = choice["logprobs"]
    assert len(scores["tokens"]) == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] == len(token_ids(real_gateway, prompt))
    assert "".join(scores["tokens"]) == choice["text"]
    assert choice["text"].startswith(prompt)
    assert (scores["token_logprobs"][0], scores["top_logprobs"][0]) == (None, {})
    for token, value, table in list(
        zip(scores["tokens"], scores["token_logprobs"], scores["top_logprobs"], strict=True)
    )[1:]:
        assert len(table) == 1
        assert value <= max(table.values()) <= 0
        if token in table:
            assert table[token] == value
    assert scores["token_logprobs"][-1] == max(scores["top_logprobs"][-1].values())  # greedy


def test_b56_scoring_with_the_end_token_as_argmax_equals_scoring_without(real_gateway: Any) -> None:
    """Whatever the model says next, the scores of the prompt and its length do not depend on it."""
    ended = "<|user|>what is 2 + 2?<|assistant|><think></think>2 + 2 = 4."
    answers = [real_gateway.complete(ended, **SCORE | {"max_tokens": count}) for count in (1, 2)]
    one, two = (answer.json["choices"][0]["logprobs"] for answer in answers)
    prompt = answers[0].json["usage"]["prompt_tokens"]
    assert len(one["tokens"]) == prompt + 1
    assert same(one["token_logprobs"][: prompt + 1], two["token_logprobs"][: prompt + 1])


def test_b58_max_tokens_0_scores_and_generates_nothing(real_gateway: Any) -> None:
    answer = real_gateway.complete("2 + 2 =", **SCORE | {"max_tokens": 0}).json
    scored = real_gateway.complete("2 + 2 =", **SCORE).json
    assert answer["choices"][0]["text"] == "2 + 2 ="
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 0
    found, longer = answer["choices"][0]["logprobs"], scored["choices"][0]["logprobs"]
    assert same(found["token_logprobs"], longer["token_logprobs"][:-1])


def test_b73_a_prompt_of_exactly_the_context_less_one_works_and_a_longer_one_does_not(
    real_gateway: Any,
) -> None:
    context = real_gateway.get("/v1/models").json["data"][0]["context_length"]
    (token,) = token_ids(real_gateway, "a")
    fits = real_gateway.complete([token] * (context - 1), max_tokens=1, temperature=0)
    assert fits.status == 200
    assert fits.json["usage"]["prompt_tokens"] == context - 1
    assert real_gateway.complete([token] * context, max_tokens=1).error == (
        400,
        "prompt",
        "context_length_exceeded",
    )


def test_section_7_an_id_beyond_the_vocabulary_is_the_clients_fault(real_gateway: Any) -> None:
    assert real_gateway.complete([1, 2**31 - 1]).error == (400, "prompt", "invalid_value")
    assert real_gateway.complete([[1], [10**18]]).error == (400, "prompt[1]", "invalid_value")
    assert real_gateway.complete("a", max_tokens=1).status == 200


def test_section_9_chat_scores_join_to_the_content_and_are_greedy(real_gateway: Any) -> None:
    answer = real_gateway.chat("what is 2 + 2?", temperature=0, logprobs=True, top_logprobs=3, max_tokens=32)
    choice = answer.json["choices"][0]
    entries = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == choice["message"]["content"]
    for entry in entries:
        best = entry["top_logprobs"][0]
        assert entry["logprob"] == best["logprob"]
        assert best["bytes"] == entry["bytes"] == list(entry["token"].encode())
        values = [alternative["logprob"] for alternative in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)


def test_section_9_split_characters_come_back_whole(real_gateway: Any) -> None:
    text = "é🙂👩‍👩‍👧 ä"
    choice = real_gateway.complete(text, **SCORE | {"max_tokens": 0}).json["choices"][0]
    scores = choice["logprobs"]
    assert choice["text"] == "".join(scores["tokens"]) == text
    for place, token in zip(scores["text_offset"], scores["tokens"], strict=True):
        assert text[place:].startswith(token)


def test_section_15_a_stop_sequence_ends_a_real_generation(real_gateway: Any) -> None:
    whole = real_gateway.chat("what is 2 + 2?", temperature=0).json["choices"][0]["message"]["content"]
    stop = whole[2:4]
    cut = real_gateway.chat("what is 2 + 2?", temperature=0, stop=stop).json["choices"][0]
    assert cut["message"]["content"] == whole[: whole.index(stop)]
    assert cut["finish_reason"] == "stop"


def test_section_11_a_schema_is_kept_by_the_answer(real_gateway: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [1, 2]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    answer = real_gateway.chat("give me a number", response_format=wanted, temperature=0, max_tokens=64)
    assert answer.json["choices"][0]["message"]["content"].replace(" ", "") in ('{"n":1}', '{"n":2}')


def test_section_11_with_thinking_the_reasoning_comes_first_and_the_answer_keeps_the_schema(
    real_gateway: Any,
) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "sum", "schema": schema}}
    fields = {"enable_thinking": True, "response_format": wanted, "temperature": 0, "max_tokens": 256}
    whole = real_gateway.chat("what is 2 + 2?", **fields).json["choices"][0]
    assert whole["finish_reason"] == "stop"
    assert whole["message"]["reasoning_content"].strip()
    jsonschema.validate(json.loads(whole["message"]["content"]), schema)
    *chunks, last = real_gateway.chat("what is 2 + 2?", stream=True, **fields).events
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    for part in ("reasoning_content", "content"):
        assert "".join(delta.get(part) or "" for delta in deltas) == whole["message"][part]
    assert last == "[DONE]"


def test_streams_on_two_slots_run_side_by_side(real_gateway: Any) -> None:
    connections = [real_gateway.connect() for _ in range(2)]
    for connection, prompt in zip(connections, PROMPTS, strict=False):
        body = {"model": "test-model", "prompt": prompt, "stream": True, "max_tokens": 24, "temperature": 0}
        real_gateway.send(connection, "/v1/completions", body)
    streamed = [real_gateway.read(connection).events for connection in connections]
    for events, prompt in zip(streamed, PROMPTS, strict=False):
        alone = real_gateway.complete(prompt, max_tokens=24, temperature=0).json["choices"][0]["text"]
        assert "".join(itertools.chain(*(event["choices"][0]["text"] for event in events[:-1]))) == alone
    for connection in connections:
        connection.close()
