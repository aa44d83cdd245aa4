"""`invoke evidence`: runs what proves the claims, and writes docs/evidence.md.

    python -m tests.evidence [--only PART]

Every part's outcome is kept under .bench/evidence with its date and commit, so that one part can be run again
without the others; the page is written from what is there. The exit code is 0 when every part that ran held.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from . import claims
from .parts import PARTS, ROOT, Outcome

KEPT = ROOT / ".bench" / "evidence"
PAGE = ROOT / "docs" / "evidence.md"


def keep(name: str, outcome: Outcome, seconds: float) -> None:
    """Store what a part found."""
    KEPT.mkdir(parents=True, exist_ok=True)
    record = {
        "held": outcome.held,
        "text": outcome.text,
        "results": outcome.results,
        "seconds": round(seconds),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": claims.commit(),
    }
    (KEPT / f"{name}.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def page() -> str:
    """docs/evidence.md from all stored outcomes."""
    lines = [
        "# Evidence",
        "",
        "Written by `invoke evidence`; the claims and their tests are in `tests/evidence/claims.yaml`.",
        "A claim without a test, or with one that does not exist, is an error, and so is a mutant that",
        "survives without an explanation. A `+` behind a commit: the working tree held more than that.",
        "",
    ]
    for name, (title, _) in PARTS.items():
        lines += [f"## {title}", ""]
        stored = KEPT / f"{name}.json"
        if not stored.exists():
            lines += ["Not run yet.", ""]
            continue
        record = json.loads(stored.read_text(encoding="utf-8"))
        verdict = "held" if record["held"] else "**did not hold**"
        when = f"{record['date']} UTC, commit `{record['commit']}`, {record['seconds']} s"
        lines += [f"*{when}: {verdict}.*", "", record["text"], ""]
        if record["results"]:
            lines += claims_table(record["results"])
    return "\n".join(lines).rstrip() + "\n"


def claims_table(results: dict[str, str]) -> list[str]:
    lines = ["| claim | test | result |", "|---|---|---|"]
    for claim in claims.load():
        for number, test in enumerate(claim.tests):
            text = claim.text if number == 0 else ""
            lines.append(f"| {text} | `{test.removeprefix('tests/')}` | {results.get(test, 'not run')} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run what proves the claims.")
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    options = parser.parse_args()
    chosen = [] if options.page else [name for name in PARTS if options.only in name]
    if not chosen and not options.page:
        parser.error(f"no part matches {options.only!r}; there are {', '.join(PARTS)}")
    held = True
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, TextColumn("{task.fields[line]}"), console=console) as progress:
        for name in chosen:
            title, run = PARTS[name]
            task = progress.add_task(title, total=None, line="")
            start = time.monotonic()
            outcome = run(lambda line, task=task: progress.update(task, line=line[:70]))
            keep(name, outcome, time.monotonic() - start)
            held = held and outcome.held
            progress.update(task, total=1, completed=1, line="held" if outcome.held else "DID NOT HOLD")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
