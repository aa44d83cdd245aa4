"""What the wire contract asks of any engine, whatever its model, its log and its speed: one function a
promise.

A check starts engines, sends commands and judges the frames; `tests.engine.check` runs all of them against a
program.
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from generated import families, launch
from generated.errors import WireError
from tests.engine import engine_process
from tests.engine.engine_process import EngineProcess, submit

PROMPT = "one two three four"
ENDURING_PROMPT = "one two three " * 40
ENDURING = 300
"""A prompt of more than a hundred words and this many tokens keep an engine busy for a while, and fit a small
context.
"""
SMALL_CONTEXT = "64"
KINDS = {"ACCEPT": "A", "ECHO": "E", "DATA": "D", "TOOL": "T", "DONE": "F", "ERROR": "X"}
REQUEST_FRAMES = tuple(KINDS)


class Broken(AssertionError):
    """The engine broke the contract; the text says how."""


def expect(holds: object, how: str) -> None:
    if not holds:
        raise Broken(how)


def shown(*found: Any) -> str:
    """Frames as words: their kinds, and what an ERROR says."""
    return ", ".join(" ".join([frame.KIND, *getattr(frame, "words", ())]) for frame in found)


def is_error(frame: Any, code: WireError) -> bool:
    return frame.KIND == "ERROR" and tuple(frame.words[:1]) == (code,)


class Bench:
    """Starts engines for one check; `can` holds the capabilities that are promised."""

    def __init__(self, command: list[str], model: Path, can: frozenset[str]) -> None:
        self.can = can
        self.slots = 4 if families.SLOTS in can else 1
        self._command = command
        self._model = model
        self._running: list[EngineProcess] = []

    def start(self, **settings: str) -> EngineProcess:
        variables = {"PYTHONPATH": str(engine_process.ROOT), launch.KV_SLOTS: str(self.slots), **settings}
        engine = EngineProcess(self._command, self._model, variables)
        self._running.append(engine)
        return engine.__enter__()

    def life(self, engine: EngineProcess, request: int, refused: WireError | None = None) -> list[Any]:
        """Waits for the end of a request and judges the order of its frames. ``refused``: the code it must be
        refused with. Returns its frames.
        """
        engine.wait_ends([request])
        found = engine.of(request)
        got = shown(*(found if len(found) < 8 else [*found[:6], found[-1]]))
        if refused is not None:
            fine = len(found) == 1 and is_error(found[0], refused)
            expect(fine, f"request {request}: expected ERROR {refused}, got {got}")
            return found
        accepted = ("A", "ACCEPT, ") if families.ACCEPT in self.can else ("A?", "")
        order = "".join(KINDS[frame.KIND] for frame in found)
        expect(
            re.fullmatch(f"{accepted[0]}[EDT]*F", order),
            f"request {request}: expected {accepted[1]}DATA, DONE, got {got}",
        )
        return found

    def plain(self, engine: EngineProcess, request: int, max_tokens: int = 8, **fields: Any) -> list[Any]:
        """A request that must be answered, to its end."""
        engine.submit(request, fields.pop("prompt", PROMPT), max_tokens, **fields)
        return self.life(engine, request)

    def close(self) -> str:
        """Ends every engine that still runs; the last words of the last one's log."""
        said = self._running[-1].log[-1000:] if self._running else ""
        for engine in self._running:
            engine.__exit__()
        return said


def start_and_end(bench: Bench) -> None:
    """READY and STAT, then nothing is needed: the end of input is exit 0"""
    engine = bench.start()
    code = engine.finish()
    expect(code == 0, f"exit code {code} after the end of input, not 0")
    expect(not [f for f in engine.received if f.KIND in REQUEST_FRAMES], "frames of a request nobody made")


def plain_request(bench: Bench) -> None:
    """ACCEPT, DATA, DONE with sensible numbers, and no numbers nobody asked for"""
    engine = bench.start()
    found = bench.plain(engine, 1)
    done = found[-1]
    expect(done.completion_tokens <= 8, f"{done.completion_tokens} tokens, 8 were allowed")
    for frame in found:
        if frame.KIND == "ACCEPT":
            expect(frame.prompt_tokens >= 1, "ACCEPT counts no prompt token")
            known = done.prompt_tokens in (None, frame.prompt_tokens)
            expect(known, f"ACCEPT counts {frame.prompt_tokens} prompt tokens, DONE {done.prompt_tokens}")
        expect(frame.KIND != "ECHO", "ECHO without logprobs")
        expect(frame.KIND != "DATA" or frame.logprob is None, "DATA with numbers without logprobs")


