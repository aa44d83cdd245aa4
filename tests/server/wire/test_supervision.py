"""Starting, restarting and ending the engine (http.md section 13), seen from outside."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generated.http import HealthStatus
from server.wire.events import Availability
from server.wire.process import EngineStartError
from tests.scripted import SCRIPTED_ENGINE

READY, PAUSED, DOWN = Availability.READY, Availability.PAUSED, Availability.DOWN
FAILED = ("failure", 500, "engine_error")
UNAVAILABLE = ("failure", 503, "engine_unavailable")


def kill(bench: Any) -> int:
    """SIGKILL the idle engine and wait until the client has seen it."""
    pid: int = bench.client.health().pid
    os.kill(pid, signal.SIGKILL)
    bench.eventually(lambda: bench.client.health().status != "ok", "the death is seen")
    return pid


def held_second_life(started: Path, goes_on: Path) -> tuple[str, ...]:
    """The scripted engine, which waits for the file ``goes_on`` before it is ready, but in its first life."""
    lines = [
        "import os, sys, time",
        f"while os.path.exists({str(started)!r}) and not os.path.exists({str(goes_on)!r}): time.sleep(0.01)",
        f"open({str(started)!r}, 'w').close()",
        f"os.execv(sys.executable, [sys.executable, {str(SCRIPTED_ENGINE)!r}, '0'])",
    ]
    return sys.executable, "-c", "\n".join(lines)


def test_a_healthy_engine(bench: Any) -> None:
    health = bench.client.health()
    assert (health.status, health.restarts) == (HealthStatus.OK, 0)
    assert health.pid == bench.records("START")[-1]["pid"]
    assert 0 <= health.uptime_seconds < 60
    assert bench.availability == [PAUSED, READY]


def test_the_death_of_an_idle_engine_is_told_to_the_first_request_that_meets_it(
    open_bench: Callable[..., Any], tmp_path: Path
) -> None:
    """A dead engine is a named 500, never a hang; those after it wait for the restart, in the scheduler."""
    goes_on = tmp_path / "goes on"
    bench = open_bench(argv=held_second_life(tmp_path / "started", goes_on), ready=60.0)
    kill(bench)
    assert bench.availability == [PAUSED, READY], "the scheduler goes on admitting until somebody was told"
    assert bench.client.health().status == HealthStatus.RESTARTING
    first = bench.run()
    assert (first.outcome, first.cause) == (FAILED, "the engine died: the engine closed its stdout")
    assert bench.availability == [PAUSED, READY, PAUSED]
    assert bench.run().outcome == UNAVAILABLE
    goes_on.touch()
    bench.assert_serves()
    assert bench.availability == [PAUSED, READY, PAUSED, READY]


def test_a_death_nobody_met_is_forgotten_with_the_restart(bench: Any) -> None:
    kill(bench)
    bench.assert_serves()
    assert bench.availability == [PAUSED, READY, READY]


def test_no_restart_leaves_a_dead_engine_dead(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(restart=False)
    kill(bench)
    bench.eventually(lambda: not bench.client._supervisor._thread.is_alive(), "supervision ends")
    assert bench.client.health().status == HealthStatus.DOWN
    assert bench.run().outcome == FAILED
    assert bench.run().outcome == UNAVAILABLE
    assert bench.availability == [PAUSED, READY, DOWN]


def test_no_restart_after_a_fault_in_flight(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(restart=False)
    bench.plan(["@exit"])
    assert bench.run().outcome == FAILED
    assert bench.run().outcome == UNAVAILABLE
    bench.eventually(lambda: bench.availability[-1] is DOWN, "the scheduler is told")


def test_ids_go_on_increasing_over_a_restart(bench: Any) -> None:
    bench.run()
    kill(bench)
    bench.wait_ready()
    bench.run()
    assert [record["id"] for record in bench.records("SUBMIT")] == ["1", "2"]


def test_the_pause_grows_while_the_engine_does_not_become_ready(
    make_client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "server.wire")
    client = make_client(("/bin/false",), backoff_first=0.01, backoff_last=0.04)
    client.start()
    with pytest.raises(EngineStartError, match="exit code 1"):
        client.wait_ready()
    limit = time.monotonic() + 10
    while client.health().restarts < 4:
        assert time.monotonic() < limit
        time.sleep(0.005)
    client.shut_down()
    pauses = [r.getMessage() for r in caplog.records if "restarted in" in r.getMessage()]
    assert [pause.removeprefix("the engine is restarted in ") for pause in pauses[:4]] == [
        "0.01 s",
        "0.02 s",
        "0.04 s",
        "0.04 s",
    ]


def test_a_program_that_does_not_exist(make_client: Any) -> None:
    client = make_client(("/nowhere/engine", "0"))
    client.start()
    with pytest.raises(EngineStartError, match="cannot start the engine /nowhere/engine: "):
        client.wait_ready()
    client.shut_down()


def test_an_engine_that_cannot_be_watched_is_started_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(pid: int) -> int:
        monkeypatch.undo()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", too_many)
    kill(bench)
    bench.assert_serves()
    assert bench.client.health().restarts == 2


def test_the_log_of_the_engine_is_logged(make_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "server.engine")
    client = make_client(("/bin/sh", "-c", "echo one >&2; printf two >&2; exit 4"))
    client.start()
    with pytest.raises(EngineStartError, match="exit code 4\none\ntwo"):
        client.wait_ready()
    client.shut_down()
    lines = [record.getMessage() for record in caplog.records if record.name == "server.engine"]
    assert lines[:2] == ["one", "two"]


def test_telemetry_is_kept(bench: Any) -> None:
    bench.plan(
        [
            "ACCEPT <id> 7",
            "HWINFO 16 64.0 32.0 1 24.0 Some CPU|Some GPU",
            "TIERS 1 2 3 4.0 5.0",
            "EMAP 1 2 0a0b",
            "HITS 1 2 03",
            "PERF decode 12 t/s",
            "@repeat 130 PROF 2.5 7 12 0.4 0.1 0.9 0.6 0.2 15",
            "DONE <id> STAT 1 2.5 0 1.0 7 0",
        ]
    )
    assert bench.run().outcome == ("done", 1)
    telemetry = bench.client.telemetry
    assert telemetry.hwinfo.cores == 16
    assert telemetry.tiers.vram_gb == 4.0
    assert (telemetry.experts.emap.cells, telemetry.experts.hits.cells, telemetry.experts.seq) == (
        "0a0b",
        "03",
        2,
    )
    assert (len(telemetry.profile.turns), telemetry.profile.seq) == (120, 130)
    assert list(telemetry.advisory) == ["PERF"]
    kill(bench)
    bench.wait_ready()
    assert (telemetry.experts.emap, telemetry.experts.seq) == (None, 2), (
        "the next process has its own experts"
    )
    assert telemetry.hwinfo.cores == 16


# -- the end -------------------------------------------------------------------------------------------------


def test_shutting_down_an_idle_engine_leaves_nothing_behind(bench: Any) -> None:
    pid = bench.client.health().pid
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    bench.client.shut_down()
    bench.client.shut_down()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert bench.client.health().status == HealthStatus.DOWN
    assert bench.availability[-1] is DOWN
    assert threading.active_count() == threads - 1
    assert len(os.listdir("/proc/self/fd")) < descriptors
    assert bench.run().outcome == ("failure", 503, "shutting_down")


def test_requests_are_failed_before_the_engine_is_signalled(
    bench: Any, sink: Any, make_submission: Any
) -> None:
    """After SIGTERM an engine may end a running request with an ordinary DONE: no answer to pass on."""
    bench.plan(["ACCEPT <id> 7", "@hold"])
    bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.names == ["accept"])
    bench.client.shut_down()
    assert sink.wait().outcome == ("failure", 503, "shutting_down")


def test_an_engine_that_ignores_sigterm_is_killed(make_client: Any) -> None:
    program = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "os.write(1, b'\\x01\\x01READY\\x01\\x01\\nSTAT 0 0.0 0.0 1.0\\n'); time.sleep(60)"
    )
    client = make_client((sys.executable, "-c", program), kill=0.1)
    client.start()
    client.wait_ready()
    pid = client.health().pid
    client.shut_down()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_shutting_down_while_the_engine_starts_or_restarts(make_client: Any) -> None:
    starting = make_client(("/bin/sleep", "60"))
    starting.start()
    starting.shut_down()
    assert starting.wait_ready() is False, "nothing was ready, and nothing failed"
    restarting = make_client(("/bin/false",), backoff_first=60.0, backoff_last=60.0)
    restarting.start()
    with pytest.raises(EngineStartError):
        restarting.wait_ready()
    began = time.monotonic()
    restarting.shut_down()
    assert time.monotonic() - began < 30


def test_who_asks_late_is_told_that_an_engine_was_ready(bench: Any) -> None:
    kill(bench)
    bench.client.shut_down()
    assert bench.client.wait_ready() is True


# -- handles and sinks ---------------------------------------------------------------------------------------


def test_stop_reaches_the_engine_once_and_ends_in_done(bench: Any, sink: Any, make_submission: Any) -> None:
    bench.plan(
        [
            "ACCEPT <id> 7",
            "DATA <id> <n> => a",
            "@wait STOP",
            "DATA <id> <n> => b",
            "DONE <id> STAT 2 2.5 0 1.0 7 0",
        ]
    )
    handle = bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.text == b"a")
    handle.stop()
    handle.stop()
    assert (sink.wait().outcome, sink.text) == (("done", 2), b"a")
    handle.stop()
    assert bench.received().count(b"STOP") == 1


@pytest.mark.parametrize("family", ["qwen3", "olmoe", "inkling"])
def test_families_that_ignore_stop_are_stopped_by_cancel(
    open_bench: Callable[..., Any], sink: Any, make_submission: Any, family: str
) -> None:
    bench = open_bench(family=family)
    bench.plan(["DATA <id> <n> => a", "@wait CANCEL", "DONE <id> STAT 2 2.5 0 1.0 7 0"])
    handle = bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.text == b"a")
    handle.stop()
    assert sink.wait().outcome == ("done", 2)
    assert bench.received().endswith(b"CANCEL 1\n")


@pytest.mark.parametrize("end", ["ERROR <id> CANCELLED", "DONE <id> STAT 1 2.5 0 1.0 7 0"])
def test_a_cancelled_request_ends_when_the_engine_confirms(
    bench: Any, sink: Any, make_submission: Any, end: str
) -> None:
    bench.plan(["@hold", "@wait CANCEL", "DATA <id> <n> => late", end])
    handle = bench.client.submit(make_submission(), sink)
    handle.cancel()
    bench.eventually(lambda: bench.records("CANCEL"), "the CANCEL arrives")
    assert (sink.calls, bench.client.in_flight) == ([], 1)
    bench.release()
    assert sink.wait().calls == [("cancelled", None)]
    handle.cancel()
    bench.assert_serves()


def test_a_sink_may_submit_the_next_request_from_its_last_call(
    bench: Any, new_sink: Any, make_submission: Any
) -> None:
    second = new_sink()

    def go_on(name: str) -> None:
        if name == "done":
            bench.client.submit(make_submission(b"second"), second)

    first = new_sink(go_on)
    bench.client.submit(make_submission(b"first"), first)
    assert first.wait().outcome == second.wait().outcome == ("done", 2)


def test_a_sink_that_raises_harms_nobody(
    bench: Any, new_sink: Any, make_submission: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(name: str) -> None:
        raise RuntimeError(name)

    bench.client.submit(make_submission(), new_sink(explode))
    assert bench.run(slot=1).outcome == ("done", 2)
    assert "the receiver of Accepted failed" in caplog.text
    bench.assert_serves()


def test_the_acceptance_deadline_in_real_time(open_bench: Callable[..., Any]) -> None:
    bench = open_bench(accept=0.1)
    bench.plan(["ECHO <id> <n> 0 nan 0 => h"])
    assert bench.run(logprobs=1).outcome == ("failure", 503, "engine_logprobs_unsupported")
    bench.assert_serves()


def test_the_proof_that_an_engine_is_old_does_not_wait_for_the_deadline(
    open_bench: Callable[..., Any],
) -> None:
    bench = open_bench(accept=100_000.0)  # to wait for it would end the test
    bench.plan(["ERROR 0 BAD_REQUEST"])
    assert bench.run(prompt=b"1 2", ids=True).outcome == ("failure", 503, "engine_tok_ids_unsupported")
    bench.assert_serves()


def test_many_requests_at_once_are_never_mixed_up(bench: Any, new_sink: Any, make_submission: Any) -> None:
    """B131: every answer carries its own marker, whoever submits from whichever thread."""
    markers = [b"marker-%02d" % number for number in range(16)]
    end = "DONE <id> STAT 50 2.5 0 1.0 7 0"
    bench.plan_by_prompt(
        {m.decode(): ["ACCEPT <id> 7", f"@repeat 50 DATA <id> <n> => {m.decode()}", end] for m in markers}
    )
    sinks = [new_sink() for _ in markers]
    threads = [
        threading.Thread(target=bench.client.submit, args=(make_submission(m, slot=n), sinks[n]))
        for n, m in enumerate(markers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    for marker, sink in zip(markers, sinks, strict=True):
        assert (sink.wait().outcome, sink.text) == (("done", 50), marker * 50)
