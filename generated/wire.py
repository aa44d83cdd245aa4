# Generated from spec/protocol.yaml (target python, template python/wire.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""What both directions of the wire share: faults, and the words of a header line.

A word is read strictly: ASCII digits only for unsigned numbers (no sign, no underscore), ``[+-]digits[.digits]`` for
decimals, an exponent only where the writer's format can produce one, and exactly ``nan``, ``inf`` and ``-inf`` for what
is not finite. Of several faults in one line a reader names the first in this order: an unknown kind; a number of words
that no form of the message has; then word by word from the left; the number of a repeat's words right after its count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from typing import Any, ClassVar, Final

EXCERPT_BYTES: Final = 80
"""Most bytes of a faulty message that a fault carries."""

RULES: Final[Mapping[str, str]] = {
    "unknown_kind": "no message of this direction is called so",
    "word_count": "no form of the message has this number of words",
    "word": "the word cannot be read",
    "range": "the value is out of range",
    "constant": "a fixed word of the layout is missing",
    "terminator": "the payload is not followed by a line feed",
    "truncated": "the stream ended inside a message",
    "line_limit": "the header line is too long",
    "unknown_key": "there is no such extension key",
    "duplicate_key": "the extension key was given twice",
    "key_order": "the extension keys are not in their order",
    "missing": "a word that a later one needs was left out",
    "count": "repeated values differ in number",
}
"""Every way a message can be wrong."""


class ProtocolFault(Exception):
    """The other side broke the contract: nothing after this can be trusted."""

    def __init__(
        self,
        kind: str,
        field: str,
        rule: str,
        excerpt: bytes,
        wire_code: str = "",
        request_id: int = 0,
    ) -> None:
        """``kind``: message kind or ""; ``field``: field name or ""; ``rule``: a key of :data:`RULES`."""
        self.kind = kind
        self.field = field
        self.rule = rule
        self.excerpt = excerpt
        self.wire_code = wire_code
        """For a command: the code to answer before leaving; else ""."""
        self.id = request_id
        """For a command: the request id where it could be read, else 0."""
        super().__init__(f"{_place(kind, field)}{RULES[rule]} ({rule}), at {excerpt!r}")


class FieldError(ValueError):
    """A writer was given a value that the wire does not carry."""

    def __init__(self, kind: str, field: str, rule: str) -> None:
        self.kind = kind
        self.field = field
        self.rule = rule
        super().__init__(f"{_place(kind, field)}{RULES[rule]} ({rule})")


def _place(kind: str, field: str) -> str:
    return ", ".join(f"{what} {name}" for what, name in (("message", kind), ("field", field)) if name) + (
        ": " if kind or field else ""
    )


