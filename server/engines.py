"""Which program is the engine, and how it is launched (wire.md §1)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from generated import launch
from server.model import ServedModel
from server.settings import Settings
from server.wire.process import EngineLaunch

REFERENCE: Final = "reference"
NATIVE: Final = "native"

_ROOT: Final = Path(__file__).resolve().parent.parent


class EngineError(Exception):
    """There is no such engine; the text is one line for the operator."""


def native_engine() -> Path | None:
    """The native engine's program, or None where it was not built.

    It is built next to its sources in a checkout, and into the user's cache for an installed package.
    """
    cache = os.environ.get("XDG_CACHE_HOME")
    places = (
        _ROOT / "engine" / "native" / "build",
        (Path(cache) if cache else Path.home() / ".cache") / "colibri-serve" / "native",
    )
    programs = (place / "colibri-engine" for place in places)
    return next((program for program in programs if program.is_file() and os.access(program, os.X_OK)), None)


def engine_command(choice: str | None) -> list[str]:
    """The engine's program and fixed arguments: ``native``, ``reference``, a path, or the best there is for
    None.

    Raises EngineError.
    """
    if not choice:
        choice = NATIVE if native_engine() is not None else REFERENCE
    if choice == REFERENCE:
        return [sys.executable, "-m", "engine.reference"]
    if choice == NATIVE:
        program = native_engine()
        if program is None:
            raise EngineError("the native engine is not built; use --engine reference")
        return [str(program)]
    return _program(choice)


def _program(choice: str) -> list[str]:
    found = choice if os.sep in choice or Path(choice).exists() else shutil.which(choice)
    if found is None or not Path(found).is_file():
        raise EngineError(f"the engine {choice} does not exist")
    path = str(Path(found).absolute())
    if os.access(path, os.X_OK):
        return [path]
    if path.endswith(".py"):
        return [sys.executable, path]
    raise EngineError(f"the engine {choice} is not executable")


def engine_launch(settings: Settings, model: ServedModel, environ: Mapping[str, str]) -> EngineLaunch:
    """Command line and complete environment of the engine. Raises EngineError."""
    command = engine_command(settings.engine)
    search = [str(_ROOT), *filter(None, [environ.get("PYTHONPATH")])]
    environment = {
        **environ,
        **launch.FIXED,
        launch.SNAP: str(model.directory.absolute()),
        launch.NGEN: str(settings.max_tokens),
        launch.KV_SLOTS: str(settings.kv_slots),
        "PYTHONPATH": os.pathsep.join(search),
    }
    return EngineLaunch(argv=[*command, str(settings.cap)], environment=environment)
