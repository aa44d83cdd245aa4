"""A last tool call without its closing tag: for which names it is a call."""

from __future__ import annotations

import pytest

from server.text import ContentDelta, Pipeline, ToolCall, ToolSignature

PAIR = "<arg_key>k</arg_key><arg_value>v</arg_value>"
DECLARED = ToolSignature.from_schema("weather", {"properties": {"k": {"type": "string"}}})


def pieces(text: str) -> list[object]:
    pipeline = Pipeline(tools=[DECLARED])
    return [*pipeline.feed(text.encode()), *pipeline.finish(length_limited=True)]


@pytest.mark.parametrize("name", ["weather", "other"])
@pytest.mark.parametrize("end", ["", "</tool", "<"])
def test_a_name_with_a_complete_pair_is_a_call_declared_or_not(name, end):
    assert pieces(f"<tool_call>{name}{PAIR}{end}") == [ToolCall(name, '{"k":"v"}')]


def test_words_behind_a_name_are_forgiven_to_a_declared_one_only():
    assert pieces(f"<tool_call>weather please{PAIR}") == [ToolCall("weather", '{"k":"v"}')]
    joined = "".join(piece.text for piece in pieces(f"<tool_call>other thing{PAIR}"))
    assert joined == f"<tool_call>other thing{PAIR}"


def test_a_name_alone_is_a_call_when_it_is_declared():
    assert pieces("<tool_call>weather") == [ToolCall("weather", "{}")]
    assert pieces("<tool_call>other") == [ContentDelta("<tool_call>other")]
