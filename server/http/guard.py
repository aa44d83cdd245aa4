"""Host guard, key check and CORS (http.md §4): pure functions of header values, decided once per server and
asked per request.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping

from generated.http import (
    CORS_EXPOSE,
    CORS_HEADER_PREFIXES,
    CORS_HEADERS,
    CORS_MAX_AGE,
    CORS_METHODS,
    LOOPBACK_HOSTS,
)

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\s:/\\@?#\[\],]+))(?::[0-9]{0,5})?")
_BEARER = re.compile(r"bearer[ \t]+(?P<token>.*)", re.IGNORECASE | re.DOTALL)
_ANY = "*"

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_ECHOED_HEADERS = 32  # names of a preflight that are looked at and echoed
_METHODS = ", ".join(CORS_METHODS)
_EXPOSED = ", ".join(CORS_EXPOSE)


def host_name(value: str) -> str | None:
    """The host of a ``Host`` value: port cut, brackets of an IPv6 address removed, lower-cased; None when it
    is not a host at all.
    """
    found = _HOST.fullmatch(value.strip(" \t"))
    if found is None:
        return None
    return (found["v6"] or found["name"]).lower()


class HostGuard:
    """Refuses foreign names in ``Host``, so that a web page cannot reach the server by rebinding its own name
    to our address.
    """

    def __init__(self, bind_address: str, allowed: Iterable[str]) -> None:
        names = [*LOOPBACK_HOSTS, bind_address, *allowed]
        self.open = _ANY in (name.strip() for name in names)
        self._allowed = frozenset(self._plain(name) for name in names if name.strip())

    @staticmethod
    def _plain(name: str) -> str:
        name = name.strip().lower()
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    def allows(self, host: str | None) -> bool:
        """``host`` is the value of the Host header, or the authority of an absolute-form target.

        None means that an HTTP/1.0 client sent none: no browser does, so there is nothing to guard against.
        """
        if self.open or host is None:
            return True
        return host_name(host) in self._allowed


class KeyGuard:
    """Compares credentials with the configured key, in constant time and as bytes."""

    def __init__(self, key: str | None) -> None:
        self._key = key.encode("utf-8") if key else None

    def accepts(self, headers: Mapping[str, str]) -> bool:
        """``headers`` in waitress form (``X_API_KEY``). Either credential being right suffices."""
        if self._key is None:
            return True
        bearer = _BEARER.fullmatch(headers.get("AUTHORIZATION", ""))
        offered = (bearer["token"] if bearer else "", headers.get("X_API_KEY", ""))
        matches = [hmac.compare_digest(value.encode("latin-1", "replace"), self._key) for value in offered]
        return any(matches)


class Cors:
    """The CORS headers of an answer. ``*`` opens the list: then the answer does not vary with the origin."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.strip() for origin in origins)
        self._any = _ANY in self._origins

    def headers(self, request_headers: Mapping[str, str]) -> list[tuple[str, str]]:
        """Headers for the request's ``Origin``; none for an origin that is not listed or absent."""
        origin = request_headers.get("ORIGIN")
        if not origin or not (self._any or origin in self._origins):
            return []
        headers = [
            ("Access-Control-Allow-Origin", _ANY if self._any else origin),
            ("Access-Control-Allow-Methods", _METHODS),
            ("Access-Control-Allow-Headers", self._allowed_headers(request_headers)),
            ("Access-Control-Expose-Headers", _EXPOSED),
            ("Access-Control-Max-Age", str(CORS_MAX_AGE)),
        ]
        if not self._any:
            headers.append(("Vary", "Origin"))
        return headers

    @staticmethod
    def _allowed_headers(request_headers: Mapping[str, str]) -> str:
        asked = request_headers.get("ACCESS_CONTROL_REQUEST_HEADERS", "")
        names = [name.strip(" \t") for name in asked.split(",", _ECHOED_HEADERS)[:_ECHOED_HEADERS]]
        extra = [
            name
            for name in names
            if name.lower().startswith(CORS_HEADER_PREFIXES) and _HEADER_NAME.fullmatch(name)
        ]
        return ", ".join([*CORS_HEADERS, *extra])
