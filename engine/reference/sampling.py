"""Choosing a token from logits, and the numbers of the log probability channel.

Greedy decoding takes the lowest id among equal maxima. Sampling is repeatable: a request's draws depend on
the seed of the engine and the request's id only, not on what else runs at the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.reference.kernels import Floats

_ROUNDING = 1 - 1e-6
"""Keeps the rounding of a bound to float32 on the safe side."""


class Sampler:
    """Temperature and nucleus sampling of one request."""

    def __init__(self, temperature: float, top_p: float, seed: Sequence[int]) -> None:
        """`temperature` 0 is greedy, also what becomes 0 in single precision; `top_p` in (0, 1] keeps the
        smallest set of most likely tokens with that mass.
        """
        self._temperature = np.float32(temperature)
        self._top_p = top_p
        self._random = np.random.default_rng(list(seed))

    def choose(self, logits: Floats) -> int:
        """Token id drawn from logits of shape (vocabulary,); entries of -inf are never chosen."""
        if self._temperature == 0.0:
            return int(logits.argmax())
        weights = logits - logits.max()
        np.divide(weights, self._temperature, weights)
        np.exp(weights, weights)
        if self._top_p >= 1.0:
            return self._draw(np.cumsum(weights, dtype=np.float64))
        total = float(weights.sum(dtype=np.float64))
        # A token below this cannot be in the nucleus: all such tokens together weigh less than what it
        # leaves out.
        threshold = np.float32(total * (1.0 - self._top_p) / len(weights) * _ROUNDING)
        candidates = (weights >= threshold).nonzero()[0]
        chances = weights[candidates].astype(np.float64)
        order = (-chances).argsort(kind="stable")
        mass = chances[order].cumsum()
        kept = int(mass.searchsorted(total * self._top_p)) + 1
        return int(candidates[order[self._draw(mass[:kept])]])

    def _draw(self, mass: NDArray[np.float64]) -> int:
        place = int(mass.searchsorted(self._random.random() * mass[-1], side="right"))
        return min(place, len(mass) - 1)


def log_probabilities(logits: Floats) -> NDArray[np.float64]:
    """Natural logarithms of softmax(logits) over the last axis, in double precision."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def token_numbers(logits: Floats, token: int, count: int) -> tuple[float, list[int], list[float]]:
    """(log probability of `token`, ids of the `count` most likely tokens, their log probabilities), most
    likely first.

    `logits` has shape (vocabulary,). Equal probabilities are ordered by id.
    """
    values = log_probabilities(logits)
    count = min(count, len(values))
    if count == 0:
        return float(values[token]), [], []
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > threshold)
    best = np.concatenate([above, np.flatnonzero(values == threshold)[: count - len(above)]])
    best = best[np.argsort(-values[best], kind="stable")]
    return float(values[token]), best.tolist(), values[best].tolist()
