"""The phases of a connection."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """What a connection is doing."""

    READING = "waiting for a request or reading one"
    BUSY = "a view owes the answer"
    FLUSHING = "the answer is complete but the kernel has not taken all of it"
    LINGERING = "answered for the last time; input is thrown away until the client has closed"
    CLOSED = "closed"
