"""A request body as a strict JSON object (http.md §2).

Guarantees: what is returned came from strict UTF-8 JSON without the words NaN and Infinity, without a lone
surrogate in any key or string, and not nested deeper than the limit; of duplicate keys the last one wins.
Integers of up to ``MOST_DIGITS`` digits are exact. A number that is larger than Python can hold is larger
than every bound a field has, so as a field of its own it stands as one that is still out of all bounds,
infinity or ``BEYOND``, and whether it is a fault is for the field to say. Within a list or an object it is
refused, since what is sent on as JSON text could not be written again. Everything refused is the 400
``malformed_body``.
"""

from __future__ import annotations

import json
import math
import sys
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
        reason = str(fault) if isinstance(fault, _NotJson) else "it could not be read"
        raise errors.malformed_body(reason=reason) from None
    if not isinstance(value, dict):
        raise errors.malformed_body(reason="the top level is not an object")
    return value


MOST_DIGITS: Final = sys.int_info.default_max_str_digits
"""Of an integer: what Python reads and writes in linear time."""
BEYOND: Final[int] = 10 ** (MOST_DIGITS - 1)
"""Stands for every integer of more digits, and its negative for every negative one."""
_BELOW: Final[int] = -BEYOND

_BYTE_ORDER_MARK: Final = "\ufeff"


class _NotJson(ValueError):
    """A word or a number that is no JSON, or that could not be written as JSON again."""


class _OutOfRange(ValueError):
    """A number larger than Python can hold."""


def _refuse_constant(word: str) -> None:
    raise _NotJson(f"{word} is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _OutOfRange
    return number


def _bounded_integer(text: str) -> int:
    if len(text.lstrip("-")) <= MOST_DIGITS:
        return int(text)
    return _BELOW if text.startswith("-") else BEYOND


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)
_bounding_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_bounded_integer)


def _decode(text: str) -> Any:
    """The value of ``text``. Raises ValueError or RecursionError."""
    try:
        return _decode_with(_decoder, text)
    except (json.JSONDecodeError, _NotJson):
        raise
    except ValueError:  # _OutOfRange, or Python's own for too many digits
        pass  # Its frames hold what was decoded so far: the handler is left before all is decoded anew.
    value = _decode_with(_bounding_decoder, text)
    if not isinstance(value, dict) or any(map(_holds_out_of_range, value.values())):
        raise _NotJson("a number is out of range")
    return value


def _decode_with(decoder: json.JSONDecoder, text: str) -> Any:
    """What json.loads does, whose decoder is made anew for each text and lets nobody else run meanwhile."""
    if text.startswith(_BYTE_ORDER_MARK):
        raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
    if len(text) <= json_pieces.WINDOW:
        return decoder.decode(text)
    return json_pieces.decode(text, decoder)


def _holds_out_of_range(value: object) -> bool:
    """Whether a member of the list or object ``value``, at any depth, is a number out of range."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        members = holder.values() if isinstance(holder, dict) else holder if isinstance(holder, list) else ()
        for member in members:
            if isinstance(member, (dict, list)):
                waiting.append(member)
            elif member is BEYOND or member is _BELOW or (isinstance(member, float) and math.isinf(member)):
                return True
    return False
