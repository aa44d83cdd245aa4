"""What JSON text must not hold to be taken: nesting beyond the limit, lone surrogates (http.md §2).

Guarantees: both questions are answered from the text, before a parser recurses into it; strings are told
from structure, escaped backslashes from escapes. A text of any size is looked through in slices, so that no
other thread waits for the interpreter longer than one of them takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from generated import limits

_SLICE: Final = 64 * 1024  # characters looked at in one go
_OPENING, _CLOSING = b"\1", b"\0"
_KINDS: Final = bytes.maketrans(b"[{]}", _OPENING * 2 + _CLOSING * 2)
_NO_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")
# Taking innermost pairs out is, where they are this part of all; else each is counted.
_WORTHWHILE: Final = 16
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE_ESCAPE_LENGTH: Final = 4
_PAIR_OR_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def is_too_deep(text: str) -> bool:
    """Whether `text` is nested deeper than a request body may be."""
    if len(text) <= limits.JSON_DEPTH:
        return False
    depth = 0
    for brackets in _brackets(text):
        if _is_deeper(brackets, limits.JSON_DEPTH - depth):
            return True
        depth += 2 * brackets.count(_OPENING) - len(brackets)
    return False


def _brackets(text: str) -> Iterator[bytes]:
    """The opening and closing brackets of `text` outside its strings, slice by slice.

    A string without an end counts as one up to the end of the text. A backslash outside of strings, which no
    JSON text has and every parser stops at, hides a quote behind it as it would in one.
    """
    within = 0  # a string: 1 or 0
    escape = b""
    for start in range(0, len(text), _SLICE):
        piece = escape + text[start : start + _SLICE].encode("ascii", "replace")
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        escape = b"\\" if piece.endswith(b"\\") else b""
        runs = piece.removesuffix(b"\\").split(b'"')  # structure and strings by turns
        yield b"".join(runs[within::2]).translate(_KINDS, _NO_BRACKETS)
        within ^= (len(runs) - 1) & 1


def _is_deeper(brackets: bytes, limit: int) -> bool:
    """Whether more than `limit` brackets are open at once in one slice, beyond those open at its start."""
    rest, height = brackets, 0
    while rest.count(_OPENING) + height > limit:
        taller = rest.replace(_OPENING + _CLOSING, b"")
        if len(rest) - len(taller) <= len(rest) // _WORTHWHILE:
            return max(accumulate(map((-1, 1).__getitem__, brackets), initial=0)) > limit
        rest = taller
        height += 1
    return False


def has_lone_surrogate(text: str) -> bool:
    """Whether an escape in `text` is half a surrogate pair, which no UTF-8 can carry."""
    return _has_surrogate_escape(text) and any(
        found[1] is not None for found in _PAIR_OR_ESCAPE.finditer(text)
    )


def without_lone_surrogates(text: str) -> str:
    """`text` with U+FFFD in the place of every escape that is half a surrogate pair."""
    if not _has_surrogate_escape(text):
        return text
    return _PAIR_OR_ESCAPE.sub(lambda found: found[0] if found[1] is None else r"\ufffd", text)


def _has_surrogate_escape(text: str) -> bool:
    return any(
        _SURROGATE_ESCAPE.search(text, start, start + _SLICE + _SURROGATE_ESCAPE_LENGTH - 1) is not None
        for start in range(0, len(text), _SLICE)
    )
