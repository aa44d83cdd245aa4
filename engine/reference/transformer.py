"""The forward pass of a dense decoder-only transformer in numpy, float32, over slots with a KV cache.

Guarantees: the logits of a position depend bit for bit only on the tokens of its own slot up to that
position, whatever else is in the batch and however the prompt was cut (see `kernels` and `attention` for
how).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.reference.attention import AttentionStep, DecodeStep, PrefillStep
from engine.reference.cache import KeyValueCache
from engine.reference.config import ModelConfig
from engine.reference.kernels import Floats, Tiling, padded, root_sum_square, silu_product
from engine.reference.weights import Layer, Weights

_KEPT_COUNT = 16
"""Buffers of steps with at most this many positions are kept for the next one."""


@dataclass
class Timings:
    """Seconds spent since start, and forward passes done."""

    matmul: float = 0.0
    attention: float = 0.0
    head: float = 0.0
    forwards: int = 0

    def copy(self) -> Timings:
        """The present values."""
        return Timings(**{field.name: getattr(self, field.name) for field in fields(self)})


class _Buffers:
    """What one forward pass of `count` positions writes into, and the views of it that the layers use.

    Products run over all `rows`, padding included; everything else over the first `count`. Padding rows
    stay zero.
    """

    def __init__(self, config: ModelConfig, weights: Weights, count: int, logits_rows: Floats) -> None:
        """`logits_rows` (padding included, padded vocabulary) may be shared with other buffers."""
        rows = len(logits_rows)

        def zeros(*shape: int) -> Floats:
            return np.zeros((rows, *shape), dtype=np.float32)

        heads, shared, dim, inner = config.heads, config.key_value_heads, config.head_dim, config.intermediate
        used = slice(count)
        self.rows, self.count = rows, count
        self.norm = np.zeros(count, dtype=np.float32)
        self.norm_column = self.norm[:, None]
        self.epsilon_sum = np.full(count, config.hidden * config.norm_epsilon, dtype=np.float32)
        self.stream = np.zeros((count, config.hidden), dtype=np.float32)
        self.normed_rows = zeros(config.hidden)
        self.normed = self.normed_rows[used]
        self.fused_rows = zeros(padded((heads + 2 * shared) * dim))
        fused = self.fused_rows[used]
        self.rotated = fused[:, : (heads + shared) * dim].reshape(count, heads + shared, dim)
        self.pairs = self.rotated[:, :, : config.rotary_dim].view(np.complex64)
        self.queries = self.rotated[:, :heads].reshape(count, shared, config.group, dim)
        self.keys = self.rotated[:, heads:]
        self.values = fused[:, (heads + shared) * dim : (heads + 2 * shared) * dim].reshape(
            count, shared, dim
        )
        self.keys_values = fused[:, heads * dim : (heads + 2 * shared) * dim]
        self.attended_rows = zeros(heads * dim)
        self.attended = self.attended_rows[used].reshape(count, shared, config.group, dim)
        self.projected_rows = zeros(padded(config.hidden))
        self.projected = self.projected_rows[used, : config.hidden]
        self.gate_up_rows = zeros(padded(2 * inner))
        self.gate, self.up = self.gate_up_rows[used, :inner], self.gate_up_rows[used, inner : 2 * inner]
        self.inner_rows = zeros(inner)
        self.inner = self.inner_rows[used]
        self.logits = logits_rows[used, : config.vocabulary]
        layer = weights.layers[0]  # all layers have the same shapes
        self.to_heads = layer.query_key_value.operands(self.normed_rows, self.fused_rows)
        self.to_output = layer.output.operands(self.attended_rows, self.projected_rows)
        self.to_gate_up = layer.negated_gate_up.operands(self.normed_rows, self.gate_up_rows)
        self.to_down = layer.down.operands(self.inner_rows, self.projected_rows)
        self.to_logits = weights.head.operands(self.normed_rows, logits_rows)
        if config.family.query_key_norm:
            self.head_norm = np.zeros((count, heads + shared), dtype=np.float32)
            self.head_epsilon_sum = np.full_like(self.head_norm, dim * config.norm_epsilon)


class Transformer:
    """Weights plus KV cache; the caller keeps track of which position comes next in each slot."""

    def __init__(
        self, config: ModelConfig, weights: Weights, tiling: Tiling, slots: int, context: int
    ) -> None:
        self.config = config
        self.cache = KeyValueCache(config, slots, context)
        self.timings = Timings()
        self._weights = weights
        self._tiling = tiling
        self._kept_buffers: dict[int, _Buffers] = {}
        self._kept_logits = np.empty((tiling.rows(_KEPT_COUNT), padded(config.vocabulary)), dtype=np.float32)
        self._last_decode: DecodeStep | None = None
        angles = np.arange(context)[:, None] * config.inverse_frequencies
        self._rotations = np.exp(1j * angles).astype(np.complex64)

    def decode(self, slots: Sequence[int], positions: Sequence[int], tokens: Sequence[int]) -> Floats:
        """One token in each of `slots` (ascending, distinct) at `positions`; logits of shape (slots,
        vocabulary).
        """
        buffers = self._buffers(len(tokens))
        places = list(positions)
        self._forward(list(tokens), places, buffers, self._decode_step(buffers, slots, places))
        return self._logits(buffers)

    def prefill(self, slot: int, first: int, tokens: Sequence[int], every_position: bool) -> Floats:
        """Tokens at positions first … of one slot; logits (tokens, vocabulary), or (1, vocabulary) of the
        last one only.
        """
        count = len(tokens)
        buffers = self._buffers(count)
        step = PrefillStep(self.cache, self._tiling, buffers, slot, first)
        self._forward(list(tokens), list(range(first, first + count)), buffers, step)
        if every_position:
            return self._logits(buffers)
        last = self._buffers(1)
        last.stream[...] = buffers.stream[count - 1]
        return self._logits(last)

    def _decode_step(self, buffers: _Buffers, slots: Sequence[int], positions: list[int]) -> DecodeStep:
        """The attention of this step; that of the last step where the same slots look at the same blocks."""
        step = self._last_decode
        if step is None or not step.serves(buffers, slots, positions):
            self._last_decode = step = DecodeStep(self.cache, self._tiling, buffers, slots, positions)
        step.move(positions)
        return step

    def _buffers(self, count: int) -> _Buffers:
        """Buffers for `count` positions and the padding rows they need."""
        found = self._kept_buffers.get(count)
        if found is None:
            rows, kept = self._tiling.rows(count), count <= _KEPT_COUNT
            logits = (
                self._kept_logits[:rows] if kept else np.empty((rows, self._kept_logits.shape[1]), np.float32)
            )
            found = _Buffers(self.config, self._weights, count, logits)
            if kept:
                self._kept_buffers[count] = found
        return found

    def _forward(
        self, tokens: list[int], positions: list[int], buffers: _Buffers, step: AttentionStep
    ) -> None:
        """Fill the residual stream up to after the last layer."""
        start = perf_counter()
        attention = 0.0
        if len(tokens) == 1:  # one row is read through a view, several are gathered
            buffers.stream[...] = self._weights.embedding[tokens[0]]
            rotation = self._rotations[positions[0]]
        else:
            buffers.stream[...] = self._weights.embedding[tokens]
            rotation = self._rotations[positions, None, :]
        for index, layer in enumerate(self._weights.layers):
            self._heads(layer, buffers, rotation)
            before = perf_counter()
            step(index)
            attention += perf_counter() - before
            layer.output(buffers.to_output)
            self._add(buffers, layer.after_attention)
            self._normalise(buffers, buffers.stream)
            layer.negated_gate_up(buffers.to_gate_up)
            silu_product(buffers.gate, buffers.up, buffers.inner)
            layer.down(buffers.to_down)
            self._add(buffers, layer.after_mlp)
        self.timings.forwards += 1
        self.timings.attention += attention
        self.timings.matmul += perf_counter() - start - attention

    @staticmethod
    def _normalise(buffers: _Buffers, x: Floats) -> None:
        """Put RMS-normalised x (without its factor sqrt(hidden)) into `normed`."""
        if buffers.count == 1:  # the same operations on scalars, which cost less than arrays of one
            total = x[0].dot(x[0]) + buffers.epsilon_sum[0]
            np.divide(x, np.float32(math.sqrt(total)), buffers.normed)
            return
        root_sum_square(x, buffers.epsilon_sum, buffers.norm)
        np.divide(x, buffers.norm_column, buffers.normed)

    def _add(self, buffers: _Buffers, scale: Floats | None) -> None:
        """Add what a sublayer projected to the residual stream, through its own norm where the family has
        one.
        """
        if scale is None:
            np.add(buffers.stream, buffers.projected, buffers.stream)
            return
        self._normalise(buffers, buffers.projected)
        np.multiply(buffers.normed, scale, buffers.normed)
        np.add(buffers.stream, buffers.normed, buffers.stream)

    def _heads(self, layer: Layer, buffers: _Buffers, rotation: NDArray[np.complex64]) -> None:
        """Queries, keys and values of a layer, rotated to their positions."""
        self._normalise(buffers, buffers.stream)
        layer.query_key_value(buffers.to_heads)
        if layer.query_key_scale is not None:
            root_sum_square(buffers.rotated, buffers.head_epsilon_sum, buffers.head_norm)
            np.divide(buffers.rotated, buffers.head_norm[:, :, None], buffers.rotated)
            np.multiply(buffers.rotated, layer.query_key_scale, buffers.rotated)
        np.multiply(buffers.pairs, rotation, buffers.pairs)

    def _logits(self, buffers: _Buffers) -> Floats:
        """Logits (count, vocabulary) in an array of their own: they may outlive the step."""
        start = perf_counter()
        self._normalise(buffers, buffers.stream)
        self._weights.head(buffers.to_logits)
        logits = buffers.logits.copy()
        self.timings.head += perf_counter() - start
        return logits
