"""http.md §3 and §4: Host guard → key → (path, method); CORS on every answer; envelopes and ids."""

from __future__ import annotations

import re

import pytest

from server.http import Route, contract_routes
from server.http.guard import Cors, HostGuard, KeyGuard, host_name
from server.http.routes import RouteTable, allow_header

LISTED = "http://localhost:5173"


@pytest.fixture(scope="module")
def ask(request_bytes):
    def ask(site, *given, **named):
        with site.connect() as client:
            data = request_bytes(*given, **named)
            client.send(data)
            return client.answer(data.split(b" ", 1)[0].decode())

    return ask


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("LocalHost:9999", "localhost"),
        ("[::1]:8000", "::1"),
        ("[::1]", "::1"),
        ("127.0.0.1:", "127.0.0.1"),
        ("localhost.", "localhost."),
        (" localhost\t", "localhost"),
        ("::1", None),
        ("a b", None),
        ("a@localhost", None),
        ("localhost/x", None),
        ("localhost:8000:1", None),
        ("localhost:http", None),
        ("localhost, localhost", None),
        ("[::1", None),
        ("", None),
        (":80", None),
    ],
)
def test_host_names(value, name):
    assert host_name(value) == name


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 403),
        ("localhost.", 403),
        ("127.0.0.1.evil.com", 403),
        ("localhost.evil.com", 403),
        ("evil.com:80@localhost", 403),
        ("127.0.0.2", 403),
        ("0.0.0.0", 403),
        ("", 403),
    ],
)
def test_host_guard(site, ask, host, status):
    answer = ask(site, host=host)
    assert answer.status == status
    if status == 403:
        assert answer.error["code"] == "forbidden"
        assert host in answer.error["message"]
        assert "--allowed-host" in answer.error["message"]


def test_forwarded_host_is_never_looked_at(site, ask):
    assert (
        ask(site, host="evil.example", x_forwarded_host="localhost", forwarded="host=localhost").status == 403
    )
    assert ask(site, x_forwarded_host="evil.example").status == 200


def test_allowed_hosts(serve, ask):
    site = serve(allowed_hosts=("  Proxy.Example.net ", "[fd00::1]"))
    for host in ("proxy.EXAMPLE.net:8443", "[FD00::1]:80"):
        assert ask(site, host=host).status == 200
    assert ask(site, host="example.net").status == 403
    assert ask(serve(allowed_hosts=("*",)), host="anything.example").status == 200


def test_bind_address_is_allowed():
    assert HostGuard("192.0.2.7", ()).allows("192.0.2.7:80")
    assert not HostGuard("192.0.2.7", ()).allows("192.0.2.8")


def test_no_host_on_1_0_is_no_rebinding(site, ask):
    assert ask(site, version="1.0", host=None).status == 200
    assert ask(site, version="1.0", host="evil.example").status == 403


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({"AUTHORIZATION": "Bearer k"}, True),
        ({"AUTHORIZATION": "bEARER   k"}, True),
        ({"X_API_KEY": "k"}, True),
        ({"AUTHORIZATION": "Bearer wrong", "X_API_KEY": "k"}, True),
        ({"AUTHORIZATION": "Bearer k", "X_API_KEY": "wrong"}, True),
        ({}, False),
        ({"AUTHORIZATION": "k"}, False),
        ({"AUTHORIZATION": "Basic k"}, False),
        ({"AUTHORIZATION": "Bearer"}, False),
        ({"AUTHORIZATION": "Bearer k, Bearer k"}, False),
        ({"X_API_KEY": "K"}, False),
        ({"X_API_KEY": "k "}, False),
        ({"X_API_KEY": ""}, False),
        ({"X_API_KEY": "\xe9"}, False),
    ],
)
def test_key(headers, accepted):
    """B111: either credential being right suffices; the other may be wrong."""
    assert KeyGuard("k").accepts(headers) is accepted


def test_no_key_and_non_ascii_key():
    assert KeyGuard(None).accepts({})
    assert KeyGuard("").accepts({})
    assert KeyGuard("é").accepts({"X_API_KEY": "é".encode().decode("latin-1")})


def test_every_route_needs_the_key_but_the_open_ones(serve, ask):
    site = serve(routes=contract_routes(), key="secret")
    for route in contract_routes():
        path = route.path.replace("{id}", "x")
        for method in route.methods:
            answers = [
                ask(site, method, path),
                ask(site, method, path, authorization="Bearer wrong"),
                ask(site, method, path, x_api_key="secret"),
            ]
            wanted = [401, 401, 200] if route.needs_key else [200, 200, 200]
            assert [answer.status for answer in answers] == wanted, (method, path)


@pytest.mark.parametrize(
    ("method", "path", "changes", "status"),
    [
        ("POST", "/v1/nope", {"host": "evil.example"}, 403),
        ("POST", "/v1/nope", {}, 401),
        ("PUT", "/v1/completions", {}, 401),
        ("POST", "/v1/nope", {"x_api_key": "k"}, 404),
        ("GET", "/v1/completions", {"x_api_key": "k"}, 405),
        ("HEAD", "/v1/completions", {"x_api_key": "k"}, 405),
        ("get", "/health", {}, 405),
        ("POST", "/health", {}, 405),
        ("TRACE", "/health", {}, 405),
        ("GET", "/health", {}, 200),
        ("HEAD", "/health?x=y", {}, 200),
        ("GET", "/v1/models/a/b", {"x_api_key": "k"}, 200),
    ],
)
def test_order_of_checks(serve, ask, method, path, changes, status):
    assert ask(serve(key="k"), method, path, **changes).status == status


