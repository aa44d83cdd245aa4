"""GET /metrics: what the gateway counts, in Prometheus text form (http.md §5).

Guarantees: every label value comes from a closed set made at start (the routes served, the outcomes, the
two token kinds), never from a request; ``colibri_requests_started_total`` equals the sum over the four
outcomes of ``colibri_requests_ended_total`` plus the requests that are open; gauges are read when they are
asked for, so they are right after any storm of disconnects.

A request costs a few additions under one lock; the families of prometheus-client are made at each scrape.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

from server.http.accesslog import CANCELLED, ERROR, OK, REFUSED, AccessRecord
from server.scheduler import TOTALS, Counters

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OUTCOMES: Final = (OK, ERROR, CANCELLED, REFUSED)
OTHER_ROUTE: Final = "other"

_DURATIONS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_BOUNDS: Final = (*map(floatToGoString, _DURATIONS), "+Inf")


class EngineState(Protocol):
    """The part of the engine's health that is a metric."""

    @property
    def restarts(self) -> int: ...

    @property
    def uptime_seconds(self) -> float: ...


class _Durations:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(_DURATIONS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many were at most as long as each bound."""
        total, found = 0, []
        for bound, count in zip(_BOUNDS, self.counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


class Metrics:
    """The counters of one gateway; an observer of its HTTP layer."""

    def __init__(self, routes: Iterable[str]) -> None:
        """``routes``: patterns of every path that is served."""
        routes = (*routes, OTHER_ROUTE)
        self._since = time.time()
        self._lock = threading.Lock()
        self._started = 0
        self._open = 0
        self._ended = {route: dict.fromkeys(OUTCOMES, 0) for route in routes}
        self._durations = {route: _Durations() for route in routes}
        self._queue_wait = _Durations()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(_Collector(self._totals))

    def began(self, record: AccessRecord) -> None:
        """A request line was read."""
        with self._lock:
            self._started += 1
            self._open += 1

    def ended(self, record: AccessRecord) -> None:
        """A request is over, whatever became of it."""
        route = record.route if record.route in self._ended else OTHER_ROUTE
        outcome = record.outcome if record.outcome in OUTCOMES else ERROR
        with self._lock:
            self._open -= 1
            self._ended[route][outcome] += 1
            self._durations[route].observe(max(0.0, record.ended - record.began))
            if record.queue_wait_ms is not None:
                self._queue_wait.observe(record.queue_wait_ms / 1000)
            self._prompt_tokens += record.prompt_tokens or 0
            self._completion_tokens += record.completion_tokens or 0

    def watch(self, scheduler: Callable[[], Counters], engine: Callable[[], EngineState]) -> None:
        """Also report the scheduler's counters and the engine's state, read at every scrape."""
        self.registry.register(_Collector(lambda: _snapshot(scheduler(), engine())))

    def page(self) -> bytes:
        """The text of GET /metrics."""
        return generate_latest(self.registry)

    def _totals(self) -> list[Metric]:
        with self._lock:
            return [*self._requests(), *self._times(), self._tokens()]

    def _requests(self) -> Iterator[Metric]:
        since = self._since
        started = CounterMetricFamily("colibri_requests_started", "HTTP requests begun.")
        started.add_metric((), self._started, created=since)
        yield started
        ended = CounterMetricFamily(
            "colibri_requests_ended", "HTTP requests ended.", labels=("route", "outcome")
        )
        for route, outcomes in self._ended.items():
            for outcome, count in outcomes.items():
                ended.add_metric((route, outcome), count, created=since)
        yield ended
        yield GaugeMetricFamily("colibri_requests_open", "HTTP requests not ended yet.", value=self._open)

    def _times(self) -> Iterator[Metric]:
        duration = HistogramMetricFamily(
            "colibri_request_duration_seconds",
            "From the first byte of a request to the last byte of its answer.",
            labels=("route",),
        )
        for route, times in self._durations.items():
            self._add(duration, times, route=route)
        yield duration
        queue_wait = HistogramMetricFamily(
            "colibri_queue_wait_seconds", "Time a request waited for its slot."
        )
        self._add(queue_wait, self._queue_wait)
        yield queue_wait

    def _add(self, family: HistogramMetricFamily, times: _Durations, **labels: str) -> None:
        family.add_metric(tuple(labels.values()), times.buckets(), times.sum)
        family.add_sample(f"{family.name}_created", labels, self._since)

    def _tokens(self) -> Metric:
        tokens = CounterMetricFamily("colibri_tokens", "Tokens of finished requests.", labels=("kind",))
        tokens.add_metric(("prompt",), self._prompt_tokens, created=self._since)
        tokens.add_metric(("completion",), self._completion_tokens, created=self._since)
        return tokens


class _Collector:
    """Families that are made when they are asked for."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()


def _snapshot(counters: Counters, engine: EngineState) -> Iterator[Metric]:
    """What is counted elsewhere."""
    yield GaugeMetricFamily("colibri_slots", "KV slots.", value=counters.capacity)
    yield GaugeMetricFamily("colibri_slots_active", "KV slots in use.", value=counters.active)
    yield GaugeMetricFamily("colibri_queue_length", "Requests waiting for a slot.", value=counters.queued)
    totals = CounterMetricFamily(
        "colibri_admissions", "What became of requests for a slot.", labels=("result",)
    )
    for result in TOTALS:
        totals.add_metric((result,), getattr(counters, result))
    yield totals
    yield CounterMetricFamily("colibri_engine_restarts", "Engines started again.", value=engine.restarts)
    yield GaugeMetricFamily(
        "colibri_engine_uptime_seconds", "Age of the engine.", value=engine.uptime_seconds
    )
