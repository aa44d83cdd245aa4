"""Measures the native engine beside the reference engine: greedy decode tokens/s of the real processes.

    python -m tests.bench.bench_engines [--model DIR] [--threads 1] [--tokens 200] [--large]

Rounds of all parties alternate and the best round of each counts, so that a busy machine hurts all alike; on
a very busy one, tokens per second of the engine's processor time are steadier than those of the clock. All
decode the same 17 prompt tokens and never end early. The native engine runs twice: with the weights as the
checkpoint stores them (16 bits for the embedded model) and with the same weights written out as 32 bits.
Beneath the table is what the arithmetic allows: no batch can pass the most multiply-adds of a thread, however
little memory it reads. `--large` adds a randomly initialised model of 50 million parameters and what a plain
read of memory makes possible there: one token reads every weight once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from engine.native.build import build, compile_program  # noqa: E402
from engine.reference.checkpoint import Checkpoint  # noqa: E402
from tests.bench.bench_reference import PROMPT_TOKENS, EngineRounds, endless_copy  # noqa: E402
from tests.engine.checkpoints import RECIPES, tensor_shapes, write_checkpoint, write_safetensors  # noqa: E402
from tests.engine.engine_process import EngineProcess  # noqa: E402

BATCHES = (1, 2, 4, 8)
ROUNDS = 5
REFERENCE = [sys.executable, "-m", "engine.reference"]
LARGE = {
    "model_type": "llama",
    "hidden_size": 640,
    "intermediate_size": 1760,
    "num_hidden_layers": 10,
    "num_attention_heads": 10,
    "num_key_value_heads": 5,
    "head_dim": 64,
    "vocab_size": 2048,
    "eos_token_id": [],
}
"""About 50 million parameters, nearly all of them read for each token."""


def wide_copy(directory: Path, target: Path) -> Path:
    """A model that never ends its turn, its weights written out as 32-bit floats."""
    endless_copy(directory, target)
    (target / "model.safetensors").unlink()
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    checkpoint = Checkpoint(directory)
    shapes = tensor_shapes({"attention_bias": False, "tie_word_embeddings": False, **config})
    tensors = {name: checkpoint.read(name, *shape) for name, shape in shapes.items()}
    write_safetensors(target / "model.safetensors", tensors, "F32")
    return target


def large_model(target: Path, dtype: str) -> tuple[Path, int]:
    """A random model and its number of parameters."""
    recipe = replace(RECIPES["llama"], config=LARGE, dtype=dtype, shards=1)
    write_checkpoint(target, recipe)
    shapes = tensor_shapes({**json.loads((target / "config.json").read_text(encoding="utf-8"))})
    return target, sum(int(np.prod(shape)) for shape in shapes.values())


def read_speed(size: int) -> float:
    """Bytes/s of a plain loop of one thread over `size` bytes of memory, best of five."""
    data = np.ones(size // 8, dtype=np.uint64)
    best = 0.0
    for _ in range(5):
        start = perf_counter()
        np.bitwise_or.reduce(data)
        best = max(best, data.nbytes / (perf_counter() - start))
    return best


def multiply_add_speed(scratch: Path) -> float:
    """Multiply-adds/s of 32-bit floats that one thread can do without touching memory."""
    program = compile_program(scratch / "multiply_adds", [Path(__file__).with_name("multiply_adds.c")])
    return float(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


def multiply_adds(directory: Path, positions: float) -> int:
    """Multiply-adds of one token: one for each weight of a matrix, and attention over `positions`."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    shapes = tensor_shapes({"attention_bias": False, "tie_word_embeddings": False, **config})
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2}
    embedding = matrices.pop("model.embed_tokens.weight")
    if config.get("tie_word_embeddings"):
        matrices["head"] = embedding
    heads = config["num_hidden_layers"] * config["num_attention_heads"] * config["head_dim"]
    return sum(int(np.prod(shape)) for shape in matrices.values()) + int(2 * heads * positions)


