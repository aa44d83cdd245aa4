"""The field `messages` (http.md §8; cases H-01 to H-21; B30, B89, B95, B98)."""

from __future__ import annotations

from typing import Any

import pytest

from generated import limits
from generated.errors import ApiError
from server.chat import Message, read_messages
from server.chat.messages import ReplayedCall

from .faults import fault, refused

USER = {"role": "user", "content": "Hi"}


def assistant(**fields: object) -> list[object]:
    return [{"role": "assistant", "content": "x", **fields}]


@pytest.mark.parametrize("value", [None, "x", [], {}, 5, True, {"role": "user"}])
def test_messages_must_be_a_non_empty_list(value: object) -> None:
    assert fault(lambda: read_messages(value)) == refused("messages", None)


@pytest.mark.parametrize("value", ["x", None, 5, []])
def test_a_message_must_be_an_object(value: object) -> None:
    assert fault(lambda: read_messages([USER, value])) == refused("messages.1", None)


@pytest.mark.parametrize("role", [None, "", "USER", "function", 5, ["user"], {}])
def test_a_role_must_be_known(role: object) -> None:
    assert fault(lambda: read_messages([{"role": role, "content": "x"}])) == refused(
        "messages.0.role", "unsupported_role"
    )
    assert fault(lambda: read_messages([USER, {"content": "x"}])) == refused(
        "messages.1.role", "unsupported_role"
    )


@pytest.mark.parametrize("role", ["system", "developer", "user", "tool"])
@pytest.mark.parametrize(
    "message", [{}, {"content": None}, {"content": 5}, {"content": {}}, {"content": True}]
)
def test_content_must_be_a_string_or_parts(role: str, message: dict[str, object]) -> None:
    assert fault(lambda: read_messages([{"role": role, **message}])) == refused("messages.0.content", None)


@pytest.mark.parametrize("message", [{}, {"content": None}])
def test_an_assistant_may_be_silent(message: dict[str, object]) -> None:
    assert read_messages([{"role": "assistant", **message}]) == (Message("assistant", ""),)


@pytest.mark.parametrize(
    "part", [{"type": "image_url", "image_url": {}}, {"type": 5}, {"text": "x"}, "x", None, []]
)
def test_an_unserved_part_is_named(part: object) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, part]}]
    assert fault(lambda: read_messages(messages)) == refused(
        "messages.0.content.1", "unsupported_content_type"
    )


@pytest.mark.parametrize(
    "part", [{"type": "text"}, {"type": "input_text", "text": None}, {"type": "text", "text": 5}]
)
def test_a_text_part_without_text_is_named(part: object) -> None:
    assert fault(lambda: read_messages([{"role": "user", "content": [part]}])) == refused(
        "messages.0.content.0.text", None
    )


def test_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": " b", "extra": 1}]
    assert read_messages([{"role": "user", "content": parts}]) == (Message("user", "a b"),)
    assert read_messages([{"role": "user", "content": []}]) == (Message("user", ""),)


def test_b95_tool_content_as_parts_equals_the_string() -> None:
    parts = [{"type": "text", "text": "20C"}]
    as_parts = read_messages([{"role": "tool", "tool_call_id": "c1", "content": parts}])
    assert as_parts == read_messages([{"role": "tool", "tool_call_id": "c1", "content": "20C"}])
    assert as_parts == (Message("tool", "20C", call_identifier="c1"),)


def test_b98_developer_is_system_and_keeps_its_place() -> None:
    messages = [{"role": "system", "content": "S"}, {"role": "developer", "content": "D"}, USER]
    assert [(m.role, m.text) for m in read_messages(messages)] == [
        ("system", "S"),
        ("system", "D"),
        ("user", "Hi"),
    ]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_replayed_reasoning_has_two_spellings(name: str) -> None:
    assert read_messages(assistant(**{name: "why"}))[0].reasoning == "why"
    assert read_messages(assistant(**{name: None}))[0].reasoning == ""
    assert fault(lambda: read_messages(assistant(**{name: 5}))) == refused(f"messages.0.{name}", None)


