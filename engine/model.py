"""What the engine loop needs from a model, and nothing of how it is computed.

A row is the model's opaque opinion about the next token at one position: the loop never looks into it, it
only hands it back to `Chooser.choose` and `Model.numbers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = Any


class Rows(Protocol):
    """Rows in order of position or slot."""

    def __iter__(self) -> Iterator[Row]: ...

    def __getitem__(self, index: int, /) -> Row: ...


class InvalidGrammar(ValueError):
    """The grammar text of a request cannot be compiled."""


class GrammarFailure(RuntimeError):
    """A grammar in use reached a state it cannot go on from (a limit of its library, or a fault)."""


@dataclass(frozen=True)
class Work:
    """Running totals since start: seconds in matrix products, attention and output head, and forward
    passes.
    """

    matmul: float = 0.0
    attention: float = 0.0
    head: float = 0.0
    forwards: int = 0


class Chooser(Protocol):
    """Picks the tokens of one request; knows its temperature, top_p, random numbers and grammar."""

    def choose(self, row: Row) -> int:
        """The next token; raises GrammarFailure."""
        ...

    @property
    def complete(self) -> bool:
        """A grammar is satisfied and allows nothing more."""
        ...


class Model(Protocol):
    """A language model with a number of KV slots."""

    @property
    def slots(self) -> int:
        """Number of KV slots."""
        ...

    @property
    def context(self) -> int:
        """Most positions of one slot: prompt and completion together."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        ...

    @property
    def longest_piece(self) -> int | None:
        """Most prompt bytes one token can stand for; None where that has no bound."""
        ...

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end the model's turn."""
        ...

    @property
    def prefill_chunk(self) -> int:
        """Most tokens of one `prefill` call: how long STOP and CANCEL may have to wait."""
        ...

    @property
    def work(self) -> Work:
        """Totals so far."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, markers included, nothing added."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for."""
        ...

    def chooser(
        self, request: int, prompt: Sequence[int], temperature: float, top_p: float, grammar: bytes
    ) -> Chooser:
        """A chooser for one request; an empty grammar is none. After a prompt that ends inside a reasoning
        the grammar holds from the reasoning's end on. Raises InvalidGrammar.
        """
        ...

    def begin(self, slot: int, prompt: Sequence[int], *, reuse: bool) -> int:
        """Take a slot for a prompt; returns how many leading tokens need no prefill (always fewer than
        all).
        """
        ...

    def prefill(self, slot: int, tokens: Sequence[int], *, every_position: bool) -> Rows:
        """Compute the next tokens of a slot's prompt; rows of each position, or of the last one only."""
        ...

    def decode(self, slots: Sequence[int], tokens: Sequence[int]) -> Rows:
        """Append one token to each of the slots (ascending, distinct); one row per slot."""
        ...

    def pin(self, slot: int) -> None:
        """Remember the slot's present state so that a later prompt with the same beginning can go back to
        it.
        """
        ...

    def numbers(self, row: Row, token: int, count: int) -> tuple[float, Sequence[int], Sequence[float]]:
        """(log probability of `token`, the `count` most likely tokens, their log probabilities)."""
        ...
