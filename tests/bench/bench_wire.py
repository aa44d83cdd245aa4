"""How fast the generated Python reads and writes the wire.

    python tests/bench/bench_wire.py [--seconds 8] [--json FILE]

Single thread. Each row is the best of several rounds in which all take turns; messages per second of wall
time and, in the next column, of CPU time of the thread, which is what a busy machine distorts least. The
readers get the stream in pieces of 64 KiB with every check on. The baseline is the straightforward reader:
``readline`` and ``read`` on an unbuffered pipe, one frame after the other, with the same checks and the same
frames; it runs in the same process on a part of the same stream.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

# the checkout whose build is measured: see compare.py
sys.path.insert(0, os.environ.get("BENCH_ROOT", str(Path(__file__).resolve().parents[2])))

from generated import commands, frames, limits

PIECE_BYTES = 65536
STREAM_BYTES = 1 << 20
TARGETS = {"read DATA": 600_000, "read ECHO k=32": 50_000, "write SUBMIT": 250_000}
"""Messages per second that are asked for; and DATA at least ten times the baseline."""
RATIO = 10


class Row(NamedTuple):
    """One measurement: messages per second by the wall clock and by CPU time."""

    name: str
    wall: float
    cpu: float


def data_stream() -> bytes:
    """Plain DATA frames of eight requests, pieces of one to eight bytes."""
    rng = random.Random(1)
    frames_ = []
    size = 0
    while size < STREAM_BYTES:
        frames_.append(frames.write_data(1000 + rng.randrange(8), b"x" * rng.randrange(1, 9)))
        size += len(frames_[-1])
    return b"".join(frames_)


def echo_stream(k: int) -> bytes:
    """ECHO frames with a table of ``k`` entries."""
    rng = random.Random(2)
    frames_ = []
    size = 0
    while size < STREAM_BYTES:
        tokens = [rng.randrange(150_000) for _ in range(k)]
        values = [-rng.random() * 20 for _ in range(k)]
        frames_.append(frames.write_echo(7, b"piece", len(frames_), -rng.random() * 9, tokens, values))
        size += len(frames_[-1])
    return b"".join(frames_)


def reading(stream: bytes) -> Callable[[], int]:
    """One pass of the incremental reader; gives the number of frames."""
    pieces = [stream[start : start + PIECE_BYTES] for start in range(0, len(stream), PIECE_BYTES)]

    def run() -> int:
        reader = frames.FrameReader(handshake=False)
        count = 0
        for piece in pieces:
            count += len(reader.feed(piece))
        if reader.eof() is not None:
            raise SystemExit("the reader did not come to the end of its stream")
        return count

    return run


def readline_frames(pipe: BinaryIO) -> Iterator[frames.Frame]:
    """The straightforward reader: a line, its words, then the payload; same checks, same frames."""
    while True:
        line = pipe.readline()
        if not line:
            return
        kind, *words = line.split()
        if kind == b"DATA" and len(words) == 2:
            yield frames.Data(*id_and_payload(pipe, words))
        elif kind == b"ECHO" and len(words) == 5 + 2 * number(words[4], 0, limits.TOP_K):
            request_id, payload = id_and_payload(pipe, words)
            tokens = tuple(number(word, 0, 2**31 - 1) for word in words[5::2])
            values = tuple(real(word) for word in words[6::2])
            position = number(words[2], 0, 2**32 - 1)
            yield frames.Echo(request_id, payload, position, real(words[3]), tokens, values)
        else:
            raise ValueError(line)


def id_and_payload(pipe: BinaryIO, words: list[bytes]) -> tuple[int, bytes]:
    request_id, size = number(words[0], 1, limits.MAX_REQUEST_ID), number(words[1], 0, limits.PAYLOAD_BYTES)
    payload = pipe.read(size) if size else b""
    if len(payload) != size or pipe.read(1) != b"\n":
        raise ValueError("the payload is not followed by a line feed")
    return request_id, payload


def number(word: bytes, low: int, high: int) -> int:
    if not word.isdigit() or not low <= int(word) <= high:
        raise ValueError(word)
    return int(word)


DECIMAL = re.compile(rb"-?[0-9]+(\.[0-9]+)?|nan|-?inf")


def real(word: bytes) -> float:
    if DECIMAL.fullmatch(word) is None:
        raise ValueError(word)
    return float(word)


def reading_a_pipe(stream: bytes) -> Callable[[], int]:
    """One pass of the straightforward reader over an unbuffered pipe that another thread fills."""

    def fill(descriptor: int) -> None:
        view = memoryview(stream)
        while view:
            view = view[os.write(descriptor, view) :]
        os.close(descriptor)

    def run() -> int:
        source, sink = os.pipe()
        writer = threading.Thread(target=fill, args=(sink,))
        writer.start()
        with os.fdopen(source, "rb", buffering=0) as pipe:
            count = sum(1 for _ in readline_frames(pipe))
        writer.join()
        return count

    return run


def writing_submits(prompt: bytes) -> Callable[[], int]:
    """Ten thousand plain SUBMITs."""

    def run() -> int:
        for number in range(1, 10_001):
            commands.write_submit(number, 0, prompt, 256, 0.7, 0.9)
        return 10_000

    return run


def writing_data() -> Callable[[], int]:
    """Ten thousand plain DATA frames."""

    def run() -> int:
        for number in range(1, 10_001):
            frames.write_data(number, b"token")
        return 10_000

    return run


def reading_submits(prompt: bytes) -> Callable[[], int]:
    """Plain SUBMITs through the engine's reader."""
    stream = b"".join(commands.write_submit(number, 0, prompt, 256, 0.7, 0.9) for number in range(1, 5001))
    pieces = [stream[start : start + PIECE_BYTES] for start in range(0, len(stream), PIECE_BYTES)]

    def run() -> int:
        reader = commands.CommandReader()
        return sum(len(reader.feed(piece)) for piece in pieces)

    return run


