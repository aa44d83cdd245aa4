"""GET /openapi.json and GET /docs: the generated document, and a page that renders it without outside
assets.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from server.api.views import JSON_HEADERS
from server.http.exchange import Exchange
from server.sse import compact_json

HTML_HEADERS = (("Content-Type", "text/html; charset=utf-8"),)


class Documents:
    """The API's own description."""

    def openapi(self, exchange: Exchange) -> None:
        """GET /openapi.json."""
        exchange.respond(200, JSON_HEADERS, _compact(_file("generated", "openapi.json")))

    def page(self, exchange: Exchange) -> None:
        """GET /docs."""
        exchange.respond(200, HTML_HEADERS, _file("server.api", "docs.html"))


@cache
def _compact(document: bytes) -> bytes:
    """The document as every JSON answer is written; the file is laid out for readers of its changes."""
    return compact_json(json.loads(document))


@cache
def _file(package: str, name: str) -> bytes:
    return resources.files(package).joinpath(name).read_bytes()
