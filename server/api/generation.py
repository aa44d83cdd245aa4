"""Running one submission for a client: gathered into a whole answer, or streamed as it comes.

Both forms are sinks of the engine's reader thread. They feed the text pipeline, send STOP once when a stop
sequence has matched, send CANCEL when the client leaves, and give the KV slot back at the terminal event,
before anything is written (http.md §12, wire.md §5).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from generated import errors, http
from generated.errors import ApiError
from generated.frames import Data, Done, Echo, Tool
from server.api.admission import wait_ms
from server.api.answers import Usage, usage_of
from server.api.keepalive import KeepaliveTimer
from server.api.refusal import refuse
from server.http.exchange import ClientGone, Exchange, ResponseStream
from server.logprobs import EchoRecords, Records
from server.scheduler import Admission
from server.sse import EventFrame, is_plain
from server.text.pieces import Piece
from server.text.pipeline import Pipeline
from server.wire.events import Submission
from server.wire.requests import EngineClient, RequestHandle

logger = logging.getLogger("colibri.api")


class EngineRun:
    """One submission under way: its handle, STOP and CANCEL, and who is told about its end."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._lock = threading.RLock()
        self._handle: RequestHandle | None = None
        self._wants_stop = False
        self._wants_cancel = False
        self.accepted: int | None = None
        """Tokens of the prompt as ACCEPT has them; None before it, and from an engine that sends none."""

    def start(self, engine: EngineClient, submission: Submission) -> None:
        """Submit. Frames may arrive before this returns."""
        handle = engine.submit(submission, self)
        with self._lock:
            self._handle = handle
            stop, cancel = self._wants_stop, self._wants_cancel
        if cancel:
            handle.cancel()
        elif stop:
            handle.stop()

    def cancel(self) -> None:
        """The client is gone; from any thread, any number of times."""
        with self._lock:
            self._wants_cancel = True
            handle = self._handle
        if handle is not None:
            handle.cancel()

    def _stop(self) -> None:
        with self._lock:
            if self._wants_stop:
                return
            self._wants_stop = True
            handle = self._handle
        if handle is not None:
            handle.stop()

    def _log_failure(self, error: ApiError) -> None:
        reason = error.__cause__ or error.message
        logger.log(
            logging.ERROR if error.status >= 500 else logging.INFO,
            "%s failed with %s: %s", self._request_id, error.code or error.type, reason,
        )  # fmt: skip

    def on_accept(self, prompt_tokens: int | None) -> None:
        """See :class:`server.wire.Sink`; so are the methods below."""
        self.accepted = prompt_tokens

    def on_echo(self, frames: list[Echo]) -> None: ...

    def on_data(self, frames: list[Data]) -> None: ...

    def on_tool(self, frames: list[Tool]) -> None: ...

    def on_done(self, done: Done) -> None: ...

    def on_cancelled(self) -> None: ...

    def on_failure(self, error: ApiError) -> None: ...


class Gathered(EngineRun):
    """A generation whose answer is sent as a whole; for one that a worker thread waits for see
    :class:`Awaited`.

    With ``scored`` the numbers of every generated token are kept, with ``echo`` those of the prompt's too.
    """

    def __init__(
        self,
        request_id: str,
        make_pipeline: Callable[[bytes], Pipeline],
        *,
        scored: bool = False,
        echo: bool = False,
    ) -> None:
        """``make_pipeline(pending)``: a new pipeline that starts with the bytes ``pending``, see Pipeline."""
        super().__init__(request_id)
        self._make_pipeline = make_pipeline
        self._pipeline: Pipeline | None = None
        self._error: ApiError | None = None
        self._pieces: list[Piece] = []
        self._scored = scored
        self._echoes_known = 0
        self.echo: EchoRecords | None = EchoRecords() if echo else None
        self.records = Records()
        self.pending = b""
        """Bytes the pipeline began with: the unfinished character at the end of an echoed prompt."""
        self.done: Done | None = None
        """The frame that ended the generation; None before that, and for one that failed or was cancelled."""

    @property
    def pipeline(self) -> Pipeline:
        """The finished pipeline; after the end."""
        assert self._pipeline is not None
        return self._pipeline

    def pieces(self) -> Sequence[Piece]:
        """Everything the pipeline gave out; after the end."""
        return self._pieces

    def on_echo(self, frames: list[Echo]) -> None:
        if self.echo is not None:
            self.echo.extend(frames)

    def on_data(self, frames: list[Data]) -> None:
        try:
            pipeline = self._pipeline or self._begin()
            if self._scored:
                self.records.extend(frames)
            self._pieces += pipeline.feed(b"".join([frame.payload for frame in frames]))
            if pipeline.stopped:
                self._stop()
        except Exception:
            self._give_up()

    def on_done(self, done: Done) -> None:
        try:
            pipeline = self._pipeline or self._begin()
            if self.echo is not None and len(self.echo) != self._echoes_known:
                pipeline = self._again()
            self._pieces += pipeline.finish(length_limited=bool(done.length_limited))
            self.done = done
        except Exception:
            self._give_up()

    def on_failure(self, error: ApiError) -> None:
        self._log_failure(error)
        self._error = error

    def _give_up(self) -> None:
        """A fault of our own: half an answer must not pass for a whole one."""
        logger.exception("%s could not be read", self._request_id)
        self._error = errors.engine_error()
        self.cancel()

    def _begin(self) -> Pipeline:
        if self.echo is not None:
            self._echoes_known = len(self.echo)
            self.pending = self.echo.pending()
        self._pipeline = self._make_pipeline(self.pending)
        return self._pipeline

    def _again(self) -> Pipeline:
        """Prompt read-outs came after the first generated piece: decode again behind the whole prompt."""
        self._pieces.clear()
        pipeline = self._begin()
        for payload in self.records.payloads():
            self._pieces += pipeline.feed(payload)
        return pipeline


