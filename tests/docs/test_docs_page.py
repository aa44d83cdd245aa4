"""`GET /docs` as a browser shows it: every endpoint, field and shape, from nothing but this server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from ..clients.gateways import ROOT, Gateway

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OFFLINE = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
NOBODY_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, list[dict]]:
    """The page's address, its document after the scripts ran, and the browser's log of the network."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    directory = tmp_path_factory.mktemp("browser")
    gateway = Gateway("--engine", str(ROOT / "docs" / "examples" / "parrot.py"))
    try:
        command = [
            *(CHROMIUM, *OFFLINE, NOBODY_ELSE, f"--user-data-dir={directory / 'profile'}"),
            *(f"--log-net-log={directory / 'net.json'}", "--virtual-time-budget=10000", "--dump-dom"),
            f"{gateway.url}/docs",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    finally:
        assert gateway.close() == 0
    log = (directory / "net.json").read_text().rstrip().rstrip(",")
    log = json.loads(log if log.endswith("}") else log + "]}")
    return gateway.url, done.stdout, log["events"]


def test_every_endpoint_field_and_shape_is_shown(opened):
    _, page, _ = opened
    document = json.loads((ROOT / "generated" / "openapi.json").read_text(encoding="utf-8"))
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert f'data-ready="{len(operations)}"' in page
    for operation in operations:
        assert f'<section id="{operation["operationId"]}">' in page
    for name, schema in document["components"]["schemas"].items():
        assert f'<details id="shape-{name}">' in page
        for field in schema.get("properties", {}):
            assert re.search(rf"<(code|s)[^>]*>{field}( \*)?</(code|s)>", page), f"{name}.{field}"


def test_links_of_the_page_lead_somewhere(opened):
    _, page, _ = opened
    places = set(re.findall(r' id="([^"]+)"', page))
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert len(links) > 20
    assert links <= places


def test_the_page_asks_nothing_of_anybody_else(opened):
    """The browser has traffic of its own; a request of the page has the page's origin as its initiator."""
    url, _, events = opened
    starts = [event["params"] for event in events if "initiator" in (event.get("params") or {})]
    asked = {start["url"] for start in starts if start["initiator"] == url}
    assert f"{url}/openapi.json" in asked
    assert {address for address in asked if not address.startswith(f"{url}/")} == set()


def test_the_page_names_no_other_address():
    source = (ROOT / "server" / "api" / "docs.html").read_text(encoding="utf-8")
    assert re.findall(r"(?:https?:)?//[a-z0-9]", source) == []
    assert re.findall(r"<(?:link|img|iframe|script)\b[^>]+(?:src|href)=", source) == []
