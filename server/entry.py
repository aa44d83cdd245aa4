"""The ``coli`` script: one line and exit code 2 where the gateway cannot run, else ``server.cli``.

Two system calls of Linux carry the gateway: epoll for its connections and pidfd_open for the engine's end.
This module imports nothing that needs either, so that it can say so on any system.
"""

from __future__ import annotations

import os
import platform
import select
import sys
from typing import Final

OLDEST_LINUX: Final = "Linux 5.3"
"""The first with pidfd_open."""
INTERRUPTED: Final = 130
"""The exit code of a program that Ctrl-C ended: 128 and the number of SIGINT."""


def main() -> None:
    """Entry point of the ``coli`` script; ends the process."""
    missing = missing_calls()
    if missing:
        here = f"{platform.system()} {platform.release()}"
        print(
            f"coli: {OLDEST_LINUX} or newer is needed; {here} lacks {' and '.join(missing)}", file=sys.stderr
        )
        sys.exit(2)
    try:
        from server import cli

        cli.main()
    except KeyboardInterrupt:  # before the commands, or before signals, are looked after
        print("coli: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def missing_calls() -> list[str]:
    """What the gateway needs of the system and does not get here: not known to this Python, or refused by
    the kernel.
    """
    missing = [] if hasattr(select, "epoll") else ["epoll"]
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        missing.append("pidfd_open")
    return missing


if __name__ == "__main__":
    main()
