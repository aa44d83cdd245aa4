"""Commands in, frames out: the engine side of a request's life (wire.md sections 2 to 5), for any `Model`.

No pipe, no thread, no numbers of a network in here: bytes come in through `receive`, work is done one `step`
at a time, both return the frames to write. Guarantees: ACCEPT or exactly one ERROR answers each SUBMIT;
ACCEPT is returned before any prefill of its request; STOP and CANCEL take effect before the next step; one
step is at most one prefill chunk of the oldest prompt and one token of every request that is generating.
"""

from __future__ import annotations

import math
import sys
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter

from engine import host
from engine.model import Chooser, GrammarFailure, InvalidGrammar, Model, Row, Work
from generated import commands, frames
from generated.errors import WireError
from generated.wire import ProtocolFault

_GRAMMAR_FAILED = ("grammar", "failed")
"""Words of an ERROR of the engine's own: no code of the wire says it."""

_LONGEST_LOG_LINE = 300


@dataclass
class _Request:
    """One request in flight."""

    id: int
    slot: int
    prompt: list[int]
    max_tokens: int
    chooser: Chooser
    logprobs: int
    pin: bool
    accepted_at: float
    work_before: Work
    reused: int = 0
    """Prompt tokens found in the slot's cache."""
    prefilled: int = 0
    """Prompt tokens computed or reused so far."""
    prefill_began_at: float | None = None
    produced: int = 0
    """Tokens sampled so far, the end token included."""
    last_token: int = field(default=-1)


class Refused(Exception):
    """A command that is answered by an ERROR with these words."""

    def __init__(self, *words: str) -> None:
        super().__init__(" ".join(words))
        self.words = words


