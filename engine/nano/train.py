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
from typing import Final

from engine.nano import MODEL_DIRECTORY

_OPTIONS: Final = (
    ("--steps", int, 11800, "updates of the weights"),
    ("--batch", int, 8, "rows of 512 tokens a step"),
    ("--seed", int, 1, "seed of data and weights"),
    ("--muon-rate", float, 4e-3, "rate of the layer matrices"),
    ("--adam-rate", float, 3e-3, "rate of embedding, norms, biases"),
    (
        "--decay-share",
        float,
        0.5,
        "last share of the steps before the second fall, for the first one",
    ),
    ("--again-share", float, 0.15, "last share of the steps, for a second fall; the model is their mean"),
    ("--threads", int, 1, "threads of each process"),
    ("--work", Path, Path("build/nano"), "directory of rows and resumable state"),
    ("--output", Path, MODEL_DIRECTORY, "checkpoint directory written at the end"),
    ("--start-from", Path, None, "checkpoint directory whose weights a new run starts from"),
    ("--save-seconds", float, 120.0, "seconds between saved states"),
    ("--stop-after", float, None, "stop and save after this many seconds; start again to go on"),
)
"""Flag, type, default and meaning."""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.nano.train",
        description="Train the embedded model from scratch.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for flag, kind, default, meaning in _OPTIONS:
        parser.add_argument(flag, type=kind, default=default, help=meaning)
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2, help="they share each batch")
    parser.add_argument("--no-compile", action="store_true", help="run eagerly, without a C++ compiler")
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
        again_share=options.again_share,
        batch=options.batch,
        compiled=not options.no_compile,
        work=options.work,
        start_from=options.start_from,
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
