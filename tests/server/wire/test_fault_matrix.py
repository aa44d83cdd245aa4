"""What an engine can do to its gateway, in every phase of a request, against a real process on real pipes.

Each cell asserts the exact outcome of every request involved, what was delivered before it, why it failed in
the words of the log, and that the next request works.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from server.scheduler import Scheduler
from server.wire.process import EngineStartError

ACCEPT = "ACCEPT <id> 7"
STALL = 3.0  # seconds; more than a running engine ever takes for a frame, on however busy a machine
REST = ["DATA <id> <n> => LATE", "DONE <id> STAT 9 2.5 0 1.0 7 0"]

# phase → what the engine says before the fault, and what the client has by then
PHASES: dict[str, tuple[list[str], list[str], bytes]] = {
    "before ACCEPT": ([], [], b""),
    "before DATA": ([ACCEPT], ["accept"], b""),
    "mid stream": ([ACCEPT, "DATA <id> <n> => a"], ["accept", "data"], b"a"),
    "before DONE": (
        [ACCEPT, "DATA <id> <n> => a", "DATA <id> <n> => b", "PERF turn over"],
        ["accept", "data"],
        b"ab",
    ),
}

# fault → the frames that make it, and how the log names it
FAULTS: dict[str, tuple[list[str], str]] = {
    "exit": (["@exit 3"], "the engine closed its stdout"),
    "truncated": (["@raw DATA <id> 10\\x0aabc", "@sleep 0.01", "@exit"], "truncated"),
    "truncated header": (["@raw DATA <i", "@sleep 0.01", "@exit"], "truncated"),
    "oversized": (["DATA <id> 70000"], "size"),
    "unknown kind": (["LOGPROB <id> 0.5"], "LOGPROB"),
    "wrong terminator": (["@raw DATA <id> 2\\x0aokX"], "terminator"),
    "wrong word count": (["DONE <id> STAT 1 2.5"], "DONE"),
    "second STAT line": (["STAT 0 0.0 0.0 1.0"], "STAT"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_fault_of_the_stream(
    bench: Any, new_sink: Any, make_submission: Any, phase: str, fault: str
) -> None:
    """One request meets the fault; a second one is in flight in another slot."""
    before, names, text = PHASES[phase]
    frames, cause = FAULTS[fault]
    bystander, victim = new_sink(), new_sink()
    bench.plan([ACCEPT, "DATA <id> <n> => x", "@hold"], [*before, *frames, *REST])
    bench.client.submit(make_submission(slot=1), bystander)
    bystander.wait_for(lambda sink: sink.text == b"x")
    bench.client.submit(make_submission(), victim)
    for sink, expected in ((victim, names), (bystander, ["accept", "data"])):
        assert sink.wait().outcome == ("failure", 500, "engine_error")
        assert list(dict.fromkeys(sink.names)) == [*expected, "failure"]
        assert cause in sink.cause
    assert (victim.text, bystander.text) == (text, b"x")
    bench.assert_serves()
    assert bench.client.health().restarts == 1


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("stop_signal", "cause"),
    [(signal.SIGKILL, "the engine closed its stdout"), (signal.SIGSTOP, f"no frame for {STALL:g} s")],
)
def test_an_engine_that_is_killed_or_stopped(
    open_bench: Callable[..., Any],
    new_sink: Any,
    make_submission: Any,
    phase: str,
    stop_signal: signal.Signals,
    cause: str,
) -> None:
    bench = open_bench(stall=STALL) if stop_signal is signal.SIGSTOP else open_bench()
    before, names, text = PHASES[phase]
    sink = new_sink()
    bench.plan([*before, "@hold"])
    bench.client.submit(make_submission(), sink)
    bench.wait_submits(1)
    sink.wait_for(lambda sink: sink.text == text and len(sink.names) >= len(names))
    pid = bench.client.health().pid
    os.kill(pid, stop_signal)
    assert sink.wait().outcome == ("failure", 500, "engine_error")
    assert list(dict.fromkeys(sink.names)) == [*names, "failure"]
    assert sink.cause == cause
    bench.assert_serves()
    assert bench.client.health().pid != pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("phase", PHASES)
def test_an_engine_that_closes_its_stdin(bench: Any, new_sink: Any, make_submission: Any, phase: str) -> None:
    """The request in flight goes on; the first command that cannot be written is the named failure."""
    before, _, text = PHASES[phase]
    sink, following = new_sink(), new_sink()
    bench.plan([*before, "@close_stdin", "DATA <id> <n> => !", "@sleep 60"])
    bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.text == text + b"!")
    bench.client.submit(make_submission(slot=1), following)
    assert following.wait().outcome == ("failure", 500, "engine_error")
    assert following.cause == "failed to write SUBMIT to the engine"
    assert sink.wait().outcome == ("failure", 500, "engine_error")
    assert sink.cause.startswith("failed to write SUBMIT to the engine: ")
    bench.assert_serves()


@pytest.mark.parametrize(("command", "kind"), [("stop", "STOP"), ("cancel", "CANCEL")])
def test_a_command_that_cannot_be_written(
    bench: Any, new_sink: Any, make_submission: Any, command: str, kind: str
) -> None:
    sink = new_sink()
    bench.plan([ACCEPT, "@close_stdin", "DATA <id> <n> => hello STOP!", "@sleep 60"])
    handle = bench.client.submit(make_submission(), sink)
    sink.wait_for(lambda sink: sink.text)
    getattr(handle, command)()
    if kind == "STOP":
        assert sink.wait().outcome == ("failure", 500, "engine_error")
        assert sink.cause == "failed to write STOP to the engine"
    else:
        assert sink.wait().outcome == ("cancelled",)
    bench.assert_serves()


def test_an_engine_that_reads_nothing_is_given_up(
    open_bench: Callable[..., Any], new_sink: Any, make_submission: Any
) -> None:
    """More bytes than any pipe holds, and a reader that does not read: no progress is a failure too."""
    bench = open_bench(write=0.2)
    os.kill(bench.client.health().pid, signal.SIGSTOP)
    sink, behind = new_sink(), new_sink()
    handle = bench.client.submit(make_submission(b"x" * (4 << 20)), sink)
    bench.client.submit(make_submission(slot=1), behind)
    handle.cancel()
    assert sink.wait().outcome == ("cancelled",)
    assert behind.wait().cause == "failed to write SUBMIT to the engine: no progress for 0.2 s"
    bench.assert_serves()


def test_a_prompt_larger_than_the_pipe_arrives_whole(bench: Any) -> None:
    prompt = bytes(range(32, 127)) * 100_000
    assert bench.run(prompt=prompt).outcome == ("done", 2)
    assert bench.received() == b"SUBMIT 1 0 %d 16 0.7 0.9\n%s\n" % (len(prompt), prompt)


@pytest.mark.parametrize("phase", PHASES)
def test_an_engine_that_closes_its_stdout_and_lives_on(
    first_life: Any,
    second_life_serves: Any,
    make_client: Any,
    new_sink: Any,
    make_submission: Any,
    phase: str,
) -> None:
    """The first life closes its stdout in the given phase, the second is the scripted engine."""
    before, names, text = PHASES[phase]
    lines = [line.replace("<id>", "1").replace("<n>", "1").replace(" => ", "\n") for line in before]
    client = make_client(
        first_life(
            f"""
            os.write(1, b"\\x01\\x01READY\\x01\\x01\\nSTAT 0 0.0 0.0 1.0\\n")
            os.read(0, 1000)
            os.write(1, {"".join(line + chr(10) for line in lines).encode()!r})
            os.close(1)
            while os.read(0, 1000): pass
            """,
        )
    )
    client.start()
    client.wait_ready()
    sink = new_sink()
    client.submit(make_submission(), sink)
    assert (sink.wait().outcome, sink.cause) == (
        ("failure", 500, "engine_error"),
        "the engine closed its stdout",
    )
    assert (list(dict.fromkeys(sink.names)), sink.text) == ([*names, "failure"], text)
    second_life_serves(client)


# -- faults of one request only ------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["before DATA", "mid stream", "before DONE"])
def test_a_duplicate_accept_fails_its_request_and_no_other(
    bench: Any, new_sink: Any, make_submission: Any, phase: str
) -> None:
    before, names, text = PHASES[phase]
    bystander, victim = new_sink(), new_sink()
    bench.plan(
        [ACCEPT, "@hold", "DATA <id> <n> => x", "DONE <id> STAT 1 2.5 0 1.0 7 0"],
        [*before, ACCEPT, "@wait CANCEL", "ERROR <id> CANCELLED"],
    )
    bench.client.submit(make_submission(slot=1), bystander)
    bench.client.submit(make_submission(), victim)
    assert victim.wait().outcome == ("failure", 500, "engine_error")
    assert (list(dict.fromkeys(victim.names)), victim.text) == ([*names, "failure"], text)
    bench.release()
    assert (bystander.wait().outcome, bystander.text) == (("done", 1), b"x")
    bench.assert_serves()
    assert bench.client.health().restarts == 0


def test_frames_after_the_end_are_dropped_and_reach_nobody_else(
    bench: Any, new_sink: Any, make_submission: Any
) -> None:
    bench.plan(
        [ACCEPT, "DONE <id> STAT 0 2.5 0 1.0 7 0", *REST, ACCEPT, "ERROR <id> SLOT_BUSY"], [ACCEPT, *REST]
    )
    assert bench.run().names == ["accept", "done"]
    second = bench.run()
    assert (second.outcome, second.text) == (("done", 9), b"LATE")
    bench.assert_serves()
    assert bench.client.health().restarts == 0


# -- before READY, and with a queue --------------------------------------------------------------------------

SPOILT_STARTS = {
    "exits": ("print('no such model', file=sys.stderr); sys.exit(7)", "exit code 7\nno such model"),
    "is killed": ("os.kill(os.getpid(), 9)", "signal 9 (SIGKILL)"),
    "closes its stdout": ("os.close(1); os.read(0, 1)", "the engine closed its stdout"),
    "is silent": ("os.write(1, b'loading'); os.read(0, 1)", "did not become ready in time"),
    "stops in the sentinel": ("os.write(1, b'\\x01\\x01REA'); sys.exit(0)", "exit code 0"),
    "sends a bad STAT line": (
        "os.write(1, b'\\x01\\x01READY\\x01\\x01\\nSTAT x\\n'); os.read(0, 1)",
        "protocol fault",
    ),
}


@pytest.mark.parametrize("how", SPOILT_STARTS)
def test_an_engine_that_does_not_become_ready(
    first_life: Any, second_life_serves: Any, make_client: Any, new_sink: Any, make_submission: Any, how: str
) -> None:
    """The first life goes wrong, the second is the scripted engine: a named failure, then requests work."""
    program, cause = SPOILT_STARTS[how]
    ready = 5.0 if how == "is silent" else 10.0  # the second life needs time to start as well
    client = make_client(first_life(program), ready=ready)
    client.start()
    refused = new_sink()
    client.submit(make_submission(), refused)
    assert refused.wait().outcome == ("failure", 503, "engine_unavailable")
    with pytest.raises(EngineStartError, match="did not become ready") as caught:
        client.wait_ready()
    assert cause in str(caught.value)
    second_life_serves(client)


@pytest.mark.parametrize("fault", ["exit", "oversized"])
def test_a_request_that_waits_for_a_slot_outlives_the_engine(
    open_bench: Callable[..., Any], new_sink: Any, make_submission: Any, fault: str
) -> None:
    """The one in flight fails; the queued one is admitted to the next engine, never to the dead one."""
    scheduler = Scheduler(capacity=1, max_queue=1, queue_timeout=30)
    bench = open_bench(on_availability=scheduler.set_availability)
    bench.plan_by_prompt(
        {"first": [ACCEPT, "@hold", *FAULTS[fault][0]], "second": ["DATA <id> <n> => ok", *REST[1:]]}
    )
    holder, waiter = scheduler.enter(), scheduler.enter()
    first, second = new_sink(lambda name: holder.release() if name == "failure" else None), new_sink()
    bench.client.submit(make_submission(b"first", slot=holder.wait()), first)
    assert scheduler.counters().queued == 1
    bench.release()
    bench.client.submit(make_submission(b"second", slot=waiter.wait()), second)
    assert first.wait().outcome == ("failure", 500, "engine_error")
    assert (second.wait().outcome, second.text) == (("done", 9), b"ok")
    assert bench.client.health().restarts == 1
