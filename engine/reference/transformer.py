"""The forward pass of a dense decoder-only transformer in numpy, float32, over slots with a KV cache.

Guarantees: the logits of a position depend bit for bit only on the tokens of its own slot up to that
position, whatever else is in the batch and however the prompt was cut (see `kernels` and `cache` for how).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.reference.cache import DecodeStep, KeyValueCache, PrefillStep
from engine.reference.config import ModelConfig
from engine.reference.kernels import Floats, Tiling, inverse_rms, silu_product
from engine.reference.weights import Layer, Weights


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


class Transformer:
    """Weights plus KV cache; the caller keeps track of which position comes next in each slot."""

    def __init__(
        self, config: ModelConfig, weights: Weights, tiling: Tiling, slots: int, context: int
    ) -> None:
        self.config = config
        self.cache = KeyValueCache(config, tiling, slots, context)
        self.timings = Timings()
        self._weights = weights
        self._tiling = tiling
        self._epsilon_sum = np.float32(config.hidden * config.norm_epsilon)
        self._head_epsilon_sum = np.float32(config.head_dim * config.norm_epsilon)
        angles = np.arange(context, dtype=np.float32)[:, None] * config.inverse_frequencies
        self._rotations = np.exp(1j * angles.astype(np.float64)).astype(np.complex64)

    def decode(self, slots: Sequence[int], positions: Sequence[int], tokens: Sequence[int]) -> Floats:
        """One token in each of `slots` (ascending, distinct) at `positions`; logits of shape (slots,
        vocabulary).
        """
        step = self.cache.decode_step(slots, positions)
        x = self._forward(tokens, positions, step)
        return self._logits(x)[: len(slots)]

    def prefill(self, slot: int, first: int, tokens: Sequence[int], every_position: bool) -> Floats:
        """Tokens at positions first … of one slot; logits (tokens, vocabulary), or (1, vocabulary) of the
        last one only.
        """
        count = len(tokens)
        x = self._forward(tokens, range(first, first + count), self.cache.prefill_step(slot, first, count))
        if every_position:
            return self._logits(x)[:count]
        rows = self._tiling.rows(1)
        last = np.repeat(x[count - 1 : count], rows, axis=0)
        return self._logits(last)[:1]

    def _forward(
        self, tokens: Sequence[int], positions: Sequence[int], step: DecodeStep | PrefillStep
    ) -> Floats:
        """Residual stream (padded rows, hidden) after the last layer. Padding rows repeat the last token."""
        start = perf_counter()
        attention = self.timings.attention
        count = len(tokens)
        padding = self._tiling.rows(count) - count
        x = self._weights.embedding[self._padded(tokens, padding)]
        rotation = self._rotations[self._padded(positions, padding)][:, None, :]
        for index, layer in enumerate(self._weights.layers):
            attended = layer.output(self._attention(index, layer, x, rotation, step))
            attended = attended[:, : self.config.hidden]
            if layer.after_attention is not None:
                attended = attended / inverse_rms(attended, self._epsilon_sum) * layer.after_attention
            x += attended
            expanded = self._mlp(layer, x)
            if layer.after_mlp is not None:
                expanded = expanded / inverse_rms(expanded, self._epsilon_sum) * layer.after_mlp
            x += expanded
        self.timings.forwards += 1
        self.timings.matmul += perf_counter() - start - (self.timings.attention - attention)
        return x

    @staticmethod
    def _padded(values: Sequence[int], padding: int) -> NDArray[np.int64]:
        return np.array([*values, *[values[-1]] * padding])

    def _attention(
        self,
        index: int,
        layer: Layer,
        x: Floats,
        rotation: NDArray[np.complex64],
        step: DecodeStep | PrefillStep,
    ) -> Floats:
        config = self.config
        rows, heads, shared, dim = len(x), config.heads, config.key_value_heads, config.head_dim
        fused = layer.query_key_value(x / inverse_rms(x, self._epsilon_sum))
        rotated = fused[:, : (heads + shared) * dim].reshape(rows, heads + shared, dim)
        if layer.query_key_scale is not None:
            rotated /= inverse_rms(rotated, self._head_epsilon_sum)
            rotated *= layer.query_key_scale
        pairs = rotated[:, :, : config.rotary_dim].view(np.complex64)
        pairs *= rotation
        start = perf_counter()
        queries = rotated[:, :heads].reshape(rows, shared, config.group, dim)
        values = fused[:, (heads + shared) * dim : (heads + 2 * shared) * dim].reshape(rows, shared, dim)
        result = step(index, queries, rotated[:, heads:], values)
        self.timings.attention += perf_counter() - start
        return result

    def _mlp(self, layer: Layer, x: Floats) -> Floats:
        inner = self.config.intermediate
        both = layer.negated_gate_up(x / inverse_rms(x, self._epsilon_sum))
        return layer.down(silu_product(both[:, :inner], both[:, inner : 2 * inner]))[:, : self.config.hidden]

    def _logits(self, x: Floats) -> Floats:
        start = perf_counter()
        logits = self._weights.head(x / inverse_rms(x, self._epsilon_sum))[:, : self.config.vocabulary]
        self.timings.head += perf_counter() - start
        return logits
