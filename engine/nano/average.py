"""Write the mean of several checkpoints of one run.

``python -m engine.nano.average CHECKPOINT... --output DIR``. Weights at different low points of the loss, not
far from each other, are each wrong in its own way; their mean is often better than any of them.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from engine.nano import MODEL_DIRECTORY, WEIGHTS_FILE


def mean_weights(directories: Sequence[Path]) -> dict[str, np.ndarray]:
    """Every tensor's mean, added up in float32, as float16; raises ValueError when names or shapes differ."""
    checkpoints = [load_file(directory / WEIGHTS_FILE) for directory in directories]
    shapes = [{name: value.shape for name, value in weights.items()} for weights in checkpoints]
    if any(other != shapes[0] for other in shapes[1:]):
        raise ValueError("the checkpoints are not of one model: their tensors differ")
    return {
        name: np.mean([weights[name].astype(np.float32) for weights in checkpoints], axis=0).astype(
            np.float16
        )
        for name in checkpoints[0]
    }


def main(arguments: list[str] | None = None) -> int:
    """Average; the other files of the output are those of the first checkpoint."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.nano.average", description="Write the mean of checkpoints of one run."
    )
    parser.add_argument("checkpoints", type=Path, nargs="+", help="checkpoint directories")
    parser.add_argument("--output", type=Path, default=MODEL_DIRECTORY, help="directory that is written")
    options = parser.parse_args(arguments)
    weights = mean_weights(options.checkpoints)
    options.output.mkdir(parents=True, exist_ok=True)
    for path in options.checkpoints[0].iterdir():
        if path.name != WEIGHTS_FILE and options.output.resolve() != path.parent.resolve():
            shutil.copyfile(path, options.output / path.name)
    save_file(weights, options.output / WEIGHTS_FILE, metadata={"format": "pt"})
    print(f"wrote the mean of {len(options.checkpoints)} checkpoints to {options.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
