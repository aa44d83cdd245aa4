"""16-bit floats are read exactly, the exponential is near enough: with this processor's vectors or any."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine.native.build import OPTIMISED, NoCompiler, compile_program

SOURCE = Path(__file__).with_name("vector_values.c")
FLAGS = {"this processor": OPTIMISED, "any processor": ("-O2",)}


@pytest.fixture(scope="module", params=FLAGS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        target = tmp_path_factory.mktemp("vectors") / "vector_values"
        return compile_program(target, [SOURCE], FLAGS[request.param])
    except NoCompiler as error:
        pytest.skip(str(error)[:300])


def run(program: Path, what: str, data: bytes = b"") -> np.ndarray:
    """The floats the program writes."""
    done = subprocess.run([str(program), what], input=data, capture_output=True, timeout=60, check=True)
    return np.frombuffer(done.stdout, dtype="<f4")


def test_halves_are_exact(program: Path) -> None:
    expected = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    one, several = run(program, "halves").reshape(-1, 2).T
    numbers = ~np.isnan(expected)
    for found in (one, several):
        assert np.array_equal(np.isnan(found), ~numbers)
        assert np.array_equal(found[numbers].view(np.uint32), expected[numbers].view(np.uint32))


def test_brains_are_exact(program: Path) -> None:
    expected = np.arange(1 << 16, dtype=np.uint32) << 16
    one, several = run(program, "brains").view(np.uint32).reshape(-1, 2).T
    assert np.array_equal(one, expected)
    assert np.array_equal(several, expected)


def test_exponential(program: Path) -> None:
    values = np.linspace(-87, 88, 1 << 16, dtype=np.float32)
    found = run(program, "exponential", values.tobytes()).astype(np.float64)
    expected = np.exp(values.astype(np.float64))
    assert np.max(np.abs(found / expected - 1)) < 3e-7
    edges = np.array([-np.inf, -1e30, -87.1, 0.0, -0.0, 88.5, 1e30, np.inf], dtype=np.float32)
    limits = run(program, "exponential", np.resize(edges, 16).tobytes())[: len(edges)]
    assert limits[:3].tolist() == [0.0, 0.0, 0.0]
    assert limits[3:5].tolist() == [1.0, 1.0]
    assert np.allclose(limits[5:], np.exp(np.float64(88)), rtol=1e-6)
