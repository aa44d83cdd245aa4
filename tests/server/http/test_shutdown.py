"""http.md §13: bind first; SIGTERM stops accepting and lets requests in flight finish, within bounds."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.http import BindError
from server.http.accesslog import CANCELLED, OK

ROOT = Path(__file__).parents[3]


def test_occupied_port_is_one_clear_line(serve, site):
    with pytest.raises(BindError) as caught:
        serve(port=site.port)
    assert str(caught.value).startswith(f"cannot listen on 127.0.0.1:{site.port}: Address already in use")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "shown"), [("192.0.2.1", "192.0.2.1:0"), ("no.such.host.invalid", "no.such.host.invalid:0")]
)
def test_address_that_is_not_ours(serve, host, shown):
    with pytest.raises(BindError, match="cannot listen on"):
        serve(host=host)


def test_ipv6(serve, request_bytes):
    try:
        site = serve(host="::1")
    except BindError:
        pytest.skip("no IPv6 here")
    with socket.create_connection(("::1", site.port)) as sock:
        sock.sendall(request_bytes(host="[::1]"))
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_listening_before_the_loop_runs(serve, request_bytes):
    """Clients that come while the engine is still starting wait in the backlog."""
    site = serve()
    assert site.server.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1


def test_in_flight_requests_finish(serve, request_bytes, eventually):
    told = threading.Event()
    site = serve(on_shut_down=told.set)
    idle, reading, streaming, waiting = (site.connect() for _ in range(4))
    idle.send(request_bytes())
    assert idle.answer("GET").status == 200
    reading.send(request_bytes("POST", "/v1/completions", b"x" * 100)[:-10])
    streaming.send(request_bytes("POST", "/hold", b""))
    stream = site.held().open_stream()
    stream.write(b"a")
    waiting.send(request_bytes("POST", "/hold", b""))
    parked = site.held()
    assert eventually(lambda: site.begun == 4)

    site.server.shut_down(60)
    assert told.wait(30)
    assert idle.is_closed()
    with pytest.raises(ConnectionRefusedError):
        site.connect()
    reading.send(b"x" * 10)
    assert reading.answer().headers["connection"] == "close"
    parked.respond(200, [], b"late but whole")
    answer = waiting.answer()
    assert (answer.body, answer.headers["connection"]) == (b"late but whole", "close")
    stream.finish(b"b")
    assert streaming.answer().body == b"ab"
    for client in (reading, streaming, waiting):
        assert client.is_closed()
        client.socket.close()
    site.thread.join(30)
    assert not site.thread.is_alive()
    assert {site.record().outcome for _ in range(4)} == {OK}


def test_new_request_on_an_old_connection_is_refused(serve, request_bytes, eventually):
    site = serve()
    with site.connect() as client, site.connect() as other:
        other.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        client.send(b"POST /v1/messages HTTP/1.1\r\n")
        assert eventually(lambda: site.reading == 1)  # the half request line is read
        site.server.shut_down(60)
        assert eventually(lambda: site.server.is_shutting_down)
        client.send(b"Host: localhost\r\nContent-Length: 0\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert b'"overloaded_error"' in answer.body
        exchange.respond(200, [], b"")
        assert other.answer().status == 200


def test_grace_is_bounded_and_cancels_what_is_left(serve, clock, request_bytes, eventually):
    site = serve(clock=clock)
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        stream.write(b"a")
        site.server.shut_down(60)
        assert eventually(lambda: site.server.is_shutting_down)
        site.pass_time(59)
        assert site.thread.is_alive() and not exchange.client.gone.is_set()
        site.pass_time(2)  # nobody ends what is in flight here
        assert site.thread.is_alive() and not exchange.client.gone.is_set()
        site.pass_time(3)
        site.thread.join(30)
        assert not site.thread.is_alive()
        assert exchange.client.gone.is_set()
        assert not client.answer().complete
    assert site.record().outcome == CANCELLED


def test_what_is_left_when_the_time_is_over_is_still_told_why(serve, clock, request_bytes, eventually):
    over = threading.Event()
    site = serve(clock=clock, on_time_over=over.set)
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        site.server.shut_down(60)
        assert eventually(lambda: site.server.is_shutting_down)
        site.pass_time(59)
        assert not over.is_set()
        site.pass_time(2)
        assert over.wait(30)
        exchange.respond(503, [], b"why")
        answer = client.answer()
        assert (answer.status, answer.body) == (503, b"why")
    site.thread.join(30)
    assert not site.thread.is_alive()


def test_stopping_leaks_no_thread_and_no_descriptor(serve, request_bytes):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = threading.active_count(), descriptors()
    for _ in range(3):
        site = serve()
        clients = [site.connect() for _ in range(20)]
        for client in clients:
            client.send(request_bytes("POST", "/v1/completions", b"x"))
        assert [client.answer().status for client in clients] == [200] * 20
        site.stop()
        for client in clients:
            client.socket.close()
    assert (threading.active_count(), descriptors()) == before


PROGRAM = """
    import resource, signal, sys, threading
    from server.http import HttpConfig, HttpServer, Route

    shutting_down = threading.Event()
    hours = turns = 0

    def application(environ, start_response):
        global hours
        if environ["PATH_INFO"] == "/slow":
            print("in flight", flush=True)
            assert shutting_down.wait(60)
        if environ["PATH_INFO"] == "/hour":
            hours += 1
        start_response("200 OK", [])
        return [b"%d" % turns]

    config = HttpConfig(
        host="127.0.0.1", port=0, key=None,
        routes=tuple(Route(path, frozenset({"GET"})) for path in ("/slow", "/turns", "/hour")),
        allowed_hosts=(), cors_origins=(), max_body_bytes=1000, read_deadline=1e6, idle_timeout=1e6,
        write_stall=1e6, max_connections=256, max_connections_per_peer=64, on_shut_down=shutting_down.set,
    )
    server = HttpServer(application, config, clock=lambda: hours * 3600)
    server._wait = 600  # a turn of the loop in between is due to an event
    run_once = server.loop.run_once

    def counted(timeout):
        global turns
        turns += 1
        run_once(timeout)

    server.loop.run_once = counted
    signal.signal(signal.SIGTERM, lambda *_: server.shut_down(10))
    print(server.effective_port, flush=True)
    if len(sys.argv) > 1:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
    server.run()
    print("clean", flush=True)