class EngineLoop:
    """The requests in flight of one engine process."""

    def __init__(self, model: Model, log: Callable[[str], None] | None = None) -> None:
        """`log` takes one line for the engine's log; stderr by default."""
        self._model = model
        self._write_log = log or (lambda line: print(line, file=sys.stderr, flush=True))
        self._reader = commands.CommandReader()
        self._requests: dict[int, _Request] = {}
        self._slots: dict[int, _Request] = {}
        self._prefilling: deque[_Request] = deque()
        self._generating: list[_Request] = []
        """By slot."""
        self._image_for: int | None = None
        self.broken = False
        """The command stream lost its framing; the engine must end."""

    def _log(self, line: str) -> None:
        """Words of a client, a grammar's for example, may stand in `line`: it stays one line, and short."""
        shown = "".join(char if char.isprintable() else " " for char in line[:_LONGEST_LOG_LINE])
        self._write_log(shown)

    @property
    def busy(self) -> bool:
        """There is something to compute."""
        return bool(self._requests)

    def greeting(self) -> bytes:
        """READY and the facts of the machine."""
        return frames.write_ready(0, 0.0, 0.0, host.resident_gb(), 0, 0) + self._machine_frames()

    def receive(self, data: bytes) -> bytes:
        """Act on the commands completed by `data`; returns what to answer at once."""
        answers = []
        for command in self._reader.feed(data):
            try:
                answers.append(self._handle(command))
            except Refused as refused:
                answers.append(frames.write_error(command.id, *refused.words))
            if self.broken:
                break
        return b"".join(answers)

    def end_of_input(self) -> None:
        """No more commands will come; requests in flight go on."""
        fault = self._reader.eof()
        if fault is not None:
            self._log(f"input ended inside a command: {fault}")

    def step(self) -> bytes:
        """One prefill chunk of the oldest prompt, then one token of every generating request; returns their
        frames.
        """
        output: list[bytes] = []
        generating = self._generating.copy()
        if self._prefilling:
            self._prefill_chunk(self._prefilling[0], output)
        if generating:
            rows = self._model.decode(
                [request.slot for request in generating], [request.last_token for request in generating]
            )
            for request, row in zip(generating, rows, strict=True):
                self._take_token(request, row, output)
        return b"".join(output)

    def _handle(self, command: object) -> bytes:
        if isinstance(command, commands.Submit):
            return self._submit(command)
        if isinstance(command, commands.Stop):
            return self._finish(self._in_flight(command.id), length_limited=False)
        if isinstance(command, commands.Cancel):
            self._remove(self._in_flight(command.id))
            raise Refused(WireError.CANCELLED)
        if isinstance(command, commands.Image):
            self._image_for = command.id  # refused with the SUBMIT it belongs to, so that there is one answer
            return b""
        if isinstance(command, commands.Refusal):
            raise Refused(command.code)
        if isinstance(command, ProtocolFault):
            self.broken = True
            self._log(f"command stream broken: {command}")
            raise Refused(command.wire_code)
        raise TypeError(f"unexpected command {command!r}")

    def _in_flight(self, request_id: int) -> _Request:
        request = self._requests.get(request_id)
        if request is None:
            raise Refused(WireError.NOT_FOUND)
        return request

    def _submit(self, command: commands.Submit) -> bytes:
        """Check a SUBMIT in the order: request id, slot, prompt, context, grammar; then take it in."""
        image_for, self._image_for = self._image_for, None
        if command.id in self._requests:
            raise Refused(WireError.DUPLICATE_ID)
        if image_for == command.id or command.slot >= self._model.slots:
            raise Refused(WireError.BAD_REQUEST)
        if command.slot in self._slots:
            raise Refused(WireError.SLOT_BUSY)
        limit = self._model.context - (1 if command.max_tokens else 0)
        prompt = self._prompt_tokens(command, limit)
        if not prompt:
            raise Refused(WireError.EMPTY_PROMPT)
        if len(prompt) > limit:
            raise Refused(WireError.CONTEXT_EXCEEDED, str(len(prompt)), str(limit))
        try:
            chooser = self._model.chooser(
                command.id, prompt, command.temperature, command.top_p, command.extra
            )
        except InvalidGrammar as error:
            self._log(f"request {command.id}: invalid grammar: {error}")
            raise Refused(WireError.BAD_REQUEST) from None
        request = _Request(
            id=command.id,
            slot=command.slot,
            prompt=prompt,
            max_tokens=command.max_tokens,
            chooser=chooser,
            logprobs=command.logprobs or 0,
            pin=bool(command.pin),
            accepted_at=perf_counter(),
            work_before=self._model.work,
        )
        self._requests[request.id] = self._slots[request.slot] = request
        self._prefilling.append(request)
        return frames.write_accept(request.id, len(prompt))

    def _prompt_tokens(self, command: commands.Submit, limit: int) -> list[int]:
        if command.ids:
            return self._token_ids(command.prompt)
        longest = self._model.longest_piece
        if longest is not None and len(command.prompt) > limit * longest:
            # Certain without tokenizing, which for the largest prompts would hold up everyone else for
            # seconds.
            raise Refused(WireError.CONTEXT_EXCEEDED, str(limit + 1), str(limit))
        try:
            return self._model.encode(command.prompt.decode("utf-8"))
        except UnicodeDecodeError:
            raise Refused(WireError.BAD_REQUEST) from None

    def _token_ids(self, text: bytes) -> list[int]:
        """Decimal token ids separated by single spaces, each within the vocabulary."""
        words = text.split(b" ") if text else []
        bound = self._model.vocabulary
        if not all(map(bytes.isdigit, words)):
            raise Refused(WireError.BAD_REQUEST)
        digits = [word.lstrip(b"0") or b"0" for word in words]
        if any(len(word) > len(str(bound)) for word in digits):
            raise Refused(WireError.BAD_REQUEST)
        tokens = [int(word) for word in digits]
        if any(token >= bound for token in tokens):
            raise Refused(WireError.BAD_REQUEST)
        return tokens

    def _prefill_chunk(self, request: _Request, output: list[bytes]) -> None:
        if request.prefill_began_at is None:
            request.prefill_began_at = perf_counter()
            request.reused = self._model.begin(request.slot, request.prompt, reuse=not request.logprobs)
            request.prefilled = request.reused
            self._log(
                f"request {request.id}: slot {request.slot} prefix {request.reused}/{len(request.prompt)}"
            )
        first = request.prefilled
        chunk = request.prompt[first : first + self._model.prefill_chunk]
        rows = self._model.prefill(request.slot, chunk, every_position=bool(request.logprobs))
        request.prefilled += len(chunk)
        if request.logprobs:
            self._echo(request, first, rows, output)
        if request.prefilled < len(request.prompt):
            return
        self._prefilling.remove(request)
        if request.pin:
            self._model.pin(request.slot)
        if request.max_tokens == 0:
            output.append(self._finish(request, length_limited=True))
            return
        insort(self._generating, request, key=lambda generating: generating.slot)
        self._take_token(request, rows[-1], output)

    def _echo(self, request: _Request, first: int, rows: Iterable[Row], output: list[bytes]) -> None:
        """ECHO of position 0 and of every prompt position that the rows from `first` on predict."""
        if first == 0:
            output.append(
                frames.write_echo(request.id, self._model.piece(request.prompt[0]), 0, math.nan, (), ())
            )
        for position, row in enumerate(rows, start=first + 1):
            if position == len(request.prompt):
                break
            token = request.prompt[position]
            logprob, tokens, values = self._model.numbers(row, token, request.logprobs)
            piece = self._model.piece(token)
            output.append(frames.write_echo(request.id, piece, position, logprob, tokens, values))

    def _take_token(self, request: _Request, row: Row, output: list[bytes]) -> None:
        """Sample from a row, send the token, and end the request where it ends."""
        try:
            token = request.chooser.choose(row)
        except GrammarFailure as failure:
            self._log(f"request {request.id}: grammar failed: {failure}")
            self._remove(request)
            output.append(frames.write_error(request.id, *_GRAMMAR_FAILED))
            return
        request.produced += 1
        request.last_token = token
        ended = token in self._model.end_tokens
        piece = b"" if ended else self._model.piece(token)
        if request.logprobs:
            logprob, tokens, values = self._model.numbers(row, token, request.logprobs)
            output.append(frames.write_data(request.id, piece, logprob, tokens, values))
        elif not ended:
            output.append(frames.write_data(request.id, piece))
        full = len(request.prompt) + request.produced >= self._model.context
        if ended or request.chooser.complete:
            output.append(self._finish(request, length_limited=False))
        elif full or request.produced >= request.max_tokens:
            output.append(self._finish(request, length_limited=True))

    def _remove(self, request: _Request) -> None:
        del self._requests[request.id], self._slots[request.slot]
        if request in self._prefilling:
            self._prefilling.remove(request)
        if request in self._generating:
            self._generating.remove(request)

    def _finish(self, request: _Request, *, length_limited: bool) -> bytes:
        """End a request in order: the turn's telemetry, then DONE."""
        self._remove(request)
        now = perf_counter()
        wall = now - request.accepted_at
        began = now if request.prefill_began_at is None else request.prefill_began_at
        work, before = self._model.work, request.work_before
        profile = frames.write_prof(
            wall,
            request.prefilled - request.reused,
            request.produced,
            0.0,
            began - request.accepted_at,
            work.matmul - before.matmul,
            work.attention - before.attention,
            work.head - before.head,
            work.forwards - before.forwards,
        )
        done = frames.write_done(
            request.id,
            request.produced,
            request.produced / wall if wall > 0 else 0.0,
            100.0 * request.reused / len(request.prompt),
            host.resident_gb(),
            len(request.prompt),
            int(length_limited),
        )
        return self._machine_frames() + profile + done

    @staticmethod
    def _machine_frames() -> bytes:
        """HWINFO, and TIERS: a dense model has no experts to place, so every tier is empty."""
        memory = host.memory()
        names = f"{host.processor_name()}|".split()
        facts = (host.cores(), memory.total_gb, memory.available_gb, 0, 0.0)
        hardware = frames.write_hwinfo(*facts, *names)
        return hardware + frames.write_tiers(0, 0, 0, 0.0, 0.0)
