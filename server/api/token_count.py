"""Counting the tokens of a prompt with the model's own tokenizer (http.md §16, count_tokens).

The ``tokenizers`` library is loaded on first use, so that a gateway nobody asks stays small.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from generated import errors


class TokenCounter:
    """Counts like the engine does: the text as it stands, markers as their tokens, nothing added at either
    end.
    """

    def __init__(self, path: Path) -> None:
        """``path``: the model's tokenizer.json, which may be missing."""
        self._path = path
        self._lock = threading.Lock()
        self._tokenizer: Any = None

    def count(self, text: str) -> int:
        """Tokens of ``text``. Raises the ApiError tokenizer_unavailable when the model directory has no
        tokenizer.
        """
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = self._load()
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _load(self) -> Any:
        from tokenizers import Tokenizer

        if not self._path.is_file():
            raise errors.tokenizer_unavailable()
        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as fault:  # the library raises bare Exception for whatever it finds wrong
            raise errors.tokenizer_unavailable() from fault
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
