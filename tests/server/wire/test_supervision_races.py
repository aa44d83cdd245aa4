"""Supervision when two things happen at once: the other one is let in at the exact point where it hurts."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from server.wire.channel import Channel
from server.wire.events import Availability
from server.wire.process import EngineProcess, EngineStartError, Readiness
from server.wire.supervisor import Supervisor, _Session

PATIENCE = 15.0  # seconds after which a test gives up on something that must happen
READY = b"\x01\x01READY\x01\x01\nSTAT 0 0.0 0.0 1.0\n"
PROF = b"PROF 2.5 7 12 0.4 0.1 0.9 0.6 0.2 15\n"


def in_another_thread(action: Any) -> None:
    """Run it from start to end before going on."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_a_writer_that_finds_the_engine_dead_before_the_reader_does(
    first_life: Any,
    second_life_serves: Any,
    make_client: Any,
    new_sink: Any,
    make_submission: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its broken pipe is noted between the reader's poll and its read, which then finds a frame."""
    goes_on = tmp_path / "goes on"
    client = make_client(
        first_life(
            f"""
            os.close(0)
            os.write(1, {READY!r})
            while not os.path.exists({str(goes_on)!r}): time.sleep(0.01)
            os.write(1, {PROF!r})
            time.sleep(600)
            """
        )
    )
    sink, read = new_sink(), _Session._read

    def submit_first(session: _Session) -> bool:
        if session.ready:
            monkeypatch.undo()
            in_another_thread(lambda: client.submit(make_submission(), sink))
        return read(session)

    monkeypatch.setattr(_Session, "_read", submit_first)
    client.start()
    client.wait_ready()
    goes_on.touch()
    assert sink.wait().cause == "failed to write SUBMIT to the engine"
    second_life_serves(client)


def test_an_engine_that_is_lost_with_its_ready_was_never_ready(
    make_client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """READY and nonsense in one buffer: no announcement, and the pause grows as for any failed start."""
    caplog.set_level(logging.INFO, "server.wire")
    told: list[Availability] = []
    program = f"import os, time; os.write(1, {READY + b'NONSENSE 1' + bytes([10])!r}); time.sleep(600)"
    client = make_client(
        (sys.executable, "-c", program), on_availability=told.append, backoff_first=0.01, backoff_last=0.04
    )
    client.start()
    with pytest.raises(EngineStartError, match=r"did not become ready: protocol fault: .*NONSENSE"):
        client.wait_ready()
    limit = time.monotonic() + PATIENCE
    while client.health().restarts < 3:
        assert time.monotonic() < limit
        time.sleep(0.005)
    client.shut_down()
    assert Availability.READY not in told
    pauses = [r.getMessage() for r in caplog.records if "restarted in" in r.getMessage()]
    assert [pause.removeprefix("the engine is restarted in ") for pause in pauses[:3]] == [
        "0.01 s",
        "0.02 s",
        "0.04 s",
    ]


def test_an_engine_that_gets_ready_while_the_failure_of_the_first_is_looked_at(
    first_life: Any, second_life_serves: Any, make_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is there, or the engine that got ready: never half of each."""
    client = make_client(first_life("sys.exit(7)"))
    values: dict[str, Any] = {}

    def look(supervisor: Supervisor) -> Any:
        """Between two looks at the error, the second engine gets ready."""
        if threading.current_thread() is threading.main_thread():
            seen = values["error"]
            second_life_serves(client)
            return seen
        return values["error"]

    def note(supervisor: Supervisor, error: Any) -> None:
        values["error"] = error

    values["error"] = client._supervisor._start_error
    monkeypatch.setattr(Supervisor, "_start_error", property(look, note), raising=False)
    client.start()
    assert client.wait_ready() is True
    monkeypatch.undo()


def test_an_engine_that_has_exited_is_not_waited_for_when_the_gateway_ends(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service manager signals both: the end of stdout, the exit and the gateway's end come in one poll."""
    supervisor, poll = bench.client._supervisor, EngineProcess.poll
    entered, waited = threading.Event(), []

    def find_all(process: EngineProcess, timeout: float | None, *, writable: bool) -> list[Readiness]:
        entered.set()
        if Readiness.OUTPUT not in (found := poll(process, timeout, writable=writable)):
            return found
        monkeypatch.setattr(EngineProcess, "poll", wait_for_the_exit)
        supervisor._closing.set()
        select.select([process._exit_fd], [], [])
        return poll(process, 0.0, writable=False)

    def wait_for_the_exit(process: EngineProcess, timeout: float, *, writable: bool) -> list[Readiness]:
        waited.append(timeout)
        return [Readiness.EXITED]

    monkeypatch.setattr(EngineProcess, "poll", find_all)
    supervisor._waker.wake()  # out of the poll it is in
    assert entered.wait(PATIENCE)
    os.kill(bench.client.health().pid, signal.SIGKILL)
    supervisor._thread.join(PATIENCE)
    assert (supervisor._thread.is_alive(), waited) == (False, [])
    assert bench.client.health().status == "down"


@pytest.mark.parametrize("announced", [True, False])
def test_an_engine_that_gets_ready_after_a_request_met_the_dead_one_takes_it(
    bench: Any, sink: Any, make_submission: Any, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    """Health is ok, or about to be: no 503, nor a 500 about an engine that has been replaced."""
    submit, lost, became_ready = Channel.submit, Supervisor._lost, Supervisor._became_ready
    dead = bench.client._supervisor._channel
    died, met, opened, submitted = (threading.Event() for _ in range(4))

    def lose(supervisor: Supervisor, event: Any) -> None:
        lost(supervisor, event)
        died.set()
        assert met.wait(PATIENCE)

    def meet_the_dead(channel: Channel, submission: Any, sink: Any) -> Any:
        request = submit(channel, submission, sink)
        if channel is dead:
            met.set()
            assert opened.wait(PATIENCE)
        return request

    def announce(supervisor: Supervisor) -> None:
        if announced:
            became_ready(supervisor)
            opened.set()
        else:
            opened.set()
            assert submitted.wait(PATIENCE)
            became_ready(supervisor)

    monkeypatch.setattr(Channel, "submit", meet_the_dead)
    monkeypatch.setattr(Supervisor, "_lost", lose)
    monkeypatch.setattr(Supervisor, "_became_ready", announce)
    os.kill(bench.client.health().pid, signal.SIGKILL)
    assert died.wait(PATIENCE)
    bench.client.submit(make_submission(), sink)
    submitted.set()
    assert sink.wait().outcome == ("done", 2)
