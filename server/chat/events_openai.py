"""The stream of a chat completion, event by event (http.md §8).

Guarantees: every event carries `id`, `object`, `created`, `model` and `choices`; the role comes first and
once; each call is one delta with its own index and id; exactly one event has a finish_reason; with
`include_usage` every other event has `"usage":null` and one more the totals with empty `choices`, without
it no event has a usage key.
"""

from __future__ import annotations

from typing import Any

from generated.http import FINISH_REASONS, TOOL_CALL_ID, Outcome
from generated.words import CHAT_COMPLETION_CHUNK_OBJECT, CHAT_DELTA_ROLE, TOOL_CALL_DELTA_TYPE
from server.chat.answer import sent_arguments
from server.ids import new_id
from server.sse import DONE, EventFrame, event, hole
from server.text import ContentDelta, Piece, ReasoningDelta, ToolCall


class ChatEvents:
    """Builds the events of one stream. Not for use from two threads at once."""

    __slots__ = ("_calls", "_frame", "_include_usage", "_reasoning", "content_frame")

    def __init__(self, *, identifier: str, created: int, model: str, include_usage: bool) -> None:
        """`created`: Unix time in whole seconds."""
        self._frame = {
            "id": identifier,
            "object": CHAT_COMPLETION_CHUNK_OBJECT,
            "created": created,
            "model": model,
        }
        self._include_usage = include_usage
        self._calls = 0
        self.content_frame = self._frame_of("content")
        self._reasoning = self._frame_of("reasoning_content")

    def opening(self) -> bytes:
        """On acceptance: the role."""
        return event(self._chunk({"role": CHAT_DELTA_ROLE, "content": ""}))

    def piece(self, piece: Piece) -> bytes:
        """One piece of the pipeline; `b""` for a piece that has no event."""
        if isinstance(piece, ContentDelta):
            return self.content(piece.text)
        if isinstance(piece, ReasoningDelta):
            return self.reasoning(piece.text)
        if isinstance(piece, ToolCall):
            return self._call(piece)
        return b""

    def content(self, text: str) -> bytes:
        """A stretch of the answer."""
        return self.content_frame.fill(text)

    def reasoning(self, text: str) -> bytes:
        """A stretch of reasoning."""
        return self._reasoning.fill(text)

    def keepalive(self, visible: bool) -> bytes:
        """Something to write when there is nothing to say; invisible unless the operator wants a dot."""
        return self.reasoning("." if visible else "")

    def closing(self, outcome: Outcome, usage: dict[str, Any]) -> bytes:
        """The finish, the usage when it was asked for, and the end mark."""
        end = event(self._chunk({}, FINISH_REASONS[outcome].openai))
        if self._include_usage:
            end += event({**self._frame, "choices": [], "usage": usage})
        return end + DONE

    def _call(self, call: ToolCall) -> bytes:
        delta = {
            "index": self._calls,
            "id": new_id(TOOL_CALL_ID),
            "type": TOOL_CALL_DELTA_TYPE,
            "function": {"name": call.name, "arguments": sent_arguments(call)},
        }
        self._calls += 1
        return event(self._chunk({"tool_calls": [delta]}))

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk: dict[str, Any] = {**self._frame, "choices": [choice]}
        if self._include_usage:
            chunk["usage"] = None
        return chunk

    def _frame_of(self, field: str) -> EventFrame:
        return EventFrame.around(self._chunk({field: hole()}))