def max_tokens(bench: Bench) -> None:
    """One token is one token, and DONE says that the length ended it"""
    engine = bench.start()
    done = bench.plain(engine, 1, 1)[-1]
    expect(done.completion_tokens <= 1, f"{done.completion_tokens} tokens, 1 was allowed")
    if done.completion_tokens == 0:
        expect(done.length_limited != 1, "no token, and yet the length ended it")


def any_split(bench: Bench) -> None:
    """Commands that arrive byte by byte give the same answer"""
    whole, pieces = bench.start(), bench.start()
    data = submit(1, PROMPT, 6)
    whole.send(data)
    for index in range(len(data)):
        pieces.send(data[index : index + 1])
    for engine in (whole, pieces):
        bench.life(engine, 1)
    expect(whole.text(1) == pieces.text(1), f"{pieces.text(1)!r} instead of {whole.text(1)!r}")


def one_after_the_other(bench: Bench) -> None:
    """Greedy answers repeat themselves, and an ended request's id is free"""
    engine = bench.start()
    bench.plain(engine, 1)
    bench.plain(engine, 2)
    expect(engine.text(1) == engine.text(2), f"{engine.text(2)!r} after {engine.text(1)!r}")
    before = len(engine.received)
    engine.submit(1, PROMPT, 8)
    engine.wait_for(lambda frame: frame.KIND in ("DONE", "ERROR") and frame.id == 1)
    again = [frame for frame in engine.received[before:] if getattr(frame, "id", None) == 1]
    expect(again[-1].KIND == "DONE", f"the second request 1: {shown(*again[-1:])}")


def side_by_side(bench: Bench) -> None:
    """Requests in all slots at once, each with its own frames"""
    engine = bench.start()
    engine.send(b"".join(submit(slot + 1, PROMPT, 8, slot=slot) for slot in range(bench.slots)))
    for slot in range(bench.slots):
        bench.life(engine, slot + 1)
        expect(engine.text(slot + 1) == engine.text(1), "the same greedy request has another answer")


REFUSED = (
    (b"HELLO\n", 0),
    (b"CANCEL\n", 0),
    (b"CANCEL 0\n", 0),
    (b"STOP seven\n", 0),
    (b"SUBMIT 0 0 5 4 0 1\nHello\n", 0),
    (b"SUBMIT 901 0 5 4 2.5 1\nHello\n", 901),
    (b"SUBMIT 902 0 5 4 0 0\nHello\n", 902),
    (b"SUBMIT 903 0 5 4 nan 1\nHello\n", 903),
    (b"SUBMIT 904 0 5 0 0 1\nHello\n", 904),
    (b"SUBMIT 905 9999 5 4 0 1\nHello\n", 905),
)
REFUSED_KEYS = (
    (b"SUBMIT 907 0 5 4 0 1 0 logprobs=33\nHello\n", 907),
    (b"SUBMIT 908 0 5 4 0 1 0 ids=1 ids=1\nHello\n", 908),
    (b"SUBMIT 909 0 5 4 0 1 0 wish=1\nHello\n", 909),
)


def refuses(bench: Bench, refused: tuple[tuple[bytes, int], ...]) -> None:
    engine = bench.start()
    for after, (data, request) in enumerate(refused, 1):
        before = len(engine.received)
        engine.send(data + submit(after, "x", 1))
        bench.life(engine, after)
        errors = [frame for frame in engine.received[before:] if frame.KIND == "ERROR"]
        fine = len(errors) == 1 and errors[0].id == request and is_error(errors[0], WireError.BAD_REQUEST)
        got = " and ".join(f"ERROR {error.id} {' '.join(error.words)}" for error in errors) or "nothing"
        expect(fine, f"{data!r} was answered by {got}, not by ERROR {request} BAD_REQUEST")


def refused_commands(bench: Bench) -> None:
    """A bad command is refused once with its id, its payload is skipped"""
    refuses(bench, REFUSED)


