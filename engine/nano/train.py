"""Train the embedded model from scratch: data, tokenizer and weights from one seed.

``python -m engine.nano.train --help``. Needs the extra ``train`` (torch) except for its help. The run is
resumable: the same command with the same work directory goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from engine.nano import MODEL_DIRECTORY


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.nano.train", description="Train the embedded model from scratch."
    )
    parser.add_argument(
        "--steps", type=int, default=4600, help="updates of the weights (default: %(default)s)"
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="rows of 512 tokens a step (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of data and weights (default: %(default)s)")
    parser.add_argument(
        "--muon-rate", type=float, default=5e-3, help="rate of the layer matrices (default: %(default)s)"
    )
    parser.add_argument(
        "--adam-rate",
        type=float,
        default=3e-3,
        help="rate of embedding, norms, biases (default: %(default)s)",
    )
    parser.add_argument(
        "--decay-share",
        type=float,
        default=0.5,
        help="last share of the steps in which the rate falls (default: %(default)s)",
    )
    parser.add_argument(
        "--processes",
        type=int,
        choices=(1, 2),
        default=2,
        help="they share each batch (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of each process (default: %(default)s)"
    )
    parser.add_argument(
        "--no-compile", action="store_true", help="run eagerly, for machines without a C++ compiler"
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("build/nano"),
        help="directory of rows and resumable state (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=MODEL_DIRECTORY,
        help="checkpoint directory written at the end (default: the committed one)",
    )
    parser.add_argument(
        "--save-seconds",
        type=float,
        default=120.0,
        help="seconds between saved states (default: %(default)s)",
    )
    parser.add_argument(
        "--stop-after",
        type=float,
        default=None,
        help="stop and save after this many seconds; start again to go on",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Prepare data, then train or go on; exit code 2 when torch is missing."""
    options = parse_arguments(arguments)
    if find_spec("torch") is None:
        print("training needs torch: pip install '.[train]'", file=sys.stderr)
        return 2
    from engine.nano.processes import run_in_processes
    from engine.nano.trainer import Settings, prepare, train

    settings = Settings(
        steps=options.steps,
        seed=options.seed,
        muon_rate=options.muon_rate,
        adam_rate=options.adam_rate,
        decay_share=options.decay_share,
        batch=options.batch,
        compiled=not options.no_compile,
        work=options.work,
        save_seconds=options.save_seconds,
        stop_after=options.stop_after,
    )
    settings.work.mkdir(parents=True, exist_ok=True)
    prepare(settings)
    job = partial(train, settings, options.output, options.threads)
    run_in_processes(options.processes, settings.work, job)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
