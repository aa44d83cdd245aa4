"""GET /health (http.md §5): liveness for everybody, the scheduler and the engine for those who have the
key.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from generated import fingerprint, http
from server.api.gateway import Gateway
from server.api.telemetry import frame_values
from server.api.views import JSON_HEADERS
from server.http.exchange import Exchange
from server.sse import compact_json


class Health:
    """The state of this gateway and its engine."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def show(self, exchange: Exchange) -> None:
        """GET /health: 200 while requests are served, 503 otherwise."""
        engine = self._gateway.engine.health()
        status = engine.status
        body: dict[str, Any] = {"status": status}
        if exchange.authorized:
            body |= self._details()
        exchange.respond(http.HEALTH_STATUSES[status], JSON_HEADERS, compact_json(body))

    def _details(self) -> dict[str, Any]:
        gateway = self._gateway
        engine, telemetry = gateway.engine.health(), gateway.engine.telemetry
        details: dict[str, Any] = {
            "scheduler": asdict(gateway.scheduler.counters()),
            "kv_slots": gateway.settings.kv_slots,
            "engine": {
                "pid": engine.pid,
                "restarts": engine.restarts,
                "uptime_s": round(engine.uptime_seconds, 3),
                "wire_version": fingerprint.VERSION,
                "family": gateway.model.family.name,
            },
        }
        if telemetry.tiers is not None:
            details["tiers"] = frame_values(telemetry.tiers)
        if telemetry.hwinfo is not None:
            hwinfo = frame_values(telemetry.hwinfo)
            cpu, _, gpu = " ".join(hwinfo.pop("names")).partition("|")
            details["hwinfo"] = hwinfo | {"cpu": cpu, "gpu": gpu}
        return details
