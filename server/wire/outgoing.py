"""What goes to the engine, and how its failure to get there is named."""

from __future__ import annotations

from typing import NamedTuple

from server.wire.inflight import Request


class Outgoing(NamedTuple):
    """One message to be written to the engine.

    ``kind`` is the command word a write failure is named after. ``request`` is the one such a failure is
    reported to, None for a message that is only a courtesy to the engine.
    """

    kind: str
    request: Request | None
    data: bytes


def write_failure(kind: str) -> str:
    """The named failure of a command that could not be written (wire.md section 2)."""
    return f"failed to write {kind} to the engine"
