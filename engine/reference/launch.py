"""What the gateway tells an engine at its start (wire.md section 1), read from argv and the environment.

Imports no numpy, because the number of BLAS threads must be decided before numpy is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.reference.errors import LaunchError
from generated import launch, limits

_MOST = 2**63 - 1
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
    if len(arguments) > 1 + len(launch.ARGUMENTS):
        raise LaunchError(
            f"expected no more arguments than [{', '.join(launch.ARGUMENTS)}], not {arguments[1:]}"
        )
    for name, text in zip(launch.ARGUMENTS, arguments[1:], strict=False):
        _integer(name, text, 0)
    snapshot = environment.get(launch.SNAP)
    if not snapshot:
        raise LaunchError(f"{launch.SNAP} must name the model directory")

    def given(name: str, least: int, most: int = _MOST) -> int | None:
        text = environment.get(name)
        return _integer(name, text, least, most) if text else None

    given(launch.NGEN, 0)  # the context bounds every request anyway
    return Launch(
        directory=Path(snapshot),
        slots=given(launch.KV_SLOTS, 1, limits.KV_SLOTS) or 1,
        context=given(launch.CTX, 1),
        seed=given(launch.SEED, 0),
    )


def _integer(name: str, text: str, least: int, most: int = _MOST) -> int:
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
