"""Keys and values of every slot, preallocated, in blocks of `BLOCK` positions, and attention over them.

Attention is computed block by block at fixed absolute positions, each block a matrix product of fixed depth
and width, and the blocks are added in order; positions that are not visible contribute an exact zero. The
bits of a row therefore depend on nothing but its own slot's history: not on other slots of the batch, not on
where a prompt was cut into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.reference.config import ModelConfig
from engine.reference.kernels import Floats, Tiling, padded

BLOCK = 128
"""Positions per block; a multiple of the vector width."""
_HIDDEN = np.float32(-np.inf)


def block_count(positions: int) -> int:
    """Blocks needed for that many positions."""
    return -(-positions // BLOCK)


@dataclass(frozen=True)
class Snapshot:
    """A copy of the first `length` positions of a slot, to rewind to after other prompts used the slot."""

    length: int
    keys: Floats
    values: Floats


class KeyValueCache:
    """KV state of `slots` independent sequences of at most `context` positions each."""

    def __init__(self, config: ModelConfig, tiling: Tiling, slots: int, context: int) -> None:
        heads, dim, blocks = config.key_value_heads, config.head_dim, block_count(context)
        self._heads, self._dim, self._value_dim, self._group = heads, dim, padded(dim), config.group
        self._tiling = tiling
        # The system hands out zero pages on first touch, so slots and positions never used cost no memory.
        self._keys = np.zeros((config.layers, slots, heads, blocks, dim, BLOCK), dtype=np.float32)
        self._values = np.zeros(
            (config.layers, slots, heads, blocks, BLOCK, self._value_dim), dtype=np.float32
        )
        self._visible = np.full((slots, blocks, BLOCK), _HIDDEN, dtype=np.float32)

    def snapshot(self, slot: int, length: int) -> Snapshot:
        """Copy the first `length` positions of a slot."""
        blocks = block_count(length)
        return Snapshot(
            length, self._keys[:, slot, :, :blocks].copy(), self._values[:, slot, :, :blocks].copy()
        )

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Put a snapshot's positions back into its slot."""
        blocks = block_count(snapshot.length)
        self._keys[:, slot, :, :blocks] = snapshot.keys
        self._values[:, slot, :, :blocks] = snapshot.values

    def decode_step(self, slots: Sequence[int], positions: Sequence[int]) -> DecodeStep:
        """Prepare one new position in each of `slots` (ascending, distinct): `positions[i]` is that of
        `slots[i]`.
        """
        return DecodeStep(self, slots, positions)

    def prefill_step(self, slot: int, first: int, count: int) -> PrefillStep:
        """Prepare positions first … first + count - 1 of one slot."""
        return PrefillStep(self, slot, first, count)


class DecodeStep:
    """Attention of one new position per slot."""

    def __init__(self, cache: KeyValueCache, slots: Sequence[int], positions: Sequence[int]) -> None:
        self._cache = cache
        self._count = len(slots)
        self._slots = np.array(slots)
        self._block, self._offset = np.divmod(np.array(positions), BLOCK)
        self._rows = cache._tiling.rows(self._count)
        self._result = np.zeros((self._rows, cache._heads, cache._group, cache._dim), dtype=np.float32)
        self._runs = self._contiguous_runs(slots, positions)

    def _contiguous_runs(
        self, slots: Sequence[int], positions: Sequence[int]
    ) -> list[tuple[slice, slice, int, Floats]]:
        """(rows, slots, blocks, mask) of each run of neighbouring slots, so that the cache is read through
        views.
        """
        runs = []
        start = 0
        for end in range(1, len(slots) + 1):
            if end < len(slots) and slots[end] == slots[end - 1] + 1:
                continue
            held = slice(slots[start], slots[end - 1] + 1)
            blocks = block_count(max(positions[start:end]) + 1)
            for slot, position in zip(slots[start:end], positions[start:end], strict=True):
                row = self._cache._visible[slot, :blocks].reshape(-1)
                row[: position + 1] = 0.0
                row[position + 1 :] = _HIDDEN
            mask = self._cache._visible[held, None, None, :blocks, None, :]
            runs.append((slice(start, end), held, blocks, mask))
            start = end
        return runs

    def __call__(self, layer: int, queries: Floats, keys: Floats, values: Floats) -> Floats:
        """Store keys and values (rows, kv heads, dim) and return the attended values (rows, heads * dim).

        `queries` is (rows, kv heads, group, dim); rows beyond the slots are padding.
        """
        cache, count = self._cache, self._count
        if count == 1:
            slot, block, offset = self._slots[0], self._block[0], self._offset[0]
            cache._keys[layer, slot, :, block, :, offset] = keys[0]
            cache._values[layer, slot, :, block, offset, : cache._dim] = values[0]
        else:
            cache._keys[layer][self._slots, :, self._block, :, self._offset] = keys[:count]
            cache._values[layer][self._slots, :, self._block, self._offset, : cache._dim] = values[:count]
        rows = cache._tiling.rows(cache._group)
        if rows != cache._group:
            wide = np.zeros((queries.shape[0], cache._heads, rows, cache._dim), dtype=np.float32)
            wide[:, :, : cache._group] = queries
            queries = wide
        for part, held, blocks, mask in self._runs:
            stored = (cache._keys[layer, held, :, :blocks], cache._values[layer, held, :, :blocks])
            attended = _attend(cache._tiling, queries[part], *stored, mask)
            self._result[part] = attended[:, :, : cache._group, : cache._dim]
        return self._result.reshape(self._rows, -1)


