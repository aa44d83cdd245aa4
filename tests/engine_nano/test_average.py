"""The mean of checkpoints: every tensor's, and the other files of the first."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine.nano import MODEL_DIRECTORY
from engine.nano.average import main, mean_weights


def test_mean_of_checkpoints(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(MODEL_DIRECTORY, other)
    own = load_file(MODEL_DIRECTORY / "model.safetensors")
    save_file({name: value + np.float16(1) for name, value in own.items()}, other / "model.safetensors")
    assert main([str(MODEL_DIRECTORY), str(other), "--output", str(tmp_path / "out")]) == 0
    for name, value in load_file(tmp_path / "out" / "model.safetensors").items():
        moved = (own[name] + np.float16(1)).astype(np.float32)
        assert value.dtype == np.float16
        assert np.array_equal(value, ((own[name].astype(np.float32) + moved) / 2).astype(np.float16))
    for path in MODEL_DIRECTORY.iterdir():
        if path.name != "model.safetensors":
            assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_checkpoints_of_different_models_are_refused(tmp_path: Path) -> None:
    shutil.copytree(MODEL_DIRECTORY, tmp_path / "other")
    save_file({"model.norm.weight": np.zeros(192, np.float16)}, tmp_path / "other" / "model.safetensors")
    with pytest.raises(ValueError, match="not of one model"):
        mean_weights([MODEL_DIRECTORY, tmp_path / "other"])
