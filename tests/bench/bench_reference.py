"""Measures the reference engine: greedy decode tokens/s of the real process at batch 1 and 8, and of
`transformers`.

    python tests/bench/bench_reference.py [--transformers-python PATH] [--model DIR] [--threads N]

Rounds of all parties alternate, the best round of each counts, so that a busy machine hurts all of them
alike. Both sides decode the same 17 prompt tokens greedily with a KV cache and never end early.
`transformers` and torch may live in another Python than this one; without either its row is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.engine.engine_process import EngineProcess, submit  # noqa: E402

ROUNDS = 5
PROMPT_TOKENS = 17
BATCHES = (1, 2, 4, 8)
TRANSFORMERS = "transformers, batch 1"
TRANSFORMERS_SCRIPT = """
import sys, time, torch, transformers
directory, threads, tokens, prompt = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
model.generation_config.eos_token_id = None
ids = torch.arange(10, 10 + prompt)[None]
mask = torch.ones_like(ids)
for line in sys.stdin:
    start = time.perf_counter()
    out = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=tokens, pad_token_id=0)
    assert out.shape[1] == prompt + tokens
    print(tokens / (time.perf_counter() - start), flush=True)
"""


def endless_copy(directory: Path, target: Path) -> Path:
    """Links to a model's files with a generation_config.json without end tokens in use."""
    for path in directory.resolve().iterdir():
        if path.suffix in (".json", ".safetensors") and path.name != "generation_config.json":
            (target / path.name).symlink_to(path)
    (target / "generation_config.json").write_text('{"eos_token_id": []}', encoding="utf-8")
    return target


class EngineRounds:
    """tokens/s of the engine with a number of equal requests at once, frames read to the last DONE."""

    def __init__(self, engine: EngineProcess, tokens: int) -> None:
        self._engine = engine
        self._tokens = tokens
        self._next = 1

    def measure(self, batch: int) -> float:
        """One round."""
        ids = range(self._next, self._next + batch)
        self._next += batch
        prompt = " ".join(str(10 + index) for index in range(PROMPT_TOKENS)).encode()
        commands = b"".join(submit(i, prompt, self._tokens, slot=i - ids[0], ids=1) for i in ids)
        start = perf_counter()
        self._engine.send(commands)
        self._engine.wait_ends(ids)
        elapsed = perf_counter() - start
        assert all(self._engine.of(i)[-1].completion_tokens == self._tokens for i in ids)
        self._engine.received.clear()
        self._engine.raw.clear()
        return batch * self._tokens / elapsed


class Transformers:
    """The same rounds by `transformers`, in a process of another Python."""

    def __init__(self, python: str, directory: Path, threads: int, tokens: int) -> None:
        self._process = subprocess.Popen(
            [
                python,
                "-c",
                TRANSFORMERS_SCRIPT,
                str(directory),
                str(threads),
                str(tokens),
                str(PROMPT_TOKENS),
            ],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Transformers:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def measure(self) -> float:
        """Tokens/s of one round at batch 1."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def transformers_python(wanted: str | None) -> str | None:
    """A Python that has torch and transformers: the one wanted, or this one, or None."""
    if wanted is None and find_spec("torch") is not None and find_spec("transformers") is not None:
        return sys.executable
    return wanted


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=ROOT / "engine" / "nano" / "model")
    parser.add_argument("--transformers-python", help="a Python with torch and transformers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    best: dict[str, float] = {}
    python = transformers_python(options.transformers_python)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        directory = endless_copy(options.model, Path(scratch))
        settings = {"KV_SLOTS": str(max(BATCHES)), "OMP_NUM_THREADS": str(options.threads)}
        command = [sys.executable, "-m", "engine.reference"]
        engine = EngineRounds(
            stack.enter_context(EngineProcess(command, directory, settings)), options.tokens
        )
        other = None
        if python is not None:
            other = stack.enter_context(Transformers(python, directory, options.threads, options.tokens))
        for _ in range(ROUNDS):
            for batch in BATCHES:
                name = f"reference engine, batch {batch}"
                best[name] = max(best.get(name, 0.0), engine.measure(batch))
            if other is not None:
                best[TRANSFORMERS] = max(best.get(TRANSFORMERS, 0.0), other.measure())
    base = best["reference engine, batch 1"]
    print(f"greedy decoding, {options.threads} thread(s), {options.model.name}")
    print("| | tokens/s | x batch 1 |\n|---|---:|---:|")
    for name, speed in best.items():
        print(f"| {name} | {speed:,.0f} | {speed / base:.2f} |")
    if TRANSFORMERS in best:
        print(f"reference / transformers at batch 1: {base / best[TRANSFORMERS]:.2f}")
    else:
        print("transformers is not installed: .[lm-eval], or name a Python with --transformers-python")


if __name__ == "__main__":
    main()
