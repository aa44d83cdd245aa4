"""Checks an engine of yours against the wire contract:

    python -m tests.engine.check PATH [--model DIR] [--can WORD ...] [--seconds N]

PATH is what `coli serve --engine` takes: a program, a Python file, `reference` or `native`. What is asked for
is what the model's family promises, or what `--can` names. Prints a line for each promise; the exit code is 0
when all held, 1 when one did not, 2 when there is nothing to check.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from generated.families import CAPABILITIES
from server.engines import EngineError, engine_command
from server.model import ModelError, embedded_model, load_model
from tests.engine import contract, engine_process

LOG_LINES = 5


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.check", description="Check an engine.")
    parser.add_argument("path", metavar="PATH", help="a program, a Python file, `reference` or `native`")
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="model directory (default: the embedded model)"
    )
    parser.add_argument(
        "--can",
        nargs="*",
        choices=sorted(CAPABILITIES),
        metavar="WORD",
        help=f"what the engine can do, of {', '.join(sorted(CAPABILITIES))} (default: what the family can)",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="longest silence of the engine (default: 60)"
    )
    options = parser.parse_args(arguments)
    engine_process.DEADLINE_SECONDS = options.seconds
    directory = embedded_model() if options.model is None else options.model.absolute()
    try:
        command = engine_command(options.path)
        family = load_model(str(directory), model_id=None, arch="auto", context=None).family
    except (EngineError, ModelError) as error:
        print(error, file=sys.stderr)
        return 2
    can = family.can if options.can is None else frozenset(options.can)
    return report(contract.outcomes(command, directory, can))


def report(outcomes: Iterable[contract.Outcome]) -> int:
    """Prints the table as it grows; returns the exit code."""
    held = broken = left = 0
    for outcome in outcomes:
        name = f"{outcome.check.name:<22}"
        if outcome.missing is not None:
            left += 1
            print(f"-     {name}not asked for: needs {outcome.missing}", flush=True)
        elif outcome.fault is None:
            held += 1
            print(f"ok    {name}{outcome.check.run.__doc__}", flush=True)
        else:
            broken += 1
            print(f"FAIL  {name}{outcome.check.run.__doc__}\n      {outcome.fault}", flush=True)
            for line in outcome.log.splitlines()[-LOG_LINES:]:
                print(f"      log: {line}", flush=True)
    print(f"{held} held, {broken} did not, {left} not asked for")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
