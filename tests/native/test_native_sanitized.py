"""The native engine under the sanitizers, on a fixed set of mutated inputs, and under valgrind.

`python -m tests.native.sanitized` runs the whole conformance suite, or fuzzes for as long as one likes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.native.build import SANITIZED
from tests.engine.checkpoints import RECIPES, write_checkpoint
from tests.engine.engine_process import EngineProcess
from tests.native.heavy_masks import cancel_while_waiting
from tests.native.probe import skip_unless_built
from tests.native.sanitized import COMMANDS, OPTIONS, build_plain, build_sanitized, feed, fuzz, valgrind

SEED = 7
ROUNDS = 60

pytestmark = pytest.mark.xdist_group("native sanitized")  # each program is built by one test process only


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sanitized engine; skips without a compiler and with one that has no sanitizers."""
    directory = tmp_path_factory.mktemp("sanitized")
    skip_unless_built(directory, SANITIZED)
    return build_sanitized(directory)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine for valgrind; skips without valgrind or a compiler."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    directory = tmp_path_factory.mktemp("plain")
    skip_unless_built(directory, ())
    return build_plain(directory)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), RECIPES["llama"])


def test_every_command_is_clean(program: Path, directory: Path) -> None:
    assert feed(program, directory, b"".join(COMMANDS)) == ""


def test_what_a_waiting_request_holds_is_freed(program: Path, directory: Path) -> None:
    """Cancelled while it waits for its mask, which no input that is there from the beginning brings about."""
    with EngineProcess([str(program)], directory, {"KV_SLOTS": "8", **OPTIONS}) as engine:
        assert cancel_while_waiting(engine, 1, range(2, 9))
        assert engine.finish() == 0, engine.log[-3000:]


def test_mutated_commands_are_clean(program: Path, directory: Path) -> None:
    assert fuzz(program, directory, SEED, ROUNDS, float("inf")) == (ROUNDS, "")


@pytest.mark.parametrize("threads", [1, 3])
def test_valgrind_finds_nothing(threads: int, plain: Path, directory: Path) -> None:
    assert valgrind(plain, directory, b"".join(COMMANDS), threads) == ""
