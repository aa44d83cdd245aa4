"""http.md §2: deadlines for reading, idling and stalled writing; caps; what they cost others."""

from __future__ import annotations

import time

import pytest

from server.http.accesslog import CANCELLED, REFUSED

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"


def drip(client, data: bytes, seconds: float) -> bool:
    """Send byte by byte for at most that long, or until the server has had enough: then True."""
    limit = time.monotonic() + seconds
    for position in range(len(data)):
        if time.monotonic() > limit:
            return False
        try:
            client.send(data[position : position + 1])
        except (BrokenPipeError, ConnectionResetError):
            return True
        if not client.is_silent(0.02):
            return True
    return False


@pytest.mark.parametrize("sent", [b"P", b"POST /v1/completions HT", b"POST /v1/completions HTTP/1.1\r"])
def test_no_request_line_in_time_is_closed_in_silence(serve, sent):
    site = serve(read_deadline=0.2)
    with site.connect() as client:
        began = time.monotonic()
        client.send(sent)
        assert client.is_closed()
        assert 0.15 < time.monotonic() - began < 15
    assert site.begun == 0


@pytest.mark.parametrize("sent", [HEAD[:40], HEAD, HEAD + b"\r\n", HEAD + b"\r\n0123456789"])
def test_incomplete_request_in_time_is_408(serve, sent):
    """B119: a request that never comes whole is given up."""
    site = serve(read_deadline=0.2)
    with site.connect() as client:
        client.send(sent)
        answer = client.answer()
        assert (answer.status, answer.error["code"], answer.headers["connection"]) == (
            408,
            "request_timeout",
            "close",
        )
        assert client.is_closed()
    assert site.requests == []
    assert site.record().outcome == REFUSED


def test_deadline_is_cumulative(serve):
    """A byte now and then does not buy time: neither in the head nor in the body."""
    site = serve(read_deadline=0.3)
    for sent in (HEAD + b"X: " + b"x" * 500, HEAD + b"\r\n" + b"x" * 99):
        with site.connect() as client:
            client.send(HEAD[:50])
            began = time.monotonic()
            assert drip(client, sent[50:], 15)
            assert client.answer().status == 408
            assert time.monotonic() - began < 15


def test_deadline_begins_with_each_request(serve, request_bytes):
    site = serve(read_deadline=0.3)
    with site.connect() as client:
        for _ in range(3):
            assert client.is_silent(0.2)
            client.send(request_bytes())
            assert client.answer("GET").status == 200
        client.send(b"GET /hea")
        assert client.is_closed()


def test_deadline_while_a_refused_body_is_drained(serve):
    site = serve(read_deadline=0.2, key="k")
    with site.connect() as client:
        client.send(HEAD + b"\r\n0123456789")
        assert client.answer().status == 401
        assert client.is_closed()  # no second answer


def test_idle_connection_is_closed(serve, request_bytes):
    site = serve(idle_timeout=0.3)
    with site.connect() as fresh, site.connect() as used:
        used.send(request_bytes())
        assert used.answer("GET").status == 200
        began = time.monotonic()
        assert fresh.is_closed()
        assert used.is_closed()
        assert time.monotonic() - began < 15


def test_empty_lines_do_not_keep_a_connection(serve):
    site = serve(idle_timeout=0.3, read_deadline=0.3)
    with site.connect() as client:
        assert drip(client, b"\r\n" * 200, 3)


def test_generation_is_not_bounded_by_the_deadlines(serve, request_bytes):
    site = serve(idle_timeout=0.1, read_deadline=0.1, write_stall=0.1)
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        assert client.is_silent(0.4)
        stream = exchange.open_stream()
        stream.write(b"a")
        assert client.socket.recv(1 << 16)
        assert client.is_silent(0.4)
        stream.finish(b"b")
        assert client.socket.recv(1 << 16) == b"1\r\nb\r\n0\r\n\r\n"


