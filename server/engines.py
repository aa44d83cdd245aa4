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


def native_places() -> tuple[Path, ...]:
    """Where the native engine's program may be: next to its sources in a checkout, and in the user's cache
    for an installed package. A service often has no such cache.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directories = (_ROOT / "engine" / "native" / "build", Path(cache) / "colibri-serve" / "native")
    return tuple(directory / "colibri-engine" for directory in directories)


def native_engine() -> Path | None:
    """The native engine's program, or None where it was not built."""
    return next(
        (place for place in native_places() if os.path.isfile(place) and os.access(place, os.X_OK)), None
    )


def engine_in_words(choice: str | None) -> str:
    """Which engine ``engine_command`` takes and, where it is only the second best, why."""
    program = native_engine()
    if choice == REFERENCE:
        return "the reference engine"
    if choice and choice != NATIVE:
        return f"the engine {choice}"
    if program is not None:
        return f"the native engine {program}"
    return f"the reference engine ({_no_native()})"


def _no_native() -> str:
    return f"the native engine is not built: no program at {' or '.join(map(str, native_places()))}"


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
            raise EngineError(f"{_no_native()}; use --engine reference")
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
