"""The numpy transformer against recorded outputs of `transformers` on the same checkpoints, and its row
independence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.reference.checkpoint import Checkpoint
from engine.reference.config import load_config
from engine.reference.kernels import FIXED_TILE, Arena, Projection, Tiling, padded, rows_are_independent
from engine.reference.transformer import Transformer
from engine.reference.weights import load_weights
from tests.engine.checkpoints import RECIPES, write_checkpoint

FIXTURE = Path(__file__).parent / "fixtures" / "parity.npz"
PROMPT_TOKENS = 24
LONG_PROMPT_TOKENS = 300
SLOTS = 5

TILINGS = [Tiling(FIXED_TILE), Tiling(1), *([Tiling(None)] if rows_are_independent() else [])]


def prompt(length: int, vocabulary: int = 288) -> list[int]:
    """The walk through the vocabulary of make_parity_fixtures.py."""
    return [(7 + 31 * index + index * index) % vocabulary for index in range(length)]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Transformer]:
    def make(name: str, tiling: Tiling, slots: int = SLOTS) -> Transformer:
        directory = write_checkpoint(tmp_path_factory.mktemp(name), RECIPES[name])
        config = load_config(directory)
        return Transformer(config, load_weights(Checkpoint(directory), config, tiling), tiling, slots, 512)

    return make


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray]:
    with np.load(FIXTURE) as arrays:
        return dict(arrays)


def greedy(model: Transformer, slot: int, tokens: list[int], count: int) -> list[int]:
    """`count` greedy tokens after `tokens`, one slot alone."""
    logits = model.prefill(slot, 0, tokens, False)[0]
    produced = [int(logits.argmax())]
    while len(produced) < count:
        position = len(tokens) + len(produced) - 1
        produced.append(int(model.decode([slot], [position], produced[-1:])[0].argmax()))
    return produced


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tile-{tiling.tile}")
@pytest.mark.parametrize("name", RECIPES)
def test_outputs_equal_transformers(
    name: str, tiling: Tiling, build: Callable[..., Transformer], recorded: dict[str, np.ndarray]
) -> None:
    model = build(name, tiling)
    logits = model.prefill(0, 0, prompt(PROMPT_TOKENS), True)
    assert np.abs(logits - recorded[f"{name}/logits"]).max() < 1e-4
    long = model.prefill(1, 0, prompt(LONG_PROMPT_TOKENS), False)[0]
    assert np.abs(long - recorded[f"{name}/long"]).max() < 1e-4
    expected = recorded[f"{name}/greedy"].tolist()
    assert greedy(model, 2, prompt(PROMPT_TOKENS), len(expected)) == expected


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tile-{tiling.tile}")
@pytest.mark.parametrize("name", RECIPES)
def test_bits_do_not_depend_on_chunks_or_batch(
    name: str, tiling: Tiling, build: Callable[..., Transformer]
) -> None:
    model = build(name, tiling)
    tokens = prompt(150)
    whole = model.prefill(0, 0, tokens, True)
    for slot, size in ((1, 1), (2, 7), (3, 64), (4, 149)):
        parts = [
            model.prefill(slot, first, tokens[first : first + size], True)
            for first in range(0, len(tokens), size)
        ]
        assert np.array_equal(np.concatenate(parts), whole), f"chunks of {size}"
    alone = np.stack([model.decode([0], [position], [9])[0] for position in (150, 151)])
    for group in ([0, 1], [0, 1, 2, 3, 4], [0, 2, 4], [1, 3]):
        for step, position in enumerate((150, 151)):
            batch = model.decode(group, [position] * len(group), [9] * len(group))
            assert np.array_equal(batch, np.repeat(alone[step : step + 1], len(group), axis=0)), (
                f"slots {group}"
            )
    model.prefill(3, 0, prompt(290), False)
    mixed = model.decode([1, 3], [150, 290], [9, 5])
    assert np.array_equal(mixed[0], alone[0]), "neighbour with a longer history"
    resumed = model.prefill(0, 140, tokens[140:], True)
    assert np.array_equal(resumed, whole[140:]), "prefix kept, rest computed again"


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tile-{tiling.tile}")
def test_a_slot_goes_back_beside_another(tiling: Tiling, build: Callable[..., Transformer]) -> None:
    """The same slots at the same blocks, but one of them at an earlier position again, in another block."""
    model = build("glm", tiling)
    lengths = (100, 80)
    for slot, length in enumerate(lengths):
        model.prefill(slot, 0, prompt(length), False)
    model.prefill(2, 0, prompt(30), False)
    model.decode([0, 1], lengths, [3, 4])
    together = [model.decode([0, 1], [101 + step, 30 + step], [5, 6]) for step in range(3)]
    alone = [model.decode([2], [30 + step], [6])[0] for step in range(3)]
    assert np.array_equal(np.stack(together)[:, 1], np.stack(alone))


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tile-{tiling.tile}")
@pytest.mark.parametrize(("depth", "width"), [(48, 30), (192, 1024), (1056, 100), (1200, 640)])
def test_a_product_gives_a_row_the_same_bits_among_any_number(depth: int, width: int, tiling: Tiling) -> None:
    """Small and large matrices, one and several blocks of depth, a width that is padded."""
    random = np.random.default_rng(depth)
    weights = random.standard_normal((depth, width), dtype=np.float32)
    bias = random.standard_normal(width, dtype=np.float32)
    arena = Arena(Projection.elements(depth, width))
    projection = Projection(arena, tiling, weights, bias)
    x = random.standard_normal((96, depth), dtype=np.float32)

    def product(first: int, count: int) -> np.ndarray:
        rows = tiling.rows(count)
        inputs = np.zeros((rows, depth), dtype=np.float32)
        inputs[:count] = x[first : first + count]
        out = np.zeros((rows, padded(width)), dtype=np.float32)
        projection(projection.operands(inputs, out))
        return out[:count, :width]

    whole = product(0, 96)
    expected = x.astype(np.float64) @ weights + bias
    assert np.abs(whole - expected).max() < 1e-5 * np.abs(expected).max()
    for first, count in ((0, 1), (5, 2), (1, 4), (40, 8), (3, 12), (20, 20), (28, 68)):
        assert np.array_equal(product(first, count), whole[first : first + count])


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda tiling: f"tile-{tiling.tile}")
def test_many_slots_over_a_block_boundary(tiling: Tiling, build: Callable[..., Transformer]) -> None:
    """More rows than buffers are kept for, lengths on both sides of a cache block, members leaving and
    coming back.
    """
    count = 20
    model = build("qwen2", tiling, count + 1)
    lengths = [118 + 2 * index for index in range(count)]
    tokens = [prompt(length) for length in lengths]
    for slot in range(count):
        model.prefill(slot, 0, tokens[slot], False)
    together = [
        model.decode(range(count), [length + step for length in lengths], [step + 3] * count)
        for step in range(3)
    ]
    half = list(range(0, count, 2))
    again = [
        model.decode(half, [lengths[slot] + step for slot in half], [step + 3] * len(half))
        for step in range(3)
    ]
    for step in range(3):
        assert np.array_equal(again[step], together[step][half])
    for slot in (0, 4, 5, 19):
        model.prefill(count, 0, tokens[slot], False)
        for step in range(3):
            alone = model.decode([count], [lengths[slot] + step], [step + 3])[0]
            assert np.array_equal(alone, together[step][slot]), f"slot {slot}, step {step}"
