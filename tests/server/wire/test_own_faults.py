"""Faults of the gateway's own on the reader thread: they cost one engine, and every request hears of it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from generated.http import HealthStatus
from server.wire.channel import Channel
from server.wire.connection import Connection
from server.wire.events import Availability, Event, TelemetryFrame
from server.wire.outbox import Outbox
from server.wire.process import EngineLaunch, EngineProcess, EngineStartError, Waker
from server.wire.supervisor import Supervisor
from server.wire.telemetry import Telemetry
from tests.scripted import SCRIPTED_ENGINE
from tests.waiting import eventually

PATIENCE = 15.0  # seconds after which a test gives up on something that must happen
READY, PAUSED, DOWN = Availability.READY, Availability.PAUSED, Availability.DOWN
FAILED = ("failure", 500, "engine_error")


def fail_once(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, before: Callable[[], object] = lambda: None
) -> None:
    """The next call of the method finds no memory, after another thread did ``before``; later ones work."""

    def fail(*arguments: object, **options: object) -> None:
        monkeypatch.undo()
        other = threading.Thread(target=before)
        other.start()
        other.join()
        raise MemoryError(name)

    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Channel, "receive_data"), (Channel, "attend"), (EngineProcess, "read"), (EngineProcess, "poll")],
)
def test_a_fault_while_reading_fails_what_is_in_flight_and_restarts_the_engine(
    bench: Any,
    new_sink: Any,
    make_submission: Any,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
) -> None:
    """The second request is submitted at the last moment before."""
    first, second = new_sink(), new_sink()
    bench.plan(["ACCEPT <id> 7", "@hold", "DATA <id> <n> => a", "@hold"])
    bench.client.submit(make_submission(), first)
    first.wait_for(lambda sink: sink.names == ["accept"])
    pid = bench.client.health().pid
    fail_once(monkeypatch, owner, name, before=lambda: bench.client.submit(make_submission(slot=1), second))
    bench.release()
    for sink in (first, second):
        assert (sink.wait().outcome, "the gateway failed: MemoryError" in sink.cause) == (FAILED, True)
    bench.assert_serves()
    assert bench.client.health().restarts == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("owner", "name"), [(Telemetry, "forget_process"), (Connection, "__init__"), (Outbox, "__init__")]
)
def test_an_engine_that_a_fault_leaves_unattended_is_ended_before_the_next_is_started(
    bench: Any, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    started: list[EngineProcess] = []
    begin = EngineProcess.__init__

    def note(process: EngineProcess, launch: EngineLaunch, waker: Waker) -> None:
        if started:
            assert started[-1]._child.returncode is not None
        begin(process, launch, waker)
        started.append(process)

    pid = bench.client.health().pid
    with monkeypatch.context() as patch:
        patch.setattr(EngineProcess, "__init__", note)
        with pytest.MonkeyPatch.context() as once:
            fail_once(once, owner, name)
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: len(started) == 2, "a second engine")
        bench.assert_serves()
    assert bench.client.health().restarts == 2
    unattended, attended = started
    assert unattended._child.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(unattended.pid, 0)
    assert attended.pid == bench.client.health().pid


def test_nothing_is_written_to_an_engine_after_a_fault(
    bench: Any, sink: Any, make_submission: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe is closed without the lock of the writers: they must have been turned away before."""
    open_then: list[bool] = []
    end = EngineProcess.end

    def look_first(process: EngineProcess, patience: float) -> tuple[str, list[str]]:
        open_then.append(channel.is_open)
        return end(process, patience)

    bench.plan(["ACCEPT <id> 7", "@hold"])
    bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.names == ["accept"])
    channel = bench.client._supervisor._channel
    with monkeypatch.context() as patch:
        patch.setattr(EngineProcess, "end", look_first)
        fail_once(monkeypatch, Channel, "attend")
        bench.client._supervisor._waker.wake()
        sink.wait()
        eventually(lambda: open_then, "the end of the engine")
    assert open_then == [False]


def test_a_fault_with_the_telemetry_costs_nobody_anything(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of a request comes behind it in the same batch, and a second such frame behind that."""
    real = Channel.receive_data

    def between_telemetry(channel: Channel, data: bytes) -> list[Event]:
        frame: Any = None
        return [TelemetryFrame(frame), *real(channel, data), TelemetryFrame(frame)]

    def fail(telemetry: Telemetry, frame: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Channel, "receive_data", between_telemetry)
    monkeypatch.setattr(Telemetry, "update", fail)
    assert bench.run().outcome == ("done", 2)
    assert "the receiver of TelemetryFrame failed" in caplog.text
    assert bench.client.health().restarts == 0


def test_requests_are_told_of_the_loss_even_if_the_scheduler_cannot_be(
    open_bench: Callable[..., Any], sink: Any, make_submission: Any
) -> None:
    told: list[Availability] = []

    def hear(availability: Availability) -> None:
        told.append(availability)
        if told == [PAUSED, READY, PAUSED]:
            raise MemoryError

    bench = open_bench(on_availability=hear)
    bench.plan(["ACCEPT <id> 7", "@exit"])
    bench.client.submit(make_submission(), sink)
    assert sink.wait().outcome == FAILED
    bench.assert_serves()


def test_faults_again_and_again_are_repeated_at_a_growing_pause(
    make_client: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    """Whether the engine was ready before the fault or not."""
    caplog.set_level(logging.INFO, "server.wire")
    attended = Channel.attend

    def fail_when_ready(channel: Channel) -> list[Event]:
        if channel.is_open:
            raise MemoryError
        return attended(channel)

    monkeypatch.setattr(Channel, "attend", fail_when_ready)
    client = make_client((sys.executable, str(SCRIPTED_ENGINE), "0"), backoff_first=0.01, backoff_last=0.04)
    client.start()
    assert client.wait_ready() is True
    eventually(lambda: client.health().restarts >= 3, "three restarts")
    client.shut_down()
    pauses = [r.getMessage().split()[-2] for r in caplog.records if "restarted in" in r.getMessage()]
    assert pauses[:3] == ["0.01", "0.02", "0.04"]


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        (Channel, "attend", "did not become ready: the gateway failed: MemoryError"),
        (Supervisor, "_run_one_engine", "could not be supervised: MemoryError"),
    ],
)
def test_a_fault_during_the_first_start_is_told_to_who_waits_for_it(
    make_client: Any, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, words: str
) -> None:
    told: list[Availability] = []
    client = make_client(
        ("/bin/sleep", "600"), on_availability=told.append, backoff_first=60.0, backoff_last=60.0
    )
    fail_once(monkeypatch, owner, name)
    client.start()
    client._supervisor._waker.wake()
    with pytest.raises(EngineStartError, match=words):
        client.wait_ready()
    assert DOWN not in told
    client.shut_down()
    assert (told[-1], client.health().status) == (DOWN, HealthStatus.DOWN)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_waits_for_the_first_engine_hears_of_the_end_even_if_the_scheduler_cannot(
    make_client: Any,
) -> None:
    def hear(availability: Availability) -> None:
        if availability is DOWN:
            raise MemoryError

    answers: list[bool] = []
    client = make_client(("/bin/sleep", "600"), on_availability=hear)
    waiting = threading.Thread(target=lambda: answers.append(client.wait_ready()), daemon=True)
    client.start()
    waiting.start()
    client.shut_down()
    waiting.join(PATIENCE)
    assert answers == [False]
    assert client.health().status is HealthStatus.DOWN
