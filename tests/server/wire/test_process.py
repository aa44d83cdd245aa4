"""The engine as a child process: dispositions, pipes, signals, and that nothing of it is left behind."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server.wire.process import LAST_LINES, EngineLaunch, EngineProcess, EngineStartError, Readiness, Waker

Spawn = Callable[..., EngineProcess]

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
WRITES_UNTIL_IT_CANNOT = 'read go; while echo "DATA 1 1"; do :; done; echo after >> "$RECORD"'


@pytest.fixture
def waker() -> Iterator[Waker]:
    waker = Waker()
    yield waker
    waker.close()


@pytest.fixture
def spawn(waker: Waker) -> Iterator[Spawn]:
    """Start a program as the engine; whatever a test leaves running is ended afterwards."""
    started: list[EngineProcess] = []

    def start(*argv: str, **environment: str) -> EngineProcess:
        process = EngineProcess(EngineLaunch(argv, {**os.environ, **environment}), waker)
        started.append(process)
        return process

    yield start
    for process in started:
        if process._child.returncode is None:
            process.end(0.0)


def exits(pid: int, seconds: float = 10.0) -> bool:
    """True once the process has ended (it may still be a zombie)."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    ended = bool(poller.poll(seconds * 1000))
    os.close(fd)
    return ended


def read_line(process: EngineProcess) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        assert process.poll(10.0, writable=False), "the child is silent"
        data += process.read() or b""
    return data


def ignored_signals(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), 16)


