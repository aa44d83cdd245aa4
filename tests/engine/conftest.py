"""Makes `tests.engine` importable however pytest was started; the fixtures of the conformance suite."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.engine.checkpoints import RECIPES, write_checkpoint  # noqa: E402
from tests.engine.conformance import CONTEXT, Number, Start  # noqa: E402
from tests.engine.engine_process import EngineProcess  # noqa: E402
from tests.engine.engines import ENGINES  # noqa: E402


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoint directories: a random glm that never ends its turn, and a random llama that may."""
    root = tmp_path_factory.mktemp("models")
    glm = RECIPES["glm"]
    return {
        "endless": write_checkpoint(
            root / "endless",
            replace(glm, config={**glm.config, "eos_token_id": [], "max_position_embeddings": CONTEXT}),
        ),
        "llama": write_checkpoint(root / "llama", RECIPES["llama"]),
    }


@pytest.fixture(params=sorted(ENGINES), scope="module")
def command(request: pytest.FixtureRequest) -> list[str]:
    found = ENGINES[request.param]()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def start(command: list[str], models: dict[str, Path]) -> Iterator[Start]:
    """Starts engines and sees to it that none is left behind."""
    running: list[EngineProcess] = []

    def launch(model: str | Path = "endless", **settings: str) -> EngineProcess:
        directory = models[model] if isinstance(model, str) else model
        engine = EngineProcess(command, directory, settings)
        running.append(engine)
        return engine.__enter__()

    yield launch
    for engine in running:
        engine.__exit__()


@pytest.fixture(scope="module")
def engine(command: list[str], models: dict[str, Path]) -> Iterator[EngineProcess]:
    """One engine shared by the tests that leave it as it was."""
    with EngineProcess(command, models["endless"], {"KV_SLOTS": "4"}) as running:
        yield running


@pytest.fixture
def number(engine: EngineProcess) -> Number:
    """Fresh request ids for the shared engine."""
    used = [getattr(frame, "id", 0) for frame in engine.received]
    counter = iter(range(max(used, default=0) + 100, 2**63))
    return lambda: next(counter)
