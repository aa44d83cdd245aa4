"""A gateway under mixed traffic for minutes: every answer exact, nothing left behind, counters that add up.

    python -m tests.soak.soak [--seconds 300] [--streams 20000] [--seed 1]

A real `coli serve` with the scripted engine and eight slots is put under eight clients that choose by weight
what to do next (see traffic.py), while the engine dies in the middle of a request or is killed from outside
every few seconds. Every answer must be the exact one; only a request that was open while an engine was down
may have failed, and only by name. Then short streams over fresh connections, so that descriptor numbers are
reused at once, while others vanish: no stream may be cancelled that stayed. At the end threads, descriptors
and memory are what they were after the warm-up, every slot is free, and
``started = ok + error + cancelled + refused``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from tests.clients.gateways import Gateway
from tests.scripted import SCRIPTED_ENGINE, ScriptedEngineFiles
from tests.soak import traffic

CLIENTS: Final = 8
KILL_SECONDS: Final = 6.0  # pause between two deaths of the engine
SETTLE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.5
MOST_THREADS: Final = CLIENTS + 6
"""Workers come with demand and go after seconds of idleness, one per client and two for the driver's own
requests; besides them I/O, engine and keepalive, and one that has just been asked to end.
"""
GROWTH_MB: Final = 8.0
"""What the resident set may grow between the end of the warm-up and the end: the allocator's arenas still
spread over new threads' peaks; a leak of one request's objects (about 10 kB) would be ten times as much.
"""


class SoakFailed(AssertionError):
    """What was not as it must be."""


@dataclass
class Report:
    """What a soak did. ``spared`` requests failed while an engine was down, as they may."""

    clients: Counter[str] = field(default_factory=Counter)
    spared: int = 0
    deaths: int = 0
    streams: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    started: int = 0
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)


def outcomes(metrics: dict[str, float]) -> dict[str, int]:
    """Requests ended, by outcome."""
    found: Counter[str] = Counter()
    for name, value in metrics.items():
        if name.startswith("colibri_requests_ended_total{"):
            found[name.partition('outcome="')[2].partition('"')[0]] += int(value)
    return dict(found)


class Soak:
    """One gateway and all its clients."""

    def __init__(self, directory: Path, seed: int) -> None:
        model = directory / "served"
        model.mkdir()
        (model / "config.json").write_text('{"model_type": "glm", "max_position_embeddings": 4096}')
        files = ScriptedEngineFiles(directory)
        match = [[word, script] for word, script in traffic.SCRIPTS.items()]
        files.plan({"seq": 1, "match": match})
        self.gateway = Gateway(
            *("--model", str(model), "--model-id", "m", "--engine", str(SCRIPTED_ENGINE)),
            *("--kv-slots", "8", "--max-queue", "64"),
            environment={**files.environment, "COLI_MAX_CONNECTIONS_PER_IP": "0"},
        )
        self.port = int(self.gateway.url.rpartition(":")[2])
        self.process = psutil.Process(self.gateway.process.pid)
        self.report = Report()
        self._seed = seed
        self._lock = threading.Lock()
        self._failures: list[tuple[float, float, str]] = []  # of clients: from, to, what was wrong
        self._down: list[tuple[float, float]] = []  # from just before a death to the next health of 200

    # -- what the gateway says of itself -----------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Name, with labels, of every sample of GET /metrics."""
        page = traffic.ask(self.port, "/metrics", b"", method="GET").body.decode()
        lines = [line for line in page.splitlines() if line and not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    def health(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(traffic.ask(self.port, "/health", b"", method="GET").body)
        return found

    def settled(self) -> dict[str, float]:
        """Metrics once nothing runs any more; only this scrape itself is open."""
        limit = time.monotonic() + SETTLE_SECONDS
        while True:
            found = self.metrics()
            gauges = {
                "colibri_requests_open": 1,
                "colibri_slots_active": 0,
                "colibri_queue_length": 0,
            }
            wrong = {name: found[name] for name, wanted in gauges.items() if found[name] != wanted}
            if not wrong:
                return found
            if time.monotonic() > limit:
                raise SoakFailed(f"not back to rest: {wrong}")
            time.sleep(0.05)

    def footprint(self, wanted_descriptors: int = 0) -> dict[str, float]:
        """Threads, descriptors and resident MB at rest.

        The connection of the last scrape is closed a moment after its answer: the least number of descriptors
        counts, of half a second, and for longer while it is over ``wanted_descriptors``, if that is given.
        """
        self.settled()
        descriptors = self.process.num_fds()
        began = time.monotonic()
        while True:
            passed = time.monotonic() - began
            if passed > (SETTLE_SECONDS if descriptors > wanted_descriptors > 0 else LOOK_SECONDS):
                break
            time.sleep(0.02)
            descriptors = min(descriptors, self.process.num_fds())
        with self.process.oneshot():
            return {
                "threads": self.process.num_threads(),
                "descriptors": descriptors,
                "rss_mb": round(self.process.memory_info().rss / 1e6, 1),
            }

    # -- traffic -----------------------------------------------------------------------------------------

    def run_for(self, seconds: float, *, deaths: bool) -> None:
        """All kinds of clients for so long, and the engine dies every now and then."""
        until = time.monotonic() + seconds
        rng = random.Random(f"{self._seed}/deaths")
        with self._clients(lambda turns: time.monotonic() < until):
            while deaths and time.monotonic() + KILL_SECONDS / 2 < until:
                self._death(rng)
                time.sleep(min(KILL_SECONDS, max(0.0, until - time.monotonic())))

    def run_turns(self, turns: int, *, death: bool) -> None:
        """All kinds of clients, so many turns each; the engine dies once, when one has had half of them."""
        half = threading.Event()

        def go_on(done: int) -> bool:
            if done * 2 >= turns:
                half.set()
            return done < turns

        with self._clients(go_on):
            half.wait()
            if death:
                self._death(random.Random(f"{self._seed}/deaths"))

    @contextlib.contextmanager
    def _clients(self, go_on: Callable[[int], bool]) -> Iterator[None]:
        """All kinds of clients: each has another turn while ``go_on(turns it has had)``."""
        threads = [
            threading.Thread(target=self._client, args=(random.Random(f"{self._seed}/{number}"), go_on))
            for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()
        self._raise_failures()

    def _client(self, rng: random.Random, go_on: Callable[[int], bool]) -> None:
        kinds, weights = list(traffic.KINDS), list(traffic.KINDS.values())
        turns = 0
        while go_on(turns):
            (kind,) = rng.choices(kinds, weights)
            self._watched(kind, rng)
            turns += 1

    def _watched(self, kind: traffic.Client, rng: random.Random) -> None:
        began = time.monotonic()
        try:
            kind(self.port, rng)
            with self._lock:
                self.report.clients[kind.__name__] += 1
        except (traffic.Unexpected, OSError, ValueError) as wrong:
            failure = (began, time.monotonic(), f"{kind.__name__}: {type(wrong).__name__}: {wrong}")
            with self._lock:
                self._failures.append(failure)

    def _death(self, rng: random.Random) -> None:
        """The engine ends, by itself or by a signal, and comes back."""
        began = time.monotonic()
        pid = self.health()["engine"]["pid"]
        if rng.random() < 0.5:
            os.kill(pid, signal.SIGKILL)
        else:
            self._watched(traffic.engine_dies, rng)
        limit = time.monotonic() + SETTLE_SECONDS
        while (health := self.health())["status"] != "ok" or health["engine"]["pid"] == pid:
            if time.monotonic() > limit:
                raise SoakFailed(f"the engine did not come back: {health}")
            time.sleep(0.02)
        self._down.append((began, time.monotonic()))
        self.report.deaths += 1

    def _raise_failures(self) -> None:
        wrong = [
            text
            for began, ended, text in self._failures
            if not any(began < up and down < ended for down, up in self._down)
        ]
        self.report.spared += len(self._failures) - len(wrong)
        self._failures.clear()
        if wrong:
            shown = "\n".join(wrong[:5])
            raise SoakFailed(f"{len(wrong)} wrong answers, such as:\n{shown}")

    def run_short_streams(self, count: int) -> None:
        """Streams over fresh connections beside clients that vanish: none that stays is cancelled."""
        before = outcomes(self.settled())
        vanished = sum(self._in_parallel(count, self._short_streams))
        after = outcomes(self.settled())
        ok = after["ok"] - before["ok"]
        cancelled = after["cancelled"] - before["cancelled"]
        self._raise_failures()
        if ok < count or cancelled > vanished or after["error"] != before["error"]:
            raise SoakFailed(f"{count} streams and {vanished} that left: {before} became {after}")
        self.report.streams += count

    def _short_streams(self, number: int, count: int) -> int:
        rng = random.Random(f"{self._seed}/streams/{number}")
        vanished = 0
        for turn in range(count):
            if turn % 10 == 0:
                vanished += 1
                self._watched(traffic.vanish, rng)
            self._watched(traffic.stream_completion_at_once, rng)
        return vanished

    def _in_parallel(self, count: int, work: Callable[[int, int], int]) -> list[int]:
        results = [0] * CLIENTS

        def run(number: int) -> None:
            results[number] = work(number, count // CLIENTS + (number < count % CLIENTS))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    # -- the verdict -------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Raises SoakFailed for anything that stayed behind or does not add up."""
        before = self.report.before
        after = self.footprint(int(before["descriptors"]))
        self.report.after = after
        if after["descriptors"] > before["descriptors"]:
            raise SoakFailed(f"descriptors: {before['descriptors']:.0f} became {after['descriptors']:.0f}")
        if after["threads"] > MOST_THREADS:
            raise SoakFailed(f"{after['threads']:.0f} threads for {CLIENTS} clients")
        if after["rss_mb"] > before["rss_mb"] + GROWTH_MB:
            raise SoakFailed(f"resident MB: {before['rss_mb']} became {after['rss_mb']}")
        found = self.settled()
        self.report.started = int(found["colibri_requests_started_total"])
        self.report.ended = outcomes(found)
        if self.report.started != sum(self.report.ended.values()) + 1:  # this scrape is open
            raise SoakFailed(f"{self.report.started} started, ended: {self.report.ended}")
        admissions = {
            result: found[f'colibri_admissions_total{{result="{result}"}}']
            for result in ("admitted", "completed")
        }
        if admissions["admitted"] != admissions["completed"]:
            raise SoakFailed(f"slots: {admissions}")


def soak_for(seconds: float, streams: int, seed: int, warm_up: float) -> Report:
    """The whole soak, by the clock. Raises SoakFailed; otherwise says what was done."""
    return _run(
        seed,
        lambda soak: soak.run_for(warm_up, deaths=False),
        lambda soak: soak.run_for(seconds, deaths=True),
        streams,
    )


def soak_turns(turns: int, streams: int, warm_up: int, seed: int = 1) -> Report:
    """The same for a number of turns of each client, and with one death of the engine."""
    return _run(
        seed,
        lambda soak: soak.run_turns(warm_up, death=False),
        lambda soak: soak.run_turns(turns, death=True),
        streams,
    )


def _run(seed: int, warm_up: Callable[[Soak], None], mixed: Callable[[Soak], None], streams: int) -> Report:
    with tempfile.TemporaryDirectory() as directory:
        soak = Soak(Path(directory), seed)
        with contextlib.ExitStack() as ending:
            ending.callback(soak.gateway.close)
            warm_up(soak)
            soak.report.before = soak.footprint()
            mixed(soak)
            soak.run_short_streams(streams)
            soak.judge()
    if soak.gateway.process.returncode:
        raise SoakFailed(f"exit code {soak.gateway.process.returncode}")
    return soak.report


def main() -> None:
    parser = argparse.ArgumentParser(description="A gateway under mixed traffic for minutes.")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        report = soak_for(options.seconds, options.streams, options.seed, warm_up=20.0)
    except SoakFailed as failed:
        sys.exit(f"soak failed: {failed}")
    print(f"{sum(report.clients.values()):,} clients: {dict(report.clients)}")
    print(f"{report.deaths} deaths of the engine, {report.spared} requests failed with it")
    print(f"{report.streams:,} short streams, none cancelled by mistake")
    print(f"{report.started:,} requests started; ended: {report.ended}")
    print(f"at rest after the warm-up {report.before}, at the end {report.after}")


if __name__ == "__main__":
    main()
