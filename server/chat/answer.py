"""The whole answer of a chat generation, for the JSON form of either dialect (http.md §8, §16)."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any, Final, NamedTuple

from generated.http import IdForm
from generated.words import ANSWER_MESSAGE_ROLE, TOOL_CALL_TYPE
from server.ids import new_id
from server.sse import compact_json
from server.strict_json import without_lone_surrogates
from server.text import ContentDelta, Piece, ReasoningDelta, ToolCall

_STRING_OR_BLANKS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[ \t\r\n]++')


class AnsweredCall(NamedTuple):
    """A tool call with its id; `arguments` is JSON text."""

    identifier: str
    name: str
    arguments: str


class Answer:
    """Collects the pieces of one generation.

    With tools the content is trimmed; without it is what the model wrote.
    """

    __slots__ = ("_call_id", "_content", "_reasoning", "_tools", "calls")

    def __init__(self, *, tools: bool, call_id: IdForm) -> None:
        """`tools`: calls are parsed; `call_id`: the form of the ids its calls get."""
        self._tools = tools
        self._call_id = call_id
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self.calls: list[AnsweredCall] = []
        """The calls so far, in order."""

    def add(self, piece: Piece) -> None:
        """Take the next piece."""
        if isinstance(piece, ContentDelta):
            self._content.append(piece.text)
        elif isinstance(piece, ReasoningDelta):
            self._reasoning.append(piece.text)
        elif isinstance(piece, ToolCall):
            self.calls.append(AnsweredCall(new_id(self._call_id), piece.name, sent_arguments(piece)))

    @property
    def content(self) -> str:
        """The answer's text."""
        text = "".join(self._content)
        return text.strip() if self._tools else text

    @property
    def reasoning(self) -> str:
        """The reasoning's text."""
        return "".join(self._reasoning)

    @property
    def content_or_null(self) -> str | None:
        """`content`; None for an empty one with tools."""
        return self.content or (None if self._tools else "")


def chat_message(answer: Answer) -> dict[str, Any]:
    """`choices[].message`; the optional keys are absent when empty."""
    message: dict[str, Any] = {
        "role": ANSWER_MESSAGE_ROLE,
        "content": answer.content_or_null,
        "refusal": None,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.identifier,
                "type": TOOL_CALL_TYPE,
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    return message


def sent_arguments(call: ToolCall) -> str:
    """The JSON text of a call's arguments, as every form of answer has it.

    It is the model's own but for halves of surrogate pairs, which it can write as escapes and no client could
    send back: those are U+FFFD.
    """
    return without_lone_surrogates(call.arguments)


def anthropic_content(answer: Answer, thinking: bool) -> bytes:
    """`content` of a Messages answer as JSON: the thinking block first when thinking is on, a text block
    unless it is empty, then the tool_use blocks.

    Numbers in the input of a call stay as the model wrote them, like those of a stream: not every number of
    JSON is one of ours.
    """
    blocks: list[bytes] = []
    if thinking:
        reasoning = answer.reasoning
        signature = thinking_signature(reasoning)
        blocks.append(compact_json({"type": "thinking", "thinking": reasoning, "signature": signature}))
    if answer.content:
        blocks.append(compact_json({"type": "text", "text": answer.content}))
    for call in answer.calls:
        head = compact_json({"type": "tool_use", "id": call.identifier, "name": call.name})
        blocks.append(b'%b,"input":%b}' % (head[:-1], _compacted(call.arguments).encode()))
    return b"[%b]" % b",".join(blocks)


def _compacted(text: str) -> str:
    """The same JSON without blanks, and with no more escapes than it needs."""
    return _STRING_OR_BLANKS.sub(_compacted_part, text)


def _compacted_part(found: re.Match[str]) -> str:
    part = found[0]
    if part[0] != '"':
        return ""
    return json.dumps(json.loads(part), ensure_ascii=False) if "\\" in part else part


def thinking_signature(reasoning: str) -> str:
    """A signature for a thinking block. It identifies the text and proves nothing: inbound ones are not
    checked."""
    return sha256(reasoning.encode()).hexdigest()
