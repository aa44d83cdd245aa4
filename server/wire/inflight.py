"""The requests of one engine connection: one record each, by id, and the line of prompts the engine still has
to read.

A record walks the generated request table; nothing else changes its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated import errors, frames
from generated.states import REQUEST, REQUEST_INITIAL, REQUEST_TERMINAL, RequestEvent, RequestState
from server.wire.capability import extension_keys
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

LISTENING: Final = frozenset({RequestState.SUBMITTED, RequestState.ACCEPTED, RequestState.STREAMING})
"""States in which what an engine sends is passed on; in the others it is consumed and discarded."""

BATCHED: Final[Mapping[type[object], RequestEvent]] = {
    frames.Data: RequestEvent.DATA,
    frames.Echo: RequestEvent.ECHO,
    frames.Tool: RequestEvent.TOOL,
}
"""The frames of which consecutive ones become one event, with what each is to the request table."""


class Request:
    """The connection's record of one submission; opaque to everybody else.

    ``id`` is 0 until the SUBMIT is written: a request that waits for a probe has none yet, and ids increase
    on the wire.
    """

    __slots__ = (
        "accepted",
        "batch",
        "batch_kind",
        "data_frames",
        "early_echoes",
        "ends_in_done",
        "failure",
        "id",
        "keys",
        "last_frame_at",
        "prompt_tokens",
        "row",
        "sink",
        "state",
        "submission",
    )

    def __init__(self, submission: Submission, sink: Sink | None, now: float) -> None:
        self.submission = submission
        self.sink = sink
        self.keys = extension_keys(submission)
        self.id = 0
        self.state = REQUEST_INITIAL
        self.row = REQUEST[REQUEST_INITIAL]
        self.last_frame_at = now
        self.accepted = False
        self.prompt_tokens: int | None = None
        self.data_frames = 0
        self.early_echoes: list[frames.Echo] = []
        self.failure: errors.ApiError | None = None
        self.ends_in_done = False
        self.batch: list[frames.Data] | list[frames.Echo] | list[frames.Tool] = []
        self.batch_kind: type[object] | None = None

    @property
    def finished(self) -> bool:
        """True once the terminal event was emitted."""
        return self.state in REQUEST_TERMINAL

    @property
    def listening(self) -> bool:
        """True while frames of the request are passed on to its sink."""
        return self.state in LISTENING

    def walk_frame(self, event: RequestEvent, now: float) -> None:
        """Follow the table for a frame of this request.

        The table says for every live state what every frame does.
        """
        self.close_batch()
        self.last_frame_at = now
        self.state = self.row[event]
        self.row = REQUEST[self.state]

    def walk(self, event: RequestEvent) -> bool:
        """Follow the table for an event of the gateway's own.

        False where it knows no such event in this state.
        """
        target = self.row.get(event)
        if target is None:
            return False
        self.close_batch()
        self.state = target
        self.row = REQUEST[target]
        return True

    def close_batch(self) -> None:
        """The next frame starts a new event."""
        if self.batch_kind is frames.Data:
            self.data_frames += len(self.batch)
        self.batch_kind = None

    def open_batch(self, frame: frames.Data | frames.Echo | frames.Tool) -> SinkEvent | None:
        """Start an event with this frame; further frames of its kind join it until :meth:`close_batch`."""
        if self.row[BATCHED[frame.__class__]] is self.state:  # else the next frame must walk the table first
            self.batch_kind = frame.__class__
        sink = self.sink
        if isinstance(frame, frames.Data):
            self.batch = pieces = [frame]
            return None if sink is None else Pieces(sink, pieces)
        if isinstance(frame, frames.Echo):
            self.batch = echoes = [frame]
            return None if sink is None else Echoes(sink, echoes)
        self.batch = tools = [frame]
        return None if sink is None else Tools(sink, tools)

    def accept(self, prompt_tokens: int | None) -> list[SinkEvent]:
        """The request counts as accepted from here on; what the sink is told the first time."""
        if self.accepted:
            return []
        self.accepted = True
        self.prompt_tokens = prompt_tokens
        if self.sink is None:
            return []
        events: list[SinkEvent] = [Accepted(self.sink, prompt_tokens)]
        if self.early_echoes:
            events.append(Echoes(self.sink, self.early_echoes))
        return events

    def ending(self, sink: Sink, done: frames.Done | None) -> SinkEvent:
        """The terminal event of a request whose state is terminal.

        ``done`` is the frame that ended it, if one did.
        """
        if self.state is RequestState.FINISHED and done is not None:
            return Finished(sink, done)
        if self.state is RequestState.CANCELLED and self.ends_in_done:
            return Finished(sink, done if done is not None else self._made_up_done())
        if self.failure is not None:
            return Failed(sink, self.failure)
        return Cancelled(sink)

    def _made_up_done(self) -> frames.Done:
        """The DONE of a request that a matched stop ended by CANCEL, where the engine sent none."""
        return frames.Done(
            id=self.id,
            completion_tokens=self.data_frames,
            tokens_per_second=0.0,
            cache_hit_percent=0.0,
            rss_gb=0.0,
            prompt_tokens=self.prompt_tokens,
            length_limited=0,
        )


class InFlight:
    """Requests that are on the wire and have no end yet."""

    def __init__(self) -> None:
        self.by_id: dict[int, Request] = {}
        self.head_since = 0.0
        self._prefilling: dict[int, Request] = {}  # no DATA yet: the engine reads their prompts in this order

    @property
    def head(self) -> Request | None:
        """The earliest request still between its SUBMIT and its first DATA.

        Only its acceptance clock runs.
        """
        return next(iter(self._prefilling.values()), None)

    def add(self, request: Request, request_id: int, now: float) -> None:
        """The SUBMIT goes out under this id."""
        request.id = request_id
        request.last_frame_at = now
        self.by_id[request_id] = request
        if not self._prefilling:
            self.head_since = now
        self._prefilling[request_id] = request

    def remove(self, request: Request, now: float) -> bool:
        """The request ended.

        Returns what :meth:`prefilled` does; nothing happens for one that was never added.
        """
        self.by_id.pop(request.id, None)
        return self.prefilled(request, now)

    def prefilled(self, request: Request, now: float) -> bool:
        """The engine is past this prompt. True if that moved the head of the line, whose clock starts now."""
        was_head = self.head is request
        self._prefilling.pop(request.id, None)
        if was_head:
            self.head_since = now
        return was_head

    def sole_unacknowledged(self) -> Request | None:
        """The one request the engine has not acknowledged, or None if there are none or several."""
        waiting = [request for request in self.by_id.values() if not request.accepted]
        return waiting[0] if len(waiting) == 1 else None
