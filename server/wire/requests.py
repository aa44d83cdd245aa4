"""What the API layer holds in its hands: the client of the engine, a handle per request, and a sink to wait
on.

See the package docstring for how they are used together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from generated import families
from generated.errors import ApiError
from generated.frames import Data, Done, Echo, Tool
from server.scheduler import Availability
from server.wire.channel import Channel
from server.wire.events import (
    Accepted,
    Cancelled,
    Echoes,
    Failed,
    Finished,
    Pieces,
    Sink,
    SinkEvent,
    Submission,
    Tools,
)
from server.wire.inflight import Request
from server.wire.process import EngineLaunch
from server.wire.supervisor import EngineHealth, EngineTimeouts, Supervisor
from server.wire.telemetry import Telemetry


class RequestCancelled(Exception):
    """The request ended by our own CANCEL: there is nobody to answer."""


class RequestHandle:
    """Influence on one submission.

    Every method may be called from any thread, from a sink, and after the end (then: nothing).
    """

    __slots__ = ("_channel", "_request")

    def __init__(self, channel: Channel | None = None, request: Request | None = None) -> None:
        self._channel = channel
        self._request = request

    @property
    def engine_id(self) -> int:
        """The id on the engine wire, for the log; 0 if nothing was sent (yet)."""
        return 0 if self._request is None else self._request.id

    def stop(self) -> None:
        """A stop sequence matched.

        No further ``on_data``; the end is ``on_done``. Sends STOP once, or CANCEL where STOP is ignored.
        """
        if self._channel is not None and self._request is not None:
            self._channel.stop(self._request)

    def cancel(self) -> None:
        """The client is gone.

        No further ``on_data``; the end comes when the engine confirms, and the slot is taken until then.
        """
        if self._channel is not None and self._request is not None:
            self._channel.cancel(self._request)


class EngineClient:
    """The engine as the API layer sees it: one supervised process that takes submissions."""

    def __init__(
        self,
        launch: EngineLaunch,
        timeouts: EngineTimeouts,
        *,
        family: families.Family,
        restart: bool,
        on_availability: Callable[[Availability], None],
    ) -> None:
        """``family`` says whether STOP is honoured.

        ``on_availability`` is called from several threads and must not block.
        """
        self._supervisor = Supervisor(
            launch,
            timeouts,
            honours_stop=families.STOP in family.can,
            restart=restart,
            on_availability=on_availability,
        )

    def start(self) -> None:
        """Start the engine; returns at once."""
        self._supervisor.start()

    def wait_ready(self) -> None:
        """Block until the engine is ready for the first time.

        Raises EngineStartError, with its last log lines.
        """
        self._supervisor.wait_ready()

    def submit(self, submission: Submission, sink: Sink) -> RequestHandle:
        """Send a request whose slot the caller holds. Raises FieldError for values no SUBMIT can carry.

        Every other outcome, the absence of an engine included, reaches ``sink`` as exactly one terminal call.
        """
        submitted = self._supervisor.submit(submission, sink)
        return RequestHandle() if submitted is None else RequestHandle(*submitted)

    def health(self) -> EngineHealth:
        """Status, pid, restarts and uptime."""
        return self._supervisor.health()

    @property
    def telemetry(self) -> Telemetry:
        """The last things the engine said about itself."""
        return self._supervisor.telemetry

    @property
    def in_flight(self) -> int:
        """Submissions without an end yet."""
        return self._supervisor.in_flight

    def shut_down(self) -> None:
        """End the engine; see :meth:`Supervisor.shut_down`."""
        self._supervisor.shut_down()


@dataclass
class Outcome:
    """Everything one finished request said.

    Frames in wire order. ``prompt_tokens`` is ACCEPT's or else DONE's, if either told.
    """

    done: Done
    prompt_tokens: int | None = None
    echoes: list[Echo] = field(default_factory=list)
    data: list[Data] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)


class Collector:
    """A sink to wait on.

    One wake-up of the waiting thread per buffer of frames, however many tokens are in it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: list[SinkEvent] = []

    def take(self, timeout: float | None = None) -> list[SinkEvent]:
        """All events since the last call, in order.

        Waits for the first one, and returns none if ``timeout`` seconds pass.
        """
        with self._changed:
            if not self._pending:
                self._changed.wait(timeout)
            taken, self._pending = self._pending, []
        return taken

    def events(self) -> Iterator[SinkEvent]:
        """Events up to and including Finished. Raises the ApiError of a failure, or RequestCancelled."""
        while True:
            for event in self.take():
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Cancelled):
                    raise RequestCancelled
                yield event
                if isinstance(event, Finished):
                    return

    def result(self) -> Outcome:
        """Wait for the end and return everything. Raises like :meth:`events`."""
        prompt_tokens: int | None = None
        echoes: list[Echo] = []
        data: list[Data] = []
        tools: list[Tool] = []
        for event in self.events():
            if isinstance(event, Pieces):
                data += event.frames
            elif isinstance(event, Echoes):
                echoes += event.frames
            elif isinstance(event, Tools):
                tools += event.frames
            elif isinstance(event, Accepted):
                prompt_tokens = event.prompt_tokens
            elif isinstance(event, Finished):
                known = event.done.prompt_tokens if prompt_tokens is None else prompt_tokens
                return Outcome(event.done, known, echoes, data, tools)
        raise AssertionError("events() ends with Finished or raises")

    def _add(self, event: SinkEvent) -> None:
        with self._changed:
            self._pending.append(event)
            self._changed.notify()

    def on_accept(self, prompt_tokens: int | None) -> None:
        self._add(Accepted(self, prompt_tokens))

    def on_echo(self, frames: list[Echo]) -> None:
        self._add(Echoes(self, frames))

    def on_data(self, frames: list[Data]) -> None:
        self._add(Pieces(self, frames))

    def on_tool(self, frames: list[Tool]) -> None:
        self._add(Tools(self, frames))

    def on_done(self, done: Done) -> None:
        self._add(Finished(self, done))

    def on_cancelled(self) -> None:
        self._add(Cancelled(self))

    def on_failure(self, error: ApiError) -> None:
        self._add(Failed(self, error))
