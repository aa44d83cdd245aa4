"""Handlers: where they run, what they may leave to a worker, and what becomes of their faults."""

from __future__ import annotations

import gzip
import logging
import threading

import pytest

from generated import errors
from server.http import ClientGone
from server.http.eventloop import READ

IO_THREAD = "http-io"
HEADERS = (("Content-Type", "text/plain"),)


def echo(exchange, body):
    """Answers with the thread it runs in and the body it got."""
    exchange.respond(200, HEADERS, threading.current_thread().name.encode() + b" " + body)


def echo_later(exchange, body):
    """The same from the work that it leaves."""
    return lambda: echo(exchange, body)


def thread_and_body(answer):
    assert answer.status == 200
    thread, _, body = answer.body.partition(b" ")
    return thread.decode(), body


def test_a_short_body_is_handled_on_the_loops_thread(serve, request_bytes):
    site = serve({"/v1/completions": echo})
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"short") * 3)
        for _ in range(3):
            assert thread_and_body(client.answer()) == (IO_THREAD, b"short")
    assert site.requests == [], "the application has no part in it"
    assert len(site.server.task_dispatcher.threads) == 0


@pytest.mark.parametrize("size", [32 * 1024, 32 * 1024 + 1])
def test_a_long_body_is_handled_by_a_worker(serve, request_bytes, size):
    site = serve({"/v1/completions": echo})
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", body))
        thread, received = thread_and_body(client.answer())
    assert received == body
    assert (thread == IO_THREAD) == (size == 32 * 1024)


def test_an_encoded_body_is_decoded_by_a_worker(serve, request_bytes):
    site = serve({"/v1/completions": echo})
    with site.connect() as client:
        client.send(
            request_bytes("POST", "/v1/completions", gzip.compress(b"packed"), content_encoding="gzip")
        )
        thread, received = thread_and_body(client.answer())
        assert (thread != IO_THREAD, received) == (True, b"packed")
        client.send(request_bytes("POST", "/v1/completions", b"no gzip at all", content_encoding="gzip"))
        assert client.answer().status == 400


def test_an_empty_body_and_other_methods(serve, request_bytes):
    site = serve({"/v1/completions": echo})
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions"))
        assert thread_and_body(client.answer()) == (IO_THREAD, b"")
        client.send(request_bytes("PUT", "/v1/completions", b"x"))
        assert client.answer().status == 405


def test_work_is_done_by_a_worker_while_the_loop_goes_on(serve, request_bytes):
    released = threading.Event()

    def wait(exchange, body):
        def work():
            assert released.wait(30)
            echo(exchange, body)

        return work

    site = serve({"/v1/completions": wait, "/v1/messages": echo})
    with site.connect() as waiting, site.connect() as other:
        waiting.send(request_bytes("POST", "/v1/completions", b"later"))
        other.send(request_bytes("POST", "/v1/messages", b"now"))
        assert thread_and_body(other.answer()) == (IO_THREAD, b"now")
        released.set()
        thread, body = thread_and_body(waiting.answer())
        assert (thread != IO_THREAD, body) == (True, b"later")


def test_a_detached_exchange_is_answered_by_any_thread(serve, request_bytes):
    parked = []

    def park(exchange, body):
        exchange.detach()
        parked.append(threading.Thread(target=echo, args=(exchange, body), name="elsewhere"))
        parked[-1].start()

    site = serve({"/v1/completions": park})
    with site.connect() as client:
        for _ in range(20):
            client.send(request_bytes("POST", "/v1/completions", b"x"))
            assert thread_and_body(client.answer()) == ("elsewhere", b"x")
    for thread in parked:
        thread.join()


def raising(exchange, body):
    raise RuntimeError("secret detail")


def raising_later(exchange, body):
    return lambda: raising(exchange, body)


def silent(exchange, body):
    """Neither answers nor detaches."""


def silent_later(exchange, body):
    return lambda: None


@pytest.mark.parametrize("handler", [raising, raising_later, silent, silent_later])
def test_a_fault_is_a_500_and_the_connection_goes_on(serve, request_bytes, caplog, handler):
    site = serve({"/v1/completions": handler, "/v1/messages": echo})
    with caplog.at_level(logging.CRITICAL, "colibri.http"), site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"x"))
        answer = client.answer()
        assert (answer.status, answer.error["code"]) == (500, errors.engine_error().code)
        assert b"secret" not in answer.body
        assert site.record().outcome == "error"
        client.send(request_bytes("POST", "/v1/messages", b"next"))
        assert thread_and_body(client.answer()) == (IO_THREAD, b"next")


@pytest.mark.parametrize("later", [False, True])
def test_a_stream_that_is_left_open_is_cut(serve, request_bytes, later):
    def begin(exchange, body):
        def work():
            exchange.open_stream().write(b"data: 1\n\n")

        return work if later else work()

    site = serve({"/v1/completions": begin})
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"x"))
        answer = client.answer()
        assert (answer.status, answer.body, answer.complete) == (200, b"data: 1\n\n", False)


@pytest.mark.parametrize("later", [False, True])
def test_a_handler_that_finds_its_client_gone_closes_the_connection(serve, request_bytes, later):
    def give_up(exchange, body):
        def work():
            raise ClientGone

        return work if later else work()

    site = serve({"/v1/completions": give_up})
    with site.connect() as client:
        client.send(request_bytes("POST", "/v1/completions", b"x"))
        assert client.is_closed()
    assert site.record().outcome == "cancelled"


def test_a_client_that_leaves_bytes_unread_and_then_vanishes_is_noticed(serve, request_bytes, eventually):
    site = serve(only_events=True)
    client = site.connect()
    client.send(request_bytes("POST", "/hold", b""))
    exchange = site.held()
    client.send(b"POST /more HTTP/1.1\r\n" * 100)  # stays with the kernel while the answer is owed
    [channel] = site.server._channels
    assert eventually(lambda: not channel._interest & READ)  # the loop has seen them
    assert not exchange.client.gone.is_set()
    client.vanish()
    assert exchange.client.gone.wait(30)
    assert exchange.client.is_gone


def test_what_came_while_an_answer_was_owed_is_read_after_it(serve, request_bytes):
    site = serve({"/v1/completions": echo})
    with site.connect() as client:
        for _ in range(5):
            client.send(request_bytes("POST", "/hold", b""))
            exchange = site.held()
            client.send(request_bytes("POST", "/v1/completions", b"second"))
            exchange.respond(200, HEADERS, b"first")
            assert client.answer().body == b"first"
            assert thread_and_body(client.answer()) == (IO_THREAD, b"second")
