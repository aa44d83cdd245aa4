"""What the layer has to be told. Contract values come from the generated settings and limits; nothing here
has a promised default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from server.http.accesslog import AccessRecord


@dataclass(frozen=True, slots=True)
class Route:
    """A path the application serves.

    ``path`` is compared exactly with the raw path of the request line; one that ends in ``{id}`` matches any
    non-empty rest, slashes included (``/v1/models/{id}``). ``methods`` are those of the contract; GET implies
    HEAD, and OPTIONS is always answered by the layer. With ``needs_key`` false the view is reached without
    the key too and looks at ``exchange.authorized`` itself."""

    path: str
    methods: frozenset[str]
    needs_key: bool = True


class Observer(Protocol):
    """Counts requests: ``began`` once per parsed request line, ``ended`` once for each of them, whatever
    became of it.
    """

    def began(self, record: AccessRecord) -> None: ...

    def ended(self, record: AccessRecord) -> None: ...


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """Durations are seconds, sizes bytes. ``key`` None or empty: no key is asked for."""

    host: str
    port: int
    routes: tuple[Route, ...]
    key: str | None
    allowed_hosts: tuple[str, ...]
    cors_origins: tuple[str, ...]
    max_body_bytes: int
    read_deadline: float
    idle_timeout: float
    write_stall: float
    max_connections: int
    max_connections_per_peer: int  # 0: no bound per peer
    json_log: bool = False
    observer: Observer | None = None
    # called once, on the I/O thread, when shutting down begins
    on_shut_down: Callable[[], None] | None = None
    # the same when the time for what is in flight is over; it must see to it that everything ends by itself
    on_time_over: Callable[[], None] | None = None
