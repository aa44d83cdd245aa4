"""http.md §2: request bodies by length, in chunks and encoded; the limit is on what the application reads."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from io import BytesIO

import pytest

from server.http.bodies import ChunkedBody, Discarded, FixedBody
from server.http.encodings import BadBody, BodyTooLarge, decoded

LIMIT = 100_000
TEXT = b"".join(b"%d " % number for number in range(10_000))


def chunks(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def check_echo(answer, body: bytes) -> None:
    assert answer.status == 200, answer
    echo = json.loads(answer.body)
    assert (echo["size"], echo["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
    assert echo["length"] == str(len(body))


# -- receivers, without a socket -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (
            b'5;name=value;other="a b"\r\nhello\r\n1 ;x\r\n!\r\n000\r\nTrailer: x\r\nOther: y\r\n\r\n',
            b"hello!",
        ),
        (b"0\r\n\r\n", b""),
        (b"00A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    ],
)
def test_chunked_body_however_it_is_split(wire, body):
    """B116: a chunked body is read whole, with extensions and trailers."""
    for step in (1, 2, 3, len(wire)):
        collected = BytesIO()
        receiver = ChunkedBody(Collector(collected))
        trailing = wire + b"GET / HTTP/1.1"
        consumed = 0
        while consumed < len(trailing) and not receiver.completed:
            consumed += receiver.received(trailing[consumed : consumed + step])
        assert (consumed, receiver.error) == (len(wire), None)
        assert collected.getvalue() == body
        assert receiver.received(b"more") == 0


def test_fixed_body_takes_exactly_its_bytes():
    receiver = FixedBody(5, Discarded())
    assert receiver.received(b"abc") == 3
    assert receiver.received(b"defgh") == 2
    assert receiver.completed
    assert len(receiver) == 5


def test_discarding_keeps_the_end():
    receiver = ChunkedBody(Discarded())
    receiver.received(b"5\r\nhel")
    receiver.discard()
    assert receiver.received(b"lo\r\n0\r\n\r\nnext") == 9
    assert receiver.completed


class Collector(Discarded):
    def __init__(self, file: BytesIO) -> None:
        super().__init__()
        self._file = file

    def append(self, data: bytes) -> None:
        super().append(data)
        self._file.write(data)


# -- decoding, without a socket --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
)
def test_decoding(coding, packed):
    file, size = decoded(BytesIO(packed), coding, len(TEXT))
    assert (size, file.read()) == (len(TEXT), TEXT)


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(TEXT)[:-1]),
        ("gzip", gzip.compress(TEXT)[:-8] + bytes(8)),
        ("gzip", gzip.compress(TEXT) + b"x"),
        ("gzip", TEXT),
        ("gzip", b""),
        ("gzip", gzip.compress(b"") * 2000),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("deflate", zlib.compress(TEXT) + b"x"),
        ("deflate", raw_deflate(TEXT)[:-1]),
        ("deflate", b"not deflate"),
    ],
)
def test_bodies_that_are_not_what_they_say(coding, packed):
    with pytest.raises(BadBody):
        decoded(BytesIO(packed), coding, 10 * len(TEXT))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_limit_is_on_the_output(coding):
    bomb = (gzip if coding == "gzip" else zlib).compress(bytes(LIMIT + 1))
    with pytest.raises(BodyTooLarge):
        decoded(BytesIO(bomb), coding, LIMIT)
    assert decoded(BytesIO(bomb), coding, LIMIT + 1)[1] == LIMIT + 1


# -- over the wire ---------------------------------------------------------------------------------


def test_lengths_and_chunks_on_one_connection(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", TEXT))
        check_echo(client.answer(), TEXT)
        for size in (1, 7, 4096, len(TEXT)):
            client.send(
                request_bytes(
                    "POST", "/v1/completions", chunks(TEXT[:3000], size), transfer_encoding="chunked"
                )
            )
            check_echo(client.answer(), TEXT[:3000])
        client.send(request_bytes("POST", "/v1/completions", b""))
        check_echo(client.answer(), b"")
        client.send(request_bytes("POST", "/v1/completions"))
        assert json.loads(client.answer().body)["size"] == 0


def test_chunks_sent_bytewise(site, request_bytes):
    with site.connect() as client:
        client.send_bytewise(
            request_bytes("POST", "/v1/completions", chunks(b"hello", 2), transfer_encoding="Chunked")
        )
        check_echo(client.answer(), b"hello")


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("identity", TEXT),
        ("", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("GZip", gzip.compress(TEXT)),
        ("gzip, identity", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
    ],
)
def test_encoded_bodies(site, request_bytes, coding, packed):
    """B118: gzip and deflate are decoded."""
    with site.connect() as client:
        for _ in range(2):
            client.send(request_bytes("POST", "/v1/completions", packed, content_encoding=coding))
            check_echo(client.answer(), TEXT)
        client.send(
            request_bytes(
                "POST",
                "/v1/completions",
                chunks(packed, 1000),
                content_encoding=coding,
                transfer_encoding="chunked",
            )
        )
        check_echo(client.answer(), TEXT)


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "x-gzip", "chunked", "*"])
def test_other_encodings(site, request_bytes, coding):
    """B118: any other coding is refused by name."""
    with site.connect() as client:
        seen = len(site.requests)
        client.send(
            request_bytes("POST", "/v1/completions", b"x" * 500, content_encoding=coding) + request_bytes()
        )
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (415, "unsupported_encoding")
        assert coding in answer.error["message"]
        assert client.answer("GET").status == 200
        assert len(site.requests) == seen + 1


def test_encoding_of_no_body_is_nothing(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("GET", "/health", content_encoding="br"))
        assert client.answer("GET").status == 200


def test_corrupt_gzip(site, request_bytes):
    with site.connect() as client:
        seen = len(site.requests)
        client.send(request_bytes("POST", "/v1/completions", b"not gzip", content_encoding="gzip"))
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (400, None)
        assert len(site.requests) == seen


def test_bomb(site, request_bytes):
    with site.connect() as client:
        seen = len(site.requests)
        client.send(
            request_bytes(
                "POST", "/v1/completions", gzip.compress(bytes(50 * LIMIT)), content_encoding="gzip"
            )
        )
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (413, "request_too_large")
        assert client.is_closed()
        assert len(site.requests) == seen


def test_limit_is_exact(site, request_bytes):
    body = bytes(LIMIT)
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", body))
        check_echo(client.answer(), body)
        client.send(
            request_bytes("POST", "/v1/completions", chunks(body, 30_000), transfer_encoding="chunked")
        )
        check_echo(client.answer(), body)
        client.send(request_bytes("POST", "/v1/completions", gzip.compress(body), content_encoding="gzip"))
        check_echo(client.answer(), body)
        client.send(request_bytes("POST", "/v1/completions", body + b"x"))
        assert client.answer().status == 413


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/messages"])
@pytest.mark.parametrize("length", [LIMIT + 1, 10**9, 10**40])
def test_too_large_by_its_head_alone(site, request_bytes, path, length):
    """B120: the refusal of a large body reaches the client before the connection ends."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()
    with site.connect() as client:
        client.send(head)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert b"request_too_large" in answer.body
        assert (b'"type":"error"' in answer.body) == (path == "/v1/messages")
        assert client.is_closed()


def test_too_large_by_a_chunk_size_alone(site):
    with site.connect() as client:
        client.send(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n"
            % (LIMIT + 1)
        )
        assert client.answer().status == 413
        assert client.is_closed()


def test_answer_reaches_a_client_that_sends_20_megabytes_first(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", bytes(20_000_000)))
        answer = client.answer()
        assert (answer.status, answer.complete) == (413, True)
        assert client.is_closed()
