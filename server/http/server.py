"""The server: listens, accepts within the caps, keeps the deadlines, shuts down gracefully.

Built on waitress's ``TcpWSGIServer`` (listening socket, trigger, settings); connections are
:class:`server.http.channel.Channel` and the loop is :class:`server.http.eventloop.EventLoop`."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from waitress import wasyncore
from waitress.server import TcpWSGIServer

from generated import errors, limits
from server.http.channel import Channel
from server.http.config import HttpConfig
from server.http.eventloop import READ
from server.http.shared import Handler, Shared, WsgiApplication

logger = logging.getLogger("colibri.http")

_ACCEPTED_AT_ONCE: Final = 256
_REFUSED_AT_ONCE: Final = 64  # connections over a cap that are still being told so
_LONGEST_WAIT: Final = 0.5  # seconds between two looks at the deadlines
_LAST_WORDS: Final = 2.0
"""Seconds to write the refusals of what was in flight when its time was over; less when all are written."""
_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_IPV4_MAPPED: Final = "::ffff:"
_TCP_OPTIONS: Final = (
    (socket.TCP_NODELAY, 1),
    (socket.TCP_KEEPIDLE, 30),  # a peer that vanished without a word is noticed within a minute
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 3),
    # what the kernel holds beyond what is under way: a client that does not read shows soon
    (socket.TCP_NOTSENT_LOWAT, 128 * 1024),
)


class BindError(OSError):
    """The address cannot be listened on; ``str()`` is one line for the operator."""


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """A listening socket. Raises :class:`BindError`."""
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(candidates, key=lambda found: found[0] != socket.AF_INET)
        return socket.create_server(address, family=family, backlog=backlog)
    except OSError as fault:
        raise BindError(f"cannot listen on {shown}: {fault.strerror or fault}") from None


class HttpServer(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """Listens from construction on, serves while :meth:`run` runs. Raises :class:`BindError` when the address
    is taken.

    ``effective_host`` and ``effective_port`` say where (``config.port`` may be 0).
    """

    def __init__(
        self,
        application: WsgiApplication,
        config: HttpConfig,
        handlers: Mapping[tuple[str, str], Handler] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``handlers`` by method and route; ``application`` answers everything else. ``clock``: seconds, by
        which every deadline is kept.
        """
        listener = listen(config.host, config.port, limits.LISTEN_BACKLOG)
        self.config = config
        self.shared = Shared(application, handlers or {}, config, clock)
        self.loop = self.shared.loop
        self._channels: set[Channel] = set()
        self._counted_peers: Counter[str] = Counter()
        self._clock = clock
        self._grace: float | None = None
        self._shutting_until = 0.0
        self._time_is_over = False
        self._accept_again = 0.0
        self._next_look = 0.0
        durations = (config.read_deadline, config.idle_timeout, config.write_stall)
        self._wait = min(_LONGEST_WAIT, *(max(0.02, duration / 10) for duration in durations))
        super().__init__(
            application,
            map={},
            _start=False,
            _sock=listener,
            dispatcher=self.shared.workers,
            adj=self.shared.adj,
            sockinfo=(listener.family, listener.type, listener.proto, listener.getsockname()),
            bind_socket=False,
        )
        self.shared.port = self.effective_port
        self.accepting = True
        waker = _TriggerHandler(self.trigger)
        self.loop.set_waker(self.trigger.socket.fileno(), waker, self.trigger.pull_trigger)
        self.loop.watch(listener.fileno(), self, READ)
        self.loop.last = listener.fileno()

    # -- the loop --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until a shutdown begun with :meth:`shut_down` is over; then everything is closed."""
        try:
            while not self._is_done():
                self.loop.run_once(self._wait)
                now = self._clock()
                if self._grace is not None and not self.shared.is_shutting_down:
                    self._begin_shutting_down(now, self._grace)
                elif self._is_time_over(now):
                    self._end_in_flight(now)
                if now >= self._next_look:
                    self._next_look = now + self._wait
                    self._look_at_deadlines(now)
        finally:
            self._close_everything()

    def shut_down(self, grace: float) -> None:
        """Stop accepting, finish what is in flight for at most ``grace`` seconds, let the rest say why it is
        not, end :meth:`run`. From any thread or a signal handler.
        """
        if self._grace is None:
            self._grace = grace
        self.loop.wake(from_signal=True)

    def _begin_shutting_down(self, now: float, grace: float) -> None:
        self.shared.is_shutting_down = True
        self._shutting_until = now + grace
        self._stop_accepting()
        if self.config.on_shut_down is not None:
            self.config.on_shut_down()
        self._close_quiet_channels()

    def _is_time_over(self, now: float) -> bool:
        return self.shared.is_shutting_down and not self._time_is_over and now > self._shutting_until

    def _end_in_flight(self, now: float) -> None:
        """Who has no status yet is to get its refusal, so the channels stay open for it a little longer."""
        self._time_is_over = True
        self._shutting_until = now + _LAST_WORDS
        if self.config.on_time_over is not None:
            self.loop.call_soon(self.config.on_time_over)

    def _close_quiet_channels(self) -> None:
        for channel in list(self._channels):
            if channel.is_quiet:
                channel.close(None)

    def _is_done(self) -> bool:
        if not self.shared.is_shutting_down:
            return False
        return not self._channels or (self._time_is_over and self._clock() > self._shutting_until)

    def _stop_accepting(self) -> None:
        if self.accepting:
            self.accepting = False
            self.loop.forget(self.socket.fileno())
            self.loop.last = None
            wasyncore.dispatcher.close(self)

    def _close_everything(self) -> None:
        self._stop_accepting()
        for channel in list(self._channels):
            channel.close("the server is shutting down")
        self.task_dispatcher.shutdown()
        self.loop.close()
        self.trigger.close()

    def _look_at_deadlines(self, now: float) -> None:
        if self.shared.is_shutting_down:
            self._close_quiet_channels()
        for channel in list(self._channels):
            channel.check_deadlines(now)
        if self._accept_again and now >= self._accept_again and self.accepting:
            self._accept_again = 0.0
            self.loop.change(self.socket.fileno(), READ)

    # -- connections
    # ------------------------------------------------------------------------------------------------------

    def handle_events(self, events: int) -> None:
        """Connections are waiting to be accepted."""
        for _ in range(_ACCEPTED_AT_ONCE):
            if not self.accepting:
                return
            try:
                sock, address = self.socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as fault:
                if fault.errno in _NO_DESCRIPTORS:
                    logger.warning("cannot accept connections for a moment: %s", fault.strerror)
                    self.loop.change(self.socket.fileno(), 0)
                    self._accept_again = self._clock() + self._wait
                    return
                continue  # that one connection is gone already
            self._accepted(sock, address)

    def _accepted(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _TCP_OPTIONS:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
        except OSError:
            sock.close()
            return
        peer = str(address[0]).removeprefix(_IPV4_MAPPED)
        over_cap = self._is_over_cap(peer)
        if over_cap and len(self._channels) - self._counted_peers.total() >= _REFUSED_AT_ONCE:
            sock.close()
            return
        channel = Channel(self.shared, sock, peer, self._closed)
        self._channels.add(channel)
        if over_cap:
            channel.counted = False
            channel.refuse_connection(errors.too_many_connections())
        else:
            self._counted_peers[peer] += 1

    def _is_over_cap(self, peer: str) -> bool:
        per_peer = self.config.max_connections_per_peer
        return self._counted_peers.total() >= self.config.max_connections or bool(
            per_peer and self._counted_peers[peer] >= per_peer
        )

    def _closed(self, channel: Channel) -> None:
        """A channel has closed its socket."""
        self._channels.discard(channel)
        if channel.counted:
            self._counted_peers[channel.peer] -= 1
            if not self._counted_peers[channel.peer]:
                del self._counted_peers[channel.peer]

    @property
    def is_shutting_down(self) -> bool:
        """Nothing new is taken any more."""
        return self.shared.is_shutting_down

    @property
    def connections(self) -> int:
        """Open connections, those being refused included."""
        return len(self._channels)


class _TriggerHandler:
    """Empties waitress's trigger, whose only use here is to wake the loop."""

    def __init__(self, trigger: Any) -> None:
        self._trigger = trigger

    def handle_events(self, events: int) -> None:
        self._trigger.handle_read()
