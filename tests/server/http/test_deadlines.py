"""http.md §2: deadlines for reading, idling and stalled writing; caps; what they cost others."""

from __future__ import annotations

import pytest

from server.http.accesslog import CANCELLED, OK, REFUSED

LIMIT = 20.0  # seconds by the clock of the server, which stands still unless it is moved
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"


@pytest.mark.parametrize("sent", [b"P", b"POST /v1/completions HT", b"POST /v1/completions HTTP/1.1\r"])
def test_no_request_line_in_time_is_closed_in_silence(serve, clock, eventually, sent):
    site = serve(clock=clock, read_deadline=LIMIT)
    with site.connect() as client:
        client.send(sent)
        assert eventually(lambda: site.reading == 1)
        site.pass_time(LIMIT - 1)
        assert site.server.connections == 1
        site.pass_time(2)
        assert site.server.connections == 0
        assert client.is_closed()
    assert site.begun == 0


@pytest.mark.parametrize("sent", [HEAD[:40], HEAD, HEAD + b"\r\n", HEAD + b"\r\n0123456789"])
def test_incomplete_request_in_time_is_408(serve, clock, eventually, sent):
    """B119: a request that never comes whole is given up."""
    site = serve(clock=clock, read_deadline=LIMIT)
    with site.connect() as client:
        client.send(sent)
        assert eventually(lambda: site.reading == 1)
        site.pass_time(LIMIT - 1)
        assert client.is_silent(0)
        site.pass_time(2)
        answer = client.answer()
        assert (answer.status, answer.error["code"], answer.headers["connection"]) == (
            408,
            "request_timeout",
            "close",
        )
        assert client.is_closed()
    assert site.requests == []
    assert site.record().outcome == REFUSED


def test_deadline_is_cumulative(serve, clock, eventually):
    """A byte now and then does not buy time: neither in the head nor in the body."""
    site = serve(clock=clock, read_deadline=LIMIT)
    for sent in (HEAD, HEAD + b"\r\n"):
        with site.connect() as client:
            client.send(sent)
            assert eventually(lambda: site.reading == 1)
            for _ in range(9):
                client.send(b"x")
                site.pass_time(LIMIT / 10)
            assert client.is_silent(0)
            client.send(b"x")
            site.pass_time(LIMIT / 5)
            assert client.answer().status == 408


def test_deadline_begins_with_each_request(serve, clock, request_bytes, eventually):
    site = serve(clock=clock, read_deadline=LIMIT, idle_timeout=LIMIT * 10)
    with site.connect() as client:
        for _ in range(3):
            site.pass_time(LIMIT - 1)
            client.send(request_bytes())
            assert client.answer("GET").status == 200
        client.send(b"GET /hea")
        assert eventually(lambda: site.reading == 1)
        site.pass_time(LIMIT - 1)
        assert site.server.connections == 1
        site.pass_time(2)
        assert client.is_closed()


def test_deadline_while_a_refused_body_is_drained(serve, clock):
    site = serve(clock=clock, read_deadline=LIMIT, key="k")
    with site.connect() as client:
        client.send(HEAD + b"\r\n0123456789")
        assert client.answer().status == 401
        site.pass_time(LIMIT - 1)
        assert (site.server.connections, site.reading) == (1, 1)
        site.pass_time(2)
        assert client.is_closed()  # no second answer


def test_idle_connection_is_closed(serve, clock, request_bytes, eventually):
    site = serve(clock=clock, idle_timeout=LIMIT)
    with site.connect() as fresh, site.connect() as used:
        used.send(request_bytes())
        assert used.answer("GET").status == 200
        assert eventually(lambda: site.quiet == 2)
        site.pass_time(LIMIT - 1)
        assert site.server.connections == 2
        site.pass_time(2)
        assert site.server.connections == 0
        assert fresh.is_closed()
        assert used.is_closed()


def test_empty_lines_do_not_keep_a_connection(serve, clock, eventually):
    site = serve(clock=clock, idle_timeout=LIMIT, read_deadline=LIMIT)
    with site.connect() as client:
        assert eventually(lambda: site.server.connections == 1)
        for _ in range(9):
            client.send(b"\r\n")
            site.pass_time(LIMIT / 10)
        assert site.server.connections == 1
        client.send(b"\r\n")
        site.pass_time(LIMIT / 5)
        assert site.server.connections == 0
        assert client.is_closed()


