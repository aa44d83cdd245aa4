"""What a submission is, what its owner is told, and who is told: the vocabulary of the wire layer.

Nothing here does I/O. An event knows how to deliver itself to a :class:`Sink`, so that the sans-IO connection
can collect events under its lock and the reader thread can deliver them after it let go of the lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from generated import commands

if TYPE_CHECKING:
    from generated.errors import ApiError
    from generated.frames import Data, Done, Echo, Frame, Tool


@dataclass(frozen=True)
class Image:
    """The image that travels immediately before its SUBMIT.

    The family's bytes and the sides of the patch grid.
    """

    data: bytes
    grid_h: int
    grid_w: int


@dataclass(frozen=True)
class Submission:
    """One SUBMIT as the API layer asks for it; every value has passed the API's checks already.

    ``prompt`` is UTF-8 text or, with ``ids``, decimal token ids separated by single spaces; ``extra`` is
    grammar text. ``logprobs`` 0 means the channel is off. ``prompt_param`` names the request field an
    engine's complaint about the prompt is attributed to (``prompt``, ``messages``, ``prompt[3]``).
    """

    prompt: bytes
    slot: int
    max_tokens: int
    temperature: float
    top_p: float
    extra: bytes = b""
    logprobs: int = 0
    ids: bool = False
    pin: bool = False
    image: Image | None = None
    prompt_param: str = "prompt"

    def encode(self, request_id: int) -> list[tuple[str, bytes]]:
        """Its messages, each with its command word. Raises FieldError for a value no message carries."""
        submit = commands.write_submit(
            request_id,
            self.slot,
            self.prompt,
            self.max_tokens,
            self.temperature,
            self.top_p,
            extra=self.extra,
            logprobs=self.logprobs or None,
            ids=1 if self.ids else None,
            pin=1 if self.pin else None,
        )
        messages = [(commands.Submit.KIND, submit)]
        if self.image is not None:
            image = commands.write_image(request_id, self.image.data, self.image.grid_h, self.image.grid_w)
            messages.insert(0, (commands.Image.KIND, image))
        return messages


class Sink(Protocol):
    """The owner of one submission. See the package docstring for order and guarantees.

    The methods run on the reader thread: they must not block and must not raise.
    """

    def on_accept(self, prompt_tokens: int | None) -> None:
        """The engine took the prompt; ``prompt_tokens`` is None where the engine sends no ACCEPT."""

    def on_echo(self, frames: list[Echo]) -> None:
        """Read-outs of prompt tokens, in wire order."""

    def on_data(self, frames: list[Data]) -> None:
        """Pieces of generated text, in wire order, at least one."""

    def on_tool(self, frames: list[Tool]) -> None:
        """Records of the structured sideband, in wire order."""

    def on_done(self, done: Done) -> None:
        """Terminal: the request ended in order, or was stopped by us."""

    def on_cancelled(self) -> None:
        """Terminal: nothing more of a cancelled request can come."""

    def on_failure(self, error: ApiError) -> None:
        """Terminal: the request failed; ``error.__cause__`` is a WireFailure with the reason for the log."""


class WireFailure(Exception):
    """Why a request failed, in words for the log. Never shown to a client."""


def caused(error: ApiError, reason: str) -> ApiError:
    """The same error, with the reason that only the log gets."""
    error.__cause__ = WireFailure(reason)
    return error


class Accepted(NamedTuple):
    """The request was accepted."""

    sink: Sink
    prompt_tokens: int | None

    def deliver(self) -> None:
        self.sink.on_accept(self.prompt_tokens)


class Echoes(NamedTuple):
    """Consecutive ECHO frames of one request in one buffer."""

    sink: Sink
    frames: list[Echo]

    def deliver(self) -> None:
        self.sink.on_echo(self.frames)


class Pieces(NamedTuple):
    """Consecutive DATA frames of one request in one buffer."""

    sink: Sink
    frames: list[Data]

    def deliver(self) -> None:
        self.sink.on_data(self.frames)


class Tools(NamedTuple):
    """Consecutive TOOL frames of one request in one buffer."""

    sink: Sink
    frames: list[Tool]

    def deliver(self) -> None:
        self.sink.on_tool(self.frames)


class Finished(NamedTuple):
    """Terminal: DONE."""

    sink: Sink
    done: Done

    def deliver(self) -> None:
        self.sink.on_done(self.done)


class Cancelled(NamedTuple):
    """Terminal: the cancel is confirmed."""

    sink: Sink

    def deliver(self) -> None:
        self.sink.on_cancelled()


class Failed(NamedTuple):
    """Terminal: a named failure."""

    sink: Sink
    error: ApiError

    def deliver(self) -> None:
        self.sink.on_failure(self.error)


SinkEvent = Accepted | Echoes | Pieces | Tools | Finished | Cancelled | Failed


class Availability(Enum):
    """Whether there is an engine to submit to.

    READY: yes. PAUSED: one is on its way, so it pays to wait. DOWN: none will come.
    """

    READY = "ready"
    PAUSED = "paused"
    DOWN = "down"


class EngineReady(NamedTuple):
    """The handshake is complete; requests may be submitted."""


class TelemetryFrame(NamedTuple):
    """A frame about the engine and no request: PROF, TIERS, HWINFO, EMAP, HITS or an advisory line."""

    frame: Frame


class ConnectionLost(NamedTuple):
    """The connection is broken or closed and every request in flight has been given its end.

    ``orderly`` is true for an EOF after our own shutdown. ``reported`` is true if at least one request was
    told.
    """

    reason: str
    orderly: bool
    reported: bool


EngineEvent = EngineReady | TelemetryFrame | ConnectionLost
Event = SinkEvent | EngineEvent
