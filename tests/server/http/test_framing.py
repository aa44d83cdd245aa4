"""http.md §2: heads and framings that leave doubt are refused with 400 and a closed connection."""

from __future__ import annotations

import pytest

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"

LENGTHS = [
    b"abc",
    b"-5",
    b"+5",
    b"0x5",
    b"5, 5",
    b"5 5",
    b"",
    b"5.0",
    b"\xb2",
    b"1_0",
    b"5;q=1",
    b"\t",
    b"5\x0b",
    b"\x1f5",
]
BAD_HEADS = {
    **{
        f"Content-Length {length!r}": HEAD + b"Content-Length: " + length + b"\r\n\r\nhello"
        for length in LENGTHS
    },
    "two equal Content-Lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "two Content-Lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "length and coding": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "identity": HEAD + b"Transfer-Encoding: identity\r\n\r\n",
    "gzip, chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked, chunked": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "two codings": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "xchunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "empty coding": HEAD + b"Transfer-Encoding:\r\n\r\n",
    "chunked with vertical tab": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked on 1.0": HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "two Hosts on 1.0": b"GET /health HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "no Host beside an absolute target": b"GET http://localhost/health HTTP/1.1\r\n\r\n",
    "bare CR in a value": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
    "bare LF in a value": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\nY: b\r\n\r\n",
    "NUL in a value": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "NUL in a name": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX\x00: ab\r\n\r\n",
    "bare LF line ends": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "bare CR line ends": b"GET /health HTTP/1.1\rHost: localhost\r\r",
    "obs-fold": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "obs-fold in Content-Length": HEAD + b"Content-Length: 5\r\n 0\r\n\r\nhello",
    "folded first header": b"GET /health HTTP/1.1\r\n X: a\r\nHost: localhost\r\n\r\n",
    "space before colon": b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "space before colon of a length": HEAD + b"Content-Length : 5\r\n\r\nhello",
    "no colon": b"GET /health HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "empty name": b"GET /health HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
    "control in a value": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x07b\r\n\r\n",
    "no version": b"GET /health\r\nHost: localhost\r\n\r\n",
    "version 2": b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "version 1.10": b"GET /health HTTP/1.10\r\nHost: localhost\r\n\r\n",
    "lower-case protocol": b"GET /health http/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "space in target": b"GET /hea lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tab in request line": b"GET\t/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "trailing space": b"GET /health HTTP/1.1 \r\nHost: localhost\r\n\r\n",
    "leading space": b" GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bad method": b"G(T /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "fragment": b"GET /health#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "relative target": b"GET health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "asterisk of a GET": b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "authority form": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "user in an absolute target": b"GET http://a@localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "other scheme": b"GET ftp://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(32) + b"\r\n\r\n",
    "head too large": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
}
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BAD_CHUNKS = {
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "size not hexadecimal": b"5g\r\nhello\r\n0\r\n\r\n",
    "negative size": b"-5\r\nhello\r\n0\r\n\r\n",
    "prefixed size": b"0x5\r\nhello\r\n0\r\n\r\n",
    "space before the size": b" 5\r\nhello\r\n0\r\n\r\n",
    "endless size": b"0" * 17 + b"5\r\nhello\r\n0\r\n\r\n",
    "chunk longer than its size": b"4\r\nhello\r\n0\r\n\r\n",
    "chunk shorter than its size": b"6\r\nhello\r\n0\r\n\r\n",
    "bare LF after the size": b"5\nhello\r\n0\r\n\r\n",
    "bare LF after the chunk": b"5\r\nhello\n0\r\n\r\n",
    "NUL in an extension": b"5;a\x00b\r\nhello\r\n0\r\n\r\n",
    "long size line": b"5;" + b"a" * 2000 + b"\r\nhello\r\n0\r\n\r\n",
    "bad trailer": b"5\r\nhello\r\n0\r\nno colon\r\n\r\n",
    "endless trailer": b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_doubtful_head(site, name):
    """B115: what two readers could take for two different requests is refused with all behind it."""
    with site.connect() as client:
        seen = len(site.requests)
        client.send(BAD_HEADS[name] + SMUGGLED)
        answer = client.answer()
        assert answer.status == 400, answer
        assert answer.error["type"] == "invalid_request_error"
        assert (answer.error["param"], answer.error["code"]) == (None, None)
        assert answer.headers["connection"] == "close"
        assert answer.headers["x-request-id"].startswith("req_")
        assert client.is_closed()
        assert len(site.requests) == seen


@pytest.mark.parametrize("name", [name for name, head in BAD_HEADS.items() if len(head) < 500])
def test_doubtful_head_bytewise(site, name):
    with site.connect() as client:
        for position in range(len(BAD_HEADS[name])):
            try:
                client.send(BAD_HEADS[name][position : position + 1])
            except (BrokenPipeError, ConnectionResetError):
                break  # refused before its end
        assert client.answer().status == 400
        assert client.is_closed()


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_bad_chunking(site, name):
    """B116: malformed chunks are refused, and the connection ends."""
    with site.connect() as client:
        seen = len(site.requests)
        client.send(CHUNKED + BAD_CHUNKS[name] + SMUGGLED)
        answer = client.answer()
        assert answer.status == 400, answer
        assert answer.error["code"] is None
        assert client.is_closed()
        assert len(site.requests) == seen


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 100\r\n\r\nshort",
        CHUNKED + b"5\r\nhel",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\n",
    ],
)
def test_short_body(site, sent):
    with site.connect() as client:
        seen = len(site.requests)
        client.send(sent)
        client.half_close()
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert client.is_closed()
        assert len(site.requests) == seen


