"""GET /profile, GET /experts and GET /metrics: what the engine said about its turns and its experts
(http.md §5).

Without the key /profile and /experts keep their shape and are empty.
"""

from __future__ import annotations

from typing import Any

from generated.frames import Hwinfo, Prof, Tiers
from server.api.gateway import Gateway
from server.api.views import JSON_HEADERS
from server.http.exchange import Exchange
from server.metrics import CONTENT_TYPE
from server.sse import compact_json


def frame_values(frame: Prof | Tiers | Hwinfo) -> dict[str, Any]:
    """The fields of a frame by their names in the spec."""
    return frame.as_dict()


class TelemetryPages:
    """The engine's telemetry and the gateway's metrics."""

    def __init__(self, gateway: Gateway) -> None:
        self._engine = gateway.engine
        self._metrics = gateway.metrics

    def profile(self, exchange: Exchange) -> None:
        """GET /profile: ``seq`` records so far, the last of them in ``turns``."""
        body: dict[str, Any] = {"seq": 0, "turns": []}
        if exchange.authorized:
            profile = self._engine.telemetry.profile
            body = {"seq": profile.seq, "turns": [frame_values(turn) for turn in profile.turns]}
        exchange.respond(200, JSON_HEADERS, compact_json(body))

    def experts(self, exchange: Exchange) -> None:
        """GET /experts: the expert map and the hits of the last turn, in hexadecimal digits."""
        body: dict[str, Any] = {"rows": 0, "cols": 0, "map": "", "hits": "", "seq": 0}
        if exchange.authorized:
            experts = self._engine.telemetry.experts
            body["seq"] = experts.seq
            size = experts.emap or experts.hits
            if size is not None:
                body |= {"rows": size.rows, "cols": size.cols}
            if experts.emap is not None:
                body["map"] = experts.emap.cells
            if experts.hits is not None:
                body["hits"] = experts.hits.cells
        exchange.respond(200, JSON_HEADERS, compact_json(body))

    def metrics(self, exchange: Exchange) -> None:
        """GET /metrics."""
        exchange.respond(200, (("Content-Type", CONTENT_TYPE),), self._metrics.page())
