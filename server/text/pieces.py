"""The typed pieces that leave the text pipeline, in the order in which the client must see them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ContentDelta:
    """A non-empty stretch of the answer."""

    text: str


@dataclass(slots=True)
class ReasoningDelta:
    """A non-empty stretch of the model's reasoning; it never holds a tool call (http.md §10)."""

    text: str


@dataclass(slots=True)
class ToolCall:
    """One complete tool call.

    `arguments` is one JSON object as text, `{}` for none. The call id is minted by the endpoint (http.md §1).
    """

    name: str
    arguments: str


@dataclass(slots=True)
class StopMatched:
    """A stop sequence ended the text: nothing but the flushed tail of earlier stages follows.

    Which sequence it was is `Pipeline.stop_sequence`, read after `finish`: a longer one that starts at the
    same place may still complete.
    """


Piece = ContentDelta | ReasoningDelta | ToolCall | StopMatched