def test_fault_behind_good_requests(site, request_bytes):
    """The good ones are answered in order, the bad one ends the connection."""
    with site.connect() as client:
        client.send(request_bytes() * 2 + BAD_HEADS["obs-fold"] + request_bytes())
        assert [client.answer("GET").status for _ in range(3)] == [200, 200, 400]
        assert client.is_closed()


def test_anthropic_envelope_for_parser_faults(site):
    with site.connect() as client:
        client.send(b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n")
        answer = client.answer()
        assert answer.status == 400
        assert answer.body.startswith(b'{"type":"error","error":{"type":"invalid_request_error","message":')
        assert answer.headers["x-request-id"].encode() in answer.body


def test_head_fault_carries_cors_and_client_id(site):
    with site.connect() as client:
        client.send(
            b"GET /health HTTP/1.1\r\nX-Request-Id: mine\r\n"
            b"Origin: http://localhost:5173\r\nHost : localhost\r\n\r\n"
        )
        answer = client.answer("GET")
        assert answer.status == 400
        assert answer.headers["access-control-allow-origin"] == "http://localhost:5173"
        assert answer.headers["x-client-request-id"] == "mine"


def test_underscore_headers_are_not_taken_for_dashed_ones(site):
    with site.connect() as client:
        client.send(HEAD + b"Content_Length: 99\r\nContent-Length: 2\r\n\r\nhi" + SMUGGLED)
        assert b'"size": 2' in client.answer().body
        assert client.answer("GET").status == 200


def test_leading_empty_lines_are_skipped(site, request_bytes):
    with site.connect() as client:
        client.send(b"\r\n\r\n" + request_bytes() + b"\r\n" + request_bytes())
        assert [client.answer("GET").status, client.answer("GET").status] == [200, 200]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/health", 200),
        ("HTTP://LOCALHOST:8000/health?x=1", 200),
        ("http://evil.example/health", 403),
        ("http://localhost", 404),
        ("/health?x=1#", 400),
        ("/health?a=/../b", 200),
        ("//health", 404),
        ("/./health", 404),
        ("/%68ealth", 404),
        ("/health/", 404),
        ("/v1/models/a/b%20c", 200),
        ("/v1/models/", 404),
    ],
)
def test_targets(site, request_bytes, target, status):
    with site.connect() as client:
        client.send(request_bytes("GET", target))
        assert client.answer("GET").status == status


def test_absolute_target_overrides_host(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("GET", "http://localhost/health", host="evil.example"))
        assert client.answer("GET").status == 200
