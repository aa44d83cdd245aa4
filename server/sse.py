"""JSON as bytes, and server-sent events made with as little work per token as possible (http.md §1, §8, §16).

Guarantees: JSON is compact UTF-8 with non-ASCII unescaped, and null for every number that is not finite; an
event is ``data: <json>``, with ``event: <name>`` before it in the Anthropic dialect, never ``id:`` or
``retry:``; no byte of an event can be taken for a line end by any client, because U+2028, U+2029 and U+0085
are escaped in it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

import orjson

from server.json_values import rewritten

DONE: Final = b"data: [DONE]\n\n"
"""The last event of an OpenAI stream."""

_HOLE: Final = "\ue000hole\ue000"
_HOLE_JSON: Final = orjson.dumps(_HOLE)
_LINE_BREAKS: Final = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)

_needs_care = re.compile(rb"[^ !#-\[\]-~]").search
"""Finds a byte that is not the same in UTF-8, in JSON and in an event."""


def is_plain(text: bytes) -> bool:
    """Whether ``text`` is ASCII that stands in a JSON string as it is: see :meth:`EventFrame.fill_all`."""
    return _needs_care(text) is None


def compact_json(value: Any) -> bytes:
    """``value`` as JSON for a response body.

    Integers of any size and lone surrogates, which a model can write as an escape into the arguments of a
    call, come out as they are.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        finite = rewritten(value, _finite)
    text = json.dumps(finite, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(finite, separators=(",", ":"), allow_nan=False).encode("ascii")


def _finite(leaf: Any) -> Any:
    return None if isinstance(leaf, float) and not math.isfinite(leaf) else leaf


def event_json(value: Any) -> bytes:
    """``value`` as JSON for an event."""
    return _unbroken(compact_json(value))


def _unbroken(data: bytes) -> bytes:
    if data.isascii():
        return data
    for raw, escape in _LINE_BREAKS:
        data = data.replace(raw, escape)
    return data


def event(value: Any, name: str | None = None) -> bytes:
    """One event with ``value`` as its data; with ``name`` it is a named event."""
    head = b"" if name is None else b"event: " + name.encode("ascii") + b"\n"
    return head + b"data: " + event_json(value) + b"\n\n"


class EventFrame:
    """The bytes around the one text that differs between the events of a stream."""

    __slots__ = ("prefix", "suffix")

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self.prefix = prefix
        self.suffix = suffix

    @classmethod
    def around(cls, value: Any, name: str | None = None) -> EventFrame:
        """The frame of the event ``value``, in which :func:`hole` stands once where the text goes.

        Raises ValueError when there is no such place.
        """
        prefix, found, suffix = event(value, name).partition(_HOLE_JSON)
        if not found:
            raise ValueError("the event has no hole for its text")
        return cls(prefix, suffix)

    def fill(self, text: str) -> bytes:
        """The event with ``text`` in the hole."""
        return self.prefix + _unbroken(orjson.dumps(text)) + self.suffix

    def fill_all(self, texts: Sequence[bytes]) -> bytes:
        """One event for each of ``texts``, which must all be plain."""
        between = b'"' + self.suffix + self.prefix + b'"'
        return self.prefix + b'"' + between.join(texts) + b'"' + self.suffix


def hole() -> str:
    """The place of the text in a value given to :meth:`EventFrame.around`."""
    return _HOLE
