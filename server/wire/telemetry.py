"""The last things an engine said about itself and its machine, for /health, /profile, /experts and /metrics.

Written by the reader thread, read by any other: every update replaces one reference to something that is not
changed any more, so a reader sees each value whole. Telemetry outlives a restart of the engine, except for
the expert map, which describes one process.
"""

from __future__ import annotations

from dataclasses import dataclass

from generated import limits
from generated.frames import Emap, Frame, Hits, Hwinfo, Prof, Tiers


@dataclass(frozen=True)
class Experts:
    """The expert map and the hits of the last turn, with the number of updates so far."""

    emap: Emap | None
    hits: Hits | None
    seq: int


@dataclass(frozen=True)
class Profile:
    """The last turns, the newest at the end, with the number of turns so far."""

    turns: tuple[Prof, ...]
    seq: int


class Telemetry:
    """Collects the frames that belong to no request."""

    def __init__(self) -> None:
        self.hwinfo: Hwinfo | None = None
        self.tiers: Tiers | None = None
        self.experts = Experts(None, None, 0)
        self.profile = Profile((), 0)
        self.advisory: dict[str, Frame] = {}

    def update(self, frame: Frame) -> None:
        """Take one frame; kinds without a place of their own are kept as the last of their kind."""
        if isinstance(frame, Prof):
            turns = (*self.profile.turns, frame)[-limits.PROFILE_TURNS :]
            self.profile = Profile(turns, self.profile.seq + 1)
        elif isinstance(frame, Hwinfo):
            self.hwinfo = frame
        elif isinstance(frame, Tiers):
            self.tiers = frame
        elif isinstance(frame, Emap):
            self.experts = Experts(frame, self.experts.hits, self.experts.seq + 1)
        elif isinstance(frame, Hits):
            self.experts = Experts(self.experts.emap, frame, self.experts.seq + 1)
        else:
            self.advisory[frame.KIND] = frame

    def forget_process(self) -> None:
        """Another process starts: its experts are placed anew."""
        self.experts = Experts(None, None, self.experts.seq)