class PrefillStep:
    """Causal attention of a run of new positions of one slot."""

    def __init__(self, cache: KeyValueCache, slot: int, first: int, count: int) -> None:
        self._cache, self._slot, self._first, self._count = cache, slot, first, count
        self._blocks = block_count(first + count)
        rows = cache._tiling.rows(count)
        # Padding rows see what the last row sees.
        last_seen = np.repeat(np.minimum(np.arange(rows), count - 1) + first, cache._group)
        tiles, tile = cache._tiling.split(len(last_seen))
        columns = np.arange(self._blocks * BLOCK).reshape(self._blocks, 1, BLOCK)
        visible = columns <= last_seen.reshape(tiles, 1, tile, 1)
        self._mask: Floats = np.where(visible, np.float32(0), _HIDDEN)[None, None]

    def __call__(self, layer: int, queries: Floats, keys: Floats, values: Floats) -> Floats:
        """As DecodeStep: (rows, kv heads, group, dim) in, (rows, heads * dim) out."""
        cache = self._cache
        self._store(layer, keys, values)
        rows = queries.shape[0]
        by_head = queries.swapaxes(0, 1).reshape(1, cache._heads, rows * cache._group, cache._dim)
        stored_keys = cache._keys[layer, self._slot, None, :, : self._blocks]
        stored_values = cache._values[layer, self._slot, None, :, : self._blocks]
        attended = _attend(cache._tiling, by_head, stored_keys, stored_values, self._mask)[
            0, ..., : cache._dim
        ]
        result: Floats = attended.reshape(cache._heads, rows, -1).swapaxes(0, 1).reshape(rows, -1)
        return result

    def _store(self, layer: int, keys: Floats, values: Floats) -> None:
        cache, done = self._cache, 0
        while done < self._count:
            block, offset = divmod(self._first + done, BLOCK)
            size = min(BLOCK - offset, self._count - done)
            rows = slice(done, done + size)
            cache._keys[layer, self._slot, :, block, :, offset : offset + size] = keys[rows].transpose(
                1, 2, 0
            )
            place = cache._values[layer, self._slot, :, block, offset : offset + size, : cache._dim]
            place[...] = values[rows].swapaxes(0, 1)
            done += size


def _attend(
    tiling: Tiling, queries: Floats, keys: Floats, values: Floats, mask: NDArray[np.float32]
) -> Floats:
    """Softmax attention.

    Shapes: queries (batch, heads, rows, dim), keys (batch, heads, blocks, dim, BLOCK), values (batch, heads,
    blocks, BLOCK, value dim), mask broadcast to (batch, heads, tiles, blocks, tile, BLOCK); result (batch,
    heads, rows, value dim).
    """
    batch, heads, rows, dim = queries.shape
    tiles, tile = tiling.split(rows)
    scores = np.matmul(queries.reshape(batch, heads, tiles, 1, tile, dim), keys[:, :, None])
    scores += mask
    if scores.shape[3] == 1:
        scores -= np.maximum.reduce(scores, axis=5, keepdims=True)
    else:
        scores -= np.maximum.reduce(np.maximum.reduce(scores, axis=5, keepdims=True), axis=3, keepdims=True)
    np.exp(scores, out=scores)
    weighted = np.matmul(scores, values[:, :, None])
    total = np.add.reduce(scores, axis=5, keepdims=True)
    if scores.shape[3] > 1:
        weighted = np.add.reduce(weighted, axis=3, keepdims=True)
        total = np.add.reduce(total, axis=3, keepdims=True)
    weighted /= total
    result: Floats = weighted.reshape(batch, heads, rows, -1)
    return result
