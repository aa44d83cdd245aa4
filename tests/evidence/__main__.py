"""`invoke evidence`: runs what proves the claims, and writes docs/evidence.md.

    python -m tests.evidence [--only PART] [--again] [--page]

Every part's outcome is kept under .bench/evidence with its date and commit, so that one part can be run again
without the others; the page is written from what is there. The exit code is 0 when every part that ran held.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from . import claims
from .parts import PARTS, ROOT, Outcome, run_claims

KEPT = ROOT / ".bench" / "evidence"
PAGE = ROOT / "docs" / "evidence.md"


def keep(name: str, outcome: Outcome, seconds: float) -> None:
    """Store what a part found; results of single tests are kept until the test runs again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    date, commit = datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), claims.commit()
    results = {test: (result, date, commit) for test, result in outcome.results.items()}
    results = {**stored(name).get("results", {}), **results}
    record = {
        "held": outcome.held and not any(result[0].startswith("**") for result in results.values()),
        "text": outcome.text,
        "results": results,
        "seconds": round(seconds),
        "date": date,
        "commit": commit,
    }
    (KEPT / f"{name}.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def stored(name: str) -> dict[str, Any]:
    """What is kept of a part; empty when it never ran."""
    path = KEPT / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def not_passed() -> set[str]:
    """The tests of the claims that are not known to pass."""
    results = stored("claims").get("results", {})
    tests = {test for claim in claims.load() for test in claim.tests}
    return {test for test in tests if not results.get(test, [""])[0].startswith("passed")}


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
        record = stored(name)
        if not record:
            lines += ["Not run yet.", ""]
            continue
        verdict = "held" if record["held"] else "**did not hold**"
        when = f"{record['date']} UTC, commit `{record['commit']}`, {record['seconds']} s"
        lines += [f"*{when}: {verdict}.*", "", record["text"], ""]
        if record["results"]:
            lines += claims_table(record["results"])
    return "\n".join(lines).rstrip() + "\n"


def claims_table(results: dict[str, list[str]]) -> list[str]:
    """A row for each test of each claim."""
    lines = ["| claim | test | result | date, commit |", "|---|---|---|---|"]
    for claim in claims.load():
        for number, test in enumerate(claim.tests):
            text = claim.text if number == 0 else ""
            result, date, commit = results.get(test, ("**not run**", "", ""))
            when = f"{date} `{commit}`" if date else ""
            lines.append(f"| {text} | `{test.removeprefix('tests/')}` | {result} | {when} |")
    return [*lines, ""]


def shown(progress: Progress, task: TaskID, line: str) -> None:
    """A part's last line of output beside its bar."""
    progress.update(task, line=line[:70])


def main() -> None:
    parser = argparse.ArgumentParser(description="Run what proves the claims.")
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--again", action="store_true", help="of the claims only what did not pass yet")
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
            show = partial(shown, progress, task)
            again = options.again and name == "claims"
            outcome = run_claims(show, not_passed()) if again else run(show)
            keep(name, outcome, time.monotonic() - start)
            held = held and outcome.held
            progress.update(task, total=1, completed=1, line="held" if outcome.held else "DID NOT HOLD")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
