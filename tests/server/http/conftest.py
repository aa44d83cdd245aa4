"""A real server on a free port, in a thread of the test, and a client that speaks to it in bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import queue
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from server.http import ENVIRON_KEY, AccessRecord, Exchange, Handler, HttpConfig, HttpServer, Route

PATIENCE = 30.0  # seconds after which something that should happen is a failure
LONGER_THAN_PATIENCE = 600.0

ROUTES = (
    Route("/health", frozenset({"GET"}), needs_key=False),
    Route("/v1/models", frozenset({"GET"})),
    Route("/v1/models/{id}", frozenset({"GET"})),
    Route("/v1/completions", frozenset({"POST"})),
    Route("/v1/messages", frozenset({"POST"})),
    Route("/v1/messages/count_tokens", frozenset({"POST"})),
    Route("/stream", frozenset({"POST"})),
    Route("/generator", frozenset({"GET"})),
    Route("/hold", frozenset({"POST"})),
    Route("/broken", frozenset({"POST"})),
)


@dataclass
class Answer:
    """One response as read from the socket; ``complete`` is false when it was cut."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = False

    @property
    def error(self) -> dict[str, object]:
        """The error object of the OpenAI envelope, which must be whole."""
        body = json.loads(self.body)
        assert list(body) == ["error"]
        assert list(body["error"]) == ["message", "type", "param", "code"]
        return body["error"]


class Client:
    """A socket and the answers read from it."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_bytewise(self, data: bytes) -> None:
        for position in range(len(data)):
            self.socket.sendall(data[position : position + 1])

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def vanish(self) -> None:
        """Reset the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _fill(self) -> bool:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return False
        self._buffer += data
        return bool(data)

    def _line(self) -> bytes | None:
        while b"\r\n" not in self._buffer:
            if not self._fill():
                return None
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size and self._fill():
            pass
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def answer(self, method: str = "POST") -> Answer:
        """The next response; ``method`` is that of its request. Times out loudly."""
        answer = Answer()
        line = self._line()
        if line is None:
            return answer
        found = re.fullmatch(rb"HTTP/1\.[01] (\d{3}) .*", line)
        assert found, f"not a status line: {line!r}"
        answer.status = int(found[1])
        while line := self._line():
            name, _, value = line.partition(b": ")
            assert name.decode().lower() not in answer.headers, f"{name!r} twice"
            answer.headers[name.decode().lower()] = value.decode("latin-1")
        if line is not None:
            self._read_body(answer, method)
        return answer

    def _read_body(self, answer: Answer, method: str) -> None:
        if method == "HEAD" or answer.status in (100, 204, 304):
            answer.complete = True
        elif answer.headers.get("transfer-encoding") == "chunked":
            while (line := self._line()) is not None:
                size = int(line, 16)
                chunk = self._take(size + 2)
                answer.body += chunk[:size]
                if size == 0 or len(chunk) < size + 2:
                    answer.complete = size == 0 and chunk == b"\r\n"
                    return
        elif "content-length" in answer.headers:
            size = int(answer.headers["content-length"])
            answer.body = self._take(size)
            answer.complete = len(answer.body) == size
        else:
            answer.body = self.rest()
            answer.complete = True

    def rest(self) -> bytes:
        """Everything up to the end of the connection; raises ConnectionResetError when it ends in a reset."""
        while data := self.socket.recv(1 << 16):
            self._buffer += data
        rest, self._buffer = self._buffer, b""
        return rest

    def is_closed(self) -> bool:
        """The server closes within patience, sending nothing more."""
        try:
            data = self._buffer or self.socket.recv(1)
        except ConnectionResetError:
            return True
        assert not data, f"more bytes: {data!r}"
        return True

    def is_silent(self, seconds: float) -> bool:
        """Nothing, not even an end, comes for a while."""
        return not self._buffer and not select.select([self.socket], [], [], seconds)[0]


class Clock:
    """Seconds that pass when a test says so. As with a real one, no two looks at it show the same."""

    def __init__(self) -> None:
        self._now = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.advance(1e-9)

    def advance(self, seconds: float) -> float:
        """The time afterwards."""
        with self._lock:
            self._now += seconds
            return self._now


