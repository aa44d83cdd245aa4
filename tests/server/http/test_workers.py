"""Threads for views where the system does not let us have any more."""

from __future__ import annotations

import threading

import pytest

HEADERS = (("Content-Type", "text/plain"),)


class NoThreads:
    """No worker can be started while ``refused`` is true."""

    def __init__(self, monkeypatch):
        self.refused = True
        self._start = threading.Thread.start
        monkeypatch.setattr(threading.Thread, "start", lambda thread: self.start(thread))

    def start(self, thread):
        if self.refused and thread.name.startswith("http-"):
            raise RuntimeError("can't start new thread")
        self._start(thread)


@pytest.fixture
def left():
    """The requests whose client is thought to have left."""
    return []


@pytest.fixture
def parked(serve, left):
    """A site whose handler leaves work that waits for ``go_on``."""
    go_on = threading.Event()

    def handle(exchange, body):
        exchange.client.on_gone(lambda: left.append(body))

        def work():
            assert go_on.wait(30)
            exchange.respond(200, HEADERS, body)

        return work

    site = serve({"/v1/completions": handle})
    site.go_on = go_on
    yield site
    go_on.set()


def test_without_any_thread_a_request_is_told_so_and_lets_go_of_what_it_took(
    parked, left, request_bytes, monkeypatch
):
    threads = NoThreads(monkeypatch)
    pool = parked.server.shared.workers
    with parked.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"a"))
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (503, "too_many_connections")
        assert left == [b"a"]
    with parked.connect() as client:
        client.send(request_bytes("GET", "/v1/models"))
        assert client.answer("GET").status == 503
    assert (len(pool.threads), pool.active_count, len(pool.queue)) == (0, 0, 0)
    threads.refused = False
    parked.go_on.set()
    with parked.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"b"))
        assert client.answer().body == b"b"
        client.send(request_bytes("GET", "/v1/models"))
        assert client.answer("GET").status == 200
    assert left == [b"a"]


def test_a_request_without_a_thread_of_its_own_waits_for_another_worker(
    parked, left, request_bytes, monkeypatch, eventually
):
    threads = NoThreads(monkeypatch)
    threads.refused = False
    pool = parked.server.shared.workers
    with parked.connect() as first, parked.connect() as second:
        first.send(request_bytes("POST", "/v1/completions", b"a"))
        assert eventually(lambda: pool.active_count == 1 and not pool.queue)
        threads.refused = True
        second.send(request_bytes("POST", "/v1/completions", b"b"))
        assert eventually(lambda: len(pool.queue) == 1)
        parked.settle()
        assert (len(pool.threads), pool.active_count) == (1, 1)
        parked.go_on.set()
        assert first.answer().body == b"a"
        assert second.answer().body == b"b"
    assert left == []
