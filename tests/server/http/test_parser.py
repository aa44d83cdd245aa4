"""The request parser without a socket: the same result however the bytes are split; no byte too many."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waitress.adjustments import Adjustments

from server.http.parser import RequestParser

ADJUSTMENTS = Adjustments()
TRAILING = b"GET /next HTTP/1.1\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
GOOD = {
    "plain": b"GET /a%20b?x=1&y HTTP/1.1\r\nHost: h\r\n\r\n",
    "empty lines first": b"\r\n\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "length": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 005\r\n\r\nhello",
    "chunked": CHUNKED + b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n",
    "old": b"POST / HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
    "repeated header": b"GET / HTTP/1.1\r\nHost: h\r\nAccept: a\r\nAccept:\tb \r\nX-Y:\r\n\r\n",
    "absolute": b"OPTIONS http://Host:80?q HTTP/1.1\r\nHost: other\r\n\r\n",
}
BAD = {
    "line": b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\r\nHost: h\r\nA: b\nC: d\r\n\r\n",
    "bare CR": b"GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nA: b\r\n\r\n",
    "both framings": CHUNKED.replace(b"Host", b"Content-Length: 1\r\nHost") + b"0\r\n\r\n",
    "chunk size": CHUNKED + b"3\r\nhel\r\nx\r\nlo\r\n",
    "head size": b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"b" * 400 + b"\r\n\r\n",
}


def parse(pieces: list[bytes]) -> tuple[object, ...]:
    """Everything that is known after feeding ``pieces`` like a connection does, and the bytes left over."""
    parser = RequestParser(ADJUSTMENTS, max_header_bytes=300, max_body_bytes=1000)
    left = b""
    for position, piece in enumerate(pieces):
        while piece and not parser.completed and parser.fault is None:
            piece = piece[parser.received(piece) :]
        if parser.completed or parser.fault is not None:
            left = piece + b"".join(pieces[position + 1 :])
            break
    if parser.fault is not None:
        return (parser.fault, parser.command)
    known = (parser.command, parser.path, parser.query, parser.host, parser.version, parser.keep_alive)
    return (*known, parser.headers, parser.get_body_stream().read(), left)


def test_what_a_request_says():
    assert parse([GOOD["plain"]]) == ("GET", "/a b", "x=1&y", "h", "1.1", True, {"HOST": "h"}, b"", b"")
    chunked = parse([GOOD["chunked"] + TRAILING])
    assert chunked[-3:] == ({"HOST": "h"}, b"hello", TRAILING)
    assert parse([GOOD["old"]])[3:6] == (None, "1.0", True)
    assert parse([GOOD["repeated header"]])[6] == {"HOST": "h", "ACCEPT": "a, b", "X_Y": ""}
    assert parse([GOOD["absolute"]])[:4] == ("OPTIONS", "/", "q", "Host:80")


def test_blanks_around_a_value_are_looked_at_once_however_many():
    """Tried in every way of sharing them out, these would take a quarter of an hour, and every client with
    it."""
    blanks = b" \t" * 4000
    parser = RequestParser(ADJUSTMENTS, max_header_bytes=30_000, max_body_bytes=0)
    parser.received(
        b"GET / HTTP/1.1\r\nHost: h\r\nA:" + blanks + b"b" + blanks + b"c" + blanks + b"\x01\r\n\r\n"
    )
    assert parser.fault == "a header line is not valid"
    parser = RequestParser(ADJUSTMENTS, max_header_bytes=30_000, max_body_bytes=0)
    parser.received(b"GET / HTTP/1.1\r\nHost: h\r\nA:" + blanks + b"b \xa0" + blanks + b"\r\n\r\n")
    assert (parser.fault, parser.headers) == (None, {"HOST": "h", "A": "b \xa0"})


@pytest.mark.parametrize("name", GOOD | BAD)
def test_whole_bytewise_and_with_trailing_data(name):
    data = (GOOD | BAD)[name]
    whole = parse([data])
    assert parse([data[at : at + 1] for at in range(len(data))]) == whole
    with_trailing = parse([data + TRAILING])
    assert with_trailing == ((*whole[:-1], TRAILING) if name in GOOD else whole)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(GOOD | BAD)), cuts=st.lists(st.integers(0, 500), max_size=8))
def test_any_split_gives_the_same(name, cuts):
    data = (GOOD | BAD)[name] + TRAILING
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(edges)]
    assert parse(pieces) == parse([data])


@settings(max_examples=300, deadline=None)
@given(noise=st.binary(max_size=300), at=st.integers(0, 200), name=st.sampled_from(sorted(GOOD)))
def test_noise_never_raises_and_never_takes_too_much(noise, at, name):
    data = GOOD[name][:at] + noise + GOOD[name][at:]
    parser = RequestParser(ADJUSTMENTS, max_header_bytes=300, max_body_bytes=1000)
    rest = data
    while rest and not parser.completed and parser.fault is None:
        taken = parser.received(rest)
        assert 0 < taken <= len(rest) or parser.fault is not None
        rest = rest[taken:]
    if parser.fault is not None:
        assert parser.received(b"more") == 0