def refused_keys(bench: Bench) -> None:
    """Extension keys that are unknown, double or out of range are refused"""
    refuses(bench, REFUSED_KEYS)


def payload_is_no_command(bench: Bench) -> None:
    """Lines of a payload are never run as commands, whether it is taken or not"""
    engine = bench.start()
    payload = b"\nCANCEL 77\nSTOP 77\n"
    engine.send(b"SUBMIT 901 0 %d 4 9 1\n%s\n" % (len(payload), payload))
    bench.life(engine, 901, refused=WireError.BAD_REQUEST)
    bench.plain(engine, 1, prompt="x" + payload.decode())
    bench.plain(engine, 2)
    expect(engine.of(77) == [], "a line of a payload was answered")


def empty_prompt(bench: Bench) -> None:
    """A prompt without a token is EMPTY_PROMPT, and the slot stays free"""
    engine = bench.start()
    engine.submit(1, "", 4)
    bench.life(engine, 1, refused=WireError.EMPTY_PROMPT)
    bench.plain(engine, 2)


def context_exceeded(bench: Bench) -> None:
    """A prompt beyond CTX is CONTEXT_EXCEEDED before any ACCEPT"""
    engine = bench.start(**{launch.CTX: SMALL_CONTEXT})
    engine.submit(1, "one two three " * 200, 4)
    bench.life(engine, 1, refused=WireError.CONTEXT_EXCEEDED)
    bench.plain(engine, 2, 2)


def unknown_ids(bench: Bench) -> None:
    """CANCEL of a request that is not there is NOT_FOUND; so is STOP where it is served"""
    engine = bench.start()
    names = [b"CANCEL", *([b"STOP"] if families.STOP in bench.can else [])]
    for request, name in enumerate(names, 70):
        engine.send(b"%s %d\n" % (name, request))
        bench.life(engine, request, refused=WireError.NOT_FOUND)
    bench.plain(engine, 1)


def ended_before(engine: EngineProcess, request: int, frame: Any) -> bool:
    """Whether a request had its DONE when ``frame`` came: it raced with what was sent meanwhile."""
    earlier = engine.received[: engine.received.index(frame)]
    return any(other.KIND == "DONE" and other.id == request for other in earlier)


def taken_slot_and_id(bench: Bench) -> None:
    """A taken slot is SLOT_BUSY, a running id DUPLICATE_ID, and the running request goes on"""
    engine = bench.start()
    engine.send(submit(1, ENDURING_PROMPT, ENDURING) + submit(2, "x", 2) + submit(1, "x", 2))
    engine.wait_ends([1, 2])
    engine.finish()
    answer = engine.of(2)[0]
    raced = ended_before(engine, 1, answer)
    expect(
        raced or is_error(answer, WireError.SLOT_BUSY),
        f"the slot is taken, yet request 2 got {shown(answer)}",
    )
    first, *others = [frame for frame in engine.of(1) if frame.KIND in ("DONE", "ERROR")]
    two_lives = first.KIND == "DONE" and [frame.KIND for frame in others] == ["DONE"]
    refused = is_error(first, WireError.DUPLICATE_ID) and [frame.KIND for frame in others] == ["DONE"]
    expect(two_lives or refused, f"request 1, sent twice, ended with {shown(first, *others)}")


def begin(engine: EngineProcess, request: int) -> None:
    """Submits a long request and waits until its text comes."""
    engine.submit(request, ENDURING_PROMPT, ENDURING)
    engine.wait_for(lambda frame: frame.KIND in ("DATA", "DONE", "ERROR") and frame.id == request)


def ended_by(engine: EngineProcess, request: int, after: int, bench: Bench) -> Any:
    """The end of a request that was to be ended; the same slot then serves the request ``after``."""
    engine.wait_ends([request])
    end = next(frame for frame in engine.of(request) if frame.KIND in ("DONE", "ERROR"))
    bench.plain(engine, after, 2)
    late = [f for f in engine.of(request)[engine.of(request).index(end) + 1 :] if f.KIND != "ERROR"]
    expect(not late, f"after the end of the request came {shown(*late[:3])}")
    return end