class Site:
    """A running server; ``requests`` is what the application saw, ``exchanges`` those parked by /hold."""

    def __init__(
        self,
        config: HttpConfig,
        handlers: dict[str, Handler] | None = None,
        *,
        clock: Clock | None = None,
        only_events: bool = False,
    ) -> None:
        """``handlers`` by the path they answer POST on. ``clock``: what its deadlines are kept by, moved by
        `pass_time`. ``only_events``: the loop waits for events longer than any test does, so that whatever it
        does in a test is due to one.
        """
        self.requests: list[tuple[str, str, bytes]] = []
        self.exchanges: queue.Queue[Exchange] = queue.Queue()
        self.records: queue.Queue[AccessRecord] = queue.Queue()
        self.begun = 0
        self._clock = clock
        self.log_lines: list[str] = []
        self.server = HttpServer(
            self._application,
            dataclasses.replace(config, observer=self),
            {("POST", path): handler for path, handler in (handlers or {}).items()},
            clock or time.monotonic,
        )
        if only_events:
            self.server._wait = LONGER_THAN_PATIENCE
        self.port = int(self.server.effective_port)
        self.thread = threading.Thread(target=self.server.run, name="http-io", daemon=True)
        self.thread.start()

    def began(self, record: AccessRecord) -> None:
        self.begun += 1

    def ended(self, record: AccessRecord) -> None:
        self.records.put(record)

    def stop(self, grace: float = 0.0) -> None:
        self.server._wait = 0.5
        self.server.shut_down(grace)
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def connect(self, receive_buffer: int | None = None) -> Client:
        return Client(self.port, receive_buffer)

    def settle(self) -> None:
        """Everything the loop had been told of is done; one that has ended has nothing left to do."""
        for _ in range(2):  # what is called may call for more, and the deadlines are looked at last of all
            done = threading.Event()
            self.server.loop.call_soon(done.set)
            limit = time.monotonic() + PATIENCE
            while self.thread.is_alive() and not done.wait(0.01):
                assert time.monotonic() < limit, "the loop does not go on"

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass for the server, half a second at least; it has looked at its deadlines."""
        assert self._clock is not None and seconds >= 0.5
        self.settle()
        self._clock.advance(seconds)
        self.settle()

    @property
    def reading(self) -> int:
        """Connections in the middle of a request."""
        return sum(channel._reader.reading_since is not None for channel in list(self.server._channels))

    @property
    def quiet(self) -> int:
        """Connections between two requests."""
        return sum(channel.is_quiet for channel in list(self.server._channels))

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """The loop does nothing meanwhile."""
        stands, goes_on = threading.Event(), threading.Event()

        def stand_still() -> None:
            stands.set()
            goes_on.wait(PATIENCE)

        self.server.loop.call_soon(stand_still)
        assert stands.wait(PATIENCE)
        try:
            yield
        finally:
            goes_on.set()

    def held(self) -> Exchange:
        """The exchange of the next request to /hold."""
        return self.exchanges.get(timeout=PATIENCE)

    def record(self) -> AccessRecord:
        """The next request that ended."""
        return self.records.get(timeout=PATIENCE)

    def _application(self, environ, start_response):
        exchange: Exchange = environ[ENVIRON_KEY]
        path, body = environ["PATH_INFO"], environ["wsgi.input"].read()
        self.requests.append((environ["REQUEST_METHOD"], path, body))
        if path == "/hold":
            exchange.detach()
            self.exchanges.put(exchange)
            return exchange.placeholder()(environ, start_response)
        if path == "/stream":
            stream = exchange.open_stream([("x-colibri-queue-wait-ms", "0")])
            for event in body.split(b","):
                stream.write(b"data: " + event + b"\n\n")
            stream.finish(b"data: [DONE]\n\n")
            return exchange.placeholder()(environ, start_response)
        if path == "/broken":
            return self._broken(body, exchange, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        if path == "/generator":
            return (b"piece %d;" % number for number in range(3))
        digest = hashlib.sha256(body).hexdigest()
        shown = {"method": environ["REQUEST_METHOD"], "path": path, "size": len(body), "sha256": digest}
        return [json.dumps(shown | {"length": environ.get("CONTENT_LENGTH")}).encode()]

    @staticmethod
    def _broken(kind, exchange, start_response):
        if kind == b"raise":
            raise RuntimeError("secret detail")
        if kind == b"no answer":
            return []
        if kind == b"empty promise":
            return exchange.placeholder()({ENVIRON_KEY: exchange}, start_response)
        if kind == b"bad header":
            start_response("200 OK", [("X-Bad", "a\r\nb")])
            return [b""]
        start_response("200 OK", [])

        def pieces() -> Iterator[bytes]:
            yield b"first"
            raise RuntimeError("secret detail")

        return pieces()


CONFIG = HttpConfig(
    host="127.0.0.1",
    port=0,
    routes=ROUTES,
    key=None,
    allowed_hosts=(),
    cors_origins=("http://localhost:5173",),
    max_body_bytes=100_000,
    read_deadline=20.0,
    idle_timeout=20.0,
    write_stall=20.0,
    max_connections=256,
    max_connections_per_peer=0,
)


@pytest.fixture
def clock() -> Clock:
    """Time for one server, see `Site.pass_time`."""
    return Clock()


@pytest.fixture
def serve() -> Iterator[Callable[..., Site]]:
    """Start a server with some settings changed; stopped after the test."""
    sites: list[Site] = []

    def start(
        handlers: dict[str, Handler] | None = None,
        *,
        clock: Clock | None = None,
        only_events: bool = False,
        **changes: object,
    ) -> Site:
        config = dataclasses.replace(CONFIG, **changes)
        site = Site(config, handlers, clock=clock, only_events=only_events)
        sites.append(site)
        return site

    yield start
    for site in sites:
        if site.thread.is_alive():
            site.stop()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A server with ordinary settings that acts on events only, shared by the tests of a module."""
    running = Site(CONFIG, only_events=True)
    yield running
    running.stop()


def _request(
    method: str = "GET",
    path: str = "/health",
    body: bytes | None = None,
    *,
    version: str = "1.1",
    host: str | None = "localhost",
    **headers: str,
) -> bytes:
    lines = [f"{method} {path} HTTP/{version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    if body is not None and "transfer_encoding" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


@pytest.fixture(scope="session")
def request_bytes() -> Callable[..., bytes]:
    """Bytes of a well-formed request; keyword arguments are headers, ``_`` for ``-``."""
    return _request


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Wait for something another thread brings about."""

    def wait(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
        limit = time.monotonic() + patience
        while not condition():
            if time.monotonic() > limit:
                return False
            time.sleep(0.002)
        return True

    return wait