@pytest.mark.parametrize("streamed", [True, False])
def test_client_that_stops_reading_counts_as_gone(serve, request_bytes, streamed):
    site = serve(write_stall=0.3)
    with site.connect(receive_buffer=4096) as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        began = time.monotonic()
        if streamed:
            stream = exchange.open_stream()
            while stream.write(b"x" * 50_000):
                pass
            assert exchange.client.gone.wait(20)
            assert 0.25 < time.monotonic() - began < 15
            record = site.record()
            assert (record.outcome, record.reason) == (CANCELLED, "the client stopped reading")
        else:
            exchange.respond(200, [], b"x" * 20_000_000)
        time.sleep(0.6)
        with pytest.raises(ConnectionResetError):
            client.rest()


def test_slow_reader_is_no_stalled_reader(serve, request_bytes):
    """As long as something is read within the deadline the answer goes on, however long it takes in all."""
    site = serve(write_stall=0.4)
    body = bytes(4_000_000)
    with site.connect(receive_buffer=32 * 1024) as client:
        client.send(request_bytes("POST", "/hold", b""))
        site.held().respond(200, [], body)
        received, began = 0, time.monotonic()
        while received < len(body):
            piece = client.socket.recv(60_000)
            assert piece
            received += len(piece)
            time.sleep(max(0.0, began + received / len(body) - time.monotonic()))  # one second in all
        assert site.server.connections == 1


def test_client_that_does_not_read_shows_soon(serve, request_bytes):
    """The kernel does not hide a client that has stopped reading behind megabytes of buffer."""
    site = serve()
    with site.connect(receive_buffer=32 * 1024) as client:
        client.send(request_bytes("POST", "/hold", b""))
        stream = site.held().open_stream()
        written = 0
        while stream.write(b"x" * 1000):
            written += 1000
        assert written < 1_000_000


def test_slow_and_idle_clients_hold_no_worker(serve, request_bytes):
    """B119: those that wait are served meanwhile."""
    site = serve(max_connections=100)
    slow = [site.connect() for _ in range(60)]
    for number, client in enumerate(slow):
        client.send([b"", b"POST /v1/comp", HEAD, HEAD + b"\r\n123"][number % 4])
    with site.connect() as client:
        for _ in range(20):
            began = time.monotonic()
            client.send(request_bytes("POST", "/v1/completions", b"quick"))
            assert client.answer().status == 200
            assert time.monotonic() - began < 15  # they have 20 seconds
    assert len(site.server.task_dispatcher.threads) < 5
    for client in slow:
        client.socket.close()


@pytest.mark.parametrize("limits", [{"max_connections": 3}, {"max_connections_per_peer": 3}])
def test_connections_over_a_cap(serve, request_bytes, eventually, limits):
    site = serve(**limits)
    held = [site.connect() for _ in range(3)]
    for client in held:
        client.send(request_bytes())
        assert client.answer("GET").status == 200
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"x"))  # in vain, and no reset for it
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (503, "too_many_connections")
        assert (answer.headers["connection"], answer.headers["retry-after"]) == ("close", "1")
        assert client.is_closed()
    held.pop().socket.close()
    assert eventually(lambda: site.server.connections == 2)
    with site.connect() as client:
        client.send(request_bytes())
        assert client.answer("GET").status == 200
    for client in held:
        client.send(request_bytes())
        assert client.answer("GET").status == 200
        client.socket.close()


def test_zero_is_no_cap_per_peer(serve, request_bytes):
    site = serve(max_connections_per_peer=0)
    clients = [site.connect() for _ in range(100)]
    for client in clients:
        client.send(request_bytes())
    assert [client.answer("GET").status for client in clients] == [200] * 100
    for client in clients:
        client.socket.close()


def test_a_storm_of_refused_connections_is_bounded(serve, eventually):
    site = serve(max_connections=1)
    first = site.connect()
    assert eventually(lambda: site.server.connections == 1)
    refused = [site.connect() for _ in range(150)]
    assert eventually(lambda: site.begun >= 64)
    assert site.server.connections <= 65
    for client in [first, *refused]:
        client.socket.close()
    assert eventually(lambda: site.server.connections == 0)


def test_two_hundred_clients_in_the_same_instant(serve, request_bytes):
    """All are answered without a retransmission delay (a second at least)."""
    site = serve()
    clients, slowest = [], 0.0
    for _ in range(200):
        began = time.monotonic()
        clients.append(site.connect())
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 0.9
    for client in clients:
        client.send(request_bytes())
    assert [client.answer("GET").status for client in clients] == [200] * 200
    for client in clients:
        client.socket.close()