class Awaited(Gathered):
    """A generation that a worker thread waits for, because its answer is dear to write."""

    def __init__(
        self,
        request_id: str,
        make_pipeline: Callable[[bytes], Pipeline],
        *,
        scored: bool = False,
        echo: bool = False,
    ) -> None:
        super().__init__(request_id, make_pipeline, scored=scored, echo=echo)
        self._over = threading.Event()

    def wait(self) -> Done:
        """Block until the end. Raises the ApiError of a failure, or ClientGone when the client left."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        if self.done is None:
            raise ClientGone
        return self.done

    def on_done(self, done: Done) -> None:
        super().on_done(done)
        self._over.set()

    def on_cancelled(self) -> None:
        self._over.set()

    def on_failure(self, error: ApiError) -> None:
        super().on_failure(error)
        self._over.set()


class Parked(Gathered):
    """A generation whose whole answer is sent by the engine's reader thread: no worker waits for it.

    For answers that are cheap to write; those with log probabilities are not.
    """

    def __init__(
        self,
        exchange: Exchange,
        admission: Admission,
        make_pipeline: Callable[[bytes], Pipeline],
        answer: Callable[[Gathered, Done], None],
    ) -> None:
        """``answer(run, done)`` sends the answer of a generation that ended in order."""
        super().__init__(exchange.request_id, make_pipeline)
        self._exchange = exchange
        self._admission = admission
        self._answer = answer

    def launch(self, engine: EngineClient, submission: Submission) -> None:
        """Detach the exchange from its worker and submit."""
        launch(self, self._exchange, self._admission, engine, submission)

    def on_done(self, done: Done) -> None:
        self._admission.release()
        super().on_done(done)
        self._end()

    def on_cancelled(self) -> None:
        self._admission.release()
        self._end()

    def on_failure(self, error: ApiError) -> None:
        self._admission.release()
        super().on_failure(error)
        self._end()

    def _end(self) -> None:
        if self._error is None and self.done is not None:
            try:
                self._answer(self, self.done)
            except Exception:
                self._give_up()
        if self._error is not None:
            refuse(self._exchange, self._error)


def launch(
    run: EngineRun, exchange: Exchange, admission: Admission, engine: EngineClient, submission: Submission
) -> None:
    """Detach the exchange from its worker and submit; from here on the engine's reader thread answers."""
    exchange.detach()
    try:
        run.start(engine, submission)
    except Exception:
        logger.exception("%s could not be submitted", exchange.request_id)
        admission.release()
        exchange.refuse(errors.engine_error())
        return
    exchange.client.on_gone(run.cancel)


class StreamDialect(Protocol):
    """What the events of one kind of stream look like, as bytes."""

    def opening(self, prompt_tokens: int | None) -> bytes:
        """The first events, on acceptance."""

    def piece(self, piece: Piece) -> bytes:
        """The events of one piece of the pipeline; may be empty."""

    @property
    def content(self) -> EventFrame | None:
        """What is around the text in the event of a piece of content; None where there is more to it."""

    def keepalive(self) -> bytes:
        """One event that changes nothing."""

    def closing(self, usage: Usage, pipeline: Pipeline) -> bytes:
        """The last events; the pipeline is finished."""


