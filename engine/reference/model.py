"""The reference model as the engine loop sees it: tokenizer, transformer, slot histories, sampling and
grammar in one.

Guarantees: what is kept in a slot is always the KV state of exactly the tokens in its history; a prefix is
reused only where the tokens are equal, and gives the same bits as computing it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.model import GrammarFailure, InvalidGrammar, Work
from engine.reference.cache import Snapshot
from engine.reference.checkpoint import Checkpoint
from engine.reference.config import load_config
from engine.reference.errors import LaunchError
from engine.reference.grammar import (
    CLOSES_REASONING,
    OPENS_REASONING,
    AfterReasoning,
    Constraint,
    GrammarCompiler,
    GrammarError,
)
from engine.reference.kernels import Floats, Tiling
from engine.reference.sampling import Sampler, token_numbers
from engine.reference.tokenizer import TextTokenizer
from engine.reference.transformer import Transformer
from engine.reference.weights import load_weights
from generated import limits

_BLANK = re.compile(rb"[ \t\r\n]+").fullmatch
PREFILL_CHUNK = 64
"""Prompt tokens per step: long enough to keep the matrix products efficient, short enough to answer CANCEL at
once.
"""


class ReferenceChooser:
    """Sampling of one request under its grammar."""

    def __init__(self, sampler: Sampler, constraint: Constraint | None) -> None:
        self._sampler = sampler
        self._constraint = constraint
        self.complete = False

    def choose(self, row: Floats) -> int:
        """The next token id; raises GrammarFailure."""
        if self._constraint is None:
            return self._sampler.choose(row)
        try:
            token = self._sampler.choose(self._constraint.restrict(row))
            self.complete = self._constraint.accept(token)
        except GrammarError as error:
            raise GrammarFailure(str(error)) from None
        return token


class ReferenceModel:
    """Implements `engine.model.Model`."""

    def __init__(self, directory: Path, slots: int, context: int | None, seed: int | None) -> None:
        """Load a checkpoint directory. `context` None: the model's own; `seed` None: drawn from the system.

        Raises LaunchError.
        """
        config = load_config(directory)
        self.slots = slots
        self.context = config.max_positions if context is None else context
        if self.context > config.max_positions:
            raise LaunchError(
                f"context {self.context} exceeds the model's max_position_embeddings {config.max_positions}"
            )
        if self.context < 2:
            raise LaunchError(f"context {self.context} has no room for a prompt and an answer")
        self._tokenizer = TextTokenizer(directory, config.vocabulary, config.end_tokens)
        checkpoint = Checkpoint(directory)
        tiling = Tiling.probe(checkpoint.elements)
        try:
            weights = load_weights(checkpoint, config, tiling)
            self._transformer = Transformer(config, weights, tiling, slots, self.context)
        except MemoryError as error:
            raise LaunchError(
                f"not enough memory for the model and {slots} slots of {self.context}: {error}"
            ) from None
        self.vocabulary = config.vocabulary
        self.end_tokens = config.end_tokens
        self.longest_piece = self._tokenizer.longest_piece
        self.prefill_chunk = PREFILL_CHUNK
        self.largest_grammar = limits.EXTRA_BYTES
        """Bytes of a grammar text that the stack of the caller bears."""
        self._history: list[list[int]] = [[] for _ in range(slots)]
        self._pinned: dict[int, tuple[list[int], Snapshot]] = {}
        self._seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self._grammars = GrammarCompiler(
            self._tokenizer.pieces, self._tokenizer.special_tokens, config.end_tokens, self._tokenizer.encode
        )

    @property
    def work(self) -> Work:
        """Totals so far."""
        timings = self._transformer.timings
        return Work(timings.matmul, timings.attention, timings.head, timings.forwards)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self._tokenizer.encode(text)

    def piece(self, token: int) -> bytes:
        """The bytes of a token."""
        return self._tokenizer.piece(token)

    def chooser(
        self, request: int, prompt: Sequence[int], temperature: float, top_p: float, grammar: bytes
    ) -> ReferenceChooser:
        """Sampler and grammar of one request; raises InvalidGrammar."""
        if len(grammar) > self.largest_grammar:
            raise InvalidGrammar(f"more than the {self.largest_grammar} bytes this process has the stack for")
        try:
            constraint = self._constraint(grammar, prompt) if grammar else None
        except GrammarError as error:
            raise InvalidGrammar(str(error)) from None
        return ReferenceChooser(Sampler(temperature, top_p, (self._seed, request)), constraint)

    def _constraint(self, grammar: bytes, prompt: Sequence[int]) -> Constraint:
        """The grammar's constraint after a prompt; raises GrammarError. Some templates put a line end behind
        the tag that opens a reasoning.
        """
        constraint = self._grammars.compile(grammar)
        added = self._tokenizer.added_tokens
        close = added.get(CLOSES_REASONING)
        last = next((token for token in reversed(prompt) if not _BLANK(self.piece(token))), None)
        if close is None or close in self.end_tokens or last is None or last != added.get(OPENS_REASONING):
            return constraint
        return AfterReasoning(constraint, close, self.end_tokens)

    def begin(self, slot: int, prompt: Sequence[int], *, reuse: bool) -> int:
        """Rewind the slot to the longest known beginning of `prompt`: its own history, or the pinned state if
        longer.
        """
        usable = len(prompt) - 1 if reuse else 0
        kept = min(_common_prefix(self._history[slot], prompt), usable)
        tokens, snapshot = self._pinned.get(slot, ([], None))
        pinned = min(_common_prefix(tokens, prompt), usable)
        if snapshot is not None and pinned > kept:
            self._transformer.cache.restore(slot, snapshot)
            kept = pinned
        self._history[slot] = list(prompt[:kept])
        return kept

    def pin(self, slot: int) -> None:
        """Keep a copy of the slot's present state; it replaces an earlier one."""
        history = self._history[slot]
        self._pinned[slot] = (list(history), self._transformer.cache.snapshot(slot, len(history)))

    def prefill(self, slot: int, tokens: Sequence[int], *, every_position: bool) -> Floats:
        """Logits (positions, vocabulary) of the appended tokens, or (1, vocabulary) of the last."""
        history = self._history[slot]
        logits = self._transformer.prefill(slot, len(history), tokens, every_position)
        history.extend(tokens)
        return logits

    def decode(self, slots: Sequence[int], tokens: Sequence[int]) -> Floats:
        """Logits (slots, vocabulary) after appending one token to each slot."""
        logits = self._transformer.decode(slots, [len(self._history[slot]) for slot in slots], tokens)
        for slot, token in zip(slots, tokens, strict=True):
            self._history[slot].append(token)
        return logits

    def numbers(self, row: Floats, token: int, count: int) -> tuple[float, list[int], list[float]]:
        """Log probability of `token` and the `count` most likely tokens with theirs."""
        return token_numbers(row, token, count)


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of leading elements that are equal."""
    length = min(len(left), len(right))
    differing = np.flatnonzero(np.array(left[:length]) != np.array(right[:length]))
    return int(differing[0]) if len(differing) else length