def processor_seconds(pid: int) -> dict[str, float]:
    """Processor time of each thread of a process so far; empty where /proc does not tell."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            found[thread.parent.name] = int(thread.read_text(encoding="ascii").split()[0]) / 1e9
    return found


class Party:
    """One engine with its best round per batch size."""

    def __init__(self, name: str, engine: EngineProcess, tokens: int) -> None:
        self.name = name
        self.best: dict[int, float] = {}
        """Tokens per second."""
        self.lean: dict[int, float] = {}
        """Tokens per second of processor time of the engine's busiest thread."""
        self._pid = engine.process.pid
        self._tokens = tokens
        self._rounds = EngineRounds(engine, tokens)

    def measure(self, batch: int) -> None:
        """One round."""
        before = processor_seconds(self._pid)
        self.best[batch] = max(self.best.get(batch, 0.0), self._rounds.measure(batch))
        after = processor_seconds(self._pid)
        used = max((seconds - before.get(thread, 0.0) for thread, seconds in after.items()), default=0.0)
        if used > 0:
            self.lean[batch] = max(self.lean.get(batch, 0.0), batch * self._tokens / used)


def run_rounds(programs: dict[str, tuple[list[str], Path]], threads: int, tokens: int) -> list[Party]:
    """All parties, measured in alternation."""
    settings = {"KV_SLOTS": str(max(BATCHES)), "OMP_NUM_THREADS": str(threads or "")}
    with ExitStack() as stack:
        parties = [
            Party(name, stack.enter_context(EngineProcess(command, directory, settings)), tokens)
            for name, (command, directory) in programs.items()
        ]
        for _ in range(ROUNDS):
            for batch in BATCHES:
                for party in parties:
                    party.measure(batch)
    return parties


def print_table(parties: list[Party]) -> None:
    """Tokens per second of the clock and of the processor, and how they relate at batch 1 and 8."""
    headings = " | ".join(f"batch {batch}" for batch in BATCHES)
    print(f"| engine | {headings} | batch 1 vs first | 8 vs 1 |")
    print("|---" * (len(BATCHES) + 3) + "|")
    for party in parties:
        for unit, first, speeds in (
            ("s", parties[0].best, party.best),
            ("processor s", parties[0].lean, party.lean),
        ):
            if speeds:
                cells = " | ".join(f"{speeds[batch]:,.0f}" for batch in BATCHES)
                ratios = f"{speeds[1] / first[1]:.2f} | {speeds[8] / speeds[1]:.2f}"
                print(f"| {party.name}, tokens/{unit} | {cells} | {ratios} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=ROOT / "engine" / "nano" / "model")
    parser.add_argument("--threads", type=int, default=1, help="0: what each engine chooses by itself")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--large", action="store_true", help="the model of 50 million parameters too")
    options = parser.parse_args()
    native = [str(build())]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for name in ("stored", "wide"):
            (place / name).mkdir()
        stored = endless_copy(options.model, place / "stored")
        wide = wide_copy(options.model, place / "wide")
        threads = f"{options.threads} thread(s)" if options.threads else "threads as the engines choose"
        print(f"greedy decoding, {threads}, {options.model.name}")
        print_table(
            run_rounds(
                {
                    "reference": (REFERENCE, stored),
                    "native, 32-bit weights": (native, wide),
                    "native, weights as stored": (native, stored),
                },
                options.threads,
                options.tokens,
            )
        )
        peak = multiply_add_speed(place)
        needed = multiply_adds(options.model, PROMPT_TOKENS + options.tokens / 2)
        print(
            f"\none thread does {peak / 1e9:.1f} G multiply-adds/s at most, a token needs "
            f"{needed / 1e6:.2f} M: {peak / needed:,.0f} tokens/s at most"
        )
        if options.large:
            programs: dict[str, tuple[list[str], Path]] = {}
            count = 0
            for dtype in ("F32", "BF16"):
                directory, count = large_model(place / dtype, dtype)
                programs[f"native, {dtype}"] = (native, directory)
            parties = run_rounds(programs, options.threads, max(20, options.tokens // 10))
            speed = read_speed(4 * count)
            print(
                f"\n{count / 1e6:.0f} million parameters; one thread reads {speed / 1e9:.1f} GB/s of memory"
            )
            print_table(parties)
            for party, width in zip(parties, (4, 2), strict=True):
                used = party.best[1] * count * width
                print(f"{party.name}: {used / 1e9:.1f} GB/s, {used / speed:.0%} of a plain read")


if __name__ == "__main__":
    main()
