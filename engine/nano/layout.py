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

from generated import markup

SPECIAL_TOKENS: Final = (
    markup.GLM_END_OF_TEXT,
    "[MASK]",
    markup.GLM_GENERATION_MASK,
    "[sMASK]",
    markup.GLM_START_OF_PIECE,
    "<eop>",
    markup.GLM_SYSTEM,
    markup.GLM_USER,
    markup.GLM_ASSISTANT,
    markup.GLM_OBSERVATION,
)
"""Turn and document markers: removed when text is decoded, and three of them end an answer."""
TAG_TOKENS: Final = (
    markup.GLM_REASONING_OPEN,
    markup.GLM_REASONING_CLOSE,
    markup.GLM_CALL_OPEN,
    markup.GLM_CALL_CLOSE,
    markup.GLM_RESPONSE_OPEN,
    markup.GLM_RESPONSE_CLOSE,
    markup.GLM_ARGUMENT_KEY_OPEN,
    markup.GLM_ARGUMENT_KEY_CLOSE,
    markup.GLM_ARGUMENT_VALUE_OPEN,
    markup.GLM_ARGUMENT_VALUE_CLOSE,
)
"""Single tokens that stay visible in decoded text, because the gateway parses them."""
END_TOKENS: Final = (markup.GLM_END_OF_TEXT, markup.GLM_USER, markup.GLM_OBSERVATION)
DOCUMENT_START: Final = markup.GLM_GENERATION_MASK + markup.GLM_START_OF_PIECE

TOOLS_OPENING: Final = "You may call these tools:"
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

    THINK = markup.GLM_REASONING_OPEN
    DIRECT = markup.GLM_REASONING_OPEN + markup.GLM_REASONING_CLOSE
    BARE = markup.GLM_REASONING_CLOSE


def tool_call(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """One tool call in the family's syntax."""
    pairs = "".join(
        f"{markup.GLM_ARGUMENT_KEY_OPEN}{key}{markup.GLM_ARGUMENT_KEY_CLOSE}"
        f"{markup.GLM_ARGUMENT_VALUE_OPEN}{value}{markup.GLM_ARGUMENT_VALUE_CLOSE}"
        for key, value in arguments
    )
    return f"{markup.GLM_CALL_OPEN}{name}{pairs}{markup.GLM_CALL_CLOSE}"


TOOLS_CLOSING: Final = (
    f"To call a tool write {tool_call('NAME', [('KEY', 'VALUE')])} with "
    "one key and one value for each argument."
)


def effort_line(effort: str) -> str:
    """The system turn that switches reasoning on."""
    return f"{markup.GLM_SYSTEM}Reasoning Effort: {effort}"


def tools_turn(
    tools: Sequence[Mapping[str, Any]], opening: str = TOOLS_OPENING, closing: str = TOOLS_CLOSING
) -> str:
    """The system turn that declares tools, one JSON text a line."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    declared = f"{markup.GLM_DECLARATIONS_OPEN}\n{lines}\n{markup.GLM_DECLARATIONS_CLOSE}"
    return f"{markup.GLM_SYSTEM}{opening}\n{declared}\n{closing}"


def assistant_turn(mode: Mode, reasoning: str, answer: str, closing: str) -> list[Segment]:
    """An assistant turn that is learned: everything the model itself has to write, up to the marker that
    ends the turn.
    """
    if mode is Mode.THINK:
        return [
            Segment(markup.GLM_ASSISTANT + mode.value, PROMPT_WEIGHT),
            Segment(f"{reasoning}{markup.GLM_REASONING_CLOSE}{answer}{closing}", ANSWER_WEIGHT),
        ]
    return [
        Segment(markup.GLM_ASSISTANT + mode.value, PROMPT_WEIGHT),
        Segment(f"{answer}{closing}", ANSWER_WEIGHT),
    ]
