"""`coli` as a process of its own, and the one line it says when it refuses to start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from server.demo import ANSWER_SECONDS, START_SECONDS, STOP_SECONDS

ROOT = Path(__file__).parents[1]
WHOLE_DEMO = START_SECONDS + 2 * ANSWER_SECONDS + STOP_SECONDS
"""What `coli demo` allows itself; anything else `coli` does in tests takes less."""


def coli(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "server.cli", *arguments],
        cwd=ROOT, env=os.environ | environ, capture_output=True, text=True, timeout=WHOLE_DEMO, check=False,
    )  # fmt: skip


def refused(*arguments: str, **environ: str) -> str:
    """The one line on stderr of a start that must end with exit code 2."""
    done = coli(*arguments, **environ)
    assert done.returncode == 2, done
    return only_line(done.stderr)


def only_line(stderr: str) -> str:
    assert stderr.count("\n") == 1 and stderr.startswith("coli: "), stderr
    return stderr.removeprefix("coli: ").strip()