@pytest.mark.parametrize("none", ["", None])
def test_b81_of_two_spellings_the_first_that_is_not_empty_replays(none: str | None) -> None:
    assert read_messages(assistant(reasoning_content=none, reasoning="WHY"))[0].reasoning == "WHY"
    assert read_messages(assistant(reasoning_content="WHY", reasoning=none))[0].reasoning == "WHY"
    assert read_messages(assistant(reasoning_content="WHY", reasoning="other"))[0].reasoning == "WHY"
    assert read_messages(assistant(reasoning_content=none, reasoning=""))[0].reasoning == ""


@pytest.mark.parametrize(
    ("content", "place"),
    [("a\0b", "messages.1.content"), ([{"type": "text", "text": "a\0b"}], "messages.1.content.0.text")],
)
def test_b30_nul_is_refused_on_the_messages_and_never_cuts_a_prompt(content: object, place: str) -> None:
    with pytest.raises(ApiError, match=f"{place} must not contain the NUL") as raised:
        read_messages([USER, {"role": "user", "content": content}])
    assert (raised.value.status, raised.value.param, raised.value.code) == (400, "messages", None)


@pytest.mark.parametrize(
    "calls, param",
    [
        ("x", ""),
        ({}, ""),
        (5, ""),
        ([5], ".0"),
        ([None], ".0"),
        ([{}], ".0.function"),
        ([{"function": "f"}], ".0.function"),
        ([{"function": {}}], ".0.function.name"),
        ([{"function": {"name": ""}}], ".0.function.name"),
        ([{"function": {"name": 5}}], ".0.function.name"),
        ([{"function": {"name": "f", "arguments": 5}}], ".0.function.arguments"),
        ([{"function": {"name": "f", "arguments": []}}], ".0.function.arguments"),
        ([{"function": {"name": "f"}}, {"function": {"name": None}}], ".1.function.name"),
    ],
)
def test_replayed_calls_are_validated_by_name(calls: object, param: str) -> None:
    assert fault(lambda: read_messages(assistant(tool_calls=calls))) == refused(
        f"messages.0.tool_calls{param}", None
    )


@pytest.mark.parametrize(
    "arguments, parsed",
    [
        ('{"x":"a b","n":3}', {"x": "a b", "n": 3}),
        ({"x": 1}, {"x": 1}),
        ("not json", {}),
        ("[1]", {}),
        ("5", {}),
        ("", {}),
        (None, {}),
        ("[" * 100_000, {}),
        ('{"q":"\\u2192 \\"x\\""}', {"q": '→ "x"'}),
    ],
)
def test_b89_arguments_may_be_text_or_an_object(arguments: object, parsed: dict[str, Any]) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]
    assert read_messages(assistant(tool_calls=calls))[0].calls == (ReplayedCall("f", parsed, "c"),)


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        (r'{"a":"x\ud800y"}', {"a": "x\ufffdy"}),
        (r'{"\uDC00":[1,"\ud83d\ud83d\ude00"]}', {"\ufffd": [1, "\ufffd\U0001f600"]}),
        (r'{"a":"\\ud800"}', {"a": r"\ud800"}),
    ],
)
def test_section_8_half_a_surrogate_pair_in_replayed_arguments_is_never_a_500(
    arguments: str, parsed: dict[str, Any]
) -> None:
    messages = read_messages(assistant(tool_calls=[{"function": {"name": "f", "arguments": arguments}}]))
    assert messages[0].calls[0].arguments == parsed


def test_null_tool_calls_are_absent() -> None:
    assert read_messages(assistant(tool_calls=None)) == read_messages(assistant(tool_calls=[]))


def test_the_first_fault_is_the_answer() -> None:
    messages = [{"role": "user", "content": 5}, {"role": "nobody"}]
    assert fault(lambda: read_messages(messages)) == refused("messages.0.content", None)


def test_section_8_replayed_arguments_as_deep_as_a_body_are_kept_and_deeper_text_is_none() -> None:
    def replayed(levels: int) -> Any:
        text = '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"
        read = read_messages(assistant(tool_calls=[{"function": {"name": "f", "arguments": text}}]))
        return read[0].calls[0].arguments

    assert list(replayed(limits.JSON_DEPTH)) == ["a"]
    assert replayed(limits.JSON_DEPTH + 1) == {}