class BadWord(Exception):
    """A header line that is not acceptable; the reader turns it into a fault or a refusal."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(field, rule)
        self.field = field
        self.rule = rule


class Message:
    """Base of all frames and commands. Two are equal if they are of one kind and all their values are."""

    KIND: ClassVar[str] = ""
    """Kind on the wire."""
    __match_args__: tuple[str, ...] = ()
    """Names of the attributes, in the order of the constructor's arguments."""
    __slots__ = __match_args__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name, in order."""
        return {name: getattr(self, name) for name in self.__match_args__}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({values})"


def split_words(line: bytes) -> list[bytes]:
    """The words of a line: what stands between runs of spaces and tabs. Any other byte belongs to a word."""
    if 11 in line or 12 in line or 13 in line:
        return [word for word in line.replace(b"\t", b" ").split(b" ") if word]
    return line.split()


# ---------------------------------------------------------------- reading words


def uint(word: bytes, field: str, low: int, high: int) -> int:
    """An unsigned decimal in ``low`` … ``high``. Raises BadWord: ``word``, or ``range`` (a minus sign included)."""
    if not word.isdigit():
        negative = word[:1] == b"-" and word[1:].isdigit()
        raise BadWord(field, "range" if negative else "word")
    if len(word) > 20:
        word = word.lstrip(b"0")[:21] or b"0"  # out of any range all the same, and int() refuses long words
    value = int(word)
    if not low <= value <= high:
        raise BadWord(field, "range")
    return value


def uint_or(word: bytes, low: int, high: int, unreadable: int) -> int:
    """An unsigned decimal in ``low`` … ``high``; ``unreadable`` for any other word."""
    try:
        return uint(word, "", low, high)
    except BadWord:
        return unreadable


_DECIMAL: Final = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_GENERAL: Final = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final[Mapping[bytes, float]] = {b"nan": nan, b"inf": inf, b"-inf": -inf}


def real(word: bytes, field: str) -> float:
    """A decimal, ``nan``, ``inf`` or ``-inf``. Raises BadWord: ``word``."""
    if _DECIMAL.fullmatch(word) is not None:
        return float(word)
    value = _NOT_FINITE.get(word)
    if value is None:
        raise BadWord(field, "word")
    return value


def finite_real(word: bytes, field: str) -> float:
    """A finite decimal. Raises BadWord: ``word``, or ``range`` when it is not finite."""
    value = real(word, field)
    if not isfinite(value):
        raise BadWord(field, "range")
    return value


def ranged_real(word: bytes, field: str, low: float, high: float) -> float:
    """A decimal, possibly with an exponent, in ``low`` … ``high``. Raises BadWord: ``word`` or ``range``."""
    if _GENERAL.fullmatch(word) is not None:
        value = float(word)
    elif word in _NOT_FINITE:
        raise BadWord(field, "range")
    else:
        raise BadWord(field, "word")
    if not low <= value <= high:
        raise BadWord(field, "range")
    return value


_VISIBLE: Final = re.compile(rb"[^\x00-\x20\x7f]+")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})+")


def visible(word: bytes, field: str) -> str:
    """Any word of visible bytes; what is not UTF-8 becomes U+FFFD. Raises BadWord: ``word``."""
    if _VISIBLE.fullmatch(word) is None:
        raise BadWord(field, "word")
    return word.decode("utf-8", "replace")


def hexadecimal(word: bytes, field: str) -> str:
    """Pairs of hexadecimal digits, as written. Raises BadWord: ``word``."""
    if _HEX.fullmatch(word) is None:
        raise BadWord(field, "word")
    return word.decode("ascii")


def literal(word: bytes, expected: bytes) -> None:
    """A fixed word of the layout. Raises BadWord: ``constant``."""
    if word != expected:
        raise BadWord("", "constant")


_KEY: Final = re.compile(rb"([a-z_]{1,15})=(.*)", re.DOTALL)


def read_keys(words: Sequence[bytes], known: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Extension words ``key=value`` in the order of ``known`` (key → least and greatest value), each at most once.

    Raises BadWord: ``word`` for anything that is no key and value, ``unknown_key``, ``duplicate_key``, ``key_order``,
    ``range`` for a value out of range or of more than 10 digits.
    """
    found: dict[str, int] = {}
    order = list(known)
    for word in words:
        match = _KEY.fullmatch(word)
        if match is None:
            raise BadWord("", "word")
        key, digits = match[1].decode("ascii"), match[2]
        if key not in known:
            raise BadWord(key, "unknown_key")
        if key in found:
            raise BadWord(key, "duplicate_key")
        if any(order.index(earlier) > order.index(key) for earlier in found):
            raise BadWord(key, "key_order")
        if digits.isdigit() and len(digits) > 10:
            raise BadWord(key, "range")
        found[key] = uint(digits, key, *known[key])
    return found


# ---------------------------------------------------------------- reading many numbers at once

_PLAIN_BYTES: Final = b"0123456789.- "
_decode: Final = json.JSONDecoder().raw_decode


def plain_numbers(line: bytes, start: int) -> list[Any] | None:
    """Every word from ``start`` on, if all are JSON numbers without exponent and single spaces are between them.

    JSON numbers are what :func:`uint` and :func:`real` take, but for ``-0``, which is no unsigned number: a caller
    takes 0 for none. The JSON scanner of the standard library reads a whole table at once, three times as fast as
    word by word. None means: read word by word.
    """
    text = line[start:]
    if text.translate(None, _PLAIN_BYTES):
        return None
    try:
        values: list[Any] = _decode("[" + text.decode("ascii").replace(" ", ",") + "]")[0]
    except ValueError:
        return None
    return values


# ---------------------------------------------------------------- writing words


def is_hexadecimal(text: str) -> bool:
    """Whether ``text`` can be written as pairs of hexadecimal digits."""
    return text.isascii() and _HEX.fullmatch(text.encode("ascii")) is not None


def is_visible(text: str) -> bool:
    """Whether ``text`` can be written as one word."""
    try:
        return _VISIBLE.fullmatch(text.encode("utf-8")) is not None
    except UnicodeEncodeError:
        return False
