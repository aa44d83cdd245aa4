"""Measures the native engine beside llama.cpp: same weights, same threads, greedy decoding, one run.

    python tests/bench/bench_llama_cpp.py [--llama-python PATH] [--threads 1] [--tokens 200] [--rounds 7]

`--llama-python` names a Python with llama-cpp-python and gguf (`pip install llama-cpp-python gguf`; a build
from source uses this processor's instructions); this one when absent; without either the benchmark says so
and ends. The embedded model is converted to GGUF by llama_cpp_rounds.py, in 32 bits and in the 16 bits it
is stored in. First the greedy tokens of both are compared, then rounds alternate and the best of each
counts, so that a busy machine hurts both alike. The native engine is measured as a process, from SUBMIT
over its pipes to the last DONE with every frame read and checked; llama.cpp inside the process, from the
first call to the last token.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from engine.native.build import build  # noqa: E402
from tests.bench.bench_engines import wide_copy  # noqa: E402
from tests.bench.bench_reference import PROMPT_TOKENS, EngineRounds, endless_copy  # noqa: E402
from tests.engine.engine_process import EngineProcess  # noqa: E402

BATCHES = (1, 2, 4, 8)
ROUNDS_SCRIPT = Path(__file__).with_name("llama_cpp_rounds.py")


class LlamaCpp:
    """llama.cpp in a process of its own."""

    def __init__(self, python: str, directory: Path, threads: int, scratch: Path) -> None:
        arguments = (str(directory), str(threads), str(max(BATCHES)), str(scratch))
        self._process = subprocess.Popen(
            [python, str(ROUNDS_SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first == "ready\n", f"llama.cpp did not start: {first}"

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def generate(self, batch: int, tokens: int) -> tuple[float, list[int]]:
        """(tokens/s of all sequences together, tokens of the first)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{batch} {PROMPT_TOKENS} {tokens}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return batch * tokens / answer["seconds"], answer["tokens"]


def native_tokens(engine: EngineProcess, tokens: int) -> list[int]:
    """The greedy tokens after the prompt of the rounds: the most likely ones of each position."""
    prompt = " ".join(str(10 + index) for index in range(PROMPT_TOKENS)).encode()
    frames = engine.ask(1 << 40, prompt, tokens, ids=1, logprobs=1)
    return [frame.tokens[0] for frame in frames if frame.KIND == "DATA"]


def agreement(ours: list[int], theirs: list[int]) -> int:
    """How many tokens are equal before the first that differs."""
    pairs = zip(ours, theirs, strict=True)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), len(ours))


def why_absent(python: str) -> str:
    """Why llama.cpp cannot be measured with this Python; nothing when it can."""
    done = subprocess.run(
        [python, "-c", "import gguf, llama_cpp"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr.strip().split("\n")[-1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--llama-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    absent = why_absent(options.llama_python)
    if absent:
        print(f"skipped: {options.llama_python} has no llama-cpp-python and gguf ({absent})")
        return
    model = ROOT / "engine" / "nano" / "model"
    settings = {"KV_SLOTS": str(max(BATCHES)), "OMP_NUM_THREADS": str(options.threads)}
    best: dict[tuple[str, str, int], float] = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        rounds: dict[str, tuple[EngineRounds, LlamaCpp]] = {}
        for precision, copy in (("F32", wide_copy), ("F16", endless_copy)):
            place = Path(scratch) / precision
            place.mkdir()
            directory = copy(model, place)
            engine = stack.enter_context(EngineProcess([str(build())], directory, settings))
            other = stack.enter_context(LlamaCpp(options.llama_python, directory, options.threads, place))
            equal = agreement(native_tokens(engine, options.tokens), other.generate(1, options.tokens)[1])
            print(f"{precision}: {equal} of {options.tokens} greedy tokens equal before one differs")
            assert precision != "F32" or equal == options.tokens, "not the same model"
            rounds[precision] = EngineRounds(engine, options.tokens), other
        for _ in range(options.rounds):
            for batch in BATCHES:
                for precision, (ours, theirs) in rounds.items():
                    for name, speed in (
                        ("native engine", ours.measure(batch)),
                        ("llama.cpp", theirs.generate(batch, options.tokens)[0]),
                    ):
                        key = (precision, name, batch)
                        best[key] = max(best.get(key, 0.0), speed)
    print(f"greedy decoding, {options.threads} thread(s), tokens/s")
    print("| weights | engine | " + " | ".join(f"batch {batch}" for batch in BATCHES) + " |")
    print("|---" * 2 + "|---:" * len(BATCHES) + "|")
    for precision in rounds:
        for name in ("native engine", "llama.cpp"):
            cells = " | ".join(f"{best[precision, name, batch]:,.0f}" for batch in BATCHES)
            print(f"| {precision} | {name} | {cells} |")
        ratios = " | ".join(
            f"{best[precision, 'native engine', batch] / best[precision, 'llama.cpp', batch]:.2f}"
            for batch in BATCHES
        )
        print(f"| {precision} | native / llama.cpp | {ratios} |")


if __name__ == "__main__":
    main()
