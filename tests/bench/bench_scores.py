"""What echoed log probabilities cost the gateway: memory, time, and a batch as the harness lm-eval sends it.

    python tests/bench/bench_scores.py [--quick] [--json FILE]

A real `coli serve` before scoring_engine.py, which answers every prompt id with a table. The yardstick for
time is the CPU of only reading the same frames, in this process, with the gateway's own reader; memory is the
gateway's peak over what it had at rest.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from generated.frames import FrameReader
from tests.bench.bench_gateway import HERE, ROOT, Row, cpu_seconds, gateway, machine, show
from tests.bench.scoring_engine import frames

SCORING_ENGINE: Final = HERE / "scoring_engine.py"
PIECE_BYTES: Final = 1 << 16


def score(port: int, prompt: list[Any], k: int) -> bytes:
    """The answer to one request of the harness's shape."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    body = {"model": "m", "prompt": prompt, "max_tokens": 1, "logprobs": k, "echo": True, "temperature": 0}
    connection.request("POST", "/v1/completions", json.dumps(body))
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"refused: {data!r}")
    return data


def reading_seconds(positions: int, k: int) -> float:
    """CPU of reading the frames of one request and nothing else; the best of three."""
    stream = frames(b"1", positions, k)
    found = []
    for _ in range(3):
        reader = FrameReader(handshake=False)
        before = time.process_time()
        count = 0
        for start in range(0, len(stream), PIECE_BYTES):
            count += len(reader.feed(stream[start : start + PIECE_BYTES]))
        found.append(time.process_time() - before)
        if count != positions + 3:
            raise SystemExit("the reader did not read the whole stream")
    return min(found)


def megabytes(pid: int, field: str) -> float:
    match = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024 / 1e6


def long_echo(positions: int, k: int) -> list[Row]:
    """One prompt of many tokens with large tables."""
    with gateway(SCORING_ENGINE, 1) as (port, process):
        score(port, [1, 2], k)
        at_rest, before = megabytes(process.pid, "VmRSS"), cpu_seconds(process)
        answer = score(port, [7] * positions, k)
        cpu, peak = cpu_seconds(process) - before, megabytes(process.pid, "VmHWM")
    if answer.count(b"<token_id:100031>") != positions:
        raise SystemExit("the answer is not whole")
    reading = reading_seconds(positions, k)
    over, allowed = peak - at_rest, 100 * positions / 65_536
    name = f"echo of {positions:,} positions x {k}"
    return [
        Row(f"{name}: MB over rest", f"{over:.0f}", f"<= {allowed:.0f}", over <= allowed,
            f"answer of {len(answer) / 1e6:.0f} MB"),
        Row(f"{name}: CPU of the gateway, x reading", f"{cpu / reading:.2f}", "<= 3", cpu <= 3 * reading,
            f"{cpu:.2f} s, reading alone {reading:.2f} s"),
    ]  # fmt: skip


def batch(members: int, tokens: int) -> list[Row]:
    """The harness's batch: ragged members are no different, so these are not."""
    with gateway(SCORING_ENGINE, 1) as (port, process):
        score(port, [[1, 2], [3]], 1)
        before = cpu_seconds(process)
        answer = json.loads(score(port, [[7] * tokens] * members, 1))
        cpu = cpu_seconds(process) - before
    if [len(choice["logprobs"]["tokens"]) for choice in answer["choices"]] != [tokens + 1] * members:
        raise SystemExit("the answer is not whole")
    allowed = members * tokens / 65_536
    return [
        Row(f"batch of {members} x {tokens} tokens, k = 1: CPU s", f"{cpu:.2f}", f"<= {allowed:.2g}",
            cpu <= allowed, f"reading alone {reading_seconds(members * tokens, 1):.2f} s")
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="What echoed log probabilities cost the gateway.")
    parser.add_argument("--quick", action="store_true", help="an eighth of the work: a smoke test")
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "scores.json")
    options = parser.parse_args()
    part = 8 if options.quick else 1
    before = machine()
    rows = long_echo(65_536 // part, 32) + batch(128 // part, 512)
    show("Log probabilities", rows, before, options.json)


if __name__ == "__main__":
    main()
