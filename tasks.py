"""Everyday commands. `invoke --list` names them, `invoke --help TASK` explains one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

ROOT = Path(__file__).parent
PYTHON = sys.executable
BIN = Path(PYTHON).parent
CODE = "codegen generated engine server tests tasks.py"
TYPE_CHECK = f"{BIN}/mypy codegen generated engine server"


def environment() -> dict[str, str]:
    """Ours, and Python may keep what it compiled: the tests start hundreds of processes of one code."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(c: Context, command: str) -> None:
    """Run ``command`` at the top of the checkout and stop with its exit code when it fails.

    It writes straight to our own streams, so that what it says keeps its order.
    """
    done = subprocess.run(shlex.split(command), cwd=ROOT, env=environment())
    if done.returncode:
        raise Exit(code=done.returncode)


@contextmanager
def meanwhile(command: str) -> Iterator[None]:
    """Run ``command`` beside the body; what it says comes after the body's words, and its failure is ours.

    When the body fails before it has ended, it is ended and says nothing.
    """
    words = shlex.split(command)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(words, cwd=ROOT, env=environment(), stdout=said, stderr=subprocess.STDOUT)
        try:
            yield
            process.wait()
        finally:
            ended = process.poll() is not None
            process.kill()
            process.wait()
            if ended:
                said.seek(0)
                print(f"{Path(words[0]).name}: {said.read().decode(errors='replace').strip()}", flush=True)
    if process.returncode:
        raise Exit(code=process.returncode)


@task
def generate(c: Context) -> None:
    """Bring generated/ and the generated tables of docs/ up to date with spec/protocol.yaml."""
    run(c, f"{PYTHON} -m codegen generate")


@task
def check(c: Context) -> None:
    """Fail, with a diff, when anything generated is not what the spec says."""
    run(c, f"{PYTHON} -m codegen check")


def quick_checks(c: Context) -> None:
    """What is said within seconds: lint of the spec and of the code."""
    run(c, f"{PYTHON} -m codegen lint")
    run(c, f"{BIN}/ruff check {CODE}")
    run(c, f"{BIN}/ruff format --check {CODE}")


@task
def lint(c: Context) -> None:
    """Lint the spec and the code, and check the types."""
    with meanwhile(TYPE_CHECK):
        quick_checks(c)


@task(help={"against": "a released model or a git revision; the last release when absent"})
def diff(c: Context, against: str = "") -> None:
    """Say what today's spec changes for those who rely on the last release."""
    run(c, f"{PYTHON} -m codegen diff" + (f" --against {against}" if against else ""))


@task(
    name="test",
    help={
        "all": "lint, types and drift first",
        "only": "what to hand to pytest instead of the whole suite",
    },
)
def run_tests(c: Context, all: bool = False, only: str = "") -> None:
    """Run the test suite, in three processes on two cores: many a test waits for another process."""
    with ExitStack() as beside:
        if all:
            beside.enter_context(meanwhile(TYPE_CHECK))
            quick_checks(c)
            check(c)
        run(c, f"{BIN}/pytest -n 3 --dist loadgroup {only}".strip())


@task
def generate_and_test(c: Context) -> None:
    """Generate, then everything `make test` runs: the command after an edit of the spec."""
    generate(c)
    run_tests(c, all=True)


@task
def serve(c: Context) -> None:
    """Serve the embedded model on http://127.0.0.1:8000."""
    run(c, f"{BIN}/coli serve")


@task
def demo(c: Context) -> None:
    """Ask the embedded model two questions through the whole stack."""
    run(c, f"{BIN}/coli demo")


@task(
    help={
        "name": "only benchmarks whose file name contains this",
        "against": "a git revision, or `release` for the last one: today's gateway and wire beside it",
        "only": "with --against: only the parts of the gateway's benchmark whose names contain this",
        "rounds": "with --against: how often both are measured",
    }
)
def bench(c: Context, name: str = "", against: str = "", only: str = "", rounds: int = 5) -> None:
    """Measure; prints tables and stores JSON under .bench/."""
    if against:
        for compared in [one for one in ("gateway", "wire") if name in one]:
            options = f"--name {compared} --rounds {rounds} --only {shlex.quote(only)}"
            run(c, f"{PYTHON} tests/bench/compare.py {shlex.quote(against)} {options}")
        return
    found = sorted(path for path in (ROOT / "tests" / "bench").glob("bench_*.py") if name in path.name)
    if not found:
        raise Exit(f"no benchmark matches {name!r}", code=2)
    for path in found:
        run(c, f"{PYTHON} {path.relative_to(ROOT)}")
    if not name:
        run(c, f"{BIN}/pytest -m timed tests/server")


@task(help={"seconds": "how long each target runs"})
def fuzz(c: Context, seconds: int = 60) -> None:
    """Fuzz every parser of bytes: the Python readers, and the C header under the sanitizers."""
    sys.path.insert(0, str(ROOT))
    from tests.fuzz.fuzzing import Outcome, run_all

    failed = False
    for outcome in run_all(seconds):
        if isinstance(outcome, Outcome):
            failed = failed or bool(outcome.failure)
            print(
                f"{outcome.target}: {outcome.inputs:,} inputs in {seconds} s, {outcome.failure or 'no fault'}"
            )
        else:
            print(outcome)
    if failed:
        raise Exit(code=1)


@task(
    help={
        "seconds": "how long the mixed traffic goes on",
        "streams": "short streams afterwards, none of which may be cancelled",
    }
)
def soak(c: Context, seconds: int = 300, streams: int = 20_000) -> None:
    """Put a gateway under mixed traffic for minutes: nothing may leak, every counter must add up."""
    run(c, f"{PYTHON} -m tests.soak.soak --seconds {seconds} --streams {streams}")


@task
def docs(c: Context) -> None:
    """Build the documentation into build/site; a broken link or anchor is an error."""
    if not (BIN / "mkdocs").exists():
        raise Exit("mkdocs is missing: pip install -e '.[docs]'", code=2)
    run(c, f"{BIN}/mkdocs build --quiet --strict --config-file docs/mkdocs.yml")


@task(help={"only": "the parts whose name contains this; without it docs/evidence.md is written"})
def evidence(c: Context, only: str = "") -> None:
    """Run what proves the claims of the README and write docs/evidence.md."""
    run(c, f"{PYTHON} -m tests.evidence" + (f" --only {only}" if only else ""))


@task
def build_native(c: Context) -> None:
    """Build the native engine with the C compiler of this machine; `coli serve` then prefers it."""
    run(c, f"{PYTHON} -m engine.native.build")


@task(help={"steps": "updates of the weights; left out, as many as the committed model took"})
def train_nano(c: Context, steps: int = 0) -> None:
    """Make the embedded model again from its seed (needs the extra `train`)."""
    run(c, f"{PYTHON} -m engine.nano.train" + (f" --steps {steps}" if steps else ""))


@task(help={"version": "the version to freeze, for example 1.0.0"})
def release(c: Context, version: str) -> None:
    """Freeze the resolved model as the baseline later changes are judged by."""
    run(c, f"{PYTHON} -m codegen release {version}")


@task
def clean(c: Context) -> None:
    """Remove caches and build products; keeps .venv."""
    for name in ("build", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".bench"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for cache in ROOT.rglob("__pycache__"):
        if ".venv" not in cache.parts:
            shutil.rmtree(cache, ignore_errors=True)


os.environ.setdefault("PYTHONHASHSEED", "0")