def ended_early(bench: Bench, command: bytes) -> Iterator[tuple[EngineProcess, int, Any]]:
    """Long requests that ``command`` is to end: one whose text has begun to come, and one that has just been
    submitted. Yields engine, request and its end.
    """
    engine = bench.start()
    begin(engine, 1)
    engine.send(b"%s 1\n" % command)
    yield engine, 1, ended_by(engine, 1, 2, bench)
    engine.send(submit(3, ENDURING_PROMPT, ENDURING) + b"%s 3\n" % command)
    yield engine, 3, ended_by(engine, 3, 4, bench)


def cancel(bench: Bench) -> None:
    """CANCEL ends a request with CANCELLED, or with the DONE it raced with, and frees the slot"""
    for _, _, end in ended_early(bench, b"CANCEL"):
        fine = end.KIND == "DONE" or is_error(end, WireError.CANCELLED)
        expect(fine, f"CANCEL was answered by {shown(end)}")


def stop(bench: Bench) -> None:
    """STOP ends a request with DONE and frees the slot"""
    for engine, request, end in ended_early(bench, b"STOP"):
        expect(end.KIND == "DONE", f"STOP was answered by {shown(end)}")
        text = any(frame.KIND == "DATA" and frame.payload for frame in engine.of(request))
        expect(end.completion_tokens > 0 or not text, "DONE counts no token, and yet there was text")


def orderly_end(bench: Bench) -> None:
    """At the end of input what runs is finished, then exit 0"""
    engine = bench.start()
    engine.submit(1, ENDURING_PROMPT, 20)
    code = engine.finish()
    bench.life(engine, 1)
    expect(code == 0, f"exit code {code}, not 0")


def broken_terminator(bench: Bench) -> None:
    """A payload without its LF is BAD_FRAME, then the engine exits and runs nothing of what follows"""
    engine = bench.start()
    engine.send(b"SUBMIT 1 0 5 4 0 1\nHelloX\nSUBMIT 2 0 5 4 0 1\nHello\n")
    engine.drain()
    bench.life(engine, 1, refused=WireError.BAD_FRAME)
    expect(engine.of(2) == [], "what follows was run")


def reader_gone(bench: Bench) -> None:
    """When its reader is gone, SIGPIPE ends the engine at its next write"""
    engine = bench.start()
    assert engine.process.stdout is not None
    engine.process.stdout.close()
    try:
        for request in range(1, 200):
            engine.submit(request, PROMPT, 4)
            if engine.process.poll() is not None:
                break
            time.sleep(0.01)
    except BrokenPipeError:
        pass  # it is gone
    code = engine.process.wait(engine_process.DEADLINE_SECONDS)
    expect(code == -signal.SIGPIPE, f"it ended with {code}, not by SIGPIPE ({-signal.SIGPIPE})")


def scores(bench: Bench) -> None:
    """One ECHO per prompt token, the first without a number; one DATA with its numbers per token"""
    engine = bench.start()
    found = bench.plain(engine, 1, 6, logprobs=3)
    echoes = [frame for frame in found if frame.KIND == "ECHO"]
    count = found[-1].prompt_tokens
    positions = sorted(frame.position for frame in echoes)
    expect(positions == list(range(len(positions))), f"ECHO positions {positions[:8]} are not 0, 1, 2 …")
    expect(count in (None, len(echoes)), f"{len(echoes)} ECHO frames for {count} prompt tokens")
    for frame in echoes:
        if frame.position == 0:
            expect(math.isnan(frame.logprob) and not frame.tokens, "ECHO 0 has a number: nothing predicts it")
        else:
            expect(frame.logprob <= 1e-6, f"ECHO {frame.position} has the log probability {frame.logprob}")
    pieces = [frame for frame in found if frame.KIND == "DATA"]
    expect(len(pieces) == found[-1].completion_tokens, "the number of DATA frames is not that of the tokens")
    for frame in pieces:
        expect(frame.logprob is not None, "DATA without numbers")
        expect(frame.logprob <= 1e-6 and len(frame.tokens) <= 3, f"DATA with {frame.logprob}, {frame.tokens}")


