"""The client of the gateway benchmark: one thread, one epoll loop, as little work per byte as can be.

    python tests/bench/load_client.py streams|loop|first-byte '{"port": 8000, ...}'

Prints one JSON object. ``streams`` opens many streams at once and holds every one of them to the expected
bytes: the first event is kept, and at the end length and CRC-32 of the whole body must be those of that event
repeated, the last event and ``[DONE]``. With ``stamped`` each text is the monotonic time in nanoseconds at
which the engine wrote it; then the number of events and their order are checked and the delays are reported.
``loop`` sends one request after the other over several kept-alive connections. ``first-byte`` takes the time
from sending a request to the first byte of its answer.
"""

from __future__ import annotations

import json
import random
import re
import select
import socket
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any, Final

BUFFER_BYTES: Final = 1 << 18
PATIENCE: Final = 120.0  # seconds without any byte after which the run is given up
STAMP: Final = re.compile(rb'"text":"([0-9]+)"')
STREAM_END: Final = b"0\r\n\r\n"


def request(prompt: str, tokens: int, *, stream: bool) -> bytes:
    """One POST /v1/completions, head and body."""
    body = json.dumps(
        {"model": "m", "prompt": prompt, "stream": stream, "max_tokens": tokens, "temperature": 0}
    ).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    ordered = sorted(values)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
        "count": len(ordered),
    }


class Stream:
    """One chunked answer, decoded as it comes; nothing of the body is kept but its two ends."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.length = self.crc = 0
        self.first = self.last = b""
        self.complete = False
        self.delays: list[int] = []
        self._head = b""
        self._left = 0  # bytes to come of the chunk, its CRLF included
        self._line = b""
        self._cut = b""  # the beginning of an event that is not whole yet
        self._in_body = False

    def feed(self, data: memoryview, stamped: bool) -> None:
        """Take what was received; raises SystemExit when it is no stream."""
        if not self._in_body:
            self._head += data
            head, found, rest = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"no stream: {head[:300]!r} {rest[:300]!r}")
            self._in_body, self._head = True, b""
            data = memoryview(rest)
        place = 0
        while place < len(data):
            if self._left:
                part = data[place : place + self._left]
                place += len(part)
                body = part if self._left - len(part) >= 2 else part[: max(0, self._left - 2)]
                self._left -= len(part)
                if body:
                    self._take(body, stamped)
                continue
            line = self._line + bytes(data[place : place + 20])
            size, found, _ = line.partition(b"\r\n")
            if not found:
                self._line, place = line, place + 20
                continue
            place += len(size) + 2 - len(self._line)
            self._line = b""
            if size == b"0":
                self.complete = True
                return
            self._left = int(size, 16) + 2

    def _take(self, body: memoryview, stamped: bool) -> None:
        if stamped:
            now = time.monotonic_ns()
            whole, found, self._cut = (self._cut + bytes(body)).rpartition(b"\n\n")
            self.delays += [now - int(stamp) for stamp in STAMP.findall(whole + found)]
        else:
            self.crc = zlib.crc32(body, self.crc)
        self.length += len(body)
        if b"\n\n" not in self.first:
            self.first += bytes(body[:2000])
        self.last = bytes(body[-1000:])

    def exact(self, text: str, tokens: int) -> bool:
        """Whether the body was, byte for byte, ``tokens`` events of ``text`` and the proper end."""
        event = self.first[: self.first.index(b"\n\n") + 2]
        last = event.replace(b'"text":"%s"' % text.encode(), b'"text":""')
        last = last.replace(b'"finish_reason":null', b'"finish_reason":"stop"')
        whole = event * tokens + last + b"data: [DONE]\n\n"
        return self.complete and (self.length, self.crc) == (len(whole), zlib.crc32(whole))


def run_streams(port: int, count: int, tokens: int, text: str = "", stamped: bool = False) -> dict[str, Any]:
    """``count`` streams at once, each of ``tokens`` events, read to their ends."""
    poll = select.epoll()
    streams = {}
    for number in range(count):
        stream = Stream(port)
        streams[stream.socket.fileno()] = stream
        poll.register(stream.socket, select.EPOLLIN)
        stream.socket.sendall(request(f"stream {number}", tokens, stream=True))
    open_streams = count
    buffer = bytearray(BUFFER_BYTES)
    view = memoryview(buffer)
    started, cpu = time.monotonic(), time.process_time()
    first = 0.0
    while open_streams:
        ready = poll.poll(PATIENCE)
        if not ready:
            raise SystemExit("nothing comes any more")
        first = first or time.monotonic()
        for descriptor, _ in ready:
            stream = streams[descriptor]
            size = stream.socket.recv_into(buffer)
            stream.feed(view[:size], stamped)
            if stream.complete or not size:
                poll.unregister(descriptor)
                open_streams -= 1
    ended = time.monotonic()
    every = list(streams.values())
    if stamped:
        exact = all(stream.complete and len(stream.delays) == tokens for stream in every)
    else:
        exact = all(stream.exact(text, tokens) for stream in every)
    found = {
        "events": count * tokens,
        "bytes": sum(stream.length for stream in every),
        "seconds": ended - first,
        "wait": first - started,
        "client_cpu": time.process_time() - cpu,
        "exact": exact,
    }
    if stamped:
        # the first tokens of a run meet the opening of the connections
        found["delay_ms"] = percentiles(
            [delay / 1e6 for stream in every for delay in stream.delays[tokens // 10 :]]
        )
    return found


def answer_is_whole(answer: bytes, stream: bool) -> bool:
    """Whether ``answer`` holds one complete answer; SystemExit when it is not a good one."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"refused: {answer[:600]!r}")
    if stream:
        return body.endswith(STREAM_END)
    length = re.search(rb"(?i)content-length: ([0-9]+)", head)
    return length is not None and len(body) == int(length[1])


