"""A request body as a strict JSON object (http.md §2).

Guarantees: what is returned came from strict UTF-8 JSON without NaN or Infinity (literal or by overflow),
without a lone surrogate in any key or string, and not nested deeper than the limit; integers are exact at
any length that is accepted; of duplicate keys the last one wins. Everything else is the 400
``malformed_body``.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from generated import errors
from server import json_pieces
from server.strict_json import has_lone_surrogate, is_too_deep


def read_object(data: bytes) -> dict[str, Any]:
    """The JSON object in ``data``. Raises the ApiError ``malformed_body``."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise errors.malformed_body(reason="it is not UTF-8") from None
    if is_too_deep(text):
        raise errors.malformed_body(reason="it is nested too deeply")
    if has_lone_surrogate(text):
        raise errors.malformed_body(reason="it holds a lone surrogate")
    try:
        value = _decode(text)
    except json.JSONDecodeError as fault:
        raise errors.malformed_body(reason=f"{fault.msg} at character {fault.pos}") from None
    except (ValueError, RecursionError) as fault:
        raise errors.malformed_body(reason=_reason(fault)) from None
    if not isinstance(value, dict):
        raise errors.malformed_body(reason="the top level is not an object")
    return value


_BYTE_ORDER_MARK: Final = "\ufeff"


class _NotFinite(ValueError):
    """A number that JSON cannot hold."""


def _refuse_constant(word: str) -> None:
    raise _NotFinite(f"{word} is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotFinite("a number is out of range")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)


def _decode(text: str) -> Any:
    """What json.loads does, whose decoder is made anew for each text and lets nobody else run meanwhile."""
    if text.startswith(_BYTE_ORDER_MARK):
        raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
    if len(text) <= json_pieces.WINDOW:
        return _decoder.decode(text)
    return json_pieces.decode(text, _decoder)


def _reason(fault: Exception) -> str:
    return str(fault) if isinstance(fault, _NotFinite) else "a number has too many digits"
