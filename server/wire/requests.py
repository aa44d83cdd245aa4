"""What the API layer holds in its hands: the client of the engine, and a handle per request.

See the package docstring for how they are used together.
"""

from __future__ import annotations

from collections.abc import Callable

from generated import families
from server.wire.channel import Channel
from server.wire.events import Availability, Sink, Submission
from server.wire.inflight import Request
from server.wire.process import EngineLaunch
from server.wire.supervisor import EngineHealth, EngineTimeouts, Supervisor
from server.wire.telemetry import Telemetry


class RequestHandle:
    """Influence on one submission.

    Every method may be called from any thread, from a sink, and after the end (then: nothing).
    """

    __slots__ = ("_channel", "_request")

    def __init__(self, channel: Channel | None = None, request: Request | None = None) -> None:
        self._channel = channel
        self._request = request

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

    def wait_ready(self) -> bool:
        """Block until the engine has been ready for the first time: True.

        False if :meth:`shut_down` came first. Raises EngineStartError, with its last log lines, if it failed.
        """
        return self._supervisor.wait_ready()

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
