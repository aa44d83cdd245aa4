"""The parts of the evidence: a command, and what its output says in a few lines of Markdown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from . import claims

ROOT = Path(__file__).parents[2]
EXPLAINED = Path(__file__).with_name("survivors.yaml")
SCHEMATHESIS_SECONDS = 45
FUZZ_SECONDS = 20
MUTANTS_OF_EACH = 4
ROOMS = ("codegen", "generated", "server", "engine/loop.py", "engine/reference")
COVERED_BRANCHES = {"codegen": 95.0, "server": 95.0, "engine/loop.py": 95.0}
"""Least share of branches, in percent, of the rooms that make a promise of it."""

Progress = Callable[[str], None]


@dataclass
class Outcome:
    """Whether a part held, and what is to be written about it."""

    held: bool
    text: str
    results: dict[str, str] = field(default_factory=dict)
    """Result of each test a claim names: `passed (12)`, `failed (1 of 12)`, `not run`."""


def run(command: list[str], progress: Progress, seconds: float = 1800, **environment: str) -> tuple[int, str]:
    """Run a command at the top of the checkout; each line of its output goes to ``progress`` as it comes."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        progress(line.strip())
    return process.wait(seconds), "".join(lines)


def run_claims(progress: Progress, only: set[str] | None = None) -> Outcome:
    """The tests the claims name, each once (with ``only``: those of them); one that was skipped whole proves
    nothing and does not hold.
    """
    table = claims.load()
    wrong = claims.faults(table)
    if wrong:
        return Outcome(False, "\n".join(f"* {fault}" for fault in wrong))
    tests = sorted({test for claim in table for test in claim.tests if only is None or test in only})
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        run([*claims.command(tests, report), "-v"], progress)
        cases = [
            (f"{claims.file_of(case.attrib)}::{case.get('name')}", {child.tag for child in case})
            for case in ElementTree.parse(report).iter("testcase")
        ]
    results = {}
    for test in tests:
        kinds = [kind for node, kind in cases if claims.belongs(node, test)]
        bad = sum(bool(kind & {"failure", "error"}) for kind in kinds)
        skipped = sum("skipped" in kind for kind in kinds)
        passed = len(kinds) - bad - skipped
        if bad or not passed:
            results[test] = f"**failed** ({bad} of {len(kinds)})" if bad else "**not run**"
        else:
            results[test] = f"passed ({passed})" + (f", {skipped} skipped" if skipped else "")
    held = not any(result.startswith("**") for result in results.values())
    return Outcome(held, f"{len(table)} claims rest on {len(tests)} files and functions.", results)


def run_coverage(progress: Progress) -> Outcome:
    """Branch coverage of the whole suite, processes it starts included, by room."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "coverage.json"
        config = "tests/evidence/coverage.ini"
        command = [
            *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"),
            *("--cov", f"--cov-config={config}", f"--cov-report=json:{report}", "-v"),
            *("--deselect", "tests/docs/test_pages.py::test_tutorial_from_top_to_bottom"),
        ]
        code, printed = run(command, progress, COVERAGE_FILE=str(Path(directory) / "data"))
        files = json.loads(report.read_text())["files"]
    lines = ["| room | lines | branches |", "|---|---:|---:|"]
    held = code == 0
    for room in ROOMS:
        summaries = [data["summary"] for path, data in files.items() if path.startswith(room)]
        counts = {
            name: sum(summary[name] for summary in summaries)
            for name in ("covered_lines", "num_statements", "covered_branches", "num_branches")
        }
        share = [
            100 * counts[covered] / max(counts[whole], 1)
            for covered, whole in (("covered_lines", "num_statements"), ("covered_branches", "num_branches"))
        ]
        lines.append(f"| `{room}` | {share[0]:.1f} % | {share[1]:.1f} % |")
        held = held and share[1] >= COVERED_BRANCHES.get(room, 0.0)
    last = printed.strip().splitlines()[-1].strip("= ")
    lines += ["", f"The suite under measurement: {last}."]
    return Outcome(held, "\n".join(lines))


def run_schemathesis(progress: Progress) -> Outcome:
    """Three seeds, all phases, the stateful one too."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "tests/openapi"]
    code, printed = run(command, progress, SCHEMATHESIS_SECONDS=str(SCHEMATHESIS_SECONDS))
    last = printed.strip().splitlines()[-1].strip("= ")
    text = (
        f"{SCHEMATHESIS_SECONDS} s for each of three seeds, every check on, the stateful phase too: {last}."
    )
    return Outcome(code == 0, text)


def run_fuzz(progress: Progress) -> Outcome:
    """Every parser of bytes, Python and C."""
    command = [sys.executable, "-m", "invoke", "fuzz", "--seconds", str(FUZZ_SECONDS)]
    code, printed = run(command, progress)
    return Outcome(code == 0, "\n".join(f"* {line}" for line in printed.strip().splitlines() if ":" in line))


def run_mutation(progress: Progress) -> Outcome:
    """A sample of mutants; each survivor must be explained in survivors.yaml."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "mutants.json"
        command = [sys.executable, "-m", "tests.evidence.mutation", "--each", str(MUTANTS_OF_EACH)]
        code, printed = run([*command, "--json", str(report)], progress)
        if code:
            return Outcome(False, printed.strip())
        outcomes = json.loads(report.read_text())
    return mutation_outcome(outcomes)


def mutation_outcome(outcomes: list[dict]) -> Outcome:
    explained = yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or {}
    modules = sorted({outcome["module"] for outcome in outcomes})
    lines = ["| module | mutants | killed |", "|---|---:|---:|"]
    for module in modules:
        of_module = [outcome for outcome in outcomes if outcome["module"] == module]
        killed = sum(not outcome["survived"] for outcome in of_module)
        lines.append(f"| `{module}` | {len(of_module)} | {killed} |")
    lines.append("")
    open_questions = 0
    for outcome in outcomes:
        if outcome["survived"]:
            key = f"{outcome['module']}: {outcome['was']} -> {outcome['became']}"
            reason = explained.get(key)
            open_questions += reason is None
            change = f"`{outcome['was']}` → `{outcome['became']}`"
            lines.append(f"* survived in `{outcome['module']}`: {change}: {reason or '**not explained**'}")
    return Outcome(open_questions == 0, "\n".join(lines))


def run_bench(progress: Progress) -> Outcome:
    """The benchmark of the wire; the others are explained in performance.md."""
    code, printed = run([sys.executable, "tests/bench/bench_wire.py", "--seconds", "8"], progress)
    return Outcome(code == 0, f"```text\n{printed.strip()}\n```")


def run_wheel(progress: Progress) -> Outcome:
    """Build, install, use, outside the checkout."""
    code, printed = run([sys.executable, "-m", "tests.evidence.check_wheel"], progress)
    return Outcome(code == 0, "\n".join(f"* {line}" for line in printed.strip().splitlines()))


PARTS: dict[str, tuple[str, Callable[[Progress], Outcome]]] = {
    "claims": ("Claims", run_claims),
    "schemathesis": ("Requests made from the OpenAPI document", run_schemathesis),
    "fuzz": ("Fuzzing", run_fuzz),
    "mutation": ("Mutation testing of a sample", run_mutation),
    "bench": ("Benchmark of the wire", run_bench),
    "wheel": ("The wheel outside the checkout", run_wheel),
    "coverage": ("Coverage", run_coverage),
}
