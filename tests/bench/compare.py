"""Today's build beside another revision's, in one run, with one benchmark: ratios and their spread.

    python tests/bench/compare.py REVISION [--name gateway|wire] [--only PART] [--rounds 5] [--full]

``REVISION`` is anything git knows, or ``release`` for the last release: the newest tag, else the commit that
froze the last released model. Its files are put into a temporary directory; the benchmark, its client and its
engine are today's. Each round measures both builds one right after the other, the order turning from round to
round, so what a neighbour does to the machine hits both; a ratio is that of one round, and the table gives
its median, smallest and largest.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).resolve().parents[2]
BENCHES: Final = {"gateway": "bench_gateway.py", "wire": "bench_wire.py"}
WIRE_SECONDS: Final = {False: 4, True: 16}
RELEASE: Final = "release"
RELEASED_MODELS: Final = "spec/released"


@dataclass(frozen=True)
class Compared:
    """One row of a benchmark, measured in every round: today's numbers and the other revision's."""

    name: str
    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        """Today's over the other's, round by round; without rounds in which the other was nothing."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True) if theirs]


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout.strip()


def commit_of(revision: str) -> str:
    """The commit ``revision`` means; SystemExit when there is none."""
    if revision != RELEASE:
        return git("rev-parse", "--verify", f"{revision}^{{commit}}")
    tags = git("tag", "--sort=-creatordate").split()
    if tags:
        return git("rev-parse", "--verify", f"{tags[0]}^{{commit}}")
    frozen = git("log", "-1", "--format=%H", "--", RELEASED_MODELS)
    if not frozen:
        raise SystemExit("there is no release yet")
    return frozen


def unpack(commit: str, directory: Path) -> None:
    """The files of ``commit`` into ``directory``."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


def measure(build: Path, name: str, only: str, full: bool, directory: Path) -> dict[str, float]:
    """One run of a benchmark over the build in ``build``: its numbers by row."""
    result = directory / "result.json"
    command = [sys.executable, str(ROOT / "tests" / "bench" / BENCHES[name]), "--json", str(result)]
    if name == "wire":
        command += ["--seconds", str(WIRE_SECONDS[full])]
    else:
        command += ["--only", only, *([] if full else ["--quick"])]
    environment = {**os.environ, "BENCH_ROOT": str(build)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"the benchmark failed on {build}")
    rows: list[dict[str, Any]] = json.loads(result.read_text())["rows"]
    return {row["name"]: number(row) for row in rows}


def number(row: dict[str, Any]) -> float:
    """What a row measured: the gateway's rows have it as text, the wire's per second of CPU time."""
    return float(row["cpu"]) if "cpu" in row else float(row["value"].replace(",", ""))


def compare(other: Path, name: str, only: str, full: bool, rounds: int) -> list[Compared]:
    """``rounds`` times both builds in turn."""
    found: dict[str, Compared] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(rounds):
            builds = [ROOT, other] if turn % 2 == 0 else [other, ROOT]
            results = {build: measure(build, name, only, full, Path(scratch)) for build in builds}
            for row in results[ROOT].keys() & results[other].keys():
                compared = found.setdefault(row, Compared(row, [], []))
                compared.ours.append(results[ROOT][row])
                compared.theirs.append(results[other][row])
            order = list(results[ROOT])
    return sorted(found.values(), key=lambda compared: order.index(compared.name))


def show(rows: Sequence[Compared], title: str) -> None:
    table = Table(title=title)
    for heading in ("", "today", "then", "today / then", "spread"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        ratios = row.ratios
        table.add_row(
            row.name,
            f"{statistics.median(row.ours):,.3f}",
            f"{statistics.median(row.theirs):,.3f}",
            f"{statistics.median(ratios):.2f}" if ratios else "",
            f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "",
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Today's build beside another revision's.")
    parser.add_argument("revision", help=f"a git revision, or {RELEASE!r}")
    parser.add_argument("--name", choices=BENCHES, default="gateway")
    parser.add_argument("--only", default="", help="only the parts of the gateway's whose names contain this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="the whole work in every round, not a tenth")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    commit = commit_of(options.revision)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        unpack(commit, Path(directory))
        rows = compare(Path(directory), options.name, options.only, options.full, options.rounds)
    load = {"before": round(before, 2), "after": round(os.getloadavg()[0], 2)}
    show(
        rows,
        f"{options.name}: today beside {options.revision} ({commit[:10]}), {options.rounds} rounds; "
        f"load average {load['before']} before and {load['after']} after",
    )
    path = options.json or ROOT / ".bench" / f"{options.name}-against.json"
    path.parent.mkdir(exist_ok=True)
    rounds = [asdict(row) | {"ratios": row.ratios} for row in rows]
    path.write_text(json.dumps({"commit": commit, "load": load, "rows": rounds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
