"""Softmax attention over the blocks of the KV cache.

Computed block by block at fixed absolute positions, each block a matrix product of fixed depth and width,
and the blocks are added in order; positions that are not visible contribute an exact zero. The bits of a
row therefore depend on nothing but its own slot's history: not on other slots of the batch, not on where
a prompt was cut into chunks.

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
_ONES = np.ones(BLOCK, dtype=np.float32)


class Heads(Protocol):
    """Where the forward pass keeps one layer's heads; a row is a new position."""

    queries: Floats
    """(rows, kv heads, group, head_dim)."""
    keys: Floats
    """(rows, kv heads, head_dim)."""
    values: Floats
    """(rows, kv heads, head_dim)."""
    attended: Floats
    """(rows, kv heads, group, head_dim): the result."""


class AttentionStep(Protocol):
    """Attention of the new positions of one forward pass."""

    def __call__(self, layer: int) -> None:
        """Store the layer's keys and values, and attend."""
        ...


class _Attention:
    """Attention of a fixed set of query rows over the first blocks of some slots.

    Axes: [batch] kv head [tile] [block] row, with those in brackets left out where they have length one.
    """

    def __init__(
        self, tiling: Tiling, queries: Floats, slots: slice | int, blocks: int, mask: Floats, value_dim: int
    ) -> None:
        """`queries` (batch, kv heads, rows, head_dim), read at each call; `mask` broadcasts to (batch, 1,
        tiles, blocks, rows of a tile, BLOCK).
        """
        batch, heads, rows, dim = queries.shape
        tiles, tile = tiling.split(rows)
        lead = [batch] if isinstance(slots, slice) else []
        several = [tiles] if tiling.tile is not None else []
        many = [blocks] if blocks > 1 else []
        self._many = bool(many)
        self._queries = queries.reshape(*lead, heads, *several, *([1] if many else []), tile, dim)
        block = slice(blocks) if many else 0
        self._stored = (slots, slice(None), None, block) if several else (slots, slice(None), block)
        self._mask = self._squeezed(mask, bool(lead), bool(several), bool(many))
        outer = [*lead, heads, *several, *many, tile]
        self._scores = np.empty([*outer, BLOCK], dtype=np.float32)
        self._peak = np.empty([*outer, 1], dtype=np.float32)
        self._mass = np.empty(outer, dtype=np.float32)
        self._total = self._mass[..., None]
        self._weighted = np.empty([*outer, value_dim], dtype=np.float32)
        summed = [*lead, heads, *several, tile]
        self._weighted_sum = np.empty([*summed, value_dim], dtype=np.float32) if many else self._weighted
        self._total_sum = np.empty([*summed, 1], dtype=np.float32) if many else self._total
        self.weighted: Floats = self._weighted_sum.reshape(batch, heads, rows, value_dim)
        """The result of a call: weighted sums of values (batch, kv heads, rows, value_dim)."""
        self.total: Floats = self._total_sum.reshape(batch, heads, rows, 1)
        """What they are to be divided by, (batch, kv heads, rows, 1)."""

    @staticmethod
    def _squeezed(mask: Floats, lead: bool, several: bool, many: bool) -> Floats:
        axes = tuple(axis for axis, kept in ((0, lead), (2, several), (3, many)) if not kept)
        return np.squeeze(mask, axes)

    def __call__(self, keys: Floats, values: Floats) -> None:
        """Attend over one layer's cache."""
        scores, peak, total, weighted = self._scores, self._peak, self._total, self._weighted
        np.matmul(self._queries, keys[self._stored], scores)
        np.add(scores, self._mask, scores)
        np.maximum.reduce(scores, axis=-1, out=peak, keepdims=True)
        if self._many:
            peak = np.maximum.reduce(peak, axis=-3, keepdims=True)
        np.subtract(scores, peak, scores)
        np.exp(scores, scores)
        np.vecdot(scores, _ONES, self._mass)
        np.matmul(scores, values[self._stored], weighted)
        if self._many:
            np.add.reduce(weighted, axis=-3, out=self._weighted_sum)
            np.add.reduce(total, axis=-3, out=self._total_sum)


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
        count = len(slots)
        self._slot_index = slots[0] if count == 1 else np.array(slots)
        group, dim = heads.queries.shape[2:]
        self._dim = slice(dim)
        self._keys = heads.keys[0] if count == 1 else heads.keys
        self._values = heads.values[0] if count == 1 else heads.values
        rows = tiling.rows(group)
        self._staged: tuple[Floats, Floats] | None = None
        queries = heads.queries
        if rows != group:
            wide = np.zeros((count, queries.shape[1], rows, dim), dtype=np.float32)
            self._staged, queries = (wide[:, :, :group], queries), wide
        self._parts = []
        self._masks: list[Floats] = []
        self._spans = []
        for first, end in _neighbours(slots):
            seen = block_count(max(positions[first:end]) + 1)
            self._spans.append((first, end, seen))
            held: slice | int = slots[first] if end == first + 1 else slice(slots[first], slots[end - 1] + 1)
            visible = cache.visible[slots[first] : slots[end - 1] + 1, :seen]
            mask = visible[:, None, None, :, None]
            attention = _Attention(tiling, queries[first:end], held, seen, mask, cache.values[0].shape[-1])
            wanted = (attention.weighted[:, :, :group, :dim], attention.total[:, :, :group])
            self._parts.append((attention, *wanted, heads.attended[first:end]))
            self._masks += [row.reshape(-1) for row in visible]

    def serves(self, heads: Heads, slots: Sequence[int], positions: Sequence[int]) -> bool:
        """Whether this is the attention of such a step: the same rows and slots, looking at the same
        blocks.
        """
        if heads is not self._heads or slots != self._slots:
            return False
        return all(block_count(max(positions[first:end]) + 1) == seen for first, end, seen in self._spans)

    def move(self, positions: list[int]) -> None:
        """Set the position of each slot for the next forward pass."""
        where = positions[0] if len(positions) == 1 else np.array(positions)
        block, offset = where // BLOCK, where % BLOCK
        self._key_place = (self._slot_index, _ALL, block, _ALL, offset)
        self._value_place = (self._slot_index, _ALL, block, offset, self._dim)
        if positions == [position + 1 for position in self._positions]:
            for mask, position in zip(self._masks, positions, strict=True):
                mask[position] = 0.0
        else:
            for mask, position in zip(self._masks, positions, strict=True):
                mask[: position + 1] = 0.0
                mask[position + 1 :] = _HIDDEN
        self._positions = positions

    def __call__(self, layer: int) -> None:
        """Store and attend."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys[self._key_place] = self._keys
        values[self._value_place] = self._values
        if self._staged is not None:
            np.copyto(*self._staged)
        for attention, weighted, total, attended in self._parts:
            attention(keys, values)
            np.divide(weighted, total, attended)


def _neighbours(slots: Sequence[int]) -> list[tuple[int, int]]:
    """(first, end) of each run of neighbouring slots, so that the cache is read through views, never
    copied.
    """
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
        queries = np.zeros((1, shared, rows, dim), dtype=np.float32)
        self._staged = [
            (queries[0, :, index:used:group], heads.queries[:, :, index].swapaxes(0, 1))
            for index in range(group)
        ]
        last_seen = np.full(rows, first)
        last_seen[:used] = np.repeat(np.arange(first, first + count), group)
        tiles, tile = tiling.split(rows)
        columns = np.arange(blocks * BLOCK).reshape(blocks, 1, BLOCK)
        mask = np.where(columns <= last_seen.reshape(tiles, 1, tile, 1), np.float32(0), _HIDDEN)[None, None]
        self._attention = _Attention(tiling, queries, slot, blocks, mask, cache.values[0].shape[-1])
        weighted, total = self._attention.weighted[0, :, :used, :dim], self._attention.total[0, :, :used]
        attended = heads.attended.swapaxes(0, 1)
        self._final = [(weighted[:, g::group], total[:, g::group], attended[:, :, g]) for g in range(group)]

    def __call__(self, layer: int) -> None:
        """Store and attend."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        self._store(keys[self._slot], values[self._slot])
        for staged, queries in self._staged:
            staged[...] = queries
        self._attention(keys, values)
        for weighted, total, attended in self._final:
            np.divide(weighted, total, attended)

    def _store(self, keys: Floats, values: Floats) -> None:
        """Put the new positions into a slot's keys (kv heads, blocks, head_dim, BLOCK) and its values."""
        done, count = 0, len(self._heads.keys)
        while done < count:
            block, offset = divmod(self._first + done, BLOCK)
            size = min(BLOCK - offset, count - done)
            new_keys, new_values = (
                self._heads.keys[done : done + size],
                self._heads.values[done : done + size],
            )
            keys[:, block, :, offset : offset + size] = new_keys.transpose(1, 2, 0)
            values[:, block, offset : offset + size, : new_values.shape[2]] = new_values.swapaxes(0, 1)
            done += size
