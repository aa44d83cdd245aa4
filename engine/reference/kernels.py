"""Matrix products whose result for one row does not depend on the other rows, and the elementwise pieces of a
layer.

Why this exists: a BLAS picks another kernel, and with it another order of additions, when the number of rows
changes. Greedy decoding would then depend on which requests happen to share a step, on where a prompt was cut
into chunks and on how much of it was found in the cache. Measured on OpenBLAS: its AVX-512 kernels add along
k in order for any row count from 2 up, as long as the output width is a multiple of 16 and k stays below
their block size; its AVX2 kernels do not, but are repeatable for a fixed row count. So k is cut into blocks
of at most `K_BLOCK`, widths are padded to `WIDTH`, and rows come in tiles: one tile of all rows (at least 2)
where the probe shows that this is safe, else each row by itself if the weights stay in the caches, and tiles
of exactly `FIXED_TILE` rows if they do not. Rows by themselves were measured with AVX2 on the embedded model:
1,955 tokens/s for one request and 3,525 for eight, against 667 and 2,700 in tiles of eight.

What is fast was measured too: matrices that are not large are cut into panels of `WIDTH` columns (see
`Projection`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

K_BLOCK = 384
"""Longest run of k summed inside one BLAS call; OpenBLAS splits longer ones differently per kernel."""
PANEL_DEPTH = 1024
"""The same for a panel, which no more rows meet in a call than one kernel does for any number of them."""
WIDTH = 64
"""Columns of a panel: what OpenBLAS works on at a time (four AVX-512 registers of float32) and reads in the
order it is stored. Output widths are padded to a multiple of this.
"""
FIXED_TILE = 8
"""Rows of a tile where only a fixed row count is repeatable and the weights come from memory."""
_CACHED_ELEMENTS = 4 << 20
"""Weights of which a second reading costs little."""
_ROWS = 4
"""Row counts are padded to a multiple of this: OpenBLAS multiplies 4 rows in the time of one."""
_SMALL_PRODUCT = 1_000_000
"""Multiplications up to which OpenBLAS takes its kernel for small products, which reads a panel in place."""
_BIAS_ROWS = 8
_PANELS_BYTES = 1_000_000
"""A matrix up to this size is stored as panels. Larger ones gain by the second thread of a whole product."""
_HUGE_PAGE_BYTES = 1 << 21
_ONE = np.float32(1)


def padded(width: int, multiple: int = WIDTH) -> int:
    """`width` rounded up to a multiple."""
    return -(-width // multiple) * multiple


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
    for depth in (192, 528, 1000, PANEL_DEPTH):
        panel = random.standard_normal((depth, WIDTH), dtype=np.float32)
        rows = random.standard_normal((_tile(64, depth), depth), dtype=np.float32)
        whole = rows @ panel
        for count in (2, 3, 5, 8, 13):
            if not np.array_equal(rows[-count:] @ panel, whole[-count:]):
                return False
    return True


class Tiling:
    """How many rows go into one BLAS call. `tile` None: all of them, at least 2; else exactly that many."""

    def __init__(self, tile: int | None) -> None:
        self.tile = tile

    @classmethod
    def probe(cls, elements: int) -> Tiling:
        """The cheapest tiling for so many weights that is repeatable on this machine."""
        if rows_are_independent():
            return cls(None)
        return cls(1 if elements <= _CACHED_ELEMENTS else FIXED_TILE)

    def rows(self, count: int) -> int:
        """Row count to compute for `count` wanted rows."""
        if self.tile is None:
            return 2 if count <= 2 else padded(count, _ROWS)
        return padded(count, self.tile)

    def split(self, count: int) -> tuple[int, int]:
        """(tiles, rows per tile) of an already padded row count."""
        return (1, count) if self.tile is None else (count // self.tile, self.tile)


def aligned_zeros(*shape: int) -> Floats:
    """A zeroed array that begins on a huge page, so that vectors do not straddle cache lines; pages never
    touched cost no memory.
    """
    size = 4 * math.prod(shape)
    raw = np.zeros(size + _HUGE_PAGE_BYTES, dtype=np.uint8)
    start = -raw.ctypes.data % _HUGE_PAGE_BYTES
    return raw[start : start + size].view(np.float32).reshape(shape)


class Arena:
    """One aligned allocation for all weights.

    Sharing one block lets the system back it with huge pages, and alignment keeps vector loads inside a cache
    line; both together make a decode step of a small model about a fifth faster than separate arrays (390 to
    325 microseconds measured).
    """

    def __init__(self, elements: int) -> None:
        self._free = aligned_zeros(elements)

    def take(self, *shape: int) -> Floats:
        """A zeroed array of `shape` cut from the arena."""
        size = math.prod(shape)
        if size > len(self._free):
            raise MemoryError(f"weight arena is {size - len(self._free)} elements short")
        taken, self._free = self._free[:size].reshape(shape), self._free[size:]
        return taken


def depth_blocks(depth: int, longest: int) -> int:
    """Into how many equal blocks `depth` is cut so that none is longer than `longest`."""
    blocks = -(-depth // longest)
    while depth % blocks:
        blocks += 1
    return blocks


@dataclass(frozen=True)
class Operands:
    """Where a product reads and writes, as the views its BLAS calls need. Made once for many products."""

    inputs: tuple[Floats, ...]
    """Per block of depth."""
    out: Floats
    partial: Floats
    """What the blocks after the first are multiplied into; empty where there is one block."""
    rows: Floats
    """The result as (rows, padded width): `out` seen the plain way."""


class Projection:
    """x @ weights (+ bias) with rows independent of each other. Input (rows, depth), output (rows, padded
    width).

    A matrix that fits the second-level cache is stored as panels of WIDTH columns, each read from its first
    byte to its last while it meets all rows of a step.
    """

    @staticmethod
    def elements(depth: int, width: int) -> int:
        """Arena elements needed for the weights."""
        return depth * padded(width)

    def __init__(self, arena: Arena, tiling: Tiling, weights: Floats, bias: Floats | None = None) -> None:
        """`weights` of shape (depth, width): the input dimension first."""
        depth, width = weights.shape
        self.width, self._tiling = padded(width), tiling
        self._panels = tiling.tile is None and depth * self.width * 4 <= _PANELS_BYTES
        blocks = depth_blocks(depth, PANEL_DEPTH if self._panels else K_BLOCK)
        self._step = depth // blocks
        wide = np.zeros((depth, self.width), dtype=np.float32)
        wide[:, :width] = weights
        if self._panels:
            stored = arena.take(blocks, self.width // WIDTH, 1, self._step, WIDTH)
            stored[:, :, 0] = wide.reshape(blocks, self._step, -1, WIDTH).swapaxes(1, 2)
        else:
            stored = arena.take(blocks, self._step, self.width)
            stored[...] = wide.reshape(stored.shape)
        self._weights = tuple(stored)
        self._bias: Floats | None = None
        self._biases: dict[int, Floats] = {}
        if bias is not None:
            self._bias = np.zeros(self.width, dtype=np.float32)
            self._bias[:width] = bias
            # Adding equal shapes takes half the time: for few rows the bias is written out.
            several = np.tile(self._bias, (_BIAS_ROWS, 1))
            self._biases = {count: several[:count] for count in range(1, _BIAS_ROWS + 1)}

    def operands(self, x: Floats, out: Floats) -> Operands:
        """Views for the product of x (rows, depth) into out (rows, padded width), for this and any other
        projection of the same shape; `rows` as `Tiling.rows` gives it.
        """
        count, depth = x.shape
        view = out
        if self._panels:
            tile = _tile(count, self._step)
            x = x.reshape(-1, tile, depth)
            view = out.reshape(-1, tile, self.width // WIDTH, WIDTH).transpose(2, 0, 1, 3)
        elif self._tiling.tile is not None:
            x = x.reshape(-1, self._tiling.tile, depth)
            view = out.reshape(-1, self._tiling.tile, self.width)
        inputs = tuple(x[..., first : first + self._step] for first in range(0, depth, self._step))
        partial = np.empty(view.shape if len(inputs) > 1 else 0, dtype=np.float32)
        return Operands(inputs, view, partial, out)

    def __call__(self, operands: Operands) -> None:
        """Multiply."""
        inputs, out = operands.inputs, operands.out
        np.matmul(inputs[0], self._weights[0], out)
        for x, weights in zip(inputs[1:], self._weights[1:], strict=True):
            np.matmul(x, weights, operands.partial)
            np.add(out, operands.partial, out)
        if self._bias is not None:
            rows = operands.rows
            np.add(rows, self._biases.get(len(rows), self._bias), rows)


def _tile(rows: int, depth: int) -> int:
    """Rows of the pieces into which to cut `rows` (2, or a multiple of _ROWS), so that OpenBLAS multiplies a
    piece by a panel with its kernel for small products.
    """
    tiles = 1
    while rows % tiles or (rows // tiles > _ROWS and rows // tiles * depth * WIDTH > _SMALL_PRODUCT):
        tiles += 1
    return rows // tiles


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