def test_the_engine_dies_of_signal_13_and_records_nothing_after_its_reader_left(
    spawn: Spawn, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    process = spawn("/bin/sh", "-c", WRITES_UNTIL_IT_CANNOT, RECORD=str(record))
    assert process._child.stdout is not None
    process._child.stdout.close()
    process.write(b"go\n")
    assert process._child.wait(10) == -signal.SIGPIPE
    assert not record.exists()


def test_an_engine_that_inherited_our_disposition_would_live_on(tmp_path: Path) -> None:
    """The control of the test above: this process ignores SIGPIPE, as Python does, and a child would too."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    record = tmp_path / "record"
    child = subprocess.Popen(
        ["/bin/sh", "-c", WRITES_UNTIL_IT_CANNOT],
        env={**os.environ, "RECORD": str(record)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        restore_signals=False,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.close()
    child.stdin.write(b"go\n")
    child.stdin.close()
    assert child.wait(10) == 0
    assert record.read_text() == "after\n"


def test_no_signal_is_ignored_in_the_engine(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", "echo up; read wait")
    read_line(process)
    ours = ignored_signals(os.getpid())
    assert ours >> (signal.SIGPIPE - 1) & 1 == 1
    assert ignored_signals(process.pid) >> (signal.SIGPIPE - 1) & 1 == 0


def test_the_engine_ends_when_the_gateway_is_killed(tmp_path: Path) -> None:
    """No parent-death signal: the pipes of the dead gateway are what the engine notices."""
    gateway = """
        import os, sys, time
        from server.wire.process import EngineLaunch, EngineProcess, Waker
        process = EngineProcess(EngineLaunch(("/bin/cat",), os.environ), Waker())
        print(process.pid, flush=True)
        time.sleep(60)
    """
    root = Path(__file__).parents[3]
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(gateway)], stdout=subprocess.PIPE, cwd=root
    )
    assert child.stdout is not None
    engine_pid = int(child.stdout.readline())
    child.kill()
    child.wait(10)
    child.stdout.close()
    assert exits(engine_pid)


def test_an_engine_that_writes_dies_of_signal_13_when_the_gateway_is_killed(tmp_path: Path) -> None:
    """The same policy with nothing in between: the gateway process itself is the reader that goes away."""
    record = tmp_path / "record"
    gateway = f"""
        import os, time
        from server.wire.process import EngineLaunch, EngineProcess, Waker
        environment = {{**os.environ, "RECORD": {str(record)!r}}}
        launch = EngineLaunch(("/bin/sh", "-c", {WRITES_UNTIL_IT_CANNOT!r}), environment)
        engine = EngineProcess(launch, Waker())
        engine.write(b"go\\n")
        print(engine.pid, flush=True)
        time.sleep(60)
    """
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "to become the parent of the orphaned engine"
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(gateway)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        )
        assert child.stdout is not None
        engine_pid = int(child.stdout.readline())
        child.kill()
        child.wait(10)
        child.stdout.close()
        assert exits(engine_pid)
        _, status = os.waitpid(engine_pid, 0)
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGPIPE
    assert not record.exists()


def test_the_environment_and_the_arguments_are_exactly_those_given(waker: Waker) -> None:
    launch = EngineLaunch(
        ("/bin/sh", "-c", 'echo "$0 $1"; env', "engine", "0"), {"SNAP": "/model", "CTX": "9"}
    )
    process = EngineProcess(launch, waker)
    assert exits(process.pid)
    lines = (process.read() or b"").decode().split("\n")
    process.end(1.0)
    assert lines[0] == "engine 0"
    assert {
        line for line in lines[1:] if line and not line.startswith(("PWD=", "_=", "SHLVL=", "OLDPWD="))
    } == {
        "SNAP=/model",
        "CTX=9",
    }


@pytest.mark.parametrize("program", ["/nowhere/engine", "/etc/passwd", "/"])
def test_a_program_that_cannot_be_executed_is_named(program: str, waker: Waker) -> None:
    with pytest.raises(EngineStartError, match=f"cannot start the engine {program}: "):
        EngineProcess(EngineLaunch((program, "0"), {}), waker)


def test_a_child_that_cannot_be_watched_is_not_left_behind(
    waker: Waker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first descriptor too many is the one that tells of its exit: by then the child runs."""
    children: list[int] = []

    def too_many(pid: int) -> int:
        children.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", too_many)
        with pytest.raises(
            EngineStartError, match=r"cannot watch the engine /bin/sleep: .*Too many open files"
        ):
            EngineProcess(EngineLaunch(("/bin/sleep", "600"), {}), waker)
    assert not Path(f"/proc/{children[0]}").exists()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("fault", [OSError(errno.ENOMEM, "no memory"), MemoryError("no memory")], ids=repr)
def test_a_child_whose_pipes_cannot_be_prepared_is_not_left_behind(
    waker: Waker, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Nobody else has a hold of it: it would run on beside the next one."""
    children: list[int] = []
    watch = os.pidfd_open

    def note(pid: int) -> int:
        children.append(pid)
        return watch(pid)

    def fail(fd: int, blocking: bool) -> None:
        raise fault

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", note)
        patch.setattr(os, "set_blocking", fail)
        with pytest.raises(EngineStartError, match=r"cannot watch the engine /bin/sleep: .*no memory"):
            EngineProcess(EngineLaunch(("/bin/sleep", "600"), {}), waker)
    assert not Path(f"/proc/{children[0]}").exists()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_pipe_takes_nothing_and_a_broken_one_raises(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", "echo up; exec sleep 60")
    read_line(process)
    block = b"x" * 65536
    total = 0
    while written := process.write(block):
        total += written
    assert total >= len(block)
    assert process.poll(0.0, writable=True) == [], "a full pipe is not writable"
    process._child.send_signal(signal.SIGKILL)
    assert exits(process.pid)
    assert Readiness.WRITABLE in process.poll(10.0, writable=True), "a broken pipe must be noticed"
    with pytest.raises(BrokenPipeError):
        process.write(b"y")


def test_writing_after_eof_was_sent_is_a_broken_pipe(spawn: Spawn) -> None:
    process = spawn("/bin/cat")
    process.close_stdin()
    with pytest.raises(BrokenPipeError):
        process.write(b"x")
    assert process.end(10.0) == ("exit code 0", [])


def test_output_log_and_exit_are_told_apart(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", "read go; echo out; echo err >&2; exit 3")
    assert process.poll(0.0, writable=False) == []
    process.write(b"go\n")
    assert exits(process.pid)
    assert set(process.poll(10.0, writable=False)) == {Readiness.OUTPUT, Readiness.LOG, Readiness.EXITED}
    assert process.read() == b"out\n"
    assert process.read_log() == ["err"]
    process.stop_watching_exit()
    assert process.read() == b""
    assert process.end(1.0) == ("exit code 3", [])


def test_wake_ends_the_poll_once(spawn: Spawn, waker: Waker) -> None:
    process = spawn("/bin/cat")
    waker.wake()
    waker.wake()
    assert process.poll(10.0, writable=False) == [Readiness.WOKEN]
    waker.clear()
    assert process.poll(0.0, writable=False) == []


def test_a_waker_that_was_closed_stays_silent() -> None:
    """A handle may outlive the supervisor; its wake must not write to somebody else's descriptor."""
    waker = Waker()
    waker.close()
    waker.close()
    read_end, write_end = os.pipe()
    assert waker.fd in (read_end, write_end), "the descriptor was meant to be reused for this test"
    waker.wake()
    os.set_blocking(read_end, False)
    with pytest.raises(BlockingIOError):
        os.read(read_end, 8)
    os.close(read_end)
    os.close(write_end)


def test_log_lines_are_whole_bounded_and_the_last_ones_are_kept(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", 'for i in $(seq 30); do echo "line $i" >&2; done; printf tail >&2')
    assert exits(process.pid)
    how, lines = process.end(1.0)
    assert how == "exit code 0"
    assert lines == [f"line {number}" for number in range(1, 31)] + ["tail"]
    assert list(process.last_lines) == lines[-LAST_LINES:]


def test_the_end_names_the_signal(spawn: Spawn) -> None:
    process = spawn("/bin/cat")
    os.kill(process.pid, signal.SIGKILL)
    assert process.end(10.0) == ("signal 9 (SIGKILL)", [])


def test_a_stopped_engine_is_killed(spawn: Spawn) -> None:
    process = spawn("/bin/cat")
    os.kill(process.pid, signal.SIGSTOP)
    assert process.end(0.0) == ("killed by the gateway", [])
    assert not Path(f"/proc/{process.pid}").exists()


def test_an_engine_that_exited_before_sigterm_keeps_its_id_until_the_end(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL goes to its group: with the id given back, that may be somebody else's by then."""
    process = spawn("/bin/sh", "-c", "exit 3")
    assert exits(process.pid)
    process.terminate()
    reaped_before: list[bool] = []

    def look_first(group: int, number: int) -> None:
        reaped_before.append(not Path(f"/proc/{group}").exists())

    monkeypatch.setattr(os, "killpg", look_first)
    assert process.end(0.0) == ("exit code 3", [])
    assert reaped_before == [False]


def test_grandchildren_go_with_the_engine(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", "sleep 600 & echo $!; wait")
    grandchild = int(read_line(process))
    process.end(0.0)
    assert exits(grandchild)


def test_grandchildren_of_an_engine_that_exited_go_as_well(spawn: Spawn) -> None:
    process = spawn("/bin/sh", "-c", "sleep 600 & echo $!")
    grandchild = int(read_line(process))
    assert exits(process.pid)
    assert process.end(1.0)[0] == "exit code 0"
    assert exits(grandchild)


def test_no_descriptor_is_left_open(waker: Waker) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        EngineProcess(EngineLaunch(("/bin/cat",), {}), waker).end(0.0)
    assert len(os.listdir("/proc/self/fd")) == before
