"""GET /metrics: what the gateway counts, in Prometheus text form (http.md §5).

Guarantees: every label value comes from a closed set made at start (the routes served, the outcomes, the
two token kinds), never from a request; ``colibri_requests_started_total`` equals the sum over the four
outcomes of ``colibri_requests_ended_total`` plus the requests that are open; gauges are read when they are
asked for, so they are right after any storm of disconnects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from server.http.accesslog import CANCELLED, ERROR, OK, REFUSED, AccessRecord
from server.scheduler import Counters

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OUTCOMES: Final = (OK, ERROR, CANCELLED, REFUSED)
OTHER_ROUTE: Final = "other"

_DURATIONS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class EngineState(Protocol):
    """The part of the engine's health that is a metric."""

    @property
    def restarts(self) -> int: ...

    @property
    def uptime_seconds(self) -> float: ...


class Metrics:
    """The counters of one gateway; an observer of its HTTP layer."""

    def __init__(self, routes: Iterable[str]) -> None:
        """``routes``: patterns of every path that is served."""
        self.registry = CollectorRegistry(auto_describe=False)
        routes = (*routes, OTHER_ROUTE)
        self._routes = frozenset(routes)
        self._started = Counter(
            "colibri_requests_started", "HTTP requests begun.", registry=self.registry
        )  # fmt: skip
        self._ended = Counter(
            "colibri_requests_ended", "HTTP requests ended.", ("route", "outcome"), registry=self.registry
        )
        self._open = Gauge("colibri_requests_open", "HTTP requests not ended yet.", registry=self.registry)
        self._duration = Histogram(
            "colibri_request_duration_seconds",
            "From the first byte of a request to the last byte of its answer.",
            ("route",), buckets=_DURATIONS, registry=self.registry,
        )  # fmt: skip
        self._queue_wait = Histogram(
            "colibri_queue_wait_seconds", "Time a request waited for its slot.",
            buckets=_DURATIONS, registry=self.registry,
        )  # fmt: skip
        self._tokens = Counter(
            "colibri_tokens", "Tokens of finished requests.", ("kind",), registry=self.registry
        )
        for route in routes:
            self._duration.labels(route)
            for outcome in OUTCOMES:
                self._ended.labels(route, outcome)
        self._prompt_tokens = self._tokens.labels("prompt")
        self._completion_tokens = self._tokens.labels("completion")

    def began(self, record: AccessRecord) -> None:
        """A request line was read."""
        self._started.inc()
        self._open.inc()

    def ended(self, record: AccessRecord) -> None:
        """A request is over, whatever became of it."""
        route = record.route if record.route in self._routes else OTHER_ROUTE
        outcome = record.outcome if record.outcome in OUTCOMES else ERROR
        self._open.dec()
        self._ended.labels(route, outcome).inc()
        self._duration.labels(route).observe(max(0.0, record.ended - record.began))
        if record.queue_wait_ms is not None:
            self._queue_wait.observe(record.queue_wait_ms / 1000)
        self._prompt_tokens.inc(record.prompt_tokens or 0)
        self._completion_tokens.inc(record.completion_tokens or 0)

    def watch(self, scheduler: Callable[[], Counters], engine: Callable[[], EngineState]) -> None:
        """Also report the scheduler's counters and the engine's state, read at every scrape."""
        self.registry.register(_Snapshot(scheduler, engine))

    def page(self) -> bytes:
        """The text of GET /metrics."""
        return generate_latest(self.registry)


class _Snapshot:
    """Collector of what is counted elsewhere."""

    def __init__(self, scheduler: Callable[[], Counters], engine: Callable[[], EngineState]) -> None:
        self._scheduler = scheduler
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        counters, engine = self._scheduler(), self._engine()
        yield GaugeMetricFamily("colibri_slots", "KV slots.", value=counters.capacity)
        yield GaugeMetricFamily("colibri_slots_active", "KV slots in use.", value=counters.active)
        yield GaugeMetricFamily("colibri_queue_length", "Requests waiting for a slot.", value=counters.queued)
        totals = CounterMetricFamily(
            "colibri_admissions", "What became of requests for a slot.", labels=("result",)
        )
        for result in ("admitted", "completed", "rejected", "timed_out", "cancelled"):
            totals.add_metric((result,), getattr(counters, result))
        yield totals
        yield CounterMetricFamily("colibri_engine_restarts", "Engines started again.", value=engine.restarts)
        yield GaugeMetricFamily(
            "colibri_engine_uptime_seconds", "Age of the engine.", value=engine.uptime_seconds
        )
