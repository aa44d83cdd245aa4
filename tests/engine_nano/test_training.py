"""The training, where torch is installed (the extra `train`): optimiser, schedule, going on, mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from engine.nano import MODEL_DIRECTORY

torch: Any = pytest.importorskip("torch", reason="needs the extra `train`")

from engine.nano import trainer  # noqa: E402
from engine.nano.muon import Muon  # noqa: E402
from engine.nano.processes import Team  # noqa: E402
from engine.nano.trainer import Rates, Settings, train  # noqa: E402

STEPS = 6


def settings(work: Path, **changes: Any) -> Settings:
    work.mkdir(exist_ok=True)
    whole = Settings(
        steps=STEPS,
        seed=1,
        muon_rate=4e-3,
        adam_rate=3e-3,
        decay_share=0.5,
        again_share=0.34,
        batch=2,
        compiled=False,
        work=work,
        start_from=None,
        save_seconds=1e9,
        stop_after=None,
    )
    return replace(whole, **changes)


def weights(directory: Path) -> dict[str, np.ndarray]:
    return load_file(directory / "model.safetensors")


def test_the_optimiser_moves_as_the_one_of_torch() -> None:
    """Bit by bit in the precision of torch's own; nearly so in another."""
    torch.manual_seed(5)
    first = [torch.randn(48, 128), torch.randn(256, 48)]
    moved = []
    for precision in (None, torch.bfloat16, torch.float32):
        torch.manual_seed(6)
        values = [torch.nn.Parameter(value.clone()) for value in first]
        if precision is None:
            optimiser = torch.optim.Muon(
                values, lr=4e-3, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
            )
        else:
            optimiser = Muon(values, 4e-3, momentum=0.95, weight_decay=0.1, precision=precision)
        for _ in range(3):
            for value in values:
                value.grad = torch.randn_like(value)
            optimiser.step()
        moved.append([value.detach() for value in values])
    theirs, same, finer = moved
    for index, before in enumerate(first):
        assert torch.equal(theirs[index], same[index])
        way = (theirs[index] - before).norm()
        assert 0 < (finer[index] - theirs[index]).norm() < 0.05 * way


def test_the_rate_rises_stays_and_falls_to_zero_twice(tmp_path: Path) -> None:
    rates = Rates(settings(tmp_path, steps=1000, decay_share=0.5, again_share=0.2))
    factors = [rates.factor(step) for step in range(1000)]
    assert rates.low == 800
    assert factors[0] == pytest.approx(1 / 24)
    assert set(factors[23:400]) == {1.0}
    assert factors[799] == pytest.approx(1 / 400)
    assert factors[800] == 0.85
    assert factors[999] == pytest.approx(0.85 / 200)
    assert sorted(factors[400:800], reverse=True) == factors[400:800]
    once = Rates(settings(tmp_path, steps=1000, again_share=0.0))
    assert [once.factor(step) for step in (499, 500, 999)] == pytest.approx([1.0, 1.0, 1 / 500])


def test_a_run_in_parts_is_the_run_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state holds everything: weights, optimisers, the low point. The model is the mean of the two."""
    whole = settings(tmp_path / "whole")
    train(whole, tmp_path / "whole out", 1, Team())
    monkeypatch.setattr(trainer, "LOG_EVERY", 1)  # a run looks at the clock only then
    parts = settings(tmp_path / "parts", stop_after=0.0)
    for step in range(1, STEPS + 1):
        assert not (tmp_path / "parts out").exists()
        train(parts, tmp_path / "parts out", 1, Team())
        assert torch.load(parts.work / "state.pt", weights_only=True)["step"] == step
    one, other = weights(tmp_path / "whole out"), weights(tmp_path / "parts out")
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.array_equal(value, other[name]), name
    state = torch.load(whole.work / "state.pt", weights_only=True)
    name = "model.norm.weight"
    mean = (state["low"][name] + state["model"][name]) / 2
    assert np.array_equal(one[name], mean.to(torch.float16).numpy())
    assert not torch.equal(state["low"][name], state["model"][name])


def test_a_run_starts_from_a_checkpoint(tmp_path: Path) -> None:
    """With rates of zero nothing moves: the weights come out as they went in."""
    still = settings(tmp_path / "work", steps=1, muon_rate=0.0, adam_rate=0.0, start_from=MODEL_DIRECTORY)
    train(still, tmp_path / "out", 1, Team())
    committed = weights(MODEL_DIRECTORY)
    for name, value in weights(tmp_path / "out").items():
        assert np.array_equal(value, committed[name]), name