def test_generation_is_not_bounded_by_the_deadlines(serve, clock, request_bytes):
    site = serve(clock=clock)
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        site.pass_time(LIMIT * 100)
        stream = exchange.open_stream()
        stream.write(b"a")
        assert client.socket.recv(1 << 16)
        site.pass_time(LIMIT * 100)
        stream.finish(b"b")
        assert client.socket.recv(1 << 16) == b"1\r\nb\r\n0\r\n\r\n"


@pytest.mark.parametrize("streamed", [True, False])
def test_client_that_stops_reading_counts_as_gone(serve, clock, request_bytes, eventually, streamed):
    site = serve(clock=clock, write_stall=LIMIT)
    with site.connect(receive_buffer=4096) as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        if streamed:
            stream = exchange.open_stream()
            while stream.write(b"x" * 50_000):
                pass
        else:
            exchange.respond(200, [], b"x" * 20_000_000)
        site.pass_time(LIMIT - 1)
        assert site.server.connections == 1
        # the kernel may take some more, but not for ever
        assert eventually(lambda: site.pass_time(LIMIT + 1) or site.server.connections == 0)
        with pytest.raises(ConnectionResetError):
            client.rest()
    assert exchange.client.gone.is_set() == streamed
    record = site.record()
    told = (CANCELLED, "the client stopped reading") if streamed else (OK, None)
    assert (record.outcome, record.reason) == told


def test_bytes_that_have_only_just_come_are_not_stalled(serve, clock, request_bytes):
    """The loop looks while an answer is handed over that begins long after the last one was sent."""
    site = serve(clock=clock, write_stall=LIMIT)
    with site.connect(receive_buffer=4096) as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        site.pass_time(LIMIT * 10)
        channel = exchange._channel
        closed = []
        channel.close = closed.append
        send = channel._output.send

        def send_and_look(data):
            pending = send(data)
            channel.check_deadlines(clock())
            return pending

        channel._output.send = send_and_look
        stream = exchange.open_stream()
        while stream.write(b"x" * 50_000):
            pass
        assert closed == []
        del channel.close


def test_slow_reader_is_no_stalled_reader(serve, clock, request_bytes):
    """As long as something is read within the deadline the answer goes on, however long it takes in all."""
    site = serve(clock=clock, write_stall=LIMIT, idle_timeout=LIMIT * 1000)
    body = bytes(4_000_000)
    with site.connect(receive_buffer=32 * 1024) as client:
        client.send(request_bytes("POST", "/hold", b""))
        site.held().respond(200, [], body)
        [channel] = site.server._channels
        received, pauses = 0, 0
        while received < len(body):
            pending = channel.pending_bytes
            while received < len(body) and channel.pending_bytes == pending:
                piece = client.socket.recv(60_000)
                assert piece
                received += len(piece)
            site.pass_time(LIMIT - 1)
            pauses += 1
        assert pauses > 5
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


def test_slow_and_idle_clients_hold_no_worker(serve, clock, request_bytes):
    """B119: those that wait are served meanwhile."""
    site = serve(clock=clock, max_connections=100)
    slow = [site.connect() for _ in range(60)]
    for number, client in enumerate(slow):
        client.send([b"", b"POST /v1/comp", HEAD, HEAD + b"\r\n123"][number % 4])
    with site.connect() as client:
        for _ in range(20):
            client.send(request_bytes("POST", "/v1/completions", b"quick"))
            assert client.answer().status == 200
        assert site.server.connections == 61  # nobody had to go
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
    """All get through while the server is too busy to accept any: none has to try again, a second later."""
    site = serve(max_connections_per_peer=0)
    with site.standing_still():
        clients = [site.connect() for _ in range(200)]
        assert site.server.connections == 0
    for client in clients:
        client.send(request_bytes())
    assert [client.answer("GET").status for client in clients] == [200] * 200
    for client in clients:
        client.socket.close()
