"""http.md §13: bind first; SIGTERM stops accepting and lets requests in flight finish, within bounds."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from server.http import BindError
from server.http.accesslog import CANCELLED, OK

ROOT = Path(__file__).parents[3]


def test_occupied_port_is_one_clear_line(serve, site):
    began = time.monotonic()
    with pytest.raises(BindError) as caught:
        serve(port=site.port)
    assert str(caught.value).startswith(f"cannot listen on 127.0.0.1:{site.port}: Address already in use")
    assert "\n" not in str(caught.value)
    assert time.monotonic() - began < 15


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

    site.server.shut_down(5)
    assert told.wait(20)
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
    site.thread.join(15)
    assert not site.thread.is_alive()
    assert {site.record().outcome for _ in range(4)} == {OK}


def test_new_request_on_an_old_connection_is_refused(serve, request_bytes, eventually):
    site = serve()
    with site.connect() as client, site.connect() as other:
        other.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        client.send(b"POST /v1/messages HTTP/1.1\r\n")
        assert eventually(lambda: site.server.connections == 2)
        time.sleep(0.05)  # the half request line is read
        site.server.shut_down(5)
        assert eventually(lambda: site.server.is_shutting_down)
        client.send(b"Host: localhost\r\nContent-Length: 0\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert b'"overloaded_error"' in answer.body
        exchange.respond(200, [], b"")
        assert other.answer().status == 200


def test_grace_is_bounded_and_cancels_what_is_left(serve, request_bytes):
    site = serve()
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b""))
        exchange = site.held()
        stream = exchange.open_stream()
        stream.write(b"a")
        began = time.monotonic()
        site.server.shut_down(0.3)
        site.thread.join(15)
        assert 0.25 < time.monotonic() - began < 15
        assert exchange.client.gone.is_set()
        assert not client.answer().complete
    assert site.record().outcome == CANCELLED


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
    import resource, signal, sys, time
    from server.http import ENVIRON_KEY, HttpConfig, HttpServer, Route

    def application(environ, start_response):
        if environ["PATH_INFO"] == "/slow":
            environ[ENVIRON_KEY].client.gone.wait(1)
        start_response("200 OK", [])
        return [b"%.3f" % time.process_time()]

    config = HttpConfig(
        host="127.0.0.1", port=0, key=None,
        routes=(Route("/slow", frozenset({"GET"})), Route("/cpu", frozenset({"GET"}))),
        allowed_hosts=(), cors_origins=(), max_body_bytes=1000, read_deadline=30, idle_timeout=75,
        write_stall=30, max_connections=256, max_connections_per_peer=64,
    )
    server = HttpServer(application, config)
    signal.signal(signal.SIGTERM, lambda *_: server.shut_down(10))
    print(server.effective_port, flush=True)
    if len(sys.argv) > 1:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
    server.run()
    print("clean", flush=True)
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    """PROGRAM in a process of its own; its first line of output is its port."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_out_of_file_descriptors(request_bytes):
    """Connections wait until there are descriptors again; meanwhile the loop does not spin."""

    def cpu_seconds(sock: socket.socket) -> float:
        sock.sendall(request_bytes("GET", "/cpu"))
        return float(sock.recv(1 << 16).rpartition(b"\r\n\r\n")[2])

    with started("24") as process:
        port = int(process.stdout.readline())
        with contextlib.ExitStack() as held:
            socks = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(40)]
            before = cpu_seconds(socks[0])
            time.sleep(1)
            assert cpu_seconds(socks[0]) - before < 0.2
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.settimeout(5)
            assert cpu_seconds(sock) > 0
        process.terminate()
        assert process.wait(15) == 0


def test_sigterm_in_the_thread_of_the_loop(request_bytes):
    """The handler runs inside the loop's own wait, which must end; the request in flight is answered."""
    with started() as process:
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as sock:
            sock.sendall(request_bytes("GET", "/slow"))
            time.sleep(0.2)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            received = b""
            while data := sock.recv(1 << 16):
                received += data
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close" in received
        assert process.wait(15) == 0
        assert time.monotonic() - began < 15
        assert process.stdout.read() == "clean\n"