def run_loop(
    port: int, connections: int, requests: int, stream: bool, text: str, tokens: int
) -> dict[str, Any]:
    """``requests`` requests over ``connections`` kept-alive connections, each one's next after its last."""
    poll = select.epoll()
    message = request("2 + 2 =", tokens, stream=stream)
    wanted = b"data: [DONE]\n\n" if stream else b'"text":"%s"' % (text * tokens).encode()
    sockets, answers = {}, {}
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[connection.fileno()], answers[connection.fileno()] = connection, b""
        poll.register(connection, select.EPOLLIN)
        connection.sendall(message)
    sent, done = connections, 0
    started = time.monotonic()
    while done < requests:
        ready = poll.poll(PATIENCE)
        if not ready:
            raise SystemExit("nothing comes any more")
        for descriptor, _ in ready:
            data = sockets[descriptor].recv(BUFFER_BYTES)
            if not data:
                raise SystemExit("closed by the server")
            answer = answers[descriptor] + data
            if not answer_is_whole(answer, stream):
                answers[descriptor] = answer
                continue
            if wanted not in answer:
                raise SystemExit(f"not the wanted answer: {answer!r}")
            answers[descriptor] = b""
            done += 1
            if sent < requests:
                sent += 1
                sockets[descriptor].sendall(message)
    return {"requests": done, "seconds": time.monotonic() - started}


def run_first_byte(port: int, requests: int) -> dict[str, Any]:
    """Streams of one token, one at a time with pauses of up to 10 ms, over one kept-alive connection."""
    rng = random.Random(1)
    message = request("2 + 2 =", 1, stream=True)
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    delays = []
    for _ in range(requests):
        time.sleep(rng.random() / 100)
        sent = time.perf_counter()
        connection.sendall(message)
        answer = connection.recv(BUFFER_BYTES)
        delays.append((time.perf_counter() - sent) * 1e3)
        while not answer_is_whole(answer, True):
            answer += connection.recv(BUFFER_BYTES)
    return {"first_byte_ms": percentiles(delays[requests // 10 :])}


MODES: Final = {"streams": run_streams, "loop": run_loop, "first-byte": run_first_byte}


if __name__ == "__main__":
    print(json.dumps(MODES[sys.argv[1]](**json.loads(sys.argv[2]))))
