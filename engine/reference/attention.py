"""Softmax attention over the blocks of the KV cache.

Computed block by block at fixed absolute positions, each block a matrix product of fixed depth and width,
and the blocks are added in order; positions that are not visible contribute an exact zero. The bits of a
row therefore depend on nothing but its own slot's history: not on other slots of the batch, not on where
a prompt was cut into chunks. The weights of a row need no sum of their own: the values have a column of ones.

A step is built once per forward pass and called once per layer: all views and buffers are made at the
start, because at the sizes of a small model making them costs as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from engine.reference.cache import BLOCK, KeyValueCache, block_count
from engine.reference.kernels import Floats, Tiling

_HIDDEN = np.float32(-np.inf)
_ALL = slice(None)


class Heads(Protocol):
    """Where the forward pass keeps one layer's heads; a row is a new position."""

    queries: Floats
    """(rows, kv heads, group, head_dim)."""
    keys: Floats
    """(rows, kv heads, head_dim)."""
    values: Floats
    """(rows, kv heads, head_dim)."""
    keys_values: Floats
    """(rows, 2 * kv heads * head_dim): the same keys, then the values."""
    attended: Floats
    """(rows, kv heads, group, head_dim): the result."""


class AttentionStep(Protocol):
    """Attention of the new positions of one forward pass."""

    def __call__(self, layer: int) -> None:
        """Store the layer's keys and values, and attend."""
        ...


class _Attention:
    """Attention of a fixed set of query rows over the first blocks of some slots.

    Axes: [block] [batch] kv head [tile] row, with those in brackets left out where they have length one.
    """

    def __init__(
        self,
        cache: KeyValueCache,
        tiling: Tiling,
        queries: Floats,
        slots: slice | int,
        blocks: int,
        mask: Floats,
    ) -> None:
        """`queries` (batch, kv heads, rows, head_dim), read at each call; `mask` broadcasts to (blocks,
        batch, kv heads, tiles, rows of a tile, BLOCK).
        """
        batch, heads, rows, dim = queries.shape
        tiles, tile = tiling.split(rows)
        lead = [batch] if isinstance(slots, slice) else []
        several = [tiles] if tiling.tile is not None else []
        many = [blocks] if blocks > 1 else []
        self._many = bool(many)
        one = [*lead, heads, *several, tile]
        outer = [*many, *one]
        self._queries = queries.reshape(*one, dim)
        stored = (slice(blocks) if many else 0, slots, *([_ALL, None] if several else []))
        self._keys = [keys[stored] for keys in cache.keys]
        self._values = [values[stored] for values in cache.values]
        width = cache.values[0].shape[-1]
        kept = zip((0, 1, 3), (many, lead, several), strict=True)
        self._mask = np.squeeze(mask, tuple(axis for axis, length in kept if not length))
        self._scores = np.empty([*outer, BLOCK], dtype=np.float32)
        self._masked = (self._scores, self._mask)
        self._top = np.empty([*one, BLOCK], dtype=np.float32) if many else self._scores
        self._peak = np.empty([*one, 1], dtype=np.float32)
        self._weighted = np.empty([*outer, width], dtype=np.float32)
        self._sum = np.empty([*one, width], dtype=np.float32) if many else self._weighted
        weighted = self._sum.reshape(batch, heads, rows, width)
        self.weighted: Floats = weighted[..., :dim]
        """The result of a call: weighted sums of values (batch, kv heads, rows, head_dim)."""
        self.total: Floats = weighted[..., dim : dim + 1]
        """What they are to be divided by, (batch, kv heads, rows, 1)."""

    def mask_from(self, block: int) -> None:
        """Take the blocks before this one as visible to all rows."""
        first = block if self._many else 0
        self._masked = (self._scores[first:], self._mask[first:])

    def __call__(self, layer: int) -> None:
        """Attend over one layer's cache."""
        scores, masked, peak = self._scores, self._masked[0], self._peak
        np.matmul(self._queries, self._keys[layer], scores)
        np.add(masked, self._masked[1], masked)
        if self._many:
            np.maximum.reduce(scores, axis=0, out=self._top)
        np.maximum.reduce(self._top, axis=-1, out=peak, keepdims=True)
        np.subtract(scores, peak, scores)
        np.exp(scores, scores)
        np.matmul(scores, self._values[layer], self._weighted)
        if self._many:
            np.add.reduce(self._weighted, axis=0, out=self._sum)


