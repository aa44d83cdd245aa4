"""Options shared by the POST endpoints: values, order, the wire (http.md §6; bugs B46, B51-B54)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

PATHS = ("/v1/completions", "/v1/chat/completions")


def post(gateway: Any, path: str, **fields: Any) -> Any:
    body: dict[str, Any] = {"model": "test-model"}
    body |= (
        {"prompt": "hi"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "hi"}]}
    )
    return gateway.post(path, body | fields)


def sent_max_tokens(gateway: Any) -> list[int]:
    return [int(submit.split()[3]) for submit in gateway.submits()]


@pytest.mark.parametrize("path", PATHS)
def test_b51_max_completion_tokens_wins_and_the_loser_is_not_validated(gateway: Any, path: str) -> None:
    assert post(gateway, path, max_completion_tokens=4, max_tokens="x").status == 200
    assert post(gateway, path, max_completion_tokens=None, max_tokens=3).status == 200
    answer = post(gateway, path, max_completion_tokens="x", max_tokens=4)
    assert answer.error == (400, "max_completion_tokens", None)
    assert sent_max_tokens(gateway) == [4, 3]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, True, "10", [], {}])
def test_b52_what_is_no_positive_integer_is_refused_naming_the_field(
    gateway: Any, path: str, value: Any
) -> None:
    for field in ("max_tokens", "max_completion_tokens"):
        assert post(gateway, path, **{field: value}).error == (400, field, None)
    assert gateway.submits() == []


@pytest.mark.parametrize("path", PATHS)
def test_b52_missing_null_and_larger_values_are_the_operators_cap(gateway: Any, path: str) -> None:
    for fields in ({}, {"max_tokens": None}, {"max_tokens": 17}, {"max_tokens": 10**30}, {"max_tokens": 16}):
        assert post(gateway, path, **fields).status == 200
    assert sent_max_tokens(gateway) == [16] * 5


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", [0, 2, -1, True, 1.0, "1", [1]])
def test_b54_more_than_one_choice_is_a_named_400(gateway: Any, path: str, n: Any) -> None:
    assert post(gateway, path, n=n).error == (400, "n", "unsupported_value")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", [1, None])
def test_b54_one_choice_has_index_0(gateway: Any, path: str, n: Any) -> None:
    assert [choice["index"] for choice in post(gateway, path, n=n).json["choices"]] == [0]


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (7, ("stop", "invalid_value")),
        ({"a": 1}, ("stop", "invalid_value")),
        (["a", "b", "c", "d", "e"], ("stop", "invalid_value")),
        (["ok", 7], ("stop.1", "invalid_value")),
        ([None], ("stop.0", "invalid_value")),
        (["ok", ""], ("stop.1", "invalid_value")),
        ("", ("stop.0", "invalid_value")),
    ],
)
def test_b46_other_forms_of_stop_are_refused(gateway: Any, stop: Any, expected: Any) -> None:
    assert gateway.complete(stop=stop).error == (400, *expected)


@pytest.mark.parametrize("stop", ["llo", ["llo"], ["a", "b", "c", "llo"]])
def test_b46_a_string_is_a_list_of_one(gateway: Any, stop: Any) -> None:
    choice = gateway.complete(stop=stop).json["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == ("Hé", "stop")


SEEDS = [1234, -1, 2**70, "abc", 1.5, True, [], {"a": 1}, None]


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_section_6_seed_is_accepted_and_reaches_no_frame(gateway: Any, seed: Any) -> None:
    assert gateway.complete(seed=seed, temperature=0).status == 200
    assert gateway.submits() == [b"SUBMIT 0 2 16 0 0.9\nhi\n"]


UNSERVED = [
    ("frequency_penalty", 1, 0), ("presence_penalty", -0.5, 0.0), ("logit_bias", {"1": 5}, {}),
    ("best_of", 3, 1), ("suffix", "x", ""),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "neutral"), UNSERVED)
def test_section_6_fields_that_would_change_the_answer_are_refused_by_name(
    gateway: Any, field: str, value: Any, neutral: Any
) -> None:
    assert gateway.complete(**{field: value}).error == (400, field, "unsupported_parameter")
    assert gateway.complete(**{field: neutral}).status == 200
    assert gateway.complete(**{field: None}).status == 200


def test_section_6_harmless_fields_are_ignored(gateway: Any) -> None:
    answer = gateway.complete(
        user="u", metadata={"a": 1}, store=True, service_tier="auto", wish=[1], top_logprobs=99
    )
    assert answer.status == 200
    assert gateway.submits() == [b"SUBMIT 0 2 16 0.7 0.9\nhi\n"]


ORDER: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    # http.md §6, one fault per step, in the order of the text
    ({"n": 2}, ("n", "unsupported_value")),
    ({"tools": 5}, ("tools", "invalid_value")),
    ({"tool_choice": "maybe"}, ("tool_choice", "unsupported_value")),
    ({"stop": 7}, ("stop", "invalid_value")),
    ({"frequency_penalty": 1}, ("frequency_penalty", "unsupported_parameter")),
    ({"suffix": "x"}, ("suffix", "unsupported_parameter")),
    ({"response_format": "x"}, ("response_format", "invalid_value")),
    ({"max_tokens": 0}, ("max_tokens", None)),
    ({"temperature": 9}, ("temperature", None)),
    ({"top_p": 0}, ("top_p", None)),
    ({"echo": "x"}, ("echo", "invalid_value")),
    ({"logprobs": []}, ("logprobs", "invalid_value")),
    ({"x_colibri_ignore_leading_stop": "x"}, ("x_colibri_ignore_leading_stop", "invalid_value")),
    ({"cache_slot": 9}, ("cache_slot", None)),
    ({"stream": 1}, ("stream", None)),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.pairwise(ORDER)), ids=lambda step: next(iter(step[0]))
)
def test_section_6_of_two_faults_the_earlier_step_is_reported(
    gateway: Any, path: str, first: Any, second: Any
) -> None:
    assert post(gateway, path, **second[0], **first[0]).error == (400, *first[1])
    assert post(gateway, path, **second[0]).error == (400, *second[1])


@pytest.mark.parametrize("path", PATHS)
def test_section_6_logprobs_with_stream_comes_before_stream_options(gateway: Any, path: str) -> None:
    wanted = 1 if path == "/v1/completions" else True
    answer = post(gateway, path, logprobs=wanted, stream=True, stream_options=5)
    assert answer.error == (400, "logprobs", "unsupported_parameter")
    assert post(gateway, path, stream=True, stream_options=5).error == (400, "stream_options", None)
    assert post(gateway, path, stream=False, stream_options=5).status == 200


def test_section_6_the_default_temperature_is_colis_own_if_it_is_sane(
    open_gateway: Callable[..., Any],
) -> None:
    for value, sent in (("0.25", b"0.25"), ("9", b"0.7"), ("warm", b"0.7")):
        gateway = open_gateway(environ={"COLI_TEMP": value})
        assert gateway.complete().status == 200
        assert gateway.submits()[0].split()[4] == sent


@pytest.mark.parametrize("value", [1e-50, 5e-46, 0, -1, 1.0001, "0.5", True])
def test_section_6_top_p_may_not_become_0_in_single_precision(gateway: Any, value: Any) -> None:
    assert gateway.complete(top_p=value).error == (400, "top_p", None)
    assert gateway.submits() == []


def test_section_11_a_grammar_travels_behind_the_prompt_and_needs_the_capability(
    gateway: Any, old_gateway: Any
) -> None:
    schema = {"type": "object", "properties": {"é": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert gateway.complete(response_format=wanted).status == 200
    text = '{"type":"object","properties":{"é":{"type":"string"}}}'.encode()
    assert gateway.submits() == [b"SUBMIT 0 2 16 0.7 0.9 %d\nhi%b\n" % (len(text), text)]
    refused = (400, "response_format", "unsupported_parameter")
    assert old_gateway.complete(response_format=wanted).error == refused
    assert old_gateway.complete(response_format={"type": "text"}).status == 200


def test_section_1_a_client_never_sees_wire_words_or_internals(gateway: Any) -> None:
    gateway.plan(["ERROR <id> segfault in expert_cache.c line 12"])
    answer = gateway.complete()
    assert answer.error == (500, None, "engine_error")
    assert b"expert_cache" not in answer.body


def test_section_3_the_model_is_judged_before_every_field(gateway: Any) -> None:
    for path in (*PATHS, "/v1/messages", "/v1/messages/count_tokens"):
        for model in ("nope", None, 5, "TEST-MODEL", ["test-model"]):
            answer = gateway.post(path, {"model": model, "n": 2, "top_k": 5})
            assert answer.status == 404
            if path in PATHS:
                assert answer.error == (404, "model", "model_not_found")
            else:
                assert answer.json["error"]["type"] == "not_found_error"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": "x"}, (400, "invalid_request_error", "temperature", None)),
        ({"n": 2}, (400, "invalid_request_error", "n", "unsupported_value")),
        ({"best_of": 2}, (400, "invalid_request_error", "best_of", "unsupported_parameter")),
        ({"model": "other"}, (404, "invalid_request_error", "model", "model_not_found")),
    ],
)
def test_b125_an_error_has_the_four_keys_and_no_number_for_a_code(
    gateway: Any, fields: dict[str, Any], expected: tuple[int, str, str, str | None]
) -> None:
    for path in PATHS:
        answer = post(gateway, path, **fields)
        assert list(answer.json) == ["error"]
        error = answer.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert (answer.status, error["type"], error["param"], error["code"]) == expected
        assert isinstance(error["message"], str)
        assert error["message"]
