"""The paths the application serves, as the layer needs them: which methods a path has, and the nearest one to
a wrong path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from generated.http import OPEN_PATHS, ROUTES
from server.http.config import Route

_PLACEHOLDER: Final = "{id}"


def contract_routes() -> tuple[Route, ...]:
    """The routes the contract promises."""
    methods: dict[str, set[str]] = {}
    for promised in ROUTES:
        methods.setdefault(promised.path, set()).add(promised.method)
    return tuple(Route(path, frozenset(found), path not in OPEN_PATHS) for path, found in methods.items())


class RouteTable:
    """Exact comparison of the raw path; a route ending in ``{id}`` takes any non-empty rest."""

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = tuple(routes)
        self._exact = {route.path: route for route in routes if not route.path.endswith(_PLACEHOLDER)}
        self._prefixes = [
            (route.path.removesuffix(_PLACEHOLDER), route)
            for route in routes
            if route.path.endswith(_PLACEHOLDER)
        ]
        self._paths = [route.path for route in routes]

    def match(self, path: str) -> Route | None:
        """The route of ``path``, or None."""
        route = self._exact.get(path)
        if route is not None:
            return route
        for prefix, candidate in self._prefixes:
            if len(path) > len(prefix) and path.startswith(prefix):
                return candidate
        return None

    def nearest(self, path: str) -> str:
        """The real path that shares the longest beginning and end with ``path``; every path has one.

        Runs on the I/O thread for every unknown path, so it is linear.
        """
        return max(self._paths, key=lambda real: _likeness(path, real), default="/")


def _likeness(path: str, real: str) -> tuple[int, int]:
    """Characters shared at both ends; among equals the length that is nearest."""
    shortest = min(len(path), len(real))
    begin = 0
    while begin < shortest and path[begin] == real[begin]:
        begin += 1
    end = 0
    while end < shortest - begin and path[-1 - end] == real[-1 - end]:
        end += 1
    return begin + end, -abs(len(path) - len(real))


def allowed_methods(route: Route) -> frozenset[str]:
    """Methods the layer lets through to the application."""
    return route.methods | {"HEAD"} if "GET" in route.methods else route.methods


def allow_header(route: Route) -> str:
    """The value of ``Allow`` for a 405."""
    return ", ".join(sorted(allowed_methods(route) | {"OPTIONS"}))
