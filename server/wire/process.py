"""The engine as a child process: the only file that touches its pipes and signals.

Guarantees:

* the child gets the default SIGPIPE disposition (Python itself ignores the signal, and an ignored signal
  would be inherited): if the gateway goes away, the engine dies of signal 13 at its next write, and no record
  of its own can follow that point;
* the child's process group is its own, so that a Ctrl-C meant for the gateway does not reach the engine
  before the gateway has finished its requests, and so that :meth:`EngineProcess.kill` leaves no grandchild
  behind;
* no other child inherits the write end of its stdin (descriptors are close-on-exec), so the death of the
  gateway, however violent, is an EOF there, which is the wire's orderly end. No parent-death signal is used:
  on Linux that signal follows the thread that forked, not the process, and setting it needs code between fork
  and exec, which is not safe with threads;
* no read and no write blocks.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

# asked of the kernel, so that a large prompt fits while the engine is busy; it may grant less
PIPE_SIZE: Final = 1 << 20
# bytes of one read: bounds how long one burst keeps the reader from everything else
READ_SIZE: Final = 1 << 18
LAST_LINES: Final = 20  # lines of the engine's log kept for the report of its death
LINE_LIMIT: Final = 4096  # bytes after which a log line without an end is cut


class EngineStartError(Exception):
    """The engine could not be started or ended before READY; the text has its last log lines."""


@dataclass(frozen=True)
class EngineLaunch:
    """How the engine is started.

    ``[engine, cap]`` and the complete environment of the child (wire.md section 1).
    """

    argv: Sequence[str]
    environment: Mapping[str, str]


class Readiness(Enum):
    """What :meth:`EngineProcess.poll` found."""

    OUTPUT = "stdout has bytes or is at its end"
    LOG = "stderr has bytes or is at its end"
    WRITABLE = "stdin takes bytes, or never will again"
    EXITED = "the process has ended"
    WOKEN = "wake() was called"


class Waker:
    """Lets any thread end the reader's poll. Lives as long as the supervisor, across engine processes."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # so that a late wake() cannot write to a reused descriptor
        self._closed = False

    def wake(self) -> None:
        """End the current or the next poll; nothing once closed."""
        with self._lock, suppress(BlockingIOError):
            if not self._closed:
                os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Forget the calls of wake so far."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.fd)

    def wait(self, seconds: float) -> None:
        """Sleep until woken, at most ``seconds``."""
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        poller.poll(max(0.0, seconds) * 1000)

    def close(self) -> None:
        """Release the descriptor. The reader must have ended; may be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.fd)


class EngineProcess:
    """One running engine.

    :meth:`write` may be called from any thread under the owner's lock; the rest is the reader's.
    """

    def __init__(self, launch: EngineLaunch, waker: Waker) -> None:
        """Start the child. Raises EngineStartError if that cannot be done, and then nothing is left of it."""
        try:
            self._child = subprocess.Popen(
                list(launch.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(launch.environment),
                bufsize=0,
                close_fds=True,
                restore_signals=True,  # SIGPIPE back to its default
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise EngineStartError(f"cannot start the engine {launch.argv[0]}: {error}") from error
        self.pid = self._child.pid
        self.started_at = time.monotonic()
        try:
            self._exit_fd = os.pidfd_open(self.pid)
            self._watch(waker)
        except BaseException as error:
            self.kill()
            with self._child:
                pass  # closes the pipes and waits
            if not isinstance(error, (OSError, MemoryError)):
                raise
            raise EngineStartError(f"cannot watch the engine {launch.argv[0]}: {error!r}") from error

    def _watch(self, waker: Waker) -> None:
        """Get ready to poll. At a fault only the descriptor of the child's end is closed."""
        assert self._child.stdin and self._child.stdout and self._child.stderr
        try:
            self._stdin: int | None = self._child.stdin.fileno()
            self._stdout = self._child.stdout.fileno()
            self._stderr = self._child.stderr.fileno()
            for fd in (self._stdin, self._stdout, self._stderr):
                os.set_blocking(fd, False)
                with suppress(OSError):
                    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            self._poller = select.poll()
            self._buffer = bytearray(READ_SIZE)
            self._meanings = {
                self._stdout: Readiness.OUTPUT,
                self._stderr: Readiness.LOG,
                self._exit_fd: Readiness.EXITED,
                waker.fd: Readiness.WOKEN,
                self._stdin: Readiness.WRITABLE,
            }
            for fd in (self._stdout, self._stderr, self._exit_fd, waker.fd):
                self._poller.register(fd, select.POLLIN)
            self._wants_write = False
            self._partial_line = b""
            self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        except BaseException:
            os.close(self._exit_fd)
            raise

    # -- pipes -------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None, *, writable: bool) -> list[Readiness]:
        """Wait for something to do, at most ``timeout`` seconds (None: for ever).

        ``writable``: also for room in stdin.
        """
        if writable != self._wants_write and self._stdin is not None:
            self._wants_write = writable
            if writable:
                self._poller.register(self._stdin, select.POLLOUT)
            else:
                self._poller.unregister(self._stdin)
        ready = self._poller.poll(None if timeout is None else max(0.0, timeout) * 1000 + 0.999)
        return [self._meanings[fd] for fd, _ in ready]

    def read(self) -> bytes | None:
        """What stdout has, at most READ_SIZE bytes; ``b""`` at its end, None if there is nothing now."""
        return self._read(self._stdout)

    def _read(self, fd: int) -> bytes | None:
        """Into a buffer that is kept: a fresh one of this size would be mapped and unmapped at each read."""
        try:
            size = os.readv(fd, (self._buffer,))
        except BlockingIOError:
            return None
        except OSError:
            return b""
        return bytes(memoryview(self._buffer)[:size])

    def read_log(self) -> list[str]:
        """Complete lines of stderr that have come.

        At its end the rest of it, and stderr is no longer polled.
        """
        data = self._read(self._stderr)
        if data is None:
            return []
        self._partial_line += data
        lines = self._partial_line.split(b"\n")
        self._partial_line = lines.pop()
        if data == b"":
            self._unregister(self._stderr)
        if self._partial_line and (data == b"" or len(self._partial_line) > LINE_LIMIT):
            lines.append(self._partial_line)
            self._partial_line = b""
        texts = [line[:LINE_LIMIT].decode("utf-8", "replace").rstrip("\r") for line in lines]
        self.last_lines.extend(text for text in texts if text)
        return texts

    def write(self, data: bytes | memoryview) -> int:
        """Write what stdin takes now and return how much that was, 0 if it is full.

        Raises OSError if it is broken.
        """
        if self._stdin is None:
            raise BrokenPipeError("stdin is closed")
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            return 0

    def close_stdin(self) -> None:
        """EOF for the engine: it finishes what it does and ends."""
        if self._stdin is None:
            return
        if self._wants_write:
            self._unregister(self._stdin)
            self._wants_write = False
        assert self._child.stdin
        self._stdin = None
        self._child.stdin.close()

    def stop_watching_output(self) -> None:
        """Stdout is at its end."""
        self._unregister(self._stdout)

    def stop_watching_exit(self) -> None:
        """The exit has been seen; what remains is to read what the engine left in its pipes."""
        self._unregister(self._exit_fd)

    def _unregister(self, fd: int) -> None:
        with suppress(KeyError):
            self._poller.unregister(fd)

    # -- life --------------------------------------------------------------------------------------------

    def terminate(self) -> None:
        """SIGTERM to the engine alone. Only after its requests are finished or failed (wire.md section 6).

        Popen's own way would reap an engine that has exited, and with that give its id away before end().
        """
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._exit_fd, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the engine and everything it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self, patience: float) -> tuple[str, list[str]]:
        """Leave nothing of the child behind. Returns how it ended and its last log lines.

        An engine that is ending by itself gets ``patience`` seconds, so that the report names its own exit
        and not our SIGKILL. To be called once, as the last thing.
        """
        self.close_stdin()
        exited = select.poll()
        exited.register(self._exit_fd, select.POLLIN)
        ended_itself = bool(exited.poll(patience * 1000))
        # Until wait() below the engine's id cannot be reused, even if it is a zombie, so this reaches only
        # its own group.
        self.kill()
        self._child.wait()
        lines: list[str] = []
        while more := self.read_log():
            lines += more
        self._release()
        return (self._exit_text() if ended_itself else "killed by the gateway"), lines

    def _exit_text(self) -> str:
        code = self._child.returncode
        if code >= 0:
            return f"exit code {code}"
        with suppress(ValueError):
            return f"signal {-code} ({signal.Signals(-code).name})"
        return f"signal {-code}"

    def _release(self) -> None:
        os.close(self._exit_fd)
        assert self._child.stdout and self._child.stderr
        self._child.stdout.close()
        self._child.stderr.close()
