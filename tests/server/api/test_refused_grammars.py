"""Grammars and schemas that the engine does not take are the client's fault (http.md §11, wire.md §4)."""

from __future__ import annotations

from typing import Any

import pytest

REFUSED = (400, "response_format", "invalid_value")
GRAMMAR = {"type": "gbnf", "grammar": "garbage ((("}


def schema(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": value}}


ENFORCED_BY_NO_ENGINE_OF_OURS = [
    GRAMMAR,
    schema({"type": "string", "pattern": "(?<=a)b"}),
    schema({"$ref": "#/$defs/nowhere"}),
    schema({"enum": []}),
    schema({"type": "nothing"}),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["complete", "chat"])
def test_section_11_a_refused_grammar_is_a_400_in_json_and_before_a_stream(
    gateway: Any, endpoint: str, stream: bool
) -> None:
    gateway.plan(["ERROR <id> BAD_REQUEST"])
    answer = getattr(gateway, endpoint)(response_format=GRAMMAR, stream=stream)
    assert answer.error == REFUSED
    assert answer.headers["content-type"] == "application/json"
    assert "grammar" in answer.message
    assert "BAD_REQUEST" not in answer.message


def test_section_11_a_refused_grammar_with_numbers_wanted_is_the_grammar(gateway: Any) -> None:
    gateway.plan(["ERROR <id> BAD_REQUEST"])
    assert gateway.complete(response_format=GRAMMAR, logprobs=1).error == REFUSED


def test_section_11_a_refused_grammar_is_no_members_of_a_batch(gateway: Any) -> None:
    gateway.plan(["ERROR <id> BAD_REQUEST"])
    answer = gateway.complete(["a", "b"], response_format=GRAMMAR)
    assert answer.error == REFUSED
    assert "prompt[" not in answer.message
    assert len(gateway.submits()) == 1


def test_section_7_with_ids_as_well_the_engine_means_the_ids(gateway: Any) -> None:
    gateway.plan(["ERROR <id> BAD_REQUEST"])
    assert gateway.complete([1, 2], response_format=GRAMMAR).error == (400, "prompt", "invalid_value")


def test_section_11_other_failures_of_a_request_with_a_grammar_stay_what_they_are(gateway: Any) -> None:
    gateway.plan(["ERROR <id> SLOT_BUSY"])
    assert gateway.complete(response_format=GRAMMAR).error == (500, None, "engine_error")
    gateway.plan(["ERROR <id> EMPTY_PROMPT"])
    assert gateway.complete(response_format=GRAMMAR).error == (400, "prompt", "invalid_value")


def test_section_11_nul_in_a_schema_is_a_400_and_reaches_no_engine(gateway: Any) -> None:
    for value in ({"const": "a\0"}, {"properties": {"k\0": {"type": "string"}}}):
        for endpoint in (gateway.complete, gateway.chat):
            assert endpoint(response_format=schema(value)).error == (400, "response_format", None)
    assert gateway.submits() == []


@pytest.mark.parametrize("wanted", ENFORCED_BY_NO_ENGINE_OF_OURS, ids=str)
def test_section_11_what_our_engines_cannot_enforce_is_a_400(real_gateway: Any, wanted: Any) -> None:
    for stream in (False, True):
        assert real_gateway.chat("Hi", response_format=wanted, stream=stream).error == REFUSED
    assert real_gateway.complete(["a", "b"], response_format=wanted).error == REFUSED
    assert real_gateway.complete(max_tokens=1).status == 200