class _Span:
    """Neighbouring slots of a decode step, which read the cache through views, never copied."""

    def __init__(
        self, cache: KeyValueCache, tiling: Tiling, queries: Floats, slots: Sequence[int], blocks: int
    ) -> None:
        count, shared, rows, _ = queries.shape
        held: slice | int = slots[0] if count == 1 else slice(slots[0], slots[-1] + 1)
        self._blocks = blocks
        self._batch = np.arange(count)
        shape = (blocks, count, shared, *tiling.split(rows), BLOCK)
        self._mask = np.empty(shape, dtype=np.float32)
        """As wide as the scores: adding equal shapes takes half the time."""
        self.attend = _Attention(cache, tiling, queries, held, blocks, self._mask)

    def looks_at(self, positions: Sequence[int]) -> bool:
        """Whether these positions need the same blocks."""
        return block_count(max(positions) + 1) == self._blocks

    def place(self, positions: Sequence[int]) -> None:
        """Hide what is behind the position of each slot."""
        columns = np.arange(self._blocks * BLOCK).reshape(self._blocks, 1, 1, 1, 1, BLOCK)
        last = np.array(positions).reshape(-1, 1, 1, 1, 1)
        self._mask[...] = np.where(columns <= last, np.float32(0), _HIDDEN)
        self.attend.mask_from(min(positions) // BLOCK)

    def advance(self, positions: Sequence[int]) -> None:
        """The same for positions that are one more each than before."""
        for index, position in enumerate(positions):
            self._mask[position // BLOCK, index, ..., position % BLOCK] = 0.0


class DecodeStep:
    """One new position in each of some slots. Serves every step of the same slots over the same blocks."""

    def __init__(
        self,
        cache: KeyValueCache,
        tiling: Tiling,
        heads: Heads,
        slots: Sequence[int],
        positions: Sequence[int],
    ) -> None:
        """`slots` ascending and distinct; row i of `heads` is the new position of `slots[i]`. `positions`
        say how many blocks there are to look at; `move` sets them.
        """
        self._cache, self._heads, self._slots = cache, heads, slots
        self._positions: list[int] = []
        self._places = self._indices = np.empty(0, dtype=np.intp)
        count, shared, group, dim = heads.queries.shape
        self._stored = heads.keys_values[0]
        self._gathered: tuple[Floats, Floats] | None = None
        if count > 1:  # several rows are gathered, which lets them be scattered from one piece
            gathered = np.empty(heads.keys_values.shape, dtype=np.float32)
            self._stored, self._gathered = gathered.reshape(-1), (gathered, heads.keys_values)
        rows = tiling.rows(group)
        self._staged: tuple[Floats, Floats] | None = None
        queries = heads.queries
        if rows != group:
            wide = np.zeros((count, shared, rows, dim), dtype=np.float32)
            self._staged, queries = (wide[:, :, :group], queries), wide
        self._spans = []
        self._parts = []
        for first, end in _neighbours(slots):
            blocks = block_count(max(positions[first:end]) + 1)
            span = _Span(cache, tiling, queries[first:end], slots[first:end], blocks)
            self._spans.append((span, first, end))
            weighted, total = span.attend.weighted[:, :, :group], span.attend.total[:, :, :group]
            self._parts.append((span.attend, weighted, total, heads.attended[first:end]))

    def serves(self, heads: Heads, slots: Sequence[int], positions: Sequence[int]) -> bool:
        """Whether this is the attention of such a step: the same rows and slots, looking at the same
        blocks.
        """
        if heads is not self._heads or slots != self._slots:
            return False
        return all(span.looks_at(positions[first:end]) for span, first, end in self._spans)

    def move(self, positions: list[int]) -> None:
        """Set the position of each slot for the next forward pass."""
        onward = positions == [position + 1 for position in self._positions]
        if onward and all(position % BLOCK for position in positions):
            np.add(self._places, self._cache.stride, self._places)
        else:
            for slot, position in zip(self._slots, positions, strict=True):
                self._cache.prepare(slot, position // BLOCK + 1)
            self._places = self._cache.places(self._slots, positions)
        self._indices = self._places.reshape(-1)
        for span, first, end in self._spans:
            (span.advance if onward else span.place)(positions[first:end])
        self._positions = positions

    def __call__(self, layer: int) -> None:
        """Store and attend."""
        if self._gathered is not None:
            np.copyto(*self._gathered)
        self._cache.flat[layer][self._indices] = self._stored
        if self._staged is not None:
            np.copyto(*self._staged)
        for attend, weighted, total, attended in self._parts:
            attend(layer)
            np.divide(weighted, total, attended)


def _neighbours(slots: Sequence[int]) -> list[tuple[int, int]]:
    """(first, end) of each run of neighbouring slots."""
    starts = [index for index, slot in enumerate(slots) if index == 0 or slot != slots[index - 1] + 1]
    return list(zip(starts, [*starts[1:], len(slots)], strict=True))


class PrefillStep:
    """A run of new positions of one slot, each seeing itself and what is before it."""

    def __init__(self, cache: KeyValueCache, tiling: Tiling, heads: Heads, slot: int, first: int) -> None:
        """The rows of `heads` are positions first, first + 1, … of the slot."""
        self._cache, self._slot, self._first, self._heads = cache, slot, first, heads
        count, shared, group, dim = heads.queries.shape
        used = count * group
        rows = tiling.rows(used)
        blocks = block_count(first + count)
        cache.prepare(slot, blocks)
        queries = np.zeros((1, shared, rows, dim), dtype=np.float32)
        self._staged = [
            (queries[0, :, index:used:group], heads.queries[:, :, index].swapaxes(0, 1))
            for index in range(group)
        ]
        last_seen = np.full(rows, first)
        last_seen[:used] = np.repeat(np.arange(first, first + count), group)
        tiles, tile = tiling.split(rows)
        columns = np.arange(blocks * BLOCK).reshape(blocks, 1, 1, 1, 1, BLOCK)
        mask = np.where(columns <= last_seen.reshape(tiles, tile, 1), np.float32(0), _HIDDEN)
        self._attention = _Attention(cache, tiling, queries, slot, blocks, mask)
        self._attention.mask_from(first // BLOCK)
        weighted, total = self._attention.weighted[0, :, :used], self._attention.total[0, :, :used]
        attended = heads.attended.swapaxes(0, 1)
        self._final = [(weighted[:, g::group], total[:, g::group], attended[:, :, g]) for g in range(group)]

    def __call__(self, layer: int) -> None:
        """Store and attend."""
        self._store(self._cache.keys[layer][:, self._slot], self._cache.values[layer][:, self._slot])
        for staged, queries in self._staged:
            staged[...] = queries
        self._attention(layer)
        for weighted, total, attended in self._final:
            np.divide(weighted, total, attended)

    def _store(self, keys: Floats, values: Floats) -> None:
        """Put the new positions into a slot's keys (blocks, kv heads, head_dim, BLOCK) and its values."""
        done, count = 0, len(self._heads.keys)
        while done < count:
            block, offset = divmod(self._first + done, BLOCK)
            size = min(BLOCK - offset, count - done)
            new_keys, new_values = (
                self._heads.keys[done : done + size],
                self._heads.values[done : done + size],
            )
            keys[block, :, :, offset : offset + size] = new_keys.transpose(1, 2, 0)
            values[block, :, offset : offset + size, : new_values.shape[2]] = new_values.swapaxes(0, 1)
            done += size