def scores_only(bench: Bench) -> None:
    """max_tokens 0 with logprobs scores the prompt and writes nothing"""
    engine = bench.start()
    found = bench.plain(engine, 1, 0, logprobs=1)
    expect({frame.KIND for frame in found} <= {"ACCEPT", "ECHO", "DONE"}, "DATA, and 0 tokens were wanted")
    expect(found[-1].completion_tokens == 0, f"{found[-1].completion_tokens} tokens, 0 were wanted")


def token_ids(bench: Bench) -> None:
    """Prompts of token ids; what is no list of ids of the vocabulary is BAD_REQUEST"""
    engine = bench.start()
    accept = bench.plain(engine, 1, 2, prompt="1 2 3", ids=1)[0]
    expect(accept.KIND != "ACCEPT" or accept.prompt_tokens == 3, "three ids are not three prompt tokens")
    for request, malformed in enumerate((b"a", b"1  2", b" 1", b"-1", b"1.0", b"99999999999999999999"), 2):
        engine.submit(request, malformed, 2, ids=1)
        bench.life(engine, request, refused=WireError.BAD_REQUEST)


def grammar(bench: Bench) -> None:
    """A grammar holds the answer; one that is none is BAD_REQUEST"""
    engine = bench.start()
    bench.plain(engine, 1, 16, extra=b'root ::= "yes" | "no"')
    expect(engine.text(1) in (b"yes", b"no"), f"{engine.text(1)!r} is not what the grammar allows")
    bench.plain(engine, 2, 32, extra=b'{"enum": ["yes", "no"]}')
    expect(engine.text(2) in (b'"yes"', b'"no"'), f"{engine.text(2)!r} is not what the schema allows")
    engine.submit(3, PROMPT, 4, extra=b"root ::= (")
    bench.life(engine, 3, refused=WireError.BAD_REQUEST)


def pin(bench: Bench) -> None:
    """A pinned prompt gives the same answer, also after another one"""
    engine = bench.start()
    bench.plain(engine, 1, pin=1)
    bench.plain(engine, 2, prompt="quite another")
    bench.plain(engine, 3)
    expect(engine.text(1) == engine.text(3), f"{engine.text(3)!r} after {engine.text(1)!r}")


class Check(NamedTuple):
    """One promise; the docstring of ``run`` says it in a line."""

    run: Callable[[Bench], None]
    needs: str | None = None
    """The capability without which it is not asked for."""

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ")


CHECKS = (
    Check(start_and_end),
    Check(plain_request),
    Check(max_tokens),
    Check(any_split),
    Check(one_after_the_other),
    Check(side_by_side, families.SLOTS),
    Check(refused_commands),
    Check(payload_is_no_command),
    Check(empty_prompt),
    Check(context_exceeded),
    Check(unknown_ids),
    Check(taken_slot_and_id),
    Check(cancel),
    Check(stop, families.STOP),
    Check(orderly_end),
    Check(broken_terminator),
    Check(reader_gone),
    Check(refused_keys, families.LOGPROBS),
    Check(scores, families.LOGPROBS),
    Check(scores_only, families.LOGPROBS),
    Check(token_ids, families.TOKEN_IDS),
    Check(grammar, families.GRAMMAR),
    Check(pin, families.PIN),
)


class Outcome(NamedTuple):
    """What came of one check; no ``fault`` and no ``missing`` is a promise that held."""

    check: Check
    missing: str | None = None
    fault: str | None = None
    log: str = ""


def outcomes(
    command: list[str], model: Path, can: frozenset[str], checks: Sequence[Check] = CHECKS
) -> Iterator[Outcome]:
    """Every check in turn, each with engines of its own."""
    for check in checks:
        if check.needs is not None and check.needs not in can:
            yield Outcome(check, missing=check.needs)
            continue
        bench = Bench(command, model, can)
        with closing(bench) as said:
            try:
                check.run(bench)
                fault = None
            except Broken as broken:
                fault = str(broken)
            except (AssertionError, OSError, TimeoutError) as broken:
                fault = str(broken).partition("; ")[0] or type(broken).__name__
        yield Outcome(check, fault=fault, log="" if fault is None else said[0])


@contextmanager
def closing(bench: Bench) -> Iterator[list[str]]:
    """Ends the engines of a check; the list then holds the end of the log."""
    said: list[str] = []
    try:
        yield said
    finally:
        said.append(bench.close())
