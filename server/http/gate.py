"""What can be decided from a request's head, in the contract's order (http.md §3): Host guard, key, path and
method, then the body's size and encoding."""

from __future__ import annotations

from typing import Final, NamedTuple

from generated import errors
from server.http.config import HttpConfig, Route
from server.http.encodings import UnsupportedCoding, content_coding
from server.http.guard import Cors, HostGuard, KeyGuard, host_name
from server.http.parser import RequestParser
from server.http.routes import RouteTable, allow_header, allowed_methods

_HOST_SHOWN: Final = 100
_PATH_SHOWN: Final = 200


class Verdict(NamedTuple):
    """``error`` None and ``preflight`` false: the request may proceed to ``route``.

    ``error`` with ``empty`` means its status without a body (a preflight from a foreign host). ``closes``:
    the connection cannot be used after the answer."""

    error: errors.ApiError | None = None
    route: Route | None = None
    authorized: bool = False
    preflight: bool = False
    empty: bool = False
    closes: bool = False
    extra_headers: tuple[tuple[str, str], ...] = ()


class Gate:
    """Judges heads; holds no state of its own, so one serves all connections."""

    def __init__(self, config: HttpConfig) -> None:
        self._config = config
        self._hosts = HostGuard(config.host, config.allowed_hosts)
        self._key = KeyGuard(config.key)
        self.cors = Cors(config.cors_origins)
        self.routes = RouteTable(config.routes)

    def judge(self, request: RequestParser, *, shutting_down: bool) -> Verdict:
        """The verdict on a request whose head is complete and free of framing faults."""
        preflight = request.command == "OPTIONS"
        if not self._hosts.allows(request.host):
            shown = host_name(request.host or "") or (request.host or "")
            return Verdict(error=errors.forbidden(host=shown[:_HOST_SHOWN]), empty=preflight)
        if preflight:
            return Verdict(preflight=True)
        authorized = self._key.accepts(request.headers)
        route = self.routes.match(request.raw_path)
        if not authorized and (route is None or route.needs_key):
            return Verdict(error=errors.invalid_api_key())
        if shutting_down:
            return Verdict(error=errors.shutting_down(), route=route, closes=True)
        if route is None:
            shown = request.raw_path[:_PATH_SHOWN]
            return Verdict(error=errors.not_found(path=shown, nearest=self.routes.nearest(shown)))
        if request.command not in allowed_methods(route):
            allow = allow_header(route)
            error = errors.method_not_allowed(path=route.path, method=request.command, allow=allow)
            return Verdict(error=error, route=route, extra_headers=(("Allow", allow),))
        return self._judge_body(request, Verdict(route=route, authorized=authorized))

    def _judge_body(self, request: RequestParser, passed: Verdict) -> Verdict:
        limit = self._config.max_body_bytes
        if request.content_length > limit:
            return Verdict(error=errors.request_too_large(limit=limit), route=passed.route, closes=True)
        if request.has_body:
            try:
                content_coding(request.headers.get("CONTENT_ENCODING", ""))
            except UnsupportedCoding as unsupported:
                return Verdict(
                    error=errors.unsupported_encoding(encoding=unsupported.coding), route=passed.route
                )
        return passed
