"""The drain rule of http.md §2: a body is consumed exactly once, by whoever, never parsed as a request."""

from __future__ import annotations

import json

import pytest

from server.http.bodies import Discarded

INNER = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"  # a body that looks like a request


def early_refusals(request_bytes):
    """Requests refused at their head, with the status each must get."""
    return [
        (request_bytes("POST", "/v1/completions", INNER, host="evil.example", x_api_key="k"), 403),
        (request_bytes("POST", "/v1/completions", INNER), 401),
        (request_bytes("POST", "/v1/nope", INNER, x_api_key="k"), 404),
        (request_bytes("PUT", "/v1/models", INNER, x_api_key="k"), 405),
        (request_bytes("POST", "/v1/completions", INNER, x_api_key="k", content_encoding="br"), 415),
        (request_bytes("OPTIONS", "/v1/completions", INNER), 204),
        (
            request_bytes(
                "POST",
                "/v1/nope",
                b"%x\r\n%b\r\n0\r\n\r\n" % (len(INNER), INNER),
                x_api_key="k",
                transfer_encoding="chunked",
            ),
            404,
        ),
    ]


@pytest.fixture
def keyed(serve):
    return serve(key="k")


def test_every_refusal_then_a_stream_then_json(keyed, request_bytes):
    """B114: the body of a refused request is never taken for the next request line."""
    for pipelined in (False, True):
        with keyed.connect() as client:
            keyed.requests.clear()
            requests = early_refusals(request_bytes) * 2
            requests.append((request_bytes("POST", "/stream", b"a,b", x_api_key="k"), 200))
            requests.append((request_bytes("POST", "/v1/completions", INNER, x_api_key="k"), 200))
            requests.append((request_bytes("GET", "/health", b"abc"), 200))
            if pipelined:
                client.send(b"".join(data for data, _ in requests))
            for data, status in requests:
                if not pipelined:
                    client.send(data)
                answer = client.answer()
                assert (answer.status, answer.complete) == (status, True)
                assert "connection" not in answer.headers
            assert [path for _, path, _ in keyed.requests] == ["/stream", "/v1/completions", "/health"]
            assert keyed.requests[1][2] == INNER


def test_refusal_comes_before_the_body_and_the_body_is_drained(keyed, request_bytes):
    whole = request_bytes("POST", "/v1/completions", INNER)
    with keyed.connect() as client:
        client.send(whole[: -len(INNER)])
        assert client.answer().status == 401  # the body is still at home
        client.send_bytewise(INNER)
        client.send(request_bytes("GET", "/health"))
        assert client.answer("GET").status == 200
        assert [path for _, path, _ in keyed.requests] == ["/health"]


def test_drained_body_is_not_kept(keyed, request_bytes):
    whole = request_bytes("POST", "/v1/completions", bytes(50_000))
    with keyed.connect() as client:
        client.send(whole[:-1])
        assert client.answer().status == 401
        [channel] = keyed.server._channels
        assert isinstance(channel._reader.request.body.getbuf(), Discarded)


def test_bodies_of_gets_are_drained(site, request_bytes):
    with site.connect() as client:
        client.send((request_bytes("GET", "/health", INNER) + request_bytes("HEAD", "/health", INNER)) * 3)
        for method in ("GET", "HEAD") * 3:
            answer = client.answer(method)
            assert (answer.status, answer.complete) == (200, True)
        assert client.is_silent(0.05)


def test_body_beyond_the_drain_bound_closes(keyed):
    """A refused body that could not be accepted anyway is not read to its end."""
    with keyed.connect() as client:
        client.send(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
            + bytes(1000)
        )
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (401, "close")
        assert client.is_closed()


def test_faulty_body_of_a_refused_request_closes(keyed):
    with keyed.connect() as client:
        client.send(
            b"POST /v1/nope HTTP/1.1\r\nHost: localhost\r\nx-api-key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert client.answer().status == 404
        client.send(b"zz\r\n" + INNER)
        assert client.is_closed()  # the answer was given; a second one would be spliced in


def test_pipelined_requests_are_answered_in_order(site, request_bytes):
    paths = [f"/v1/models/{number}" for number in range(200)]
    with site.connect() as client:
        client.send(b"".join(request_bytes("GET", path) for path in paths))
        assert [json.loads(client.answer("GET").body)["path"] for _ in paths] == paths


class TestExpect:
    """B117: 100 before the body is read, or the refusal at once; never one after the other."""

    def test_100_then_the_answer(self, site, request_bytes):
        whole = request_bytes("POST", "/v1/completions", b"hello", expect="100-Continue")
        with site.connect() as client:
            for _ in range(2):
                client.send(whole[:-5])
                assert client.answer().status == 100
                client.send(b"hello")
                assert client.answer().status == 200

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"path": "/v1/nope"}, 404),
            ({"method": "PUT"}, 405),
            ({"host": "evil.example"}, 403),
            ({"content_encoding": "br"}, 415),
        ],
    )
    def test_refusal_at_once_without_100(self, site, request_bytes, changes, status):
        given = {
            "method": "POST",
            "path": "/v1/completions",
            "body": b"hello",
            "expect": "100-continue",
        } | changes
        with site.connect() as client:
            client.send(request_bytes(**given)[:-5])
            answer = client.answer()
            assert (answer.status, answer.headers["connection"]) == (status, "close")
            assert client.is_closed()

    def test_too_large_without_100(self, site):
        with site.connect() as client:
            client.send(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 100001\r\nExpect: 100-continue\r\n\r\n"
            )
            assert client.answer().status == 413

    def test_no_100_for_a_body_that_is_there_or_empty(self, site, request_bytes):
        with site.connect() as client:
            client.send(request_bytes("POST", "/v1/completions", b"hello", expect="100-continue"))
            assert client.answer().status == 200
            client.send(request_bytes("POST", "/v1/completions", b"", expect="100-continue"))
            assert client.answer().status == 200

    def test_100_waits_for_its_turn(self, site, request_bytes):
        """Behind a request in progress the interim answer must not overtake the answer of that request."""
        with site.connect() as client:
            client.send(request_bytes("POST", "/hold", b""))
            first = site.held()
            client.send(request_bytes("POST", "/v1/completions", b"hello", expect="100-continue")[:-5])
            assert client.is_silent(0.05)
            first.respond(200, [], b"first")
            assert client.answer().body == b"first"
            assert client.answer().status == 100
            client.send(b"hello")
            assert client.answer().status == 200

    def test_http_1_0_knows_no_100(self, site, request_bytes):
        with site.connect() as client:
            client.send(
                request_bytes("POST", "/v1/completions", b"hello", version="1.0", expect="100-continue")
            )
            assert client.answer().status == 200
