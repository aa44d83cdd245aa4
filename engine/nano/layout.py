"""The GLM chat layout as training segments: the text the gateway renders, with a loss weight for every
part.

A document is a list of ``Segment``; segments always meet at a marker token, so tokenising them one by one
gives the same ids as tokenising the whole text. ``model/chat_template.jinja`` renders the same layout for
serving; a test compares the two. Source: HTTP contract, section 14.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

SPECIAL_TOKENS: Final = (
    "<|endoftext|>",
    "[MASK]",
    "[gMASK]",
    "[sMASK]",
    "<sop>",
    "<eop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
)
"""Turn and document markers: removed when text is decoded, and three of them end an answer."""
TAG_TOKENS: Final = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
)
"""Single tokens that stay visible in decoded text, because the gateway parses them."""
END_TOKENS: Final = ("<|endoftext|>", "<|user|>", "<|observation|>")
DOCUMENT_START: Final = "[gMASK]<sop>"

TOOLS_OPENING: Final = "You may call these tools:"
TOOLS_CLOSING: Final = (
    "To call a tool write <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call> with "
    "one key and one value for each argument."
)

ANSWER_WEIGHT: Final = 1.0
PROMPT_WEIGHT: Final = 0.05
PLAIN_WEIGHT: Final = 0.5


@dataclass(frozen=True)
class Segment:
    """A stretch of text and the weight of its tokens in the loss."""

    text: str
    weight: float


class Mode(enum.Enum):
    """How an assistant turn opens: the first two are what the gateway ends a prompt with, the third occurs
    in histories.
    """

    THINK = "<think>"
    DIRECT = "<think></think>"
    BARE = "</think>"


def effort_line(effort: str) -> str:
    """The system turn that switches reasoning on."""
    return f"<|system|>Reasoning Effort: {effort}"


def tools_turn(
    tools: Sequence[Mapping[str, Any]], opening: str = TOOLS_OPENING, closing: str = TOOLS_CLOSING
) -> str:
    """The system turn that declares tools, one JSON text a line."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return f"<|system|>{opening}\n<tools>\n{lines}\n</tools>\n{closing}"


def assistant_turn(mode: Mode, reasoning: str, answer: str, closing: str) -> list[Segment]:
    """An assistant turn that is learned: everything the model itself has to write, up to the marker that
    ends the turn.
    """
    if mode is Mode.THINK:
        return [
            Segment("<|assistant|><think>", PROMPT_WEIGHT),
            Segment(f"{reasoning}</think>{answer}{closing}", ANSWER_WEIGHT),
        ]
    return [
        Segment(f"<|assistant|>{mode.value}", PROMPT_WEIGHT),
        Segment(f"{answer}{closing}", ANSWER_WEIGHT),
    ]


def tool_call(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """One tool call in the family's syntax."""
    pairs = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in arguments)
    return f"<tool_call>{name}{pairs}</tool_call>"
