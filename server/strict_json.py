"""What JSON text must not hold to be taken: nesting beyond the limit, lone surrogates (http.md §2).

Guarantees: both questions are answered from the text, before a parser recurses into it; strings are told
from structure, escaped backslashes from escapes.
"""

from __future__ import annotations

import re
from typing import Final

from generated import limits

# A string without an end counts as one up to the end: no quote in it is the start of another search.
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_PAIR_OR_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def is_too_deep(text: str) -> bool:
    """Whether `text` is nested deeper than a request body may be."""
    deepest = limits.JSON_DEPTH
    if text.count("[") + text.count("{") <= deepest:
        return False
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        token = found[0]
        if token in "[{":
            depth += 1
            if depth > deepest:
                return True
        elif token in "]}":
            depth -= 1
    return False


def has_lone_surrogate(text: str) -> bool:
    """Whether an escape in `text` is half a surrogate pair, which no UTF-8 can carry."""
    return _SURROGATE_ESCAPE.search(text) is not None and any(
        found[1] is not None for found in _PAIR_OR_ESCAPE.finditer(text)
    )


def without_lone_surrogates(text: str) -> str:
    """`text` with U+FFFD in the place of every escape that is half a surrogate pair."""
    if _SURROGATE_ESCAPE.search(text) is None:
        return text
    return _PAIR_OR_ESCAPE.sub(lambda found: found[0] if found[1] is None else r"\ufffd", text)
