"""Keys and values of every slot, preallocated, in blocks of `BLOCK` positions.

The layout serves `attention`. A block's keys are stored with the position last, so that the scores of a block
are one matrix product of fixed depth and width. The same block of all slots lies in one piece, so that a step
over several slots reads without a jump from its first slot to its last: eight slots took twice as long when
each had all its blocks together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.reference.config import ModelConfig
from engine.reference.kernels import Floats, aligned_zeros, padded

BLOCK = 64
"""Positions per block: as many as the columns that OpenBLAS works on at a time, so that a block is read in
the order it is stored.
"""
_REGISTER = 16
"""float32 values of an AVX-512 register; output widths are multiples of it (see `kernels`)."""


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

    def __init__(self, config: ModelConfig, slots: int, context: int) -> None:
        heads, dim, blocks = config.key_value_heads, config.head_dim, block_count(context)
        self._heads, self._dim, self._slots = heads, dim, slots
        self._width = padded(dim + 1, _REGISTER)
        keys = blocks * slots * heads * dim * BLOCK
        values = blocks * slots * heads * BLOCK * self._width
        # The system hands out zero pages on first touch, so slots and positions never used cost no memory.
        self.flat: Floats = aligned_zeros(config.layers, keys + values)
        """Per layer the keys and after them the values, where `places` points into."""
        self._keys = self.flat[:, :keys].reshape(-1, blocks, slots, heads, dim, BLOCK)
        self._values = self.flat[:, keys:].reshape(-1, blocks, slots, heads, BLOCK, self._width)
        self.keys: list[Floats] = list(self._keys)
        """Per layer (blocks, slots, kv heads, head_dim, BLOCK)."""
        self.values: list[Floats] = list(self._values)
        """Per layer (blocks, slots, kv heads, BLOCK, padded head_dim + 1): column head_dim is one, so that
        weights times values give the sum of the weights too.
        """
        self._ready = [0] * slots
        head, element = np.arange(heads)[:, None], np.arange(dim)
        self._key_places = ((head * dim + element) * BLOCK).reshape(-1)
        self._value_places = (keys + head * BLOCK * self._width + element).reshape(-1)
        self.stride: NDArray[np.intp] = np.repeat([1, self._width], heads * dim)
        """What takes `places` to the next position of a block."""

    def prepare(self, slot: int, blocks: int) -> None:
        """Make the first blocks of a slot fit to be read; to be called before they are."""
        if self._ready[slot] < blocks:
            self._values[:, self._ready[slot] : blocks, slot, :, :, self._dim] = 1.0
            self._ready[slot] = blocks

    def places(self, slots: Sequence[int], positions: Sequence[int]) -> NDArray[np.intp]:
        """Where in a row of `flat` the new keys and, after them, values of (slot, position) pairs go: (pairs,
        2 * kv heads * head_dim).
        """
        size = len(self._key_places)
        found = np.empty((len(slots), 2 * size), dtype=np.intp)
        block, offset = np.divmod(np.array(positions), BLOCK)
        first = (block * self._slots + slots) * self._heads * BLOCK
        np.add(self._key_places, (first * self._dim + offset)[:, None], found[:, :size])
        np.add(self._value_places, ((first + offset) * self._width)[:, None], found[:, size:])
        return found

    def snapshot(self, slot: int, length: int) -> Snapshot:
        """Copy the first `length` positions of a slot."""
        blocks = block_count(length)
        keys, values = self._keys[:, :blocks, slot], self._values[:, :blocks, slot]
        return Snapshot(length, keys.copy(), values.copy())

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Put a snapshot's positions back into its slot."""
        blocks = block_count(snapshot.length)
        self._keys[:, :blocks, slot] = snapshot.keys
        self._values[:, :blocks, slot] = snapshot.values
