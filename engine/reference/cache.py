"""Keys and values of every slot, preallocated, in blocks of `BLOCK` positions.

The layout serves `attention`: a block's keys are stored with the position last, so that the scores of a
block are one matrix product of fixed depth and width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.reference.config import ModelConfig
from engine.reference.kernels import Floats, padded

BLOCK = 128
"""Positions per block; a multiple of the vector width."""


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
        # The system hands out zero pages on first touch, so slots and positions never used cost no memory.
        self._keys = np.zeros((config.layers, slots, heads, blocks, dim, BLOCK), dtype=np.float32)
        self._values = np.zeros((config.layers, slots, heads, blocks, BLOCK, padded(dim)), dtype=np.float32)
        self.keys: list[Floats] = list(self._keys)
        """Per layer (slots, kv heads, blocks, head_dim, BLOCK)."""
        self.values: list[Floats] = list(self._values)
        """Per layer (slots, kv heads, blocks, BLOCK, padded head_dim)."""
        self.visible: Floats = np.full((slots, blocks, BLOCK), -np.inf, dtype=np.float32)
        """Additive mask of each slot's next decode step: 0 where a position may be looked at, else -inf."""

    def snapshot(self, slot: int, length: int) -> Snapshot:
        """Copy the first `length` positions of a slot."""
        blocks = block_count(length)
        keys, values = self._keys[:, slot, :, :blocks], self._values[:, slot, :, :blocks]
        return Snapshot(length, keys.copy(), values.copy())

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        """Put a snapshot's positions back into its slot."""
        blocks = block_count(snapshot.length)
        self._keys[:, slot, :, :blocks] = snapshot.keys
        self._values[:, slot, :, :blocks] = snapshot.values
