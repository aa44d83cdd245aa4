"""The sans-IO connection: requests that are cancelled, and requests that are stopped (wire.md section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("progress", [b"", b"ACCEPT 1 1\n", b"ACCEPT 1 1\nDATA 1 1\na\n"])
@pytest.mark.parametrize(
    "end", [b"ERROR 1 CANCELLED\n", b"ERROR 1 other words\n", b"DONE 1 STAT 1 0 0 1.0\n"]
)
def test_a_cancelled_request_is_silent_until_the_engine_confirms(
    wire: Any, progress: bytes, end: bytes
) -> None:
    request, sink = wire.submit()
    wire.feed(progress)
    before = list(sink.calls)
    wire.cancel(request)
    wire.feed(b"ACCEPT 1 1\n" if not progress else b"")
    wire.feed(b"DATA 1 4\nlate\nECHO 1 1 0 nan 0\nx\nTOOL 1 0\n\n")
    assert (sink.calls, wire.connection.in_flight) == (before, 1)
    wire.feed(end)
    assert sink.wait().calls == [*before, ("cancelled", None)]
    assert wire.connection.in_flight == 0


def test_a_stopped_request_gets_no_more_text_and_ends_in_done(wire: Any) -> None:
    request, sink = wire.submit()
    wire.feed(b"ACCEPT 1 1\nDATA 1 1\na\n")
    wire.stop(request)
    wire.feed(b"DATA 1 1\nb\nDONE 1 STAT 2 0 0 1.0 1 0\n")
    assert (sink.wait().text, sink.outcome) == (b"a", ("done", 2))


@pytest.mark.parametrize(
    ("end", "tokens"), [(b"DONE 1 STAT 9 0 0 1.0 1 0\n", 9), (b"ERROR 1 CANCELLED\n", 2)]
)
def test_a_family_that_ignores_stop_is_stopped_by_cancel(
    new_wire: Callable[..., Any], end: bytes, tokens: int
) -> None:
    wire = new_wire(honours_stop=False)
    request, sink = wire.submit()
    wire.feed(b"ACCEPT 1 5\nDATA 1 1\na\nDATA 1 1\nb\n")
    wire.written()
    wire.stop(request)
    wire.stop(request)
    assert wire.written() == b"CANCEL 1\n"
    wire.feed(b"DATA 1 1\nc\n" + end)
    assert (sink.wait().text, sink.outcome) == (b"ab", ("done", tokens))
    done = sink.calls[-1][1]
    assert (done.prompt_tokens in (1, 5), done.length_limited) == (True, 0)


def test_a_client_that_leaves_after_its_stop_is_cancelled_there_too(new_wire: Callable[..., Any]) -> None:
    wire = new_wire(honours_stop=False)
    request, sink = wire.submit()
    wire.feed(b"ACCEPT 1 5\n")
    wire.stop(request)
    wire.cancel(request)
    wire.feed(b"DONE 1 STAT 9 0 0 1.0 1 0\n")
    assert sink.wait().outcome == ("cancelled",)
