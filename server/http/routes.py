"""The paths the application serves, as the layer needs them: which methods a path has, and the nearest one to
a wrong path.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from generated.http import OPEN_PATHS, ROUTES
from server.http.config import Route

_PLACEHOLDER: Final = "{id}"
_COMPARED_LENGTH: Final = 120  # difflib is quadratic


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
        """The real path that looks most like ``path``; every path has one."""
        found = get_close_matches(path[:_COMPARED_LENGTH], self._paths, n=1, cutoff=0.0)
        return found[0] if found else "/"


def allowed_methods(route: Route) -> frozenset[str]:
    """Methods the layer lets through to the application."""
    return route.methods | {"HEAD"} if "GET" in route.methods else route.methods


def allow_header(route: Route) -> str:
    """The value of ``Allow`` for a 405."""
    return ", ".join(sorted(allowed_methods(route) | {"OPTIONS"}))
