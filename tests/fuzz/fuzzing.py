"""Runs the fuzz targets: builds them, makes the seeds, says what came out; for `invoke fuzz` and tests."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SANITIZED = ["-g", "-O1", "-std=c11", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]


@dataclass(frozen=True)
class Outcome:
    """What a run did: how many inputs it tried, and libFuzzer's last words when it failed."""

    target: str
    inputs: int
    failure: str


def seeds(directory: Path) -> None:
    """The examples of the spec as a corpus, each behind the bytes that choose the reader."""
    from codegen.resolve import load_model

    model = load_model(ROOT / "spec" / "protocol.yaml")
    for choice, messages in ((b"\x00\x03", model.frames), (b"\x02\x03", model.commands)):
        for message in messages:
            for number, example in enumerate(message.examples):
                (directory / f"{message.name}-{number}").write_bytes(choice + example.data)
    handshake = b"".join(example.data for example in model.handshake.message.examples[:1])
    (directory / "handshake").write_bytes(b"\x01\x03" + handshake)


def python_command() -> list[str] | None:
    """How the Python target is started; None without atheris."""
    if importlib.util.find_spec("atheris") is None:
        return None
    return [sys.executable, str(HERE / "fuzz_readers.py")]


def header_command(directory: Path) -> list[str] | None:
    """How the C target is started, built into ``directory``; None without a clang that has libFuzzer."""
    if shutil.which("clang") is None:
        return None
    program = directory / "fuzz_header"
    source = [f"-I{ROOT / 'generated' / 'c'}", str(HERE / "fuzz_header.c"), "-o", str(program), "-lm"]
    built = subprocess.run(["clang", *SANITIZED, *source], capture_output=True, text=True)
    if built.returncode != 0 and "libclang_rt.fuzzer" in built.stderr:
        return None
    if built.returncode != 0:
        raise RuntimeError(built.stderr)
    return [str(program)]


def run(target: str, command: list[str], corpus: Path, seconds: int) -> Outcome:
    """Run one target for ``seconds``; crashes are left beside the corpus."""
    arguments = [
        f"-max_total_time={seconds}",
        "-max_len=4096",
        f"-artifact_prefix={corpus}/",
        "-print_final_stats=1",
    ]
    done = subprocess.run([*command, *arguments, str(corpus)], capture_output=True, text=True, cwd=ROOT)
    said = done.stdout + done.stderr
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said) or re.findall(r"Done (\d+)", said)
    return Outcome(target, int(counts[-1]) if counts else 0, "" if done.returncode == 0 else said[-3000:])


def native_engine(directory: Path, seconds: int) -> Outcome | str:
    """Mutated commands at the native engine's stdin, under AddressSanitizer and UBSan."""
    from engine.native.build import BuildError
    from tests.engine.checkpoints import RECIPES, write_checkpoint
    from tests.native.sanitized import build_sanitized, fuzz

    try:
        program = build_sanitized(directory)
    except BuildError as error:
        return f"native engine: skipped, {str(error)[:300]}"
    model = write_checkpoint(directory / "model", RECIPES["llama"])
    tried, failure = fuzz(program, model, int(time.time()), sys.maxsize, seconds)
    return Outcome("native engine", tried, failure)


def run_all(seconds: int) -> Iterator[Outcome | str]:
    """Every target that can run here, one after the other; for the others a line that says why not."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        directory = Path(name)
        for target, command in (
            ("Python readers", python_command()),
            ("C header", header_command(directory)),
        ):
            if command is None:
                needs = "atheris" if "Python" in target else "clang with libFuzzer"
                yield f"{target}: skipped, {needs} is not installed"
                continue
            corpus = directory / target.replace(" ", "-")
            corpus.mkdir()
            seeds(corpus)
            yield run(target, command, corpus, seconds)
        yield native_engine(directory / "native", seconds)
