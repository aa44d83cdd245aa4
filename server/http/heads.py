"""Response heads: status line, framing, the headers every answer has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

SERVER_NAME: Final = "colibri"
_OURS: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    }
)
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class Framing(Enum):
    """How the client finds the end of the body."""

    LENGTH = "Content-Length"
    CHUNKED = "chunked"
    UNTIL_CLOSE = "until close"


class Head(NamedTuple):
    """Bytes of a head and what they promise. ``bodiless``: HEAD, 204 and 304 answers, whose body must not be
    sent.
    """

    data: bytes
    status: int
    framing: Framing
    keep_alive: bool
    bodiless: bool


class _Dates:
    """The Date header, formatted once a second."""

    second = 0
    text = ""

    @classmethod
    def now(cls) -> str:
        second = int(time.time())
        if second != cls.second:
            cls.text = formatdate(second, usegmt=True)
            cls.second = second
        return cls.text


@lru_cache(maxsize=256)
def _line(name: str, value: str) -> str:
    """The line of a header of the application's; empty for one that is the layer's to set."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise ValueError(f"header {name!r} cannot be sent")
    return "" if name.lower() in _OURS else f"{name}: {value}"


def build_head(
    status: int,
    headers: Iterable[tuple[str, str]],
    layer_headers: Sequence[tuple[str, str]],
    *,
    version: str,
    method: str,
    framing: Framing,
    length: int,
    keep_alive: bool,
    asked_keep_alive: bool,
) -> Head:
    """The head of one answer.

    ``headers`` come from the application (framing and connection headers among them are dropped),
    ``layer_headers`` from the layer. ``length`` is that of the body a GET would have. Raises ValueError for a
    name or value that cannot be sent."""
    keep_alive = keep_alive and framing is not Framing.UNTIL_CLOSE
    lines = [f"HTTP/{version} {status} {_REASONS.get(status, 'Unknown')}"]
    lines += [line for name, value in headers if (line := _line(name, value))]
    lines += [f"{name}: {value}" for name, value in layer_headers]
    if framing is Framing.CHUNKED:
        lines.append("Transfer-Encoding: chunked")
    elif framing is Framing.LENGTH and status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Length: {length}")
    if not keep_alive:
        lines.append("Connection: close")
    elif version == "1.0" and asked_keep_alive:
        lines.append("Connection: keep-alive")
    lines += [f"Date: {_Dates.now()}", f"Server: {SERVER_NAME}", "", ""]
    bodiless = method == "HEAD" or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
    return Head("\r\n".join(lines).encode("latin-1"), status, framing, keep_alive, bodiless)
