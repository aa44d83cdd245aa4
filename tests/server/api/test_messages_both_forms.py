"""A streamed message, put together, is the JSON one (http.md §15, §16)."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

DONE = "DONE <id> STAT 1 2.5 0 1.0 7 0"
TOOLS = [{"name": "f", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}}]
ANY = [{"name": "f", "input_schema": {"type": "object"}}]
CALL = "<tool_call>f<arg_key>x</arg_key><arg_value> é </arg_value></tool_call>"
WORDS = (CALL, CALL, "é", "a", "</think>", " ", "\u2028", "\t", "<tool_call>", "\u3000")


def parsed(text: str | bytes) -> Any:
    """JSON with its numbers as they are written."""
    return json.loads(text, parse_float=str, parse_int=str)


def assembled(answer: Any) -> list[dict[str, Any]]:
    """The content blocks of a stream, with the input of a call as it parses."""
    blocks: list[dict[str, Any]] = []
    for event in answer.events:
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"] | {"written": ""})
        elif event["type"] == "content_block_delta":
            _, value = list(event["delta"].items())[1]
            blocks[-1]["written"] += value
    return blocks


def both_forms(gateway: Any, text: str, cuts: list[int], tools: Any = TOOLS) -> tuple[list[Any], list[Any]]:
    """Text and calls of the streamed answer, and of the JSON one: the joined text, then every call."""
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    gateway.plan(["ACCEPT <id> 7", *(f"DATA <id> <n> => {piece}" for piece in pieces), DONE])
    streamed, whole = gateway.message(stream=True, tools=tools), gateway.message(tools=tools)
    assert "\\u" not in whole.body.decode("utf-8"), "nothing in these answers needs an escape"
    blocks = assembled(streamed)
    content = parsed(whole.body)["content"]
    texts = ["".join(block["written"] for block in blocks if block["type"] == "text")]
    calls = [(block["name"], parsed(block["written"])) for block in blocks if block["type"] == "tool_use"]
    assert len([block for block in content if block["type"] == "text"]) <= 1
    return (
        [*texts, *calls],
        [
            "".join(block["text"] for block in content if block["type"] == "text"),
            *((block["name"], block["input"]) for block in content if block["type"] == "tool_use"),
        ],
    )


@pytest.mark.parametrize("seed", range(24))
def test_section_15_a_streamed_message_is_the_json_one(gateway: Any, seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices(WORDS, k=chance.randrange(1, 9)))
    cuts = [chance.randrange(len(text) + 1) for _ in range(chance.randrange(4))]
    streamed, whole = both_forms(gateway, text, cuts)
    assert streamed == whole


def test_section_15_the_blank_between_two_calls_is_kept(gateway: Any) -> None:
    streamed, whole = both_forms(gateway, f"é{CALL}\u2028{CALL}é", [])
    assert streamed == whole
    assert whole[0] == "é\u2028é"


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ('{"k":1e400}', {"k": "1e400"}),
        ("[-1E-400, 1.0, 36893488147419103232]", ["-1E-400", "1.0", "36893488147419103232"]),
        (r'{"z":"\ud800","é":"\u00e9"}', {"z": "\ufffd", "é": "é"}),
        (r'{"\udfff":"\ud83d\ude00"}', {"\ufffd": "😀"}),
    ],
)
def test_section_16_awkward_arguments_are_the_same_in_both_forms_and_all_unicode(
    gateway: Any, value: str, sent: Any
) -> None:
    call = f"<tool_call>f<arg_key>x</arg_key><arg_value>{value}</arg_value></tool_call>"
    streamed, whole = both_forms(gateway, f"é{call}", [], ANY)
    assert streamed == whole == ["é", ("f", {"x": sent})]
