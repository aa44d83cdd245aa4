"""Client text that spells a control token must not become one (http.md §8).

The transformation: wherever the text spells a control token of the model, a separator goes in behind the
token's first character, `<|user|>` becomes `< |user|>`. The separator is a space, or, when a control token
itself holds one, the first of some zero-width characters that none holds. The text stays readable, and no
tokenizer normalisation joins the parts again. A control token of a single character is replaced by U+FFFD.

Guarantees: the result spells no control token, also where control tokens overlap; text that spells none is
unchanged.

Control tokens are those of the tokenizer (`special_tokens`) and the markers of the family's template. All
text of a client is treated: content, reasoning and calls that are replayed, tool declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from server.json_values import rewritten

_SEPARATORS = (" ", "\u2060", "\u200b", "\ufeff")
_REPLACEMENT = "\ufffd"


class Neutraliser:
    """The transformation for one set of control tokens."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """`tokens`: the control tokens; empty strings are ignored."""
        self.tokens = frozenset(token for token in tokens if token)
        single = sorted(token for token in self.tokens if len(token) == 1)
        longer = sorted(token for token in self.tokens if len(token) > 1)
        self.separator = next(
            (mark for mark in _SEPARATORS if not any(mark in token for token in self.tokens)), _SEPARATORS[0]
        )
        self._replace_single = re.compile(f"[{''.join(map(re.escape, single))}]" if single else "(?!)").sub
        # Only the first character is consumed, so a token that begins inside another one is found as well.
        starts = sorted({token[0] for token in longer})
        self._first_characters = frozenset(token[0] for token in self.tokens)
        branches = (
            f"{re.escape(start)}(?={'|'.join(re.escape(token[1:]) for token in longer if token[0] == start)})"
            for start in starts
        )
        self._find = re.compile("|".join(branches) if longer else "(?!)", re.DOTALL).finditer

    def text(self, text: str) -> str:
        """`text` with every control token in it broken."""
        for character in self._first_characters:
            if character in text:
                return self._separated(self._replace_single(_REPLACEMENT, text))
        return text

    def _separated(self, text: str) -> str:
        """Token by token and not in one `sub`, which would keep the interpreter from every stream until the
        last one of a large body."""
        parts: list[str] = []
        place = 0
        for found in self._find(text):
            parts += (text[place : found.end()], self.separator)
            place = found.end()
        return "".join((*parts, text[place:])) if parts else text

    def value(self, value: Any) -> Any:
        """A copy of a JSON value with every string in it, keys included, treated like text."""
        return rewritten(value, self._leaf, self.text)

    def _leaf(self, leaf: Any) -> Any:
        return self.text(leaf) if isinstance(leaf, str) else leaf
