"""The stream of a Messages answer, event by event (http.md §16).

Guarantees: one block is open at a time and indices run 0, 1, 2 without gaps; a thinking block comes first
when thinking is on and ends with one signature; no text block is empty or, with tools, blank; the text of
all blocks together is that of the JSON answer, which is trimmed with tools; the order is message_start,
blocks, message_delta, message_stop.
"""

from __future__ import annotations

from typing import Any, Literal

from generated.http import ANTHROPIC_TOOL_CALL_ID, FINISH_REASONS, Outcome
from generated.words import ANTHROPIC_ANSWER_ROLE, ANTHROPIC_ANSWER_TYPE, AnthropicEventType
from server.chat.answer import sent_arguments, thinking_signature
from server.ids import new_id
from server.sse import EventFrame, event, hole
from server.text import ContentDelta, Piece, ReasoningDelta, ToolCall

PING = event({"type": AnthropicEventType.PING}, AnthropicEventType.PING)


class MessageEvents:
    """Builds the events of one stream. Not for use from two threads at once."""

    __slots__ = (
        "_blank",
        "_identifier",
        "_index",
        "_model",
        "_open",
        "_reasoning",
        "_spoken",
        "_text_frame",
        "_thinking",
        "_thinking_frame",
        "_tools",
    )

    def __init__(self, *, identifier: str, model: str, thinking: bool, tools: bool) -> None:
        """`thinking`: reasoning is on; `tools`: calls are parsed, blanks wait for text behind them."""
        self._identifier = identifier
        self._model = model
        self._thinking = thinking
        self._tools = tools
        self._index = 0
        self._open: Literal["", "thinking", "text"] = ""
        self._blank: list[str] = []
        self._spoken = False  # with tools: some text that is not blank has gone out
        self._reasoning: list[str] = []
        self._thinking_frame = self._frame_of("thinking_delta", "thinking")
        self._text_frame = self._frame_of("text_delta", "text")

    def opening(self, input_tokens: int) -> bytes:
        """On acceptance: message_start with the prompt's token count."""
        message: dict[str, Any] = {
            "id": self._identifier,
            "type": ANTHROPIC_ANSWER_TYPE,
            "role": ANTHROPIC_ANSWER_ROLE,
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": input_tokens, "output_tokens": 0},
        }
        return _named({"type": AnthropicEventType.MESSAGE_START, "message": message})

    def piece(self, piece: Piece) -> bytes:
        """One piece of the pipeline; `b""` when it has no event yet."""
        if isinstance(piece, ContentDelta):
            return self._text(piece.text)
        if isinstance(piece, ReasoningDelta):
            return self._think(piece.text)
        if isinstance(piece, ToolCall):
            return self._call(piece)
        return b""

    def keepalive(self) -> bytes:
        """A ping."""
        return PING

    def closing(
        self,
        outcome: Outcome,
        stop_sequence: str | None,
        output_tokens: int,
        input_tokens: int | None = None,
    ) -> bytes:
        """The end of the open block, message_delta and message_stop.

        `stop_sequence`: reported only for the outcome `sequence`. `input_tokens`: only where message_start
        could not say them yet.
        """
        end = self._before_answer() + self._close()
        delta = {
            "stop_reason": FINISH_REASONS[outcome].anthropic,
            "stop_sequence": stop_sequence if outcome is Outcome.SEQUENCE else None,
        }
        usage = {"output_tokens": output_tokens}
        if input_tokens is not None:
            usage["input_tokens"] = input_tokens
        end += _named({"type": AnthropicEventType.MESSAGE_DELTA, "delta": delta, "usage": usage})
        return end + _named({"type": AnthropicEventType.MESSAGE_STOP})

    def _think(self, text: str) -> bytes:
        opened = b""
        if self._open != "thinking":
            opened = self._start({"type": "thinking", "thinking": "", "signature": ""})
            self._open = "thinking"
            self._thinking = False
            self._thinking_frame = self._frame_of("thinking_delta", "thinking")
        self._reasoning.append(text)
        return opened + self._thinking_frame.fill(text)

    def _text(self, text: str) -> bytes:
        if self._tools:
            text = self._between_blanks(text)
            if not text:
                return b""
        if self._open == "text":
            return self._text_frame.fill(text)
        opened = self._before_answer() + self._close() + self._start({"type": "text", "text": ""})
        self._open = "text"
        self._text_frame = self._frame_of("text_delta", "text")
        return opened + self._text_frame.fill(text)

    def _between_blanks(self, text: str) -> str:
        """What of the text so far is known to stay when all of it is trimmed.

        Blanks before the first text are dropped. Later ones wait for more text, behind calls too: where none
        comes they are the end of the answer.
        """
        kept = text.rstrip()
        if not kept:
            if self._spoken:
                self._blank.append(text)
            return ""
        blank = text[len(kept) :]
        kept = "".join(self._blank) + kept if self._spoken else kept.lstrip()
        self._spoken = True
        self._blank = [blank] if blank else []
        return kept

    def _call(self, call: ToolCall) -> bytes:
        block = {"type": "tool_use", "id": new_id(ANTHROPIC_TOOL_CALL_ID), "name": call.name, "input": {}}
        events = self._before_answer() + self._close() + self._start(block)
        events += self._delta({"type": "input_json_delta", "partial_json": sent_arguments(call)})
        return events + self._stop()

    def _before_answer(self) -> bytes:
        """The empty thinking block of a model that did not reason although thinking is on."""
        if not self._thinking:
            return b""
        self._thinking = False
        self._open = "thinking"
        return self._start({"type": "thinking", "thinking": "", "signature": ""})

    def _close(self) -> bytes:
        """End the open block, if any; a thinking block gets its signature."""
        if not self._open:
            return b""
        signed = b""
        if self._open == "thinking":
            signature = thinking_signature("".join(self._reasoning))
            signed = self._delta({"type": "signature_delta", "signature": signature})
        self._open = ""
        return signed + self._stop()

    def _start(self, block: dict[str, Any]) -> bytes:
        kind = AnthropicEventType.CONTENT_BLOCK_START
        return _named({"type": kind, "index": self._index, "content_block": block})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _named(self._delta_value(delta))

    def _delta_value(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": AnthropicEventType.CONTENT_BLOCK_DELTA, "index": self._index, "delta": delta}

    def _stop(self) -> bytes:
        stopped = _named({"type": AnthropicEventType.CONTENT_BLOCK_STOP, "index": self._index})
        self._index += 1
        return stopped

    def _frame_of(self, kind: str, field: str) -> EventFrame:
        value = self._delta_value({"type": kind, field: hole()})
        return EventFrame.around(value, value["type"])


def _named(value: dict[str, Any]) -> bytes:
    """An event whose name is its type."""
    return event(value, value["type"])
