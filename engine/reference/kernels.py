"""Matrix products whose result for one row does not depend on the other rows, and the elementwise pieces of a
layer.

Why this exists: a BLAS picks another kernel, and with it another order of additions, when the number of rows
changes. Greedy decoding would then depend on which requests happen to share a step, on where a prompt was cut
into chunks and on how much of it was found in the cache. Measured on OpenBLAS: its AVX-512 kernels add along
k in order for any row count from 2 up, as long as the output width is a multiple of 16 and k stays below
their block size; its AVX2 kernels do not, but are repeatable for a fixed row count. So k is cut into blocks
of at most `K_BLOCK`, widths are padded to `WIDTH`, and rows come in tiles: one tile of all rows (at least 2)
where the probe shows that this is safe, else tiles of exactly `FIXED_TILE` rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

K_BLOCK = 384
"""Longest run of k summed inside one BLAS call; OpenBLAS splits longer ones differently per kernel."""
FAST_K_BLOCK = 1024
"""The same where no more than FAST_TILE rows meet in a call: then one kernel does them all."""
WIDTH = 16
"""Output widths are padded to a multiple of this: one AVX-512 register of float32."""
FIXED_TILE = 8
"""Rows of a tile where only a fixed row count is repeatable."""
FAST_TILE = 4
"""Rows a product of a small matrix is cut into where any row count is safe. OpenBLAS multiplies 4 rows in the
time of one; 8 rows as twice 4, the matrix still in the cache, take three quarters of the time of 8 at once.
"""
_CACHED_BYTES = 1_000_000
"""A matrix up to this size stays in the second-level cache between two tiles, and OpenBLAS multiplies it by
FAST_TILE rows with its kernel for small products (up to 10^6 multiplications), as by 2 rows.
"""
_HUGE_PAGE_BYTES = 1 << 21
_ONE = np.float32(1)


def padded(width: int) -> int:
    """`width` rounded up to a multiple of WIDTH."""
    return -(-width // WIDTH) * WIDTH


def rows_are_independent() -> bool:
    """Whether this BLAS gives each row the same bits for every row count from 2 up (probed with the shapes
    that tell).
    """
    random = np.random.default_rng(0)
    for depth, width in ((48, 128), (128, 64), (192, 1024), (K_BLOCK, 192)):
        weights = random.standard_normal((depth, width), dtype=np.float32)
        rows = random.standard_normal((96, depth), dtype=np.float32)
        whole = rows @ weights
        for count in (2, 3, 4, 5, 7, 8, 9, 16, 31, 64):
            if not np.array_equal(rows[-count:] @ weights, whole[-count:]):
                return False
    weights = random.standard_normal((FAST_K_BLOCK, 240), dtype=np.float32)
    rows = random.standard_normal((FAST_TILE, FAST_K_BLOCK), dtype=np.float32)
    whole = rows @ weights
    return all(
        np.array_equal(rows[first : first + 2] @ weights, whole[first : first + 2]) for first in (0, 1, 2)
    )


class Tiling:
    """How many rows go into one BLAS call. `tile` None: all of them, at least 2; else exactly that many."""

    def __init__(self, tile: int | None) -> None:
        self.tile = tile

    @classmethod
    def probe(cls) -> Tiling:
        """The cheapest tiling that is repeatable on this machine."""
        return cls(None if rows_are_independent() else FIXED_TILE)

    def rows(self, count: int) -> int:
        """Row count to compute for `count` wanted rows."""
        if self.tile is None:
            return 2 if count <= 2 else -(-count // FAST_TILE) * FAST_TILE
        return -(-count // self.tile) * self.tile

    def split(self, count: int) -> tuple[int, int]:
        """(tiles, rows per tile) of an already padded row count."""
        return (1, count) if self.tile is None else (count // self.tile, self.tile)


class Arena:
    """One aligned allocation for all weights.

    Sharing one block lets the system back it with huge pages, and alignment keeps vector loads inside a cache
    line; both together make a decode step of a small model about a fifth faster than separate arrays (390 to
    325 microseconds measured).
    """

    def __init__(self, elements: int) -> None:
        raw = np.empty(elements * 4 + _HUGE_PAGE_BYTES, dtype=np.uint8)
        start = -raw.ctypes.data % _HUGE_PAGE_BYTES
        self._free = raw[start : start + elements * 4].view(np.float32)

    def take(self, *shape: int) -> Floats:
        """A zeroed array of `shape` cut from the arena."""
        size = int(np.prod(shape))
        if size > len(self._free):
            raise MemoryError(f"weight arena is {size - len(self._free)} elements short")
        taken, self._free = self._free[:size].reshape(shape), self._free[size:]
        taken[...] = 0.0
        return taken


def depth_blocks(depth: int, longest: int) -> int:
    """Into how many equal blocks `depth` is cut so that none is longer than `longest`."""
    blocks = -(-depth // longest)
    while depth % blocks:
        blocks += 1
    return blocks


class Projection:
    """x @ weights (+ bias) with rows independent of each other. Input (rows, depth), output (rows, padded
    width).
    """

    @staticmethod
    def elements(depth: int, width: int) -> int:
        """Arena elements needed for the weights."""
        return depth * padded(width)

    def __init__(self, arena: Arena, tiling: Tiling, weights: Floats, bias: Floats | None = None) -> None:
        """`weights` of shape (depth, width): the input dimension first."""
        depth, width = weights.shape
        self.depth, self.width, self._tiling = depth, padded(width), tiling
        self._fast = tiling.tile is None and depth * self.width * 4 <= _CACHED_BYTES
        self.blocks = depth_blocks(depth, FAST_K_BLOCK if self._fast else K_BLOCK)
        self._weights = arena.take(self.blocks, depth // self.blocks, self.width)
        self._weights.reshape(depth, self.width)[:, :width] = weights
        self._part: Floats = np.empty(0, dtype=np.float32)
        self._bias: Floats | None = None
        if bias is not None:
            self._bias = np.zeros((tiling.rows(1), self.width), dtype=np.float32)
            self._bias[:, :width] = bias

    def __call__(self, x: Floats, out: Floats) -> None:
        """Put the product of x (rows, depth) into out (rows, padded width); `rows` as `Tiling.rows` gives
        it.
        """
        target = out
        tile = FAST_TILE if self._fast and len(x) > FAST_TILE else self._tiling.tile
        if tile is not None:
            x, out = x.reshape(-1, tile, self.depth), out.reshape(-1, tile, self.width)
        if self.blocks == 1:
            np.matmul(x, self._weights[0], out)
        else:
            step = self.depth // self.blocks
            np.matmul(x[..., :step], self._weights[0], out)
            if self._part.shape != out.shape:
                self._part = np.empty_like(out)
            part = self._part
            for block in range(1, self.blocks):
                np.matmul(x[..., block * step : (block + 1) * step], self._weights[block], part)
                np.add(out, part, out)
        if self._bias is not None:
            # A small step has as many rows as the bias: adding equal shapes takes half the time.
            np.add(target, self._bias if len(target) == len(self._bias) else self._bias[0], target)


def root_sum_square(x: Floats, epsilon_sum: Floats, out: Floats) -> None:
    """Put sqrt(sum(x^2) + n * epsilon) over the last axis into `out`; `epsilon_sum` is n * epsilon,
    shaped like out.

    Dividing by it is RMS normalisation up to the factor sqrt(n), which the loader folds into the weights
    that follow.
    """
    np.vecdot(x, x, out)
    np.add(out, epsilon_sum, out)
    np.sqrt(out, out)


def silu_product(negated_gate: Floats, negated_up: Floats, out: Floats) -> None:
    """Put silu(gate) * up into `out`, from the negated inputs, which spare a pass: the two signs cancel."""
    np.exp(negated_gate, out)
    np.add(out, _ONE, out)
    np.divide(negated_gate, out, out)
    np.multiply(out, negated_up, out)
