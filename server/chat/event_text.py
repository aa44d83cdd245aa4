"""Server-sent events as bytes, made for the hot path: precomputed parts around one JSON string.

Guarantees: an event is one `data:` line of compact JSON that no line splitter can cut (U+2028, U+2029 and
U+0085 are escaped), ended by an empty line. No `id:` and no `retry:` line is ever made.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"
"""The last event of an OpenAI stream."""

_BREAKS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def json_text(value: Any) -> bytes:
    """Compact JSON of `value`, without any character that some client takes for the end of a line.

    Non-finite numbers become null. Integers of any size and lone surrogates, which a model can write as an
    escape in the arguments of a call, come out as they are.
    """
    try:
        encoded: bytes = orjson.dumps(value)
    except TypeError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).encode()
    if encoded.isascii():
        return encoded
    for character, escape in _BREAKS:
        encoded = encoded.replace(character, escape)
    return encoded


def _finite(value: Any) -> Any:
    """`value` with null for every number that JSON cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list) else value


def data_event(value: Any) -> bytes:
    """`data: <json>`."""
    return b"data: " + json_text(value) + b"\n\n"


def named_event(value: dict[str, Any]) -> bytes:
    """`event: <type>` and `data: <json>`, as the Anthropic dialect wants it."""
    return b"event: " + str(value["type"]).encode() + b"\ndata: " + json_text(value) + b"\n\n"


def around(event: bytes, slot: bytes) -> tuple[bytes, bytes]:
    """The parts before and behind the only `slot` of a finished event."""
    before, _slot, behind = event.partition(slot)
    return before, behind
