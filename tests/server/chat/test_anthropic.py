"""The Anthropic dialect on the way in (http.md §16; N-02 to N-36; B81, B103, B105)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from generated.errors import ApiError
from generated.families import FAMILIES
from server.chat import (
    ChatRenderer,
    Message,
    chat_stop_policy,
    choose_anthropic_tools,
    conversation_slot,
    plain_messages,
    read_anthropic_messages,
    read_anthropic_tools,
    read_stop_sequences,
    read_system,
    read_thinking,
    with_system,
)
from server.chat.messages import ReplayedCall
from server.chat.policy import answer_outcome, chat_pipeline
from server.chat.tools import ToolDeclaration, ToolUse
from server.text import ContentDelta

from .faults import fault, refused

GLM, OLMOE = FAMILIES["glm"], FAMILIES["olmoe"]
TOOL = {
    "name": "f",
    "description": "d",
    "input_schema": {"type": "object"},
    "cache_control": {},
    "type": "custom",
}
DECLARED = read_anthropic_tools([TOOL, {"name": "g", "input_schema": None}])


def turn(role: str, *blocks: object) -> list[object]:
    return [{"role": role, "content": list(blocks)}]


@pytest.mark.parametrize("value", [None, [], ""])
def test_no_stop_sequences(value: object) -> None:
    assert read_stop_sequences(value) == ()


@pytest.mark.parametrize(
    "value, param",
    [
        ("x", "stop_sequences"),
        (5, "stop_sequences"),
        ({}, "stop_sequences"),
        (["a"] * 5, "stop_sequences"),
        (["a", ""], "stop_sequences.1"),
        ([5], "stop_sequences.0"),
        ([None], "stop_sequences.0"),
    ],
)
def test_bad_stop_sequences(value: object, param: str) -> None:
    assert fault(lambda: read_stop_sequences(value)) == refused(param, "invalid_value")


def test_stop_sequences_are_kept() -> None:
    assert read_stop_sequences(["a", "b", "c", "d"]) == ("a", "b", "c", "d")


def test_the_system_text_is_a_string_or_text_blocks() -> None:
    blocks = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "b"},
    ]
    assert [read_system(None), read_system("S"), read_system(blocks), read_system([])] == ["", "S", "ab", ""]


@pytest.mark.parametrize(
    "value, param, code",
    [
        (5, "system", None),
        ({}, "system", None),
        ([{"type": "image"}], "system.0", "unsupported_content_type"),
        (["x"], "system.0", "unsupported_content_type"),
        ([{"type": "text"}], "system.0.text", None),
    ],
)
def test_a_bad_system_text_is_named(value: object, param: str, code: str | None) -> None:
    assert fault(lambda: read_system(value)) == refused(param, code)


def test_b105_requests_that_differ_only_in_the_billing_line_give_the_same_prompt_and_slot() -> None:
    def prompt(cch: str) -> tuple[str, int]:
        line = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2; cch={cch};"}
        system = read_system([line, {"type": "text", "text": "You help."}])
        messages = with_system(system, read_anthropic_messages(turn("user", {"type": "text", "text": "Hi"})))
        text = ChatRenderer(GLM).prompt(messages, ToolUse(), read_thinking(None, GLM))
        return text, conversation_slot(plain_messages(messages), 1 << 60)

    assert prompt("ab12") == prompt("cd34")
    assert prompt("1")[0] == "[gMASK]<sop><|system|>You help.<|user|>Hi<|assistant|><think></think>"
    assert read_system("x-anthropic-billing-header: a\nYou help.") == "You help."
    assert read_system("see x-anthropic-billing-header") == "see x-anthropic-billing-header"


@pytest.mark.parametrize("value", [None, "x", [], {}])
def test_messages_must_be_a_non_empty_list(value: object) -> None:
    assert fault(lambda: read_anthropic_messages(value)) == refused("messages", None)


@pytest.mark.parametrize(
    "entry, param, code",
    [
        (5, "messages.0", None),
        ({}, "messages.0.role", "unsupported_role"),
        ({"role": "tool", "content": "x"}, "messages.0.role", "unsupported_role"),
        ({"role": "user"}, "messages.0.content", None),
        ({"role": "assistant", "content": None}, "messages.0.content", None),
        ({"role": "user", "content": 5}, "messages.0.content", None),
        ({"role": "user", "content": ["x"]}, "messages.0.content.0", "unsupported_content_type"),
        ({"role": "user", "content": "a\0"}, "messages", None),
    ],
)
def test_a_bad_message_is_named(entry: object, param: str, code: str | None) -> None:
    assert fault(lambda: read_anthropic_messages([entry])) == refused(param, code)


@pytest.mark.parametrize(
    "role, block",
    [
        ("user", {"type": "image", "source": {}}),
        ("user", {"type": "thinking", "thinking": "x", "signature": "s"}),
        ("user", {"type": "tool_use", "name": "f"}),
        ("assistant", {"type": "tool_result"}),
        ("system", {"type": "thinking", "thinking": "x"}),
        ("user", {"type": "document"}),
        ("user", {}),
        ("assistant", {"type": 5}),
    ],
)
def test_a_block_that_does_not_belong_is_named(role: str, block: object) -> None:
    text = {"type": "text", "text": "a"}
    assert fault(lambda: read_anthropic_messages(turn(role, text, block))) == refused(
        "messages.0.content.1", "unsupported_content_type"
    )


@pytest.mark.parametrize(
    "role, block, param",
    [
        ("user", {"type": "text"}, "text"),
        ("assistant", {"type": "thinking", "thinking": 5}, "thinking"),
        ("assistant", {"type": "tool_use", "input": {}}, "name"),
        ("assistant", {"type": "tool_use", "name": ""}, "name"),
        ("assistant", {"type": "tool_use", "name": "f", "input": []}, "input"),
        ("user", {"type": "tool_result", "content": 5}, "content"),
        ("user", {"type": "tool_result", "content": [{"type": "text", "text": 5}]}, "content.0.text"),
    ],
)
def test_a_field_of_a_block_is_named(role: str, block: object, param: str) -> None:
    assert fault(lambda: read_anthropic_messages(turn(role, block))) == refused(
        f"messages.0.content.0.{param}", None
    )


def test_an_image_in_a_tool_result_is_named() -> None:
    block = {"type": "tool_result", "content": [{"type": "image"}]}
    assert fault(lambda: read_anthropic_messages(turn("user", block))) == refused(
        "messages.0.content.0.content.0", "unsupported_content_type"
    )


def test_system_messages_keep_their_place() -> None:
    messages: list[object] = [{"role": "user", "content": "a"}, {"role": "system", "content": "S"}]
    assert with_system("T", read_anthropic_messages(messages)) == (
        Message("system", "T"),
        Message("user", "a"),
        Message("system", "S"),
    )


BILLING = "x-anthropic-billing-header: cc_version=2; cch=ab12;"


@pytest.mark.parametrize("content", [BILLING, BILLING + "\n", [{"type": "text", "text": BILLING}]])
def test_b105_a_system_message_of_billing_lines_alone_is_no_turn(content: object) -> None:
    billing = {"role": "system", "content": content}
    read = read_anthropic_messages([{"role": "user", "content": "a"}, billing])
    assert read == (Message("user", "a"),)
    prompt = ChatRenderer(GLM).prompt(read, ToolUse(), read_thinking(None, GLM))
    assert prompt == "[gMASK]<sop><|user|>a<|assistant|><think></think>"
    assert fault(lambda: read_anthropic_messages([billing])) == refused("messages", None)


@pytest.mark.parametrize("content", ["", []])
def test_an_empty_system_message_of_the_client_is_kept(content: object) -> None:
    assert read_anthropic_messages([{"role": "system", "content": content}]) == (Message("system", ""),)


IMAGE = {"type": "image"}


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda: read_system([IMAGE]), "A block of a system message must be one of text."),
        (lambda: read_system(5), "system must be a string or a list of text blocks."),
        (
            lambda: read_anthropic_messages(turn("user", {"type": "tool_result", "content": [IMAGE]})),
            "A block of a tool result must be one of text.",
        ),
        (
            lambda: read_anthropic_messages(turn("user", {"type": "tool_result", "content": 5})),
            "messages.0.content.0.content must be a string or a list of text blocks.",
        ),
        (lambda: read_anthropic_messages(turn("user", IMAGE)), "A block of a user message must be"),
        (lambda: read_anthropic_messages(turn("system", IMAGE)), "A block of a system message must be"),
        (
            lambda: read_anthropic_messages(turn("assistant", IMAGE)),
            "A block of an assistant message must be",
        ),
    ],
)
def test_a_bad_block_is_told_by_the_place_it_is_in(read: Callable[[], object], told: str) -> None:
    with pytest.raises(ApiError) as raised:
        read()
    assert told in raised.value.message


def test_b81_b103_thinking_replays_with_any_signature_and_redacted_thinking_is_taken() -> None:
    blocks = [
        {"type": "thinking", "thinking": "wh"},
        {"type": "thinking", "thinking": "y", "signature": "any"},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "a"},
    ]
    assert read_anthropic_messages(turn("assistant", *blocks)) == (Message("assistant", "a", "why"),)


def test_results_precede_the_text_of_their_turn_and_the_round_trip_renders() -> None:
    messages: list[object] = [
        {"role": "user", "content": "w?"},
        *turn(
            "assistant",
            {"type": "thinking", "thinking": "why", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"c": "Rome"}},
        ),
        *turn(
            "user",
            {"type": "text", "text": "and?"},
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "18C"}]},
        ),
    ]
    read = read_anthropic_messages(messages)
    assert read == (
        Message("user", "w?"),
        Message("assistant", "", "why", (ReplayedCall("f", {"c": "Rome"}, "t1"),)),
        Message("tool", "18C", call_identifier="t1"),
        Message("user", "and?"),
    )
    assert ChatRenderer(GLM).prompt(read, ToolUse(), read_thinking(None, GLM)) == (
        "[gMASK]<sop><|user|>w?<|assistant|><think>why</think><tool_call>f<arg_key>c</arg_key>"
        "<arg_value>Rome</arg_value></tool_call><|observation|><tool_response>18C</tool_response><|user|>and?"
        "<|assistant|><think></think>"
    )


@pytest.mark.parametrize(
    "block, text",
    [
        ({"type": "tool_result"}, ""),
        ({"type": "tool_result", "content": None}, ""),
        ({"type": "tool_result", "content": "r", "is_error": False}, "r"),
        ({"type": "tool_result", "content": "r", "is_error": True}, "Error: r"),
        ({"type": "tool_result", "content": [], "extra": 1}, ""),
    ],
)
def test_tool_results_may_be_short_of_anything(block: dict[str, Any], text: str) -> None:
    assert read_anthropic_messages(turn("user", block)) == (Message("tool", text),)


def test_tools_are_read_with_their_extras_ignored() -> None:
    assert DECLARED.tools == (ToolDeclaration("f", "d", {"type": "object"}), ToolDeclaration("g"))
    assert read_anthropic_tools(None).tools == read_anthropic_tools([]).tools == ()


@pytest.mark.parametrize(
    "value, param",
    [
        ("x", "tools"),
        ({}, "tools"),
        ([5], "tools.0"),
        ([{"input_schema": {}}], "tools.0.name"),
        ([{"name": ""}], "tools.0.name"),
        ([{"name": 5}], "tools.0.name"),
        ([TOOL, {"name": "f", "input_schema": []}], "tools.1.input_schema"),
    ],
)
def test_a_bad_tool_is_named(value: object, param: str) -> None:
    assert fault(lambda: read_anthropic_tools(value)) == refused(param, "invalid_value")


@pytest.mark.parametrize(
    "choice, param",
    [
        ("auto", "tool_choice"),
        (5, "tool_choice"),
        ({}, "tool_choice"),
        ({"type": "zzz"}, "tool_choice"),
        ({"type": ["any"]}, "tool_choice"),
        ({"type": "tool"}, "tool_choice.name"),
        ({"type": "tool", "name": "zzz"}, "tool_choice.name"),
    ],
)
def test_a_bad_choice_is_named(choice: object, param: str) -> None:
    assert fault(lambda: choose_anthropic_tools(DECLARED, choice, GLM)) == refused(param, "invalid_value")


@pytest.mark.parametrize(
    "choice, names, must",
    [
        (None, ["f", "g"], None),
        ({"type": "auto", "disable_parallel_tool_use": True}, ["f", "g"], None),
        ({"type": "any"}, ["f", "g"], "any"),
        ({"type": "tool", "name": "g"}, ["g"], "named"),
        ({"type": "none"}, [], None),
    ],
)
def test_a_choice_offers_tools(choice: object, names: list[str], must: str | None) -> None:
    use = choose_anthropic_tools(DECLARED, choice, GLM)
    assert ([tool.name for tool in use.offered], use.must) == (names, must)


def test_a_choice_without_tools_is_refused_unless_none() -> None:
    nothing = read_anthropic_tools(None)
    assert choose_anthropic_tools(nothing, {"type": "none"}, GLM) == ToolUse()
    assert fault(lambda: choose_anthropic_tools(nothing, {"type": "any"}, GLM)) == refused(
        "tool_choice", "invalid_value"
    )


def test_a_family_without_tools_refuses_them() -> None:
    assert fault(lambda: choose_anthropic_tools(DECLARED, None, OLMOE)) == refused(
        "tools", "unsupported_parameter"
    )


@pytest.mark.parametrize(
    "value, on",
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "enabled", "budget_tokens": 1}, True),
        ({"type": "adaptive"}, True),
    ],
)
def test_thinking_is_on_for_enabled_and_adaptive_and_always_high(value: object, on: bool) -> None:
    thinking = read_thinking(value, GLM)
    prompt = ChatRenderer(GLM).prompt((Message("user", "Hi"),), ToolUse(), thinking)
    assert thinking.on is on
    assert ("<|system|>Reasoning Effort: High<|user|>Hi<|assistant|><think>" in prompt) is on
    assert not read_thinking(value, OLMOE).on


@pytest.mark.parametrize("value", ["enabled", True, {}, {"type": "on"}, {"type": None}, {"type": []}])
def test_bad_thinking_is_refused(value: object) -> None:
    assert fault(lambda: read_thinking(value, GLM)) == refused("thinking", "invalid_value")


@pytest.mark.parametrize(
    "client, data, outcome, sequence",
    [
        ([], b"ready<|user|>cake", "stop", "<|user|>"),
        (["ZZ"], b"ready ZZ", "sequence", "ZZ"),
        (["ZZ"], b"ready", "stop", None),
    ],
)
def test_b47_only_a_stop_of_the_client_is_reported_as_one(
    client: list[str], data: bytes, outcome: str, sequence: str | None
) -> None:
    stop = chat_stop_policy(client, False, GLM)
    pipeline = chat_pipeline(stop, read_thinking(None, GLM), ToolUse(), False)
    pipeline.feed(data)
    pipeline.finish()
    assert (answer_outcome(pipeline, stop.from_client), pipeline.stop_sequence) == (outcome, sequence)


def test_a_family_without_reasoning_has_its_text_left_whole() -> None:
    pipeline = chat_pipeline(
        chat_stop_policy([], False, OLMOE), read_thinking({"type": "enabled"}, OLMOE), ToolUse(), False
    )
    assert pipeline.feed(b"a<think>b</think>") == [ContentDelta("a<think>b</think>")]
