"""What the gateway tells an engine at its start (wire.md section 1), read from argv and the environment.

Imports no numpy, because the number of BLAS threads must be decided before numpy is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.reference.errors import LaunchError
from generated import limits
from generated.launch import CTX, KV_SLOTS, NGEN, SEED, SNAP

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_SMALL_WEIGHTS_BYTES = 64 << 20
"""Below this the weights are read faster by one thread than two threads can be brought together for each
product.
"""


@dataclass(frozen=True)
class Launch:
    """Checked launch parameters. `context` and `seed` None: not given."""

    directory: Path
    slots: int
    context: int | None
    seed: int | None


def read_launch(arguments: Sequence[str], environment: Mapping[str, str]) -> Launch:
    """Parse argv `[engine, cap]` and the launch variables; raises LaunchError naming the one that is wrong.

    `cap` bounds an expert cache, which a dense model does not have; it is checked and otherwise without
    effect.
    """
    if len(arguments) > 2:
        raise LaunchError(f"expected one argument, the cache bound, not {len(arguments) - 1}")
    if len(arguments) == 2:
        _integer("cache bound", arguments[1], 0)
    snapshot = environment.get(SNAP)
    if not snapshot:
        raise LaunchError(f"{SNAP} must name the model directory")
    optional = {name: environment[name] for name in (NGEN, CTX, SEED, KV_SLOTS) if environment.get(name)}
    if NGEN in optional:
        _integer(NGEN, optional[NGEN], 0)
    return Launch(
        directory=Path(snapshot),
        slots=_integer(KV_SLOTS, optional.get(KV_SLOTS, "1"), 1, limits.KV_SLOTS),
        context=_integer(CTX, optional[CTX], 1) if CTX in optional else None,
        seed=_integer(SEED, optional[SEED], 0) if SEED in optional else None,
    )


def _integer(name: str, text: str, least: int, most: int = 2**63 - 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise LaunchError(f"{name} must be an integer from {least} to {most}, not {text!r}")
    return int(text)


def choose_threads(directory: Path, environment: MutableMapping[str, str]) -> None:
    """One BLAS thread for a small model unless the operator said otherwise. Must run before numpy is
    imported.
    """
    if any(environment.get(name) for name in _THREAD_VARIABLES):
        return
    total = sum(path.stat().st_size for path in directory.glob("*.safetensors") if path.is_file())
    if total < _SMALL_WEIGHTS_BYTES:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    else:
        environment.setdefault(_THREAD_VARIABLES[0], str(len(os.sched_getaffinity(0))))
