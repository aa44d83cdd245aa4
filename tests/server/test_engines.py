"""Which program becomes the engine (http.md §17, wire.md §1)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from generated import launch
from server import engines
from server.engines import EngineError, engine_command, engine_in_words, engine_launch
from server.model import embedded_model, load_model
from server.settings import resolve

REFERENCE = [sys.executable, "-m", "engine.reference"]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No native engine anywhere; returns the root under which one would be looked for."""
    monkeypatch.setattr(engines, "_ROOT", tmp_path / "root")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def program(path: Path, mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("place", ["root/engine/native/build", "cache/colibri-serve/native"])
def test_the_default_is_the_native_engine_when_it_is_built_else_the_reference(
    nowhere: Path, place: str
) -> None:
    assert engine_command(None) == engine_command("") == REFERENCE
    with pytest.raises(EngineError, match="not built"):
        engine_command("native")
    built = program(nowhere / place / "colibri-engine")
    assert engine_command(None) == engine_command("native") == [built]
    assert engine_command("reference") == REFERENCE


def test_a_native_engine_that_cannot_be_executed_does_not_count(nowhere: Path) -> None:
    program(nowhere / "root/engine/native/build/colibri-engine", 0o644)
    assert engine_command(None) == REFERENCE


def test_the_engine_in_words_is_the_one_that_is_taken_and_says_why_it_is_not_the_native(
    nowhere: Path,
) -> None:
    places = [nowhere / "root/engine/native/build", nowhere / "cache/colibri-serve/native"]
    looked = " or ".join(f"{place}/colibri-engine" for place in places)
    second_best = f"the reference engine (the native engine is not built: no program at {looked})"
    assert engine_in_words(None) == engine_in_words("") == second_best
    with pytest.raises(EngineError, match=re.escape(looked)):
        engine_command("native")
    built = program(places[1] / "colibri-engine")
    assert engine_in_words(None) == engine_in_words("native") == f"the native engine {built}"
    assert engine_in_words("reference") == "the reference engine"
    assert engine_in_words("/my/engine") == "the engine /my/engine"


def test_somebody_without_a_home_gets_the_reference_engine(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/" + "x" * 5000)  # a look into it is an error, as into a directory not theirs
    assert engine_command(None) == REFERENCE


def test_a_path_or_a_name_on_the_path_is_taken_as_it_is(nowhere: Path) -> None:
    path = program(nowhere / "my engine")
    assert engine_command(path) == [path]
    named = program(nowhere / "bin" / "my-engine")
    assert engine_command("my-engine") == [named]


def test_a_python_file_that_is_not_executable_is_run_by_this_python(nowhere: Path) -> None:
    path = program(nowhere / "engine.py", 0o644)
    assert engine_command(path) == [sys.executable, path]


@pytest.mark.parametrize(
    ("name", "says"), [("gone", "does not exist"), ("dull", "not executable"), ("", "not exist")]
)
def test_what_cannot_be_an_engine_is_named(nowhere: Path, name: str, says: str) -> None:
    program(nowhere / "dull", 0o644)
    with pytest.raises(EngineError, match=says) as caught:
        engine_command(f"{nowhere}/{name}" if name else str(nowhere))
    assert "\n" not in str(caught.value)


def test_wire_1_the_environment_is_the_gateways_with_the_contracts_variables_on_top() -> None:
    environ = {"HOME": "/home/x", launch.CTX: "99", launch.SNAP: "/elsewhere", "PYTHONPATH": "/mine"}
    settings = resolve({"kv_slots": "2", "cap": "7", "engine": "reference"}, environ)
    model = load_model(None, model_id=None, arch="auto", context=None)
    started = engine_launch(settings, model, environ)
    assert list(started.argv) == [*REFERENCE, "7"]
    assert {name: started.environment[name] for name in ("HOME", launch.CTX)} == {
        "HOME": "/home/x",
        launch.CTX: "99",
    }
    assert started.environment[launch.SNAP] == str(embedded_model())
    assert started.environment[launch.KV_SLOTS] == "2"
    assert launch.FIXED.items() <= started.environment.items()
    assert started.environment["PYTHONPATH"].split(":") == [str(Path(engines.__file__).parents[1]), "/mine"]


def test_section_17_the_embedded_model_is_served_as_nano_unless_named() -> None:
    assert load_model(None, model_id=None, arch="auto", context=None).id == "nano"
    assert load_model(None, model_id="mine", arch="auto", context=None).id == "mine"
    assert load_model(str(embedded_model()), model_id=None, arch="auto", context=None).id == "model"
