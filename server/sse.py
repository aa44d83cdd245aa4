"""Server-sent events: the bytes of one event, made with as little work per token as possible (http.md §8,
§16).

Guarantees: an event is ``data: <json>`` or ``event: <name>`` with it, never ``id:`` or ``retry:``; no byte
of an event can be taken for a line end by any client, because U+2028, U+2029 and U+0085 are escaped inside
the JSON text.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

DONE: Final = b"data: [DONE]\n\n"

_HOLE: Final = "\ue000hole\ue000"
_HOLE_JSON: Final = orjson.dumps(_HOLE)
_LINE_BREAKS: Final = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


def json_bytes(value: Any) -> bytes:
    """``value`` as compact UTF-8 JSON for an event; non-finite numbers become null (http.md §1)."""
    return _escaped(orjson.dumps(value))


def json_text(text: str) -> bytes:
    """``text`` as one JSON string for an event."""
    data = orjson.dumps(text)
    return data if len(data) == len(text) + 2 else _escaped(data)


def _escaped(data: bytes) -> bytes:
    for raw, escape in _LINE_BREAKS:
        if raw in data:
            data = data.replace(raw, escape)
    return data


def event(value: Any, name: str | None = None) -> bytes:
    """One event with ``value`` as its data; with ``name`` it is a named event."""
    head = b"" if name is None else b"event: " + name.encode("ascii") + b"\n"
    return head + b"data: " + json_bytes(value) + b"\n\n"


class EventFrame:
    """The bytes around the one text that differs between the events of a stream.

    ``prefix + json_text(text) + suffix`` is the whole event.
    """

    __slots__ = ("prefix", "suffix")

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self.prefix = prefix
        self.suffix = suffix

    @classmethod
    def around(cls, value: Any, name: str | None = None) -> EventFrame:
        """The frame of the event ``value``, in which :func:`hole` stands once where the text goes."""
        prefix, found, suffix = event(value, name).partition(_HOLE_JSON)
        if not found:
            raise ValueError("the event has no hole for its text")
        return cls(prefix, suffix)

    def fill(self, text: str) -> bytes:
        """The event with ``text`` in the hole."""
        return self.prefix + json_text(text) + self.suffix


def hole() -> str:
    """The place of the text in a value given to :meth:`EventFrame.around`."""
    return _HOLE
