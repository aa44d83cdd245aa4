"""Makes tests/engine/fixtures/parity.npz: logits and greedy tokens of `transformers` on the tiny checkpoints.

Run by hand, in an environment with torch and transformers (the training extra), from the repository root:

    python -m tests.engine.make_parity_fixtures

The weights are not stored: `checkpoints.py` writes the same files for this script and for the test.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.engine.checkpoints import RECIPES, write_checkpoint

FIXTURE = Path(__file__).parent / "fixtures" / "parity.npz"
PROMPT_TOKENS = 24
GREEDY_TOKENS = 40
LONG_PROMPT_TOKENS = 300


def prompt(length: int, vocabulary: int) -> list[int]:
    """A fixed walk through the vocabulary."""
    return [(7 + 31 * index + index * index) % vocabulary for index in range(length)]


def reference_outputs(directory: Path) -> dict[str, np.ndarray]:
    """Logits of every prompt position, of the last position of a long prompt, and greedy tokens without end
    tokens.
    """
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager"
    )
    model.eval()
    vocabulary = model.config.vocab_size
    tokens = prompt(PROMPT_TOKENS, vocabulary)
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].numpy()
        long = model(torch.tensor([prompt(LONG_PROMPT_TOKENS, vocabulary)])).logits[0, -1].numpy()
        greedy = list(tokens)
        for _ in range(GREEDY_TOKENS):
            greedy.append(int(model(torch.tensor([greedy])).logits[0, -1].argmax()))
    return {"logits": logits, "long": long, "greedy": np.array(greedy[PROMPT_TOKENS:], dtype=np.int32)}


def main() -> None:
    """Write the fixture file."""
    arrays = {}
    for name, recipe in RECIPES.items():
        with tempfile.TemporaryDirectory() as directory:
            outputs = reference_outputs(write_checkpoint(Path(directory), recipe))
        arrays |= {f"{name}/{key}": value for key, value in outputs.items()}
    FIXTURE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FIXTURE, **arrays)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{FIXTURE}: {FIXTURE.stat().st_size} bytes, {versions}")


if __name__ == "__main__":
    main()
