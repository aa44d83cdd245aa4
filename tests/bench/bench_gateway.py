"""What the gateway costs: CPU per event, delay, events per second, first byte, CPU per answer, memory.

    python tests/bench/bench_gateway.py [--quick] [--json FILE]

Every row runs a real `coli serve` process (its access log on) before a real engine process, with a client in
a process of its own that holds what it receives to the expected bytes (see load_client.py). The engine is the
scripted one of ../shared in flood mode; where a clock is needed it is stamping_engine.py. CPU is user and
system time of the gateway's process alone, engine and client not included, from before the first request to
after the last. The baseline is bare_relay.py, in the same run, with the same engine and the same client.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients.gateways import Gateway
from tests.scripted import SCRIPTED_ENGINE

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
MEASURED: Final = Path(
    os.environ.get("BENCH_ROOT", ROOT)
)  # the checkout whose gateway is run: see compare.py
STAMPING_ENGINE: Final = HERE / "stamping_engine.py"
CLIENT: Final = HERE / "load_client.py"
RELAY: Final = HERE / "bare_relay.py"
TEXT: Final = "abcdef"
PERIOD_MS: Final = 20
CLIENT_SECONDS: Final = 300


@dataclass(frozen=True)
class Row:
    """One measurement; ``met`` says whether it is within the issue's ``target``, None where there is none."""

    name: str
    value: str
    target: str
    met: bool | None
    note: str = ""


