"""Whether this machine can build programs at all, so that a test is skipped for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.native.build import BuildError, NoCompiler, compile_program


def skip_unless_built(directory: Path, flags: Sequence[str]) -> None:
    """Skip the test, saying why, without a compiler or without what it links for these flags; sources that do
    not compile are then no reason.
    """
    empty = directory / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    try:
        compile_program(directory / "empty", [empty], flags)
    except NoCompiler as error:
        pytest.skip(str(error))
    except BuildError as error:
        if not any(flag.startswith("-fsanitize=") for flag in flags):
            raise
        pytest.skip(f"no sanitizers on this machine: {error}"[:300])
