"""The one way the reference engine refuses to start.

Everything that can be wrong with a model directory or a launch setting is raised as `LaunchError` whose text
is one line for a person; `engine.reference.__main__` prints it to stderr and exits with code 2 before READY
(wire.md section 1).
"""

from __future__ import annotations


class LaunchError(Exception):
    """The engine cannot serve with what it was given; `str()` is one clear line without a trailing full
    stop.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
