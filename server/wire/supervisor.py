"""Keeps one engine running and reads what it says (http.md section 13).

One thread starts the engine, reads its stdout a whole buffer at a time, delivers events to the sinks, keeps
the deadlines, logs its stderr, and when the engine exits or breaks protocol replaces it after a pause that
grows from attempt to attempt.

How the death of an engine is reported: every request in flight gets its named failure, and those that come
later wait for the restart in the scheduler, which is told before the failures are delivered. An engine that
dies while nothing is in flight has nobody to report it to; the first request that meets the dead engine gets
the 500 then, unless a new engine is ready by that time.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from generated import errors
from generated.http import HealthStatus
from server.wire.channel import Channel
from server.wire.connection import Connection, Deadlines
from server.wire.events import (
    Availability,
    ConnectionLost,
    EngineReady,
    Event,
    Sink,
    Submission,
    TelemetryFrame,
    caused,
)
from server.wire.inflight import Request
from server.wire.outbox import Outbox
from server.wire.process import EngineLaunch, EngineProcess, EngineStartError, Readiness, Waker
from server.wire.telemetry import Telemetry

log = logging.getLogger(__name__)
engine_log = logging.getLogger("server.engine")

# seconds for an engine that closed its stdout to exit, so that its own exit code is reported
EXIT_PATIENCE: Final = 1.0
BACKOFF_GROWTH: Final = 2.0


@dataclass(frozen=True)
class EngineTimeouts:
    """Seconds; each is a setting of the spec.

    ``ready``: start to READY. ``accept``: an extension request unaccepted. ``stall``: a request without a
    frame. ``write``: a command without progress. ``kill``: SIGTERM to SIGKILL. ``backoff_first`` …
    ``backoff_last``: pause before a restart.
    """

    ready: float
    accept: float
    stall: float
    write: float
    kill: float
    backoff_first: float
    backoff_last: float


@dataclass(frozen=True)
class EngineHealth:
    """What /health says about the engine. ``pid`` is None and ``uptime_seconds`` 0 while none is running."""

    status: HealthStatus
    pid: int | None
    restarts: int
    uptime_seconds: float


class Supervisor:
    """Owns the engine process and the thread that attends to it.

    All public methods may be called from any thread.
    """

    def __init__(
        self,
        launch: EngineLaunch,
        timeouts: EngineTimeouts,
        *,
        honours_stop: bool,
        restart: bool,
        on_availability: Callable[[Availability], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.telemetry = Telemetry()
        self._launch = launch
        self._timeouts = timeouts
        self._honours_stop = honours_stop
        self._restart = restart
        self._on_availability = on_availability
        self._clock = clock
        self._ids = itertools.count(1)
        self._waker = Waker()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._process: EngineProcess | None = None
        self._status = HealthStatus.STARTING
        self._restarts = 0
        self._unreported: str | None = None  # why an idle engine died, until a request or a new engine comes
        self._closing = threading.Event()
        self._ready_or_failed = threading.Event()
        self._was_ready = False  # some engine, at some time
        # of the first engine; stays when a later one is ready
        self._start_error: EngineStartError | None = None

    # -- any thread --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the engine in the background. Requests wait in the scheduler until it is ready."""
        self._on_availability(Availability.PAUSED)
        self._thread.start()

    def wait_ready(self) -> bool:
        """Block until it is known whether the first engine gets ready: True once one has been.

        Raises EngineStartError if it failed to, False if the gateway was told to end before either.
        """
        self._ready_or_failed.wait()
        error = self._start_error
        if self._was_ready:
            return True
        if error is not None:
            raise error
        return False

    def submit(self, submission: Submission, sink: Sink) -> tuple[Channel, Request] | None:
        """Submit to the running engine; without one, None, and the sink has got its failure already.

        An engine that got ready after a dead one was met takes the request: there is no absence to report.
        """
        channel = self._channel
        while True:
            request = None if channel is None else channel.submit(submission, sink)
            if channel is not None and request is not None:
                return channel, request
            with self._lock:
                tried, channel = channel, self._channel
                if channel is None or channel is tried or not channel.is_open:
                    failure = self._failure_without_engine()
                    break
        sink.on_failure(failure)
        return None

    def health(self) -> EngineHealth:
        """A snapshot for /health and /metrics."""
        process = self._process
        uptime = 0.0 if process is None else self._clock() - process.started_at
        return EngineHealth(self._status, process.pid if process else None, self._restarts, uptime)

    @property
    def in_flight(self) -> int:
        """Requests without an end yet."""
        channel = self._channel
        return 0 if channel is None else channel.in_flight

    def shut_down(self) -> None:
        """End the engine: what is in flight fails with 503, then SIGTERM, and SIGKILL after the kill timeout.

        The caller lets its requests finish first. Returns when the process is gone and the thread has ended;
        may be called twice.
        """
        self._closing.set()
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._waker.close()

    def _failure_without_engine(self) -> errors.ApiError:
        """Under the lock."""
        reason, self._unreported = self._unreported, None
        if reason is not None:
            self._announce_absence()
            error, cause = errors.engine_error(), f"the engine died: {reason}"
        else:
            error = errors.shutting_down() if self._closing.is_set() else errors.engine_unavailable()
            cause = "no engine is running"
        return caused(error, cause)

    def _announce_absence(self) -> None:
        """Under the lock, like every announcement: the scheduler hears them in the order they became true."""
        waits = self._restart and not self._closing.is_set()
        self._on_availability(Availability.PAUSED if waits else Availability.DOWN)

    # -- the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = self._timeouts.backoff_first
        try:
            while not self._closing.is_set():
                was_ready = self._survive_one_engine()
                if self._closing.is_set():
                    return
                if not self._restart:
                    log.error("the engine is not restarted, as asked for")
                    return
                self._status = HealthStatus.RESTARTING
                pause = self._timeouts.backoff_first if was_ready else pause
                log.info("the engine is restarted in %g s", pause)
                self._sleep(pause)
                pause = min(self._timeouts.backoff_last, pause * BACKOFF_GROWTH)
                self._restarts += 1
        finally:
            try:
                with self._lock:
                    self._status = HealthStatus.DOWN
                    self._restart = False  # nobody is left to do it
                    if self._unreported is None:
                        self._announce_absence()
            finally:
                self._ready_or_failed.set()

    def _sleep(self, seconds: float) -> None:
        until = self._clock() + seconds
        while not self._closing.is_set() and (left := until - self._clock()) > 0:
            self._waker.wait(left)
            self._waker.clear()

    def _survive_one_engine(self) -> bool:
        """A fault of our own costs one engine, like a fault of its own would, and never the supervision."""
        try:
            return self._run_one_engine()
        except Exception as fault:
            log.exception("the supervision of an engine failed")
            self._report_start_failure(EngineStartError(f"the engine could not be supervised: {fault!r}"))
            return False

    def _run_one_engine(self) -> bool:
        """Start an engine, attend to it until it is gone, report its end.

        Returns whether the pause before the next one is short again: it was ready, and the gateway did not
        fail it.
        """
        try:
            process = EngineProcess(self._launch, self._waker)
        except EngineStartError as error:
            self._report_start_failure(error)
            return False
        patience = 0.0
        try:
            session = self._new_session(process)
            log.info("engine started, pid %d", process.pid)
            session.attend(ready_by=self._clock() + self._timeouts.ready)
            patience = session.patience
        finally:
            with self._lock:
                self._process = self._channel = None
            how, last_lines = process.end(patience)
            _log_lines(last_lines)
        reason = f"{session.reason}; {how}"
        (log.info if self._closing.is_set() else log.error)("engine ended, pid %d: %s", process.pid, reason)
        if not session.ready and not self._closing.is_set():
            words = "\n".join(process.last_lines) or "it wrote nothing to its log"
            self._report_start_failure(
                EngineStartError(f"the engine did not become ready: {reason}\n{words}")
            )
        return session.ready and not session.failed

    def _new_session(self, process: EngineProcess) -> _Session:
        self.telemetry.forget_process()
        deadlines = Deadlines(accept=self._timeouts.accept, stall=self._timeouts.stall)
        connection = Connection(self._ids, deadlines, honours_stop=self._honours_stop)
        outbox = Outbox(process.write, self._timeouts.write)
        session = _Session(self, process, Channel(connection, outbox, self._waker.wake, self._clock))
        with self._lock:
            self._process, self._channel = process, session.channel
        return session

    def _report_start_failure(self, error: EngineStartError) -> None:
        log.error("%s", error)
        if not self._ready_or_failed.is_set():
            self._start_error = error
            self._ready_or_failed.set()

    def _became_ready(self) -> None:
        with self._lock:
            self._status = HealthStatus.OK
            self._was_ready = True
            self._unreported = None
            self._on_availability(Availability.READY)
        self._ready_or_failed.set()

    def _lost(self, event: ConnectionLost) -> None:
        """The engine is gone.

        Called before its failures are delivered, so that a released slot admits nobody to it.
        """
        with self._lock:
            was_ok = self._status is HealthStatus.OK
            self._status = HealthStatus.RESTARTING if self._restart else HealthStatus.DOWN
            idle = was_ok and not event.reported and not self._closing.is_set()
            self._unreported = event.reason if idle else None
            if not idle:
                self._announce_absence()


