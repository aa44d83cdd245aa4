"""Measures the reference engine: greedy decode tokens/s of the real process at batch 1 and 8, and of
`transformers`.

    python -m tests.engine.bench_reference MODEL_DIR [--transformers-python PATH] [--threads 1] [--tokens 200]

Rounds of all parties alternate, the best round of each counts, so that a busy machine hurts all of them
alike. Both sides decode the same 17 prompt tokens greedily with a KV cache and never end early.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.engine.engine_process import EngineProcess, submit

ROUNDS = 5
PROMPT_TOKENS = 17
BATCHES = (1, 2, 4, 8)
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--transformers-python", help="a Python with torch and transformers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    best: dict[str, float] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    with tempfile.TemporaryDirectory() as scratch:
        directory = endless_copy(options.model, Path(scratch))
        settings = {"KV_SLOTS": str(max(BATCHES)), "OMP_NUM_THREADS": str(options.threads)}
        other = None
        if options.transformers_python:
            sizes = [str(options.threads), str(options.tokens), str(PROMPT_TOKENS)]
            other = subprocess.Popen(
                [options.transformers_python, "-c", TRANSFORMERS_SCRIPT, str(directory), *sizes],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        with EngineProcess([sys.executable, "-m", "engine.reference"], directory, settings) as engine:
            rounds = EngineRounds(engine, options.tokens)
            for _ in range(ROUNDS):
                for batch in BATCHES:
                    name = f"reference engine, batch {batch}"
                    best[name] = max(best.get(name, 0.0), rounds.measure(batch))
                if other is not None:
                    assert other.stdin is not None and other.stdout is not None
                    other.stdin.write("\n")
                    other.stdin.flush()
                    name = "transformers, batch 1"
                    best[name] = max(best.get(name, 0.0), float(other.stdout.readline()))
            if other is not None:
                other.communicate()
    base = best["reference engine, batch 1"]
    for name, speed in best.items():
        print(f"| {name} | {speed:8.0f} tok/s | {speed / base:5.2f} x batch 1 |")
    if "transformers, batch 1" in best:
        print(f"reference / transformers at batch 1: {base / best['transformers, batch 1']:.2f}")


if __name__ == "__main__":
    main()
