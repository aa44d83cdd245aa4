"""What every endpoint needs to know: the gateway's parts, gathered in one object."""

from __future__ import annotations

from dataclasses import dataclass

from server.api.keepalive import KeepaliveTimer
from server.chat.renderer import ChatRenderer
from server.metrics import Metrics
from server.model import ServedModel
from server.scheduler import Scheduler
from server.settings import Settings
from server.wire.requests import EngineClient


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of one running gateway. All of them may be used from any thread."""

    settings: Settings
    model: ServedModel
    scheduler: Scheduler
    engine: EngineClient
    keepalive: KeepaliveTimer
    metrics: Metrics
    renderer: ChatRenderer