class _Session:
    """The reader thread's work for one engine process."""

    def __init__(self, supervisor: Supervisor, process: EngineProcess, channel: Channel) -> None:
        self.channel = channel
        self.ready = False
        self.failed = False  # by a fault of the gateway's own
        self.reason = "ended by the gateway"
        self.patience = 0.0
        self._supervisor = supervisor
        self._process = process
        self._over = False

    def attend(self, ready_by: float) -> None:
        """Read, write, log and watch until the connection is over, or the gateway ends.

        In the end the connection has been left and every request has been told, whatever happens in between.
        """
        try:
            self._attend(ready_by)
        except Exception as fault:
            log.exception("a fault of the gateway's own, engine pid %d", self._process.pid)
            self.failed = True
            self._deliver(self.channel.give_up(f"the gateway failed: {fault!r}"))

    def _attend(self, ready_by: float) -> None:
        process, channel, supervisor = self._process, self.channel, self._supervisor
        exited = False
        while not self._over:
            timeout, writable = channel.before_poll()
            if not self.ready:
                left = ready_by - supervisor._clock()
                timeout = left if timeout is None else min(timeout, left)
            for readiness in process.poll(timeout, writable=writable):
                if readiness is Readiness.OUTPUT:
                    self._read()
                elif readiness is Readiness.LOG:
                    _log_lines(process.read_log())
                elif readiness is Readiness.WOKEN:
                    supervisor._waker.clear()
                elif readiness is Readiness.EXITED:
                    process.stop_watching_exit()
                    exited = True
            if exited and not self._over and not self._read():
                self._deliver(channel.give_up("the engine exited"))
            if supervisor._closing.is_set():
                # To wait for an exit that was seen would take the whole kill timeout.
                if exited or self._over:
                    self._deliver(channel.shut_down())
                else:
                    self._end_orderly()
                return
            self._deliver(channel.attend())
            if not self.ready and not self._over and supervisor._clock() >= ready_by:
                self._deliver(channel.ready_timed_out())

    def _read(self) -> bool:
        """One read of stdout; False if there was nothing to read."""
        data = self._process.read()
        if data is None:
            return False
        if data:
            self._deliver(self.channel.receive_data(data))
        else:
            self.patience = EXIT_PATIENCE
            self._deliver(self.channel.receive_eof())
        return True

    def _deliver(self, events: list[Event]) -> None:
        """What is true of the engine first, then every event, whatever becomes of the others."""
        if not events:
            return
        # Wherever it is in the batch: one that is overlooked leaves a dead engine in place for ever. A READY
        # before it counts for nothing, as the last word to the scheduler must be that there is no engine.
        lost = next((event for event in events if isinstance(event, ConnectionLost)), None)
        try:
            if lost is not None:
                self._over, self.reason = True, lost.reason
                self._supervisor._lost(lost)
            elif not self.ready and any(isinstance(event, EngineReady) for event in events):
                self.ready = True
                self._supervisor._became_ready()
        finally:
            for event in events:
                self._deliver_one(event)

    def _deliver_one(self, event: Event) -> None:
        try:
            if isinstance(event, TelemetryFrame):
                self._supervisor.telemetry.update(event.frame)
            elif not isinstance(event, (EngineReady, ConnectionLost)):
                event.deliver()
        except Exception:
            log.exception("the receiver of %s failed", type(event).__name__)

    def _end_orderly(self) -> None:
        """Requests first, signals second.

        After SIGTERM an engine may end a running request as if it were complete.
        """
        process = self._process
        self._deliver(self.channel.shut_down())
        process.close_stdin()
        process.terminate()
        until = self._supervisor._clock() + self._supervisor._timeouts.kill
        while (left := until - self._supervisor._clock()) > 0:
            for readiness in process.poll(left, writable=False):
                if readiness is Readiness.OUTPUT:
                    if process.read() == b"":
                        process.stop_watching_output()
                elif readiness is Readiness.LOG:
                    _log_lines(process.read_log())
                elif readiness is Readiness.WOKEN:
                    self._supervisor._waker.clear()
                elif readiness is Readiness.EXITED:
                    self.patience = EXIT_PATIENCE
                    return


def _log_lines(lines: Iterable[str]) -> None:
    for line in lines:
        engine_log.info("%s", line)
