"""Training rows: documents tokenised, joined end to end and cut to a fixed length, with a loss weight
per token.

Shapes: ``tokens`` uint16 (rows, length + 1), ``weights`` float16 (rows, length); weight ``[r, i]`` belongs
to the prediction of token ``[r, i + 1]``. Rows are a pure function of the seed and of the committed text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from engine.nano.documents import document

_CHUNK = 1000
_BUFFER = 200
_CANDIDATES = 64


@dataclass(frozen=True)
class Rows:
    """Rows of one length; see the module docstring for the shapes."""

    tokens: np.ndarray
    weights: np.ndarray

    def save(self, path: Path) -> None:
        """Write the rows, whole or not at all."""
        part = path.with_name("part.npz")
        np.savez(part, tokens=self.tokens, weights=self.weights)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Rows:
        """Rows written by ``save``."""
        with np.load(path) as stored:
            return cls(stored["tokens"], stored["weights"])

    def batch(self, number: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(inputs, targets, weights) of batch ``number``; begins again after the last full batch."""
        first = number % (len(self.tokens) // size) * size
        rows = self.tokens[first : first + size].astype(np.int64)
        return rows[:, :-1], rows[:, 1:], self.weights[first : first + size].astype(np.float32)


@dataclass(frozen=True)
class EncodedDocument:
    """Token ids of one document and the loss weight of each."""

    tokens: np.ndarray
    weights: np.ndarray


def encode_documents(
    tokenizer: Tokenizer, seed: int, start: int, count: int, long: bool
) -> list[EncodedDocument]:
    """``count`` documents of the stream ``seed``, from number ``start``."""
    documents = [document(seed, number, long) for number in range(start, start + count)]
    texts = [segment.text for segments in documents for segment in segments]
    encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    result = []
    for segments in documents:
        parts = [(next(encoded).ids, segment.weight) for segment in segments]
        tokens = np.array([token for ids, _ in parts for token in ids], dtype=np.uint16)
        weights = np.repeat(
            np.array([weight for _, weight in parts], dtype=np.float16), [len(ids) for ids, _ in parts]
        )
        result.append(EncodedDocument(tokens, weights))
    return result


def pack_row(waiting: list[EncodedDocument], room: int) -> EncodedDocument:
    """Take documents from ``waiting`` for one row of exactly ``room`` tokens.

    The row begins with the oldest document, so that none waits for ever, and goes on with the longest that
    still fits; what remains is filled with the beginning of another one. No document begins in the middle.
    """
    chosen = [waiting.pop(0)]
    room -= len(chosen[0].tokens)
    while room > 0:
        fitting = [index for index, item in enumerate(waiting[:_CANDIDATES]) if len(item.tokens) <= room]
        if fitting:
            chosen.append(waiting.pop(max(fitting, key=lambda index: len(waiting[index].tokens))))
            room -= len(chosen[-1].tokens)
        else:
            chosen.append(EncodedDocument(waiting[0].tokens[:room], waiting[0].weights[:room]))
            room = 0
    tokens = np.concatenate([item.tokens for item in chosen])
    weights = np.concatenate([item.weights for item in chosen])
    end = len(tokens) + room  # room is negative when a single document is longer than the row
    return EncodedDocument(tokens[:end], weights[:end])


def make_rows(
    tokenizer: Tokenizer,
    seed: int,
    row_count: int,
    length: int,
    long: bool = False,
    report: Callable[[float], None] = lambda share: None,
) -> Rows:
    """Exactly ``row_count`` rows of ``length`` predictions; ``report`` receives the finished share."""
    rows: list[EncodedDocument] = []
    waiting: list[EncodedDocument] = []
    start = 0
    while len(rows) < row_count:
        if len(waiting) < _BUFFER:
            waiting += encode_documents(tokenizer, seed, start, _CHUNK, long)
            start += _CHUNK
            report(len(rows) / row_count)
        rows.append(pack_row(waiting, length + 1))
    report(1.0)
    return Rows(np.stack([row.tokens for row in rows]), np.stack([row.weights[1:] for row in rows]))