class Streamed(EngineRun):
    """A generation whose answer is a stream, written by the engine's reader thread itself (architecture
    decision 9).

    The 200 is committed on acceptance; a failure before it is an ordinary error answer, one after it cuts
    the stream off.
    """

    def __init__(
        self,
        exchange: Exchange,
        admission: Admission,
        pipeline: Pipeline,
        dialect: StreamDialect,
        keepalive: KeepaliveTimer,
    ) -> None:
        super().__init__(exchange.request_id)
        self._exchange = exchange
        self._admission = admission
        self._pipeline = pipeline
        self._dialect = dialect
        self._timer = keepalive
        self._stream: ResponseStream | None = None
        self._held: list[bytes] = []  # events of a client that has fallen behind
        self._behind = False
        self.last_write = 0.0

    def launch(self, engine: EngineClient, submission: Submission) -> None:
        """Detach the exchange from its worker and submit."""
        launch(self, self._exchange, self._admission, engine, submission)

    def on_accept(self, prompt_tokens: int | None) -> None:
        super().on_accept(prompt_tokens)
        try:
            self._open(prompt_tokens)
        except ClientGone:
            self.cancel()
        except Exception:
            self._give_up()

    def _open(self, prompt_tokens: int | None) -> None:
        if prompt_tokens is not None:
            self._exchange.note(prompt_tokens=prompt_tokens)
        waited = str(wait_ms(self._admission))
        self._stream = self._exchange.open_stream([(http.X_COLIBRI_QUEUE_WAIT_MS_HEADER, waited)])
        with self._lock:
            opening = self._dialect.opening(prompt_tokens)
            if opening:
                self._send(opening)
            else:
                self._commit(self._stream)
        self._timer.add(self)

    def on_data(self, frames: list[Data]) -> None:
        feed, event = self._pipeline.feed, self._dialect.piece
        try:
            if len(frames) > 1 and (events := self._all_at_once(frames)):
                self._send(events)
                return
            events = b"".join([event(piece) for frame in frames for piece in feed(frame.payload)])
            self._send(events)
            if self._pipeline.stopped:
                self._stop()
        except Exception:
            self._give_up()

    def _all_at_once(self, frames: list[Data]) -> bytes:
        """The events of a client that is behind, or an engine that is ahead: many plain pieces in one go.

        Empty when there is anything about them that the pipeline has to look at.
        """
        around = self._dialect.content
        payloads = [frame.payload for frame in frames if frame.payload]
        text = b"".join(payloads)
        if around is None or not text or not is_plain(text) or not self._pipeline.pass_by(text):
            return b""
        return around.fill_all(payloads)

    def on_done(self, done: Done) -> None:
        self._leave(completion_tokens=done.completion_tokens)
        if done.prompt_tokens is not None:
            self._exchange.note(prompt_tokens=done.prompt_tokens)
        stream = self._stream
        if stream is None:
            return
        event = self._dialect.piece
        try:
            pieces = self._pipeline.finish(length_limited=bool(done.length_limited))
            last = [*map(event, pieces), self._dialect.closing(usage_of(done), self._pipeline)]
        except Exception:
            self._give_up()
            return
        with self._lock:
            self._stream = None
            stream.finish(b"".join([*self._held, *last]))
            self._held.clear()

    def on_cancelled(self) -> None:
        self._leave()
        with self._lock:
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.fail()

    def on_failure(self, error: ApiError) -> None:
        self._leave(reason=str(error.__cause__ or error.message))
        self._log_failure(error)
        with self._lock:
            stream, self._stream = self._stream, None
            if stream is None:
                refuse(self._exchange, error)
                return
            if self._held:
                self._write(stream, b"".join(self._held))
            stream.fail()

    def write_keepalive(self, silent_since: float) -> None:
        """See :class:`server.api.keepalive.Kept`. A client that has fallen behind has bytes to come
        anyway.
        """
        with self._lock:
            if self._stream is not None and not self._behind and self.last_write == silent_since:
                self._send(self._dialect.keepalive())

    def _give_up(self) -> None:
        """A fault of our own: the stream must not look complete, and one that never began is a failure."""
        logger.exception("%s could not be streamed", self._request_id)
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.fail()
        else:
            refuse(self._exchange, errors.engine_error())  # nothing where the client has left
        self.cancel()

    def _leave(self, **noted: object) -> None:
        """The engine is done with the request: the slot is free, no keepalive follows."""
        self._timer.remove(self)
        self._admission.release()
        self._exchange.note(**noted)

    def _send(self, events: bytes) -> None:
        if not events:
            return
        with self._lock:
            stream = self._stream
            if stream is None:
                return
            if self._behind:
                self._held.append(events)
                return
            self._write(stream, events)

    def _commit(self, stream: ResponseStream) -> None:
        """Send the head alone: the client shall see the acceptance now."""
        self.last_write = time.monotonic()
        try:
            stream.flush()
        except ClientGone:
            self._stream = None
            self.cancel()

    def _write(self, stream: ResponseStream, events: bytes) -> None:
        self.last_write = time.monotonic()
        try:
            if not stream.write(events):
                self._behind = True
                stream.on_writable(self._catch_up)
        except ClientGone:
            self._stream = None
            self.cancel()

    def _catch_up(self) -> None:
        """The client reads again, or has left: everything that waited goes out in one write."""
        with self._lock:
            self._behind = False
            if self._stream is not None and self._held:
                events = b"".join(self._held)
                self._held.clear()
                self._write(self._stream, events)
