"""The gateway's end of one engine connection, without I/O (wire.md sections 5 and 6).

Bytes and time go in, events and outgoing messages come out. There is no thread, lock, clock or pipe in here;
whoever owns the pipes calls :meth:`Connection.receive_data`, writes what :meth:`Connection.take_outgoing`
returns, delivers what :meth:`Connection.take_events` returns, and comes back at :attr:`Connection.deadline`.

Guarantees:

* every transition of a request or of the connection is looked up in the generated state tables;
* each submission ends in exactly one of Finished, Cancelled, Failed, and after it nothing else is said about
  it;
* a frame for an id that is not in flight is dropped; nothing of one request ever reaches the sink of another;
* a fault of the stream fails everything in flight, a fault of one request fails that request only;
* any splitting of the bytes gives the same events, except for how many frames share one event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from generated import commands, errors, frames, limits
from generated.errors import WireCode
from generated.states import (
    CONNECTION,
    CONNECTION_INITIAL,
    CONNECTION_TERMINAL,
    ConnectionEvent,
    ConnectionState,
    RequestEvent,
    RequestState,
)
from generated.wire import ProtocolFault
from server.wire.capability import ExtensionSupport, PendingProbe, probe_for, unsupported_error
from server.wire.events import (
    ConnectionLost,
    EngineReady,
    Event,
    Sink,
    Submission,
    TelemetryFrame,
    caused,
)
from server.wire.inflight import BATCHED, InFlight, Request
from server.wire.outgoing import Outgoing, write_failure
from server.wire.refused import refusal

log = logging.getLogger(__name__)

NO_DEADLINE: Final = float("inf")
EXCERPT: Final = 300  # characters of an engine's words that go into the log


@dataclass(frozen=True)
class Deadlines:
    """Seconds: extension request unaccepted, any request without a frame (wire.md section 5)."""

    accept: float
    stall: float


class Connection:
    """One engine process seen through its pipes.

    Not thread-safe: the owner holds a lock around every call.
    """

    def __init__(self, ids: Iterator[int], deadlines: Deadlines, *, honours_stop: bool) -> None:
        """``ids`` mints increasing request ids.

        ``honours_stop`` is False for families whose engines ignore STOP.
        """
        self.state: ConnectionState = CONNECTION_INITIAL
        self.deadline = NO_DEADLINE  # never later than the earliest thing check() has to do
        self.last_frame_at = 0.0
        self.late_frames = 0
        self._ids = ids
        self._deadlines = deadlines
        self._honours_stop = honours_stop
        self._reader = frames.FrameReader()
        self._in_flight = InFlight()
        self._support = ExtensionSupport()
        self._probe: PendingProbe[Request] | None = None
        self._now = 0.0
        self._touched: list[Request] = []
        self._events: list[Event] = []
        self._outgoing: list[Outgoing] = []
        self._handlers = self._frame_handlers()

    # -- what the owner collects -------------------------------------------------------------------------

    def take_events(self) -> list[Event]:
        """Everything that happened since the last call, in order."""
        taken, self._events = self._events, []
        return taken

    def take_outgoing(self) -> list[Outgoing]:
        """Messages to be written, in order. An IMAGE is immediately followed by its SUBMIT."""
        taken, self._outgoing = self._outgoing, []
        return taken

    @property
    def in_flight(self) -> int:
        """Requests without an end yet, those that wait for a probe included."""
        return sum(request.sink is not None for request in self._everything())

    # -- commands ----------------------------------------------------------------------------------------

    def submit(self, submission: Submission, sink: Sink, now: float) -> Request:
        """Start a request.

        Raises FieldError for values no SUBMIT can carry; every other failure is an event.
        """
        self._now = now
        request = Request(submission, sink, now)
        if self.state is ConnectionState.OPEN:
            self._start(request)
        else:
            error = errors.engine_unavailable()
            self._fail(request, RequestEvent.CONNECTION_LOST, error, "no engine to submit to")
        return request

    def stop(self, request: Request, now: float) -> None:
        """A stop sequence matched.

        Discard further text and end the request. Does nothing if it ends already.
        """
        self._now = now
        if not self._honours_stop:
            if RequestEvent.SENT_STOP in request.row:
                request.ends_in_done = True
                self._cancel(request)
        elif request.id and request.walk(RequestEvent.SENT_STOP):
            self._outgoing.append(Outgoing(commands.Stop.KIND, request, commands.write_stop(request.id)))

    def cancel(self, request: Request, now: float) -> None:
        """The client is gone.

        The request ends once the engine confirms. Does nothing if that is under way.
        """
        self._now = now
        request.ends_in_done = False
        self._cancel(request)

    def _cancel(self, request: Request) -> None:
        if request.id == 0:
            self._cancel_held(request)
        elif request.walk(RequestEvent.SENT_CANCEL):
            self._outgoing.append(Outgoing(commands.Cancel.KIND, request, commands.write_cancel(request.id)))

    def _start(self, request: Request) -> None:
        """Refuse, hold or send a request, by what is known about the engine."""
        if request.keys and self._support.is_refused(request.keys):
            reason = "the engine is known not to take the extension"
            self._fail(request, RequestEvent.REFUSED_OLD, unsupported_error(request.keys), reason)
        elif self._support.needs_probe(request.submission, request.keys):
            self._hold(request)
        else:
            self._send(request)

    def _send(self, request: Request) -> None:
        request_id = next(self._ids)
        for kind, data in request.submission.encode(request_id):
            self._outgoing.append(Outgoing(kind, request, data))
        self._in_flight.add(request, request_id, self._now)
        self._expect(self._now + self._deadlines.stall)
        if request.keys:
            self._expect(self._now + self._deadlines.accept)

    # -- bytes from the engine ---------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Consume what one read returned; consecutive frames of one request become one event.

        Once the connection is over, nothing: what the engine wrote before it went shall not follow its end.
        """
        if self.state in CONNECTION_TERMINAL:
            return
        received: list[Any] = self._reader.feed(data)
        if not received:
            return
        self._now = self.last_frame_at = now
        requests, handlers = self._in_flight.by_id, self._handlers
        Data, Echo, Tool = frames.Data, frames.Echo, frames.Tool
        for frame in received:
            kind = frame.__class__
            if kind is Data or kind is Echo or kind is Tool:
                request = requests.get(frame.id)
                if request is None:
                    self.late_frames += 1
                elif request.batch_kind is kind:
                    request.batch.append(frame)
                else:
                    self._open_batch(request, frame)
            else:
                handlers[kind](frame)
        for request in self._touched:
            request.close_batch()
        self._touched.clear()

    def receive_eof(self, now: float) -> None:
        """The engine closed its stdout."""
        self._now = now
        fault = self._reader.eof()
        if fault is not None and self.state is not ConnectionState.STARTING:
            self._leave(ConnectionEvent.FAULT, f"protocol fault: {fault}")
        else:
            self._leave(ConnectionEvent.EOF, "the engine closed its stdout")

    def ready_timed_out(self, now: float) -> None:
        """No READY came in time."""
        self._now = now
        self._leave(ConnectionEvent.READY_TIMEOUT, "the engine did not become ready in time")

    def give_up(self, reason: str, now: float) -> None:
        """The connection is of no more use, for a reason that its bytes do not show."""
        self._now = now
        self._leave(ConnectionEvent.FAULT, reason)

    def write_failed(self, outgoing: Outgoing, reason: str, now: float) -> None:
        """A message could not be written.

        Its request gets the named failure, and the connection is of no more use.
        """
        self._now = now
        failure = write_failure(outgoing.kind)
        request = outgoing.request
        if request is not None:
            self._fail(request, RequestEvent.WRITE_FAILED, errors.engine_error(), failure)
        self._leave(ConnectionEvent.FAULT, f"{failure}: {reason}", reported=request is not None)

    def shut_down(self, now: float) -> None:
        """The gateway ends: fail what is in flight with 503 and expect EOF. The owner closes stdin."""
        self._now = now
        waiting = self._everything()
        self._probe = None
        for request in waiting:
            error = errors.shutting_down()
            self._fail(request, RequestEvent.CONNECTION_LOST, error, "the gateway is shutting down")
        self._move(ConnectionEvent.SHUTDOWN)

    # -- time --------------------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Act on the deadlines that have come and compute the next one."""
        if now < self.deadline:
            return
        self._now = now
        self.deadline = NO_DEADLINE
        self._check_acceptance(now)
        stalled = [request for request in self._everything() if self._stall_deadline(request) <= now]
        silence = f"for {self._deadlines.stall:g} s"
        for request in stalled:
            self._give_up(request, RequestEvent.STALL_TIMEOUT, errors.engine_error(), f"no frame {silence}")
        if stalled and now - self.last_frame_at >= self._deadlines.stall:
            reason = f"the engine sent nothing at all {silence}"
            self._leave(ConnectionEvent.FAULT, reason, reported=True)
        for request in self._everything():
            self._expect(self._stall_deadline(request))

    def _check_acceptance(self, now: float) -> None:
        head = self._in_flight.head
        if head is None or not head.keys or RequestEvent.ACCEPT_TIMEOUT not in head.row:
            return
        due = self._in_flight.head_since + self._deadlines.accept
        if due > now:
            self._expect(due)
        else:
            reason = f"the extension was not accepted within {self._deadlines.accept:g} s"
            self._give_up(head, RequestEvent.ACCEPT_TIMEOUT, unsupported_error(head.keys), reason)

    def _stall_deadline(self, request: Request) -> float:
        return request.last_frame_at + self._deadlines.stall

    def _expect(self, deadline: float) -> None:
        if deadline < self.deadline:
            self.deadline = deadline

    # -- frames ------------------------------------------------------------------------------------------

    def _frame_handlers(self) -> dict[type[object], Callable[..., None]]:
        handlers: dict[type[object], Callable[..., None]] = {
            frames.Ready: self._on_ready,
            ProtocolFault: self._on_fault,
            frames.Accept: self._on_accept,
            frames.Done: self._on_done,
            frames.Error: self._on_error,
        }
        for kind in frames.NO_EFFECT:
            handlers[kind] = self._on_no_effect
        for kind in frames.TELEMETRY:
            handlers[kind] = self._on_telemetry
        return handlers

    def _on_ready(self, frame: frames.Ready) -> None:
        if self._move(ConnectionEvent.READY):
            self._events.append(EngineReady())

    def _on_fault(self, fault: ProtocolFault) -> None:
        self._leave(ConnectionEvent.FAULT, f"protocol fault: {fault}")

    def _on_no_effect(self, frame: frames.Frame) -> None:
        """Group frames: framed like any other, of no effect even if their id is live."""

    def _on_telemetry(self, frame: frames.Frame) -> None:
        self._events.append(TelemetryFrame(frame))

    def _on_accept(self, frame: frames.Accept) -> None:
        request = self._in_flight.by_id.get(frame.id)
        if request is None:
            self.late_frames += 1
            return
        request.walk_frame(RequestEvent.ACCEPT, self._now)
        if request.state is RequestState.ACCEPTED:
            self._accept(request, frame.prompt_tokens)
        elif request.state is RequestState.FAULTED:
            # The slot is the engine's until it lets go of the request, so the failure is told once the CANCEL
            # is confirmed.
            request.failure = caused(
                errors.engine_error(), "the engine accepted the request twice or too late"
            )
            self._cancel(request)

    def _on_done(self, frame: frames.Done) -> None:
        request = self._in_flight.by_id.get(frame.id)
        if request is None:
            self.late_frames += 1
            return
        listened = request.listening
        request.walk_frame(RequestEvent.DONE, self._now)
        if listened:
            self._accept(request, None)
        self._end(request, frame)

    def _on_error(self, frame: frames.Error) -> None:
        request = self._in_flight.by_id.get(frame.id)
        if request is None:
            if frame.id == 0:
                self._on_unattributed_error(frame)
            else:
                self.late_frames += 1
            return
        request.walk_frame(RequestEvent.ERROR, self._now)
        if request.failure is None and request.state is RequestState.FAILED:
            reason = f"the engine answered ERROR {' '.join(frame.words)[:EXCERPT]}"
            request.failure = caused(refusal(frame.words, request.submission), reason)
        self._end(request)

    def _on_unattributed_error(self, frame: frames.Error) -> None:
        """ERROR 0.

        Proof of an old engine if nothing but one extension request can have caused it, else of no
        consequence.
        """
        request = self._in_flight.sole_unacknowledged()
        if request is not None and request.keys and errors.wire_code(frame.words) is WireCode.BAD_REQUEST:
            self._support.refuse(request.keys)
            reason = "the engine is too old for the extension"
            self._fail(request, RequestEvent.REFUSED_OLD, unsupported_error(request.keys), reason)
        else:
            log.warning(
                "the engine refused something that matches no request: %s", " ".join(frame.words)[:EXCERPT]
            )

    def _open_batch(self, request: Request, frame: frames.Data | frames.Echo | frames.Tool) -> None:
        """First frame of its kind for this request in this buffer, or after a frame of another kind."""
        listened = request.listening
        request.walk_frame(BATCHED[frame.__class__], self._now)
        if request.keys:
            self._support.prove()
        if not isinstance(frame, frames.Echo):
            self._prefilled(self._in_flight.prefilled(request, self._now))
        elif listened and not request.accepted:
            request.early_echoes.append(frame)  # an ECHO is no acceptance, and nothing may go out before one
            return
        if not request.listening:
            return
        self._accept(request, None)
        event = request.open_batch(frame)
        if event is not None:
            self._events.append(event)
        self._touched.append(request)

    # -- ends --------------------------------------------------------------------------------------------

    def _accept(self, request: Request, prompt_tokens: int | None) -> None:
        if request.keys:
            self._support.prove()
        self._events.extend(request.accept(prompt_tokens))

    def _end(self, request: Request, done: frames.Done | None = None) -> None:
        """Forget a request whose state is terminal and say how it ended."""
        self._prefilled(self._in_flight.remove(request, self._now))
        if self._probe is not None and request in self._probe.held:
            self._probe.held.remove(request)
        sink, request.sink = request.sink, None  # its owner holds the request: no circle shall be left
        if sink is None:
            self._probe_ended(request)
        else:
            self._events.append(request.ending(sink, done))

    def _fail(self, request: Request, event: RequestEvent, error: errors.ApiError, reason: str) -> None:
        """End a request by an event of our own; one that was being cancelled counts as cancelled."""
        if not request.walk(event):
            return
        if request.failure is None and request.state is not RequestState.CANCELLED:
            request.failure = caused(error, reason)
        self._end(request)

    def _give_up(self, request: Request, event: RequestEvent, error: errors.ApiError, reason: str) -> None:
        """Stop waiting for the engine.

        The CANCEL is for an engine that works on it after all; its answer matches nothing.
        """
        if request.id and event in request.row:
            self._outgoing.append(Outgoing(commands.Cancel.KIND, None, commands.write_cancel(request.id)))
        self._fail(request, event, error, reason)

    def _leave(self, event: ConnectionEvent, reason: str, *, reported: bool = False) -> None:
        """Leave the connection: everything in flight gets its end, then the owner is told."""
        if not self._move(event):
            return
        waiting = self._everything()
        reported = reported or any(request.sink is not None for request in waiting)
        self._probe = None
        for request in waiting:
            self._fail(request, RequestEvent.CONNECTION_LOST, errors.engine_error(), reason)
        self._events.append(ConnectionLost(reason, self.state is ConnectionState.CLOSED, reported))

    def _move(self, event: ConnectionEvent) -> bool:
        target = CONNECTION[self.state].get(event)
        if target is None:
            return False
        self.state = target
        return True

    def _everything(self) -> list[Request]:
        return [*self._in_flight.by_id.values(), *(self._probe.held if self._probe else ())]

    def _prefilled(self, head_moved: bool) -> None:
        if head_moved:
            self._expect(self._now + self._deadlines.accept)

    # -- probes ------------------------------------------------------------------------------------------

    def _hold(self, request: Request) -> None:
        """Keep a request back until a probe has shown what the engine makes of its extension.

        One probe at a time.
        """
        request.submission.encode(limits.MAX_REQUEST_ID)  # raises here and now, not when the probe has ended
        self._expect(self._stall_deadline(request))
        if self._probe is not None:
            self._probe.held.append(request)
            return
        probe = Request(probe_for(request.submission), None, self._now)
        self._probe = PendingProbe(probe, request, [request])
        self._send(probe)

    def _cancel_held(self, request: Request) -> None:
        """Nothing of it is on the wire yet.

        The owner of the probe waits for the probe to leave the slot they share.
        """
        if self._probe is None or request not in self._probe.held:
            return
        if not request.walk(RequestEvent.SENT_CANCEL):
            return
        if request is self._probe.owner:
            self._cancel(self._probe.probe)
        else:
            self._withdraw(request)

    def _withdraw(self, request: Request) -> None:
        """End a request that was cancelled before it was sent.

        As after a lost connection, nothing can come for it.
        """
        request.walk(RequestEvent.CONNECTION_LOST)
        self._end(request)

    def _probe_ended(self, probe: Request) -> None:
        pending, self._probe = self._probe, None
        if pending is None or pending.probe is not probe:
            return
        for request in pending.held:
            if request.state is RequestState.CANCELLING:
                self._withdraw(request)
            elif request is pending.owner and probe.failure is not None:
                self._fail(request, RequestEvent.CONNECTION_LOST, probe.failure, str(probe.failure.__cause__))
            else:
                self._start(request)
