"""Streams and plain answers: framing, keep-alive, failure, slow readers, other threads (http.md §2)."""

from __future__ import annotations

import re
import threading

import pytest

from server.http import ClientGone
from server.http.accesslog import CANCELLED
from server.http.output import Broken

EVENT = b"data: x\n\n"


def test_keep_alive_after_a_complete_stream(site, request_bytes):
    with site.connect() as client:
        for number in range(20):
            client.send(request_bytes("POST", "/stream", b"%d,b" % number))
            answer = client.answer()
            assert answer.complete
            assert answer.body == b"data: %d\n\ndata: b\n\ndata: [DONE]\n\n" % number
            assert "connection" not in answer.headers
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache, no-transform"
            assert answer.headers["x-accel-buffering"] == "no"
            assert answer.headers["x-colibri-queue-wait-ms"] == "0"
            client.send(request_bytes("POST", "/v1/completions", b"hi"))
            assert client.answer().status == 200


def test_failed_stream_is_cut(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        stream.write(EVENT)
        stream.fail()
        answer = client.answer()
        assert (answer.status, answer.complete, answer.body) == (200, False, EVENT)
        assert client.is_closed()


def test_failed_stream_without_a_write_still_has_its_head(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        site.held().open_stream().fail()
        answer = client.answer()
        assert (answer.status, answer.complete, answer.body) == (200, False, b"")


def test_http_1_0_stream_ends_with_the_connection(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/stream", b"a", version="1.0", connection="keep-alive"))
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert "transfer-encoding" not in answer.headers
        assert answer.body == b"data: a\n\ndata: [DONE]\n\n"


def test_failed_http_1_0_stream_is_reset(site, request_bytes):
    """Without chunks a plain end of connection would pass for success."""
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b"", version="1.0"))
        stream = site.held().open_stream()
        stream.write(EVENT)
        stream.fail()
        with pytest.raises(ConnectionResetError):
            client.answer()


def test_http_1_0_connections(site, request_bytes):
    with site.connect() as client:
        for _ in range(2):
            client.send(request_bytes(version="1.0", connection="Keep-Alive"))
            assert client.answer("GET").headers["connection"] == "keep-alive"
        client.send(request_bytes(version="1.0"))
        assert client.answer("GET").headers["connection"] == "close"
        assert client.is_closed()


def test_connection_close_is_honoured(site, request_bytes):
    for path, body in (("/v1/completions", b"x"), ("/stream", b"x"), ("/v1/nope", b"x")):
        with site.connect() as client:
            client.send(request_bytes("POST", path, body, connection="Close, x") + request_bytes())
            answer = client.answer()
            assert (answer.complete, answer.headers["connection"]) == (True, "close")
            assert client.is_closed()


def test_head_is_get_without_body(site, request_bytes):
    with site.connect() as client:
        client.send(
            request_bytes("GET", "/health")
            + request_bytes("HEAD", "/health")
            + request_bytes("GET", "/health")
        )
        get, head = client.answer("GET"), client.answer("HEAD")
        assert get.headers.keys() == head.headers.keys()
        assert int(head.headers["content-length"]) == len(get.body) + 1  # the body names the method
        assert client.answer("GET").status == 200


def test_generator_is_sent_in_chunks(site, request_bytes):
    with site.connect() as client:
        client.send(
            request_bytes("GET", "/generator") + request_bytes("HEAD", "/generator") + request_bytes()
        )
        assert client.answer("GET").body == b"piece 0;piece 1;piece 2;"
        assert client.answer("HEAD").status == 200
        assert client.answer("GET").status == 200


@pytest.mark.parametrize("kind", [b"raise", b"no answer", b"bad header", b"empty promise"])
def test_application_fault_is_a_plain_500(site, request_bytes, kind):
    with site.connect() as client:
        client.send(request_bytes("POST", "/broken", kind) + request_bytes())
        answer = client.answer()
        assert (answer.status, answer.error["type"], answer.error["code"]) == (
            500,
            "server_error",
            "engine_error",
        )
        assert b"secret" not in answer.body
        assert client.answer("GET").status == 200


def test_application_fault_mid_body_cuts_the_transfer(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/broken", b"midway"))
        answer = client.answer()
        assert (answer.status, answer.complete, answer.body) == (200, False, b"first")
        assert client.is_closed()


def test_head_goes_out_with_the_first_event_in_one_write(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        stream = site.held().open_stream()
        assert client.is_silent(0.05)
        stream.write(EVENT)
        first = client.socket.recv(1 << 16)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert first.endswith(b"\r\n\r\n9\r\n" + EVENT + b"\r\n")
        stream.finish()


def test_flush_sends_the_head_alone(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        stream = site.held().open_stream()
        stream.flush()
        assert client.socket.recv(1 << 16).endswith(b"\r\n\r\n")
        stream.finish(EVENT)
        assert client.socket.recv(1 << 16) == b"9\r\n" + EVENT + b"\r\n0\r\n\r\n"


def test_refusal_before_the_stream(site, request_bytes):
    from generated import errors

    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b"") + request_bytes())
        site.held().refuse(errors.queue_full())
        answer = client.answer()
        assert (answer.status, answer.headers["retry-after"], answer.error["code"]) == (
            429,
            "1",
            "queue_full",
        )
        assert client.answer("GET").status == 200


def test_only_one_answer_is_ever_given(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        exchange.respond(200, [], b"second")
        with pytest.raises(RuntimeError):
            exchange.open_stream()
        stream.finish(EVENT)
        stream.finish(EVENT)
        stream.fail()
        exchange.respond(200, [], b"third")
        assert client.answer().body == EVENT
        client.send(request_bytes("POST", "/hold", b""))
        following = site.held()
        with pytest.raises(ClientGone):
            stream.write(EVENT)  # a late writer must not reach the next answer
        following.respond(200, [], b"fourth")
        assert client.answer().body == b"fourth"


class LockWithSequel:
    """A channel's lock; once this thread has let go of it, ``sequel()`` is run before anything else."""

    def __init__(self, lock, sequel):
        self._lock = lock
        self._sequel = sequel
        self._thread = threading.get_ident()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()
        if threading.get_ident() == self._thread and self._sequel is not None:
            sequel, self._sequel = self._sequel, None
            sequel()


def test_a_client_that_leaves_while_its_stream_is_opened(site, request_bytes):
    """Whoever opened it has a stream, a closed one, and not None."""
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        channel = exchange._channel

        def close():
            site.server.loop.call_soon(lambda: channel.close("the client has left"))
            site.settle()

        channel.lock = LockWithSequel(channel.lock, close)
        stream = exchange.open_stream()
        assert stream.closed
        with pytest.raises(ClientGone):
            stream.write(EVENT)
    assert exchange.record.reason == "the client has left"


def test_many_threads_write_whole_chunks(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        stream = site.held().open_stream()

        def write(name: int) -> None:
            for number in range(200):
                stream.write(b"%d:%d\n" % (name, number))

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stream.finish()
        lines = client.answer().body.split()
        for name in range(4):
            mine = [line for line in lines if line.startswith(b"%d:" % name)]
            assert mine == [b"%d:%d" % (name, number) for number in range(200)]


def test_slow_reader_gets_everything_in_order(site, request_bytes):
    """write never blocks; behind a full socket it says so, and on_writable says when to go on."""
    with site.connect(receive_buffer=4096) as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        sent = []
        while True:
            sent.append(b"%06d" % len(sent) + b"x" * 10_000)
            if not stream.write(sent[-1]):
                break
        assert not stream.writable
        assert not stream.wait_writable(0.02)
        caught_up = threading.Event()
        stream.on_writable(caught_up.set)
        assert not caught_up.is_set()
        reader = threading.Thread(target=lambda: bodies.append(client.answer().body))
        bodies: list[bytes] = []
        reader.start()
        assert caught_up.wait(20)
        assert stream.writable
        assert stream.wait_writable(0)
        stream.finish(b"end")
        reader.join(30)
        assert bodies == [b"".join(sent) + b"end"]
        client.send(request_bytes())
        assert client.answer("GET").status == 200


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_client_that_was_given_up_gets_nothing_more(serve, request_bytes, monkeypatch, version):
    """Behind the bytes that were forgotten the rest would pass for a whole answer, and be logged as one."""
    monkeypatch.setattr("server.http.exchange._ABANDONED", 256 * 1024)
    site = serve()
    piece = b"data: x\n\n" * 1000
    with site.connect(receive_buffer=4096) as client:
        client.send(request_bytes("POST", "/hold", b"", version=version))
        exchange = site.held()
        channel = exchange._channel
        with site.standing_still():  # or it would close the connection before anything else is written
            stream = exchange.open_stream()
            while stream.write(piece):
                pass
            while channel.pending_bytes:
                stream.write(piece)
            with pytest.raises(ClientGone):
                stream.write(piece)
            stream.finish(piece)
            assert stream.closed
            assert channel.pending_bytes == 0
        with pytest.raises(ConnectionResetError):
            client.rest()
    record = site.record()
    assert (record.outcome, record.reason) == (CANCELLED, "the client is too far behind")


def test_an_answer_whose_last_bytes_could_not_be_sent_is_reset(serve, request_bytes):
    site = serve()
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        stream.write(EVENT)
        with site.standing_still():
            exchange._channel._output.send = broken
            stream.finish()
        with pytest.raises(ConnectionResetError):
            client.rest()


def broken(data):
    raise Broken


def test_large_answer_never_blocks(site, request_bytes):
    """A plain answer of known length waits for a slow reader without a thread."""
    body = bytes(range(256)) * 40_000
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b"") + request_bytes())
        site.held().respond(200, [("Content-Type", "application/octet-stream")], body)  # returns at once
        answer = client.answer()
        assert (answer.complete, answer.body) == (True, body)
        assert client.answer("GET").status == 200


@pytest.mark.parametrize("pieces", [[], [b""], [b"ab", b"", b"c"], [b"x" * 50_000] * 5])
def test_answer_in_pieces(site, request_bytes, pieces):
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b"") + request_bytes())
        site.held().respond(200, [], pieces)
        answer = client.answer()
        assert (answer.complete, answer.body) == (True, b"".join(pieces))
        assert "transfer-encoding" not in answer.headers
        assert client.answer("GET").status == 200


def test_date_and_server_headers(site, request_bytes):
    with site.connect() as client:
        client.send(request_bytes())
        headers = client.answer("GET").headers
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["date"])
        assert headers["server"] == "colibri"
