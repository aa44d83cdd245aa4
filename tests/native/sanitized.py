"""The native engine under AddressSanitizer and UndefinedBehaviorSanitizer, with leaks reported.

python -m tests.native.sanitized              the whole conformance suite against it
python -m tests.native.sanitized --fuzz 60    mutated commands at its stdin for that many seconds
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from engine.native.build import SANITIZED, compile_program, sources
from generated import frames
from tests.engine import engines
from tests.engine.checkpoints import RECIPES, write_checkpoint
from tests.engine.engine_process import submit

FOUND = 99
"""Exit code of a program in which a sanitizer found something."""
OPTIONS = {
    "ASAN_OPTIONS": f"exitcode={FOUND}:detect_leaks=1",
    "UBSAN_OPTIONS": f"print_stacktrace=1:exitcode={FOUND}",
}
SCHEMA = b'{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x",1]}},"required":["a"]}'
GBNF = b'root ::= ("ab" | [c-e]+) "!"{1,3} rest\nrest ::= "\\n" | "x" rest\n'
COMMANDS = (
    submit(1, "the other 12", 3),
    submit(2, "<|user|>hour" * 8, 4, slot=1, temperature=0.8, top_p=0.9),
    submit(3, "é 日本 🎈", 3, slot=2, logprobs=5),
    submit(4, b"1 2 3 287", 2, slot=3, ids=1, pin=1),
    submit(5, "score", 0, slot=4, logprobs=32),
    submit(6, "json", 12, slot=5, extra=SCHEMA),
    submit(7, "gbnf", 12, slot=6, extra=GBNF),
    b"CANCEL 1\n",
    b"STOP 2\n",
    b"IMAGE 8 4 1 1\nabcd\n",
    b"\n \t\n",
)
"""What is mutated: every command, key and kind of payload."""


def build_sanitized(directory: Path) -> Path:
    """The engine, built with the sanitizers into `directory`; raises BuildError."""
    return compile_program(directory / "colibri-engine-sanitized", sources(), SANITIZED)


def mutated(choose: random.Random) -> bytes:
    """A run of commands in which some bytes were changed, dropped, doubled or swapped for special ones."""
    data = bytearray(b"".join(choose.choices(COMMANDS, k=choose.randint(1, 8))))
    for _ in range(choose.choice((0, 1, 1, 2, 4, 12))):
        place = choose.randrange(len(data))
        kind = choose.randrange(5)
        if kind == 0:
            data[place] = choose.randrange(256)
        elif kind == 1:
            del data[place : place + choose.randint(1, 6)]
        elif kind == 2:
            data[place:place] = data[place : place + choose.randint(1, 30)]
        elif kind == 3:
            data[place:place] = choose.choice((b" ", b"\n", b"9" * 20, b"-", b"=", b"\0", b"[", b'"', b"{"))
        else:
            data[place : place + 1] = choose.choice((b"0", b"1", b"4294967295", b"18446744073709551615"))
        if not data:
            data += b"\n"
    return bytes(data)


def inputs(seed: int) -> Iterator[bytes]:
    """Endless inputs; the same for the same seed."""
    for number in count():
        yield mutated(random.Random(seed * 1_000_003 + number))


def feed(program: Path, directory: Path, data: bytes) -> str:
    """Run the engine on an input; what was wrong, or nothing."""
    environment = {**os.environ, "SNAP": str(directory), "KV_SLOTS": "8", "SEED": "1", "OMP_NUM_THREADS": "1"}
    environment |= OPTIONS
    done = subprocess.run(
        [str(program), "0"], input=data, env=environment, capture_output=True, timeout=60, check=False
    )
    if done.returncode not in (0, 1):
        return f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-3000:]}"
    reader = frames.FrameReader()
    faults = [frame for frame in reader.feed(done.stdout) if isinstance(frame, frames.ProtocolFault)]
    ended = reader.eof()
    return f"malformed output: {faults or ended}" if faults or ended else ""


def build_plain(directory: Path) -> Path:
    """The engine without the vectors that valgrind may not know; raises BuildError."""
    return compile_program(directory / "colibri-engine-plain", sources(), ("-O1", "-g"))


def valgrind(program: Path, directory: Path, data: bytes, threads: int) -> str:
    """Run the engine on an input under valgrind; what was wrong, or nothing. Memory lost counts as wrong."""
    tool = ["valgrind", "--quiet", f"--error-exitcode={FOUND}", "--leak-check=full"]
    tool += ["--errors-for-leak-kinds=definite,possible"]
    environment = {**os.environ, "SNAP": str(directory), "KV_SLOTS": "8", "SEED": "1"}
    environment["OMP_NUM_THREADS"] = str(threads)
    done = subprocess.run(
        [*tool, str(program), "0"], input=data, env=environment, capture_output=True, timeout=300, check=False
    )
    words = done.stderr.decode(errors="replace")
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {words[-3000:]}"


def fuzz(program: Path, directory: Path, seed: int, rounds: int, seconds: float) -> tuple[int, str]:
    """(inputs tried, description of the first failure or nothing): at most `rounds` inputs and `seconds`."""
    end = time.monotonic() + seconds
    for number, data in enumerate(inputs(seed), start=1):
        wrong = feed(program, directory, data)
        if wrong:
            return number, f"{data!r}: {wrong}"
        if number == rounds or time.monotonic() > end:
            return number, ""
    raise AssertionError("inputs() never ends")


def main() -> int:
    """Run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fuzz", type=float, metavar="SECONDS", help="fuzz instead of the conformance suite")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the mutations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        program = build_sanitized(Path(scratch))
        if options.fuzz is None:
            os.environ["ASAN_OPTIONS"] = OPTIONS["ASAN_OPTIONS"]
            engines.ENGINES = {"sanitized": lambda: [str(program)]}
            suite = sorted(Path(engines.__file__).parent.glob("test_conformance*.py"))
            return int(pytest.main([*map(str, suite), "-p", "no:cacheprovider"]))
        directory = write_checkpoint(Path(scratch) / "model", RECIPES["llama"])
        tried, failure = fuzz(program, directory, options.seed, sys.maxsize, options.fuzz)
    print(f"seed {options.seed}: {tried} inputs, {failure or 'no fault'}")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