def test_not_found_names_the_nearest_path(site, ask):
    answer = ask(site, "POST", "/v1/completion")
    assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "not_found", None)
    assert "/v1/completions" in answer.error["message"]
    assert ask(site, "GET", "/" + "x" * 5000).status == 404


def test_method_not_allowed_says_what_is(site, ask):
    answer = ask(site, "PUT", "/v1/models", b"{}")
    assert (answer.status, answer.headers["allow"], answer.error["code"]) == (
        405,
        "GET, HEAD, OPTIONS",
        "method_not_allowed",
    )
    assert ask(site, "GET", "/v1/completions").headers["allow"] == "OPTIONS, POST"


def test_route_table_prefers_exact_paths():
    table = RouteTable([Route("/a/{id}", frozenset({"GET"})), Route("/a/b", frozenset({"POST"}))])
    assert allow_header(table.match("/a/b")) == "OPTIONS, POST"
    assert table.match("/a/b/c").path == "/a/{id}"
    assert table.match("/a/") is None
    assert table.match("/a") is None


@pytest.mark.parametrize(
    ("method", "path", "anthropic"),
    [
        ("POST", "/v1/messages", True),
        ("POST", "/v1/messages/count_tokens?beta=true", True),
        ("POST", "/v1/messages/nope", True),
        ("GET", "/v1/messages", False),
        ("POST", "/v1/messagesx", False),
        ("POST", "/v1/completions", False),
    ],
)
def test_envelopes(serve, ask, method, path, anthropic):
    answer = ask(serve(key="k"), method, path)
    assert answer.status == 401
    assert answer.headers["content-type"] == "application/json"
    kind = (
        b'{"type":"error","error":{"type":"authentication_error","message":'
        if anthropic
        else b'{"error":{"message":'
    )
    assert answer.body.startswith(kind)
    assert (answer.headers["x-request-id"].encode() in answer.body) == anthropic


def test_request_ids(site, ask):
    ids = {ask(site).headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch("req_[0-9a-f]{32}", one) for one in ids)


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [
        ("mine-1", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("a b", False),
        ("caf\xe9", False),
        ("a\tb", False),
    ],
)
def test_client_request_id(site, ask, sent, echoed):
    answer = ask(site, x_request_id=sent)
    assert answer.headers.get("x-client-request-id") == (sent if echoed else None)
    assert answer.headers["x-request-id"] != sent


def test_cors_on_every_kind_of_answer(serve, request_bytes):
    """B121: errors and streams carry the CORS headers as well."""
    site = serve(key="k")
    cases = [
        (request_bytes(origin=LISTED), 200),
        (request_bytes("POST", "/v1/completions", b"", origin=LISTED), 401),
        (request_bytes("POST", "/v1/nope", b"", origin=LISTED, x_api_key="k"), 404),
        (request_bytes("POST", "/stream", b"a", origin=LISTED, x_api_key="k"), 200),
        (request_bytes("POST", "/broken", b"raise", origin=LISTED, x_api_key="k"), 500),
        (request_bytes(host="evil.example", origin=LISTED), 403),
        (request_bytes(origin=LISTED, content_length="x"), 400),
    ]
    with site.connect() as client:
        for data, status in cases:
            client.send(data)
            answer = client.answer()
            assert answer.status == status
            assert answer.headers["access-control-allow-origin"] == LISTED
            assert answer.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
            assert (
                answer.headers["access-control-expose-headers"]
                == "x-request-id, x-colibri-queue-wait-ms, Retry-After"
            )
            assert answer.headers["access-control-max-age"] == "600"
            assert answer.headers["vary"] == "Origin"


def test_unlisted_origin_gets_nothing(site, ask):
    for origin in ("https://evil.example", "null", LISTED + "/", LISTED.upper()):
        answer = ask(site, origin=origin)
        assert answer.status == 200
        assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]


def test_open_origin_list():
    headers = dict(Cors(["*"]).headers({"ORIGIN": "https://any.example"}))
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "Vary" not in headers
    assert Cors(["*"]).headers({}) == []


def test_preflight(serve, ask):
    """B121: a preflight needs no key and gets the headers it may use."""
    answer = ask(
        serve(key="k"),
        "OPTIONS",
        "/v1/chat/completions",
        origin=LISTED,
        access_control_request_headers="x-stainless-os, X-Stainless-Lang,x-evil,x-stainless-a b",
    )
    assert (answer.status, answer.headers["content-length"], answer.body) == (204, "0", b"")
    assert answer.headers["access-control-allow-headers"] == (
        "Authorization, Content-Type, x-api-key, anthropic-version, anthropic-beta, "
        "x-stainless-os, X-Stainless-Lang"
    )
    assert ask(serve(), "OPTIONS", "*").status == 204
    bare = ask(serve(), "OPTIONS", "/anything")
    assert (bare.status, bare.headers.get("access-control-allow-origin")) == (204, None)


def test_preflight_from_a_foreign_host(site, ask):
    answer = ask(site, "OPTIONS", "/v1/chat/completions", host="evil.example", origin=LISTED)
    assert (answer.status, answer.headers["content-length"]) == (403, "0")
    assert "access-control-allow-origin" not in answer.headers