def measure(runs: dict[str, Callable[[], int]], seconds: float) -> list[Row]:
    """The best of at least three rounds for each row; they take turns, so that load from outside hits all."""
    best = dict.fromkeys(runs, (0.0, 0.0))
    until = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < until:
        for name, run in runs.items():
            cpu_start, wall_start = time.thread_time(), time.perf_counter()
            count = run()
            wall, cpu = time.perf_counter() - wall_start, time.thread_time() - cpu_start
            best[name] = max(best[name][0], count / wall), max(best[name][1], count / cpu)
        rounds += 1
    return [Row(name, *numbers) for name, numbers in best.items()]


def all_runs() -> dict[str, Callable[[], int]]:
    """Every row of the table, a baseline beside what it is held against."""
    plain, echoes, prompt = data_stream(), echo_stream(32), b"2 + 2 = " * 12
    return {
        "read DATA": reading(plain),
        "read DATA by readline": reading_a_pipe(plain[: len(plain) // 16].rpartition(b"DATA")[0]),
        "read ECHO k=32": reading(echoes),
        "read ECHO k=32 by readline": reading_a_pipe(echoes[: len(echoes) // 8].rpartition(b"ECHO")[0]),
        "write SUBMIT": writing_submits(prompt),
        "read SUBMIT": reading_submits(prompt),
        "write DATA": writing_data(),
    }


def verdicts(rows: list[Row]) -> dict[str, bool]:
    """Which targets are met; CPU time counts, so that a neighbour's load does not."""
    by_name = {row.name: row for row in rows}
    found = {f"{name} >= {least:,}/s": by_name[name].cpu >= least for name, least in TARGETS.items()}
    ratio = by_name["read DATA"].cpu / by_name["read DATA by readline"].cpu
    found[f"read DATA >= {RATIO} x readline (here {ratio:.1f} x)"] = ratio >= RATIO
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the generated Python on the wire.")
    parser.add_argument("--seconds", type=float, default=8.0, help="time for all rows together")
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options = parser.parse_args()
    rows = measure(all_runs(), options.seconds)
    print(f"{'':<28}{'wall, 1/s':>14}{'CPU, 1/s':>14}")
    for row in rows:
        print(f"{row.name:<28}{row.wall:>14,.0f}{row.cpu:>14,.0f}")
    for text, met in verdicts(rows).items():
        print(f"{'met' if met else 'MISSED':<8}{text}")
    if options.json:
        document = {"rows": [row._asdict() for row in rows], "verdicts": verdicts(rows)}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
