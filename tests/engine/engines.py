"""The engines the conformance suite runs against: name to a function giving the command, or the reason
for its absence.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from engine.native.build import NoCompiler, build


def reference() -> list[str] | str:
    """The numpy engine of this checkout."""
    return [sys.executable, "-m", "engine.reference"]


@cache
def native() -> list[str] | str:
    """The C engine of this checkout, built from its sources as they are; sources that do not compile are no
    reason to skip a test.
    """
    try:
        return [str(build(Path(tempfile.gettempdir()) / "colibri-native-tests"))]
    except NoCompiler as error:
        return str(error)


ENGINES: Mapping[str, Callable[[], list[str] | str]] = {"reference": reference, "native": native}