"""


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """PROGRAM in a process of its own; its first line of output is its port."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def test_out_of_file_descriptors(request_bytes, eventually):
    """Connections wait until there are descriptors again; meanwhile the loop does not spin."""

    def turns(sock: socket.socket, path: str = "/turns") -> int:
        sock.settimeout(30)
        sock.sendall(request_bytes("GET", path))
        return int(sock.recv(1 << 16).rpartition(b"\r\n\r\n")[2])

    with started("24") as process:
        address = "127.0.0.1", int(process.stdout.readline())
        with socket.create_connection(address) as first:
            assert turns(first) > 0
            with contextlib.ExitStack() as held:
                for _ in range(40):
                    held.enter_context(socket.create_connection(address))
                before = turns(first)
                time.sleep(0.2)  # thousands of turns for a loop that spins; one that waits makes none, ever
                assert turns(first) - before < 20
            with socket.create_connection(address) as sock:
                sock.sendall(request_bytes("GET", "/turns"))
                # those that gave up waiting are accepted first, and may take all descriptors once more
                assert eventually(lambda: turns(first, "/hour") and select.select([sock], [], [], 0)[0])
            process.terminate()
            # the end of this connection wakes the loop if the signal came just before its wait
        assert process.wait(30) == 0


def test_sigterm_in_the_thread_of_the_loop(request_bytes, eventually):
    """The handler runs inside the loop's own wait, which must end; the request in flight is answered.

    A signal that comes just before the wait does not interrupt it, hence more than one.
    """
    with started() as process:
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as sock:
            sock.settimeout(30)
            sock.sendall(request_bytes("GET", "/slow"))
            assert process.stdout.readline() == "in flight\n"
            assert eventually(lambda: process.terminate() or select.select([sock], [], [], 0.05)[0])
            received = b""
            while data := sock.recv(1 << 16):
                received += data
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close" in received
        assert process.wait(30) == 0
        assert process.stdout.read() == "clean\n"
