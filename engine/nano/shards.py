"""Training rows: documents tokenised, joined end to end and cut to a fixed length, with a loss weight
per token.

Shapes: ``tokens`` uint16 (rows, length + 1), ``weights`` float16 (rows, length); weight ``[r, i]`` belongs
to the prediction of token ``[r, i + 1]``. Rows are a pure function of the seed and of the committed text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from engine.nano.documents import Stream, document

_CHUNK: Final = 2000


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


def encode_documents(
    tokenizer: Tokenizer, seed: int, numbers: range, stream: Stream
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and weights of the numbered documents joined end to end."""
    segments = [segment for number in numbers for segment in document(seed, number, stream)]
    encoded = tokenizer.encode_batch_fast([segment.text for segment in segments], add_special_tokens=False)
    lengths = [len(item.ids) for item in encoded]
    ids = np.fromiter((token for item in encoded for token in item.ids), dtype=np.uint16, count=sum(lengths))
    weights = np.repeat(np.array([segment.weight for segment in segments], dtype=np.float16), lengths)
    return ids, weights


def _joined(
    tokenizer: Tokenizer, seed: int, wanted: int, stream: Stream, report: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray]:
    """The first ``wanted`` tokens of a stream and their weights."""
    ids, weights, have, start = [], [], 0, 0
    while have < wanted:
        chunk_ids, chunk_weights = encode_documents(tokenizer, seed, range(start, start + _CHUNK), stream)
        ids.append(chunk_ids)
        weights.append(chunk_weights)
        have += len(chunk_ids)
        start += _CHUNK
        report(min(have / wanted, 1.0))
    return np.concatenate(ids)[:wanted], np.concatenate(weights)[:wanted]


def make_rows(
    tokenizer: Tokenizer,
    seed: int,
    row_count: int,
    length: int,
    stream: Stream = Stream.SHORT,
    report: Callable[[float], None] = lambda share: None,
) -> Rows:
    """Exactly ``row_count`` rows of ``length`` predictions; ``report`` receives the finished share.

    Rows of long documents take turns: one of the joined stream, cut wherever it falls, one that begins with
    a chat of its own that fills it, as a chat fills a context when it is served.
    """
    ids, weights = _joined(tokenizer, seed, row_count * (length + 1), stream, report)
    tokens = ids.reshape(row_count, length + 1)
    token_weights = weights.reshape(row_count, length + 1)
    for row in range(1, row_count if stream is Stream.LONG else 0, 2):
        full, full_weights = encode_documents(tokenizer, seed, range(row, row + 1), Stream.FULL)
        here = min(len(full), length + 1)
        tokens[row, :here], token_weights[row, :here] = full[:here], full_weights[:here]
    return Rows(tokens, token_weights[:, 1:].copy())
