"""Export the mean of several saved states of one run (needs torch).

``python -m engine.nano.average STATE... --work DIR --output DIR``. While the learning rate is still high,
the mean of the last states is better than any of them: it stands in for the fall of the rate when a run has
to be cut short.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from engine.nano import MODEL_DIRECTORY
from engine.nano.torch_model import GlmModel, Shape
from engine.nano.trainer import export_checkpoint


def mean_model(paths: Sequence[Path]) -> tuple[GlmModel, list[int]]:
    """The model with the mean of all weights, and the steps the states were saved at."""
    states = [torch.load(path, weights_only=True) for path in paths]
    model = GlmModel(Shape())
    names = states[0]["model"].keys()
    model.load_state_dict(
        {name: sum(state["model"][name] for state in states) / len(states) for name in names}
    )
    return model, [int(state["step"]) for state in states]


def main(arguments: list[str] | None = None) -> int:
    """Average and export."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.nano.average", description="Average saved states."
    )
    parser.add_argument("states", type=Path, nargs="+", help="copies of state.pt")
    parser.add_argument("--work", type=Path, default=Path("build/nano"), help="directory with the tokenizer")
    parser.add_argument("--output", type=Path, default=MODEL_DIRECTORY, help="checkpoint directory")
    options = parser.parse_args(arguments)
    model, steps = mean_model(options.states)
    export_checkpoint(model, options.work, options.output)
    print(f"wrote the mean of steps {steps} to {options.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