class Client:
    """A load client that runs in its own process."""

    def __init__(self, mode: str, **options: Any) -> None:
        command = [sys.executable, str(CLIENT), mode, json.dumps(options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def result(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=CLIENT_SECONDS)
        if self.process.returncode:
            raise SystemExit("the client failed")
        found: dict[str, Any] = json.loads(out)
        return found


def run_client(mode: str, **options: Any) -> dict[str, Any]:
    return Client(mode, **options).result()


@contextlib.contextmanager
def gateway(engine: Path, slots: int, **environment: str) -> Iterator[tuple[int, psutil.Process]]:
    """Port and process of a gateway without connection caps."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "config.json").write_text(
            '{"model_type": "glm", "max_position_embeddings": 1000000}'
        )
        served = Gateway(
            *("--model", directory, "--model-id", "m", "--engine", str(engine)),
            *("--kv-slots", str(slots), "--max-tokens", "1000000"),
            environment={
                "COLI_MAX_CONNECTIONS": "2000",
                "COLI_MAX_CONNECTIONS_PER_IP": "0",
                **environment,
            },
            root=MEASURED,
        )
        try:
            yield int(served.url.rpartition(":")[2]), psutil.Process(served.process.pid)
        finally:
            served.close()


@contextlib.contextmanager
def relay(engine: Path, **environment: str) -> Iterator[tuple[int, psutil.Process]]:
    """The same of the baseline."""
    process = subprocess.Popen(
        [sys.executable, str(RELAY), str(engine)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), psutil.Process(process.pid)
    finally:
        for child in psutil.Process(process.pid).children():
            child.terminate()
        process.terminate()
        process.wait(10)
        process.stdout.close()


def flood(tokens: int, delay_us: int) -> dict[str, str]:
    return {"SCRIPTED_ENGINE_FLOOD": f"tokens={tokens},bytes={len(TEXT)},delay_us={delay_us}"}


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


class Peak:
    """Largest resident set of a process while the block runs, in MB; asked ten times a second."""

    def __init__(self, process: psutil.Process) -> None:
        self.megabytes = 0.0
        self._process = process
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.megabytes = max(self.megabytes, self._process.memory_info().rss / 1e6)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def streams(place: tuple[int, psutil.Process], count: int, tokens: int) -> dict[str, Any]:
    """Streams of flood mode, exact or not at all; adds the CPU of the process that served them."""
    port, process = place
    before = cpu_seconds(process)
    with Peak(process) as peak:
        found = run_client("streams", port=port, count=count, tokens=tokens, text=TEXT)
    if not found["exact"]:
        raise SystemExit("a stream was not delivered exactly")
    return found | {"cpu": cpu_seconds(process) - before, "rss": peak.megabytes}


def paced(count: int, tokens: int, target: float) -> list[Row]:
    """CPU s per 10,000 events of streams that get a token every 20 ms."""
    environment = flood(tokens, PERIOD_MS * 1000)
    with gateway(SCRIPTED_ENGINE, count, **environment) as place:
        ours = streams(place, count, tokens)
    with relay(SCRIPTED_ENGINE, **environment) as place:
        bare = streams(place, count, tokens)
    cost, floor = (1e4 * found["cpu"] / found["events"] for found in (ours, bare))
    rate = ours["events"] / ours["seconds"]
    rows = [
        Row(
            f"{count} streams, a token each {PERIOD_MS} ms: CPU s / 10,000 events",
            f"{cost:.3f}",
            f"<= {target:.2f}",
            cost <= target,
            f"{cost / floor:.2f} x the baseline's {floor:.3f}; {rate:,.0f} events/s",
        )
    ]
    if count == 256:
        rows.append(
            Row("RSS at 256 open streams, MB", f"{ours['rss']:.1f}", "<= 60", ours["rss"] <= 60, "peak")
        )
    return rows


def firehose(tokens: int) -> list[Row]:
    """Events per second when the engine never waits, 64 streams."""
    environment = flood(tokens, 0)
    with gateway(SCRIPTED_ENGINE, 64, **environment) as place:
        ours = streams(place, 64, tokens)
    with relay(SCRIPTED_ENGINE, **environment) as place:
        bare = streams(place, 64, tokens)
    rate, floor = (found["events"] / found["seconds"] for found in (ours, bare))
    per_cpu = ours["events"] / ours["cpu"]
    return [
        Row(
            "firehose, 64 streams, every byte checked: events/s",
            f"{rate:,.0f}",
            ">= 250,000",
            rate >= 250_000,
            f"{rate / floor:.2f} x the baseline's {floor:,.0f}; peak RSS {ours['rss']:.0f} MB",
        ),
        Row(
            "firehose: events per CPU second of the gateway",
            f"{per_cpu:,.0f}",
            "",
            None,
            f"{per_cpu / (bare['events'] / bare['cpu']):.2f} x the baseline",
        ),
    ]


def delays(tokens: int) -> list[Row]:
    """From the engine's clock before its write to the client's after its read, 64 paced streams."""
    found = []
    environment = {"BENCH_PERIOD_MS": str(PERIOD_MS)}
    for place in (gateway(STAMPING_ENGINE, 64, **environment), relay(STAMPING_ENGINE, **environment)):
        with place as (port, _):
            found.append(run_client("streams", port=port, count=64, tokens=tokens, stamped=True))
    ours, bare = found
    if not ours["exact"]:
        raise SystemExit("a stream was not delivered exactly")
    delay, floor = ours["delay_ms"], bare["delay_ms"]
    return [
        Row("64 paced streams, engine to client: p50 ms", f"{delay['p50']:.2f}", "", None,
            f"baseline {floor['p50']:.2f}"),
        Row("64 paced streams, engine to client: p99 ms", f"{delay['p99']:.2f}", "<= 10", delay["p99"] <= 10,
            f"baseline {floor['p99']:.2f}"),
    ]  # fmt: skip


def first_byte(requests: int) -> list[Row]:
    """Time to the first byte of a stream, idle and beside 64 paced streams."""
    rows = []
    for name, others in (("idle", 0), ("beside 64 open streams", 64)):
        with gateway(STAMPING_ENGINE, 66, BENCH_PERIOD_MS=str(PERIOD_MS)) as (port, process):
            background = None
            if others:
                background = Client("streams", port=port, count=others, tokens=500_000, stamped=True)
                wait_for_connections(process, others)
            delay = run_client("first-byte", port=port, requests=requests)["first_byte_ms"]
            if background is not None:
                background.process.kill()
                background.process.communicate()
        for which, target in (("p50", 1), ("p99", 8)):
            rows.append(
                Row(f"first byte, {name}: {which} ms", f"{delay[which]:.2f}", f"<= {target}",
                    delay[which] <= target, f"{delay['count']} requests")
            )  # fmt: skip
    return rows


def wait_for_connections(process: psutil.Process, count: int) -> None:
    limit = time.monotonic() + 30
    while len(process.net_connections("tcp")) < count + 1:
        if time.monotonic() > limit:
            raise SystemExit("the streams were not opened")
        time.sleep(0.05)
    time.sleep(1)  # and the first second of their tokens is over


def answers(requests: int) -> list[Row]:
    """CPU of a JSON answer, and what 20,000 requests of both forms leave behind."""
    rows = []
    floors = {}
    with relay(SCRIPTED_ENGINE, **flood(16, 0)) as (port, process):
        for connections in (1, 16):
            options = {"port": port, "text": TEXT, "tokens": 16, "connections": connections}
            before = cpu_seconds(process)
            run_client("loop", requests=requests // 4, stream=True, **options)
            floors[connections] = 1e3 * (cpu_seconds(process) - before) / (requests // 4)
    with gateway(SCRIPTED_ENGINE, 64, **flood(16, 0)) as (port, process):
        options = {"port": port, "text": TEXT, "tokens": 16}
        run_client("loop", connections=16, requests=1000, stream=True, **options)
        run_client("loop", connections=16, requests=1000, stream=False, **options)
        resident = process.memory_info().rss
        for connections in (1, 16):
            before = cpu_seconds(process)
            found = run_client(
                "loop", connections=connections, requests=requests // 4, stream=False, **options
            )
            cost, floor = 1e3 * (cpu_seconds(process) - before) / found["requests"], floors[connections]
            rows.append(
                Row(f"JSON answer of 16 tokens, {connections} at a time: CPU ms", f"{cost:.3f}", "<= 0.5",
                    cost <= 0.5, f"{cost / floor:.1f} x the baseline's {floor:.3f}; "
                    f"{found['requests'] / found['seconds']:,.0f} requests/s")
            )  # fmt: skip
        run_client("loop", connections=16, requests=requests // 2, stream=True, **options)
        growth = (process.memory_info().rss - resident) / 1e6
        rows.append(
            Row(f"growth of RSS over {requests:,} requests, MB", f"{growth:+.1f}", "none", growth < 2,
                "half JSON, half streams, after 2,000 of each to warm up; under 2 MB counts as none")
        )  # fmt: skip
    return rows


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the code."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "ten_million_turns_cpu": round(ten_million_turns(), 3),
    }


def ten_million_turns() -> float:
    """CPU seconds of an empty loop: what a neighbour takes from the caches and clocks of this machine."""
    before = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - before


def show(title: str, rows: list[Row], before: dict[str, Any], path: Path) -> None:
    """Print the table and store rows and machine as JSON."""
    after = machine()
    table = Table(
        title=f"{title}; load average {before['load'][0]} before and {after['load'][0]} after, an empty loop "
        f"of ten million turns {before['ten_million_turns_cpu']} and {after['ten_million_turns_cpu']} CPU s"
    )
    for heading in ("", "measured", "target", "", "note"):
        table.add_column(heading, justify="right" if heading in ("measured", "target") else "left")
    for row in rows:
        verdict = {None: "", True: "met", False: "[red]MISSED[/red]"}[row.met]
        table.add_row(row.name, row.value, row.target, verdict, row.note)
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    path.parent.mkdir(exist_ok=True)
    document = {"machine": {"before": before, "after": after}, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(document, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the gateway costs.")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work: a smoke test of the benchmark"
    )
    parser.add_argument("--only", default="", help="only the parts whose names contain this")
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "gateway.json")
    options = parser.parse_args()
    if not SCRIPTED_ENGINE.exists():
        raise SystemExit("the scripted engine of ../shared is not here")
    part = 10 if options.quick else 1
    parts = {
        "paced 64": lambda: paced(64, 600 // part, 0.40),
        "paced 256": lambda: paced(256, 250 // part, 0.45),
        "firehose": lambda: firehose(20_000 // part),
        "delay": lambda: delays(500 // part),
        "first byte": lambda: first_byte(600 // part),
        "answers": lambda: answers(20_000 // part),
    }
    before = machine()
    rows = [row for name, run in parts.items() if options.only in name for row in run()]
    show("Gateway", rows, before, options.json)


if __name__ == "__main__":
    main()
