"""The thread pool runs each item of a loop once and is done when it says so, also by ThreadSanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine.native.build import OPTIMISED, SOURCES, compile_program
from tests.native.probe import skip_unless_built

UNITS = (Path(__file__).with_name("shared_loops.c"), SOURCES / "threads.c", SOURCES / "base.c")
WATCHED = ("-O1", "-g", "-fsanitize=thread")
FOUND = 66
"""Exit code of ThreadSanitizer when it has seen a data race."""


@pytest.mark.parametrize("flags", [OPTIMISED, WATCHED], ids=["optimised", "watched"])
@pytest.mark.parametrize(("threads", "loops"), [(1, 200), (2, 20_000), (5, 5_000)])
def test_every_item_is_done_once(flags: tuple[str, ...], threads: int, loops: int, tmp_path: Path) -> None:
    skip_unless_built(tmp_path, flags)
    program = compile_program(tmp_path / "shared_loops", UNITS, flags)
    command = [str(program), str(threads), str(loops)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel's memory layout")
    assert done.returncode != FOUND, done.stderr[:3000]
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr[:3000]
