# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
"""Muon, the optimiser of weight matrices, in a precision that the processor has (needs torch).

``torch.optim.Muon`` orthogonalises in bfloat16 whatever the processor; without instructions for it that alone
takes three times as long as the rest of a training step. Here the type is the caller's, and nothing else
differs: momentum after Nesterov, five steps of the usual quintic iteration, the update scaled to the size
AdamW's would have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import torch

_QUINTIC: Final = (3.4445, -4.7750, 2.0315)
_ITERATIONS: Final = 5
_LIKE_ADAMW: Final = 0.2
"""Root mean square of an update of AdamW, in units of its rate."""


def orthogonalised(matrix: torch.Tensor, precision: torch.dtype) -> torch.Tensor:
    """About U V' of the matrix's singular value decomposition U S V'; the same shape, the given type."""
    tall = matrix.shape[0] > matrix.shape[1]
    wide = (matrix.T if tall else matrix).to(precision)
    wide = wide / wide.norm().clamp(min=1e-7)
    linear, cubic, quintic = _QUINTIC
    for _ in range(_ITERATIONS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), wide, beta=linear)
    return wide.T if tall else wide


class Muon(torch.optim.Optimizer):
    """For parameters of two dimensions; ``rate`` is comparable to a rate of AdamW."""

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        rate: float,
        *,
        momentum: float,
        weight_decay: float,
        precision: torch.dtype,
    ) -> None:
        self._precision = precision
        super().__init__(parameters, {"lr": rate, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                trace = state["momentum"]
                trace.lerp_(parameter.grad, 1 - momentum)
                update = orthogonalised(parameter.grad.lerp(trace, momentum), self._precision)
                parameter.mul_(1 - rate * group["weight_decay"])
                parameter.add_(update, alpha=-rate * _LIKE_ADAMW * math.sqrt(max(parameter.shape)))
