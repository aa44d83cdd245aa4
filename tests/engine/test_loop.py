"""The engine loop step by step, on the reference model: what happens before which step, and never later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.loop import EngineLoop
from engine.reference.model import PREFILL_CHUNK, ReferenceModel
from generated import frames
from generated.states import REQUEST, REQUEST_INITIAL, REQUEST_TERMINAL, RequestState
from tests.engine.checkpoints import RECIPES, write_checkpoint
from tests.engine.engine_process import submit

LONG_PROMPT = b"!" * (3 * PREFILL_CHUNK + 10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ReferenceModel:
    recipe = RECIPES["glm"]
    endless = replace(recipe, config={**recipe.config, "eos_token_id": []})
    directory: Path = write_checkpoint(tmp_path_factory.mktemp("glm"), endless)
    return ReferenceModel(directory, slots=3, context=None, seed=1)


class Session:
    """A loop whose output is read by the generated reader."""

    def __init__(self, model: ReferenceModel) -> None:
        self.log: list[str] = []
        self.loop = EngineLoop(model, self.log.append)
        self._reader = frames.FrameReader()
        self.read(self.loop.greeting())

    def read(self, data: bytes) -> list[Any]:
        """Frames that carry an id."""
        return [frame for frame in self._reader.feed(data) if hasattr(frame, "id")]

    def send(self, data: bytes) -> list[Any]:
        """Frames answered at once."""
        return self.read(self.loop.receive(data))

    def step(self) -> list[Any]:
        """Frames of one step."""
        return self.read(self.loop.step())


@pytest.fixture
def session(model: ReferenceModel) -> Session:
    return Session(model)


def brief(found: list[Any]) -> list[tuple[Any, ...]]:
    """Kind, id and the words of an error."""
    return [(f.KIND, f.id, *f.words) if f.KIND == "ERROR" else (f.KIND, f.id) for f in found]


def test_accept_comes_before_any_work(session: Session, model: ReferenceModel) -> None:
    before = model.work.forwards
    assert brief(session.send(submit(1, LONG_PROMPT, 3))) == [("ACCEPT", 1)]
    assert model.work.forwards == before and session.loop.busy
    steps = [brief(session.step()) for _ in range(6)]
    assert steps[:3] == [[], [], []], "three full chunks say nothing"
    assert steps[3] == [("DATA", 1)]
    assert steps[4:] == [[("DATA", 1)], [("DATA", 1), ("DONE", 1)]]
    assert model.work.forwards == before + 6
    assert not session.loop.busy


@pytest.mark.parametrize(
    ("command", "answer"), [(b"CANCEL 1\n", [("ERROR", 1, "CANCELLED")]), (b"STOP 1\n", [("DONE", 1)])]
)
@pytest.mark.parametrize("steps", [0, 1, 2, 4, 6])
def test_stop_and_cancel_are_done_before_the_next_step(
    session: Session, model: ReferenceModel, steps: int, command: bytes, answer: list[tuple[Any, ...]]
) -> None:
    session.send(submit(1, LONG_PROMPT, 100))
    for _ in range(steps):
        session.step()
    before = model.work.forwards
    assert brief(session.send(command)) == answer
    assert model.work.forwards == before
    assert not session.loop.busy
    assert brief(session.send(command)) == [("ERROR", 1, "NOT_FOUND")]
    assert brief(session.send(submit(2, "x", 1))) == [("ACCEPT", 2)], "the slot is free at once"
    assert brief(session.step()) == [("DATA", 2), ("DONE", 2)]


def test_generation_goes_on_while_a_prompt_is_read(session: Session) -> None:
    session.send(submit(1, "x", 100))
    session.step()
    session.send(submit(2, LONG_PROMPT, 2, slot=2) + submit(3, LONG_PROMPT, 2, slot=1))
    seen = [brief(session.step()) for _ in range(8)]
    assert all(("DATA", 1) in step for step in seen), "one token each step"
    firsts = [
        min(index for index, step in enumerate(seen) if ("DATA", request) in step) for request in (2, 3)
    ]
    assert firsts == [3, 7], "prompts are read one after the other, chunk by chunk"


def test_checks_come_in_order(session: Session) -> None:
    session.send(submit(1, LONG_PROMPT, 5))
    refused: list[tuple[bytes, str]] = [
        (submit(1, "", 5, slot=2), "DUPLICATE_ID"),
        (submit(2, "", 5, slot=3), "BAD_REQUEST"),
        (submit(2, "", 5), "SLOT_BUSY"),
        (submit(2, "", 5, slot=1, extra=b"bad"), "EMPTY_PROMPT"),
        (submit(2, "!" * 600, 5, slot=1, extra=b"bad"), "CONTEXT_EXCEEDED"),
        (submit(2, "x", 5, slot=1, extra=b"bad"), "BAD_REQUEST"),
    ]
    for command, code in refused:
        (frame,) = session.send(command)
        assert (frame.KIND, frame.words[0]) == ("ERROR", code)
    assert brief(session.send(submit(2, "x", 5, slot=1))) == [("ACCEPT", 2)]


def test_a_hopelessly_long_prompt_is_refused_unread(session: Session, model: ReferenceModel) -> None:
    assert model.longest_piece == len(b"<|observation|>")
    tokenized: list[str] = []
    encode = model.encode
    model.encode = lambda text: tokenized.append(text) or encode(text)  # type: ignore[method-assign]
    (frame,) = session.send(submit(1, b"x" * (1 << 20), 5))
    del model.encode
    assert frame.words == ("CONTEXT_EXCEEDED", "512", "511")
    assert tokenized == []


def test_broken_framing_ends_the_loop(session: Session) -> None:
    assert brief(session.send(b"SUBMIT 5 0 2 1 0 1\nhiX\nSUBMIT 6 1 1 1 0 1\nx\n")) == [
        ("ERROR", 5, "BAD_FRAME")
    ]
    assert session.loop.broken
    assert any("terminator" in line for line in session.log)


def test_input_ending_inside_a_command_is_logged(session: Session) -> None:
    session.send(b"SUBMIT 5 0 20 1 0 1\nhi")
    session.loop.end_of_input()
    assert len(session.log) == 1 and "truncated" in session.log[0]


def test_a_log_probability_request_reads_its_whole_prompt(session: Session, model: ReferenceModel) -> None:
    for request, fields in ((1, {}), (2, {}), (3, {"logprobs": 1})):
        session.send(submit(request, LONG_PROMPT, 1, **fields))
        while session.loop.busy:
            session.step()
    length = len(LONG_PROMPT)
    assert [line.rsplit(" ", 1)[1] for line in session.log][1:] == [f"{length - 1}/{length}", f"0/{length}"]


def test_pin_goes_back_where_the_history_was_lost(session: Session, model: ReferenceModel) -> None:
    def run(request: int, prompt: bytes, **fields: int) -> bytes:
        session.send(submit(request, prompt, 4, **fields))
        text = b""
        while session.loop.busy:
            text += b"".join(frame.payload for frame in session.step() if frame.KIND == "DATA")
        return text

    pinned = b"The other" * 20
    first = run(1, pinned, pin=1)
    run(2, b"[gMASK]" * 150)
    longer = run(3, pinned + b"?", pin=0)
    run(4, b"12" * 100)
    assert run(5, pinned) == first
    assert run(6, pinned + b"?", slot=1) == longer
    length = len(model.encode(pinned.decode()))
    reuse = [line.rsplit(" ", 1)[1] for line in session.log]
    assert reuse[2] == f"{length}/{length + 1}"
    assert reuse[4:] == [f"{length - 1}/{length}", f"0/{length + 1}"]


@pytest.mark.parametrize("seed", range(40))
def test_any_commands_give_an_orderly_stream(session: Session, seed: int) -> None:
    """Random requests, stops, cancels and every listed malformation: each request's frames walk the
    spec's table.
    """
    random = Random(seed)
    state: dict[int, RequestState] = {}
    stray: list[tuple[Any, ...]] = []
    expected_stray = 0

    def follow(found: list[Any]) -> None:
        for frame in found:
            if frame.id not in state or state[frame.id] in REQUEST_TERMINAL:
                stray.append((frame.id, frame.KIND, *frame.words))
                continue
            state[frame.id] = REQUEST[state[frame.id]][frame.KIND]

    for request in range(1, 40):
        choice = random.random()
        if choice < 0.5:
            state[request] = REQUEST_INITIAL
            follow(session.send(random_submit(random, request)))
        elif choice < 0.8:
            target = random.randint(1, request)
            expected_stray += target not in state or state[target] in REQUEST_TERMINAL
            follow(session.send(random.choice((b"STOP %d\n", b"CANCEL %d\n")) % target))
        else:
            expected_stray += 1
            follow(session.send(random.choice(MALFORMED) % (10**18 + request)))
        for _ in range(random.randint(0, 4)):
            if session.loop.busy:
                follow(session.step())
    while session.loop.busy:
        follow(session.step())
    assert set(state.values()) <= {RequestState.FINISHED, RequestState.FAILED}
    assert len(stray) == expected_stray
    assert {word for _, _, word in stray} <= {"NOT_FOUND", "BAD_REQUEST"}


MALFORMED = (
    b"SUBMIT %d 0 5 0 0 1\nHello\n",
    b"SUBMIT %d 0 5 1 3 1\nHello\n",
    b"SUBMIT %d 0 16 1 0 1 0 wish=1\n\nCANCEL 1\nSTOP 1\n",
    b"SUBMIT %d 7 5 1 0 1\nHello\n",
    b"STOP %dx\n",
    b"HELLO %d\n",
    b"IMAGE %d 0 1 1\n\n",
)


def random_submit(random: Random, request: int) -> bytes:
    """A SUBMIT that may be fine, or refused for any of the reasons only the engine can know."""
    fields: dict[str, Any] = {
        "slot": random.randint(0, 2),
        "temperature": random.choice((0.0, 0.5, 2.0)),
        "top_p": random.choice((1.0, 0.3)),
        "extra": random.choice((b"", b"", b'root ::= "a"', b'{"type":"boolean"}', b"bad")),
        "pin": random.choice((None, 0, 1)),
    }
    prompt = random.choice((b"hi there", b"", LONG_PROMPT, b"\xff", b"x" * 600, b"[gMASK]<sop>"))
    if random.random() < 0.3:
        fields["ids"] = 1
        prompt = random.choice((b"1 2 3", b"", b"9999", b"1  2", b"5 " * 100 + b"5"))
    if random.random() < 0.3:
        fields["logprobs"] = random.randint(1, 32)
    return submit(request, prompt, random.randint(0 if "logprobs" in fields else 1, 6), **fields)


def test_words_of_a_grammar_stay_within_one_short_line_of_the_log(session: Session) -> None:
    grammar = b'{"type":"f\\u001b[31moo\\nFORGED' + b"x" * 5000 + b'"}'
    header = b"SUBMIT 1 0 2 4 0 1 %d\n" % len(grammar)
    assert brief(session.send(header + b"hi" + grammar + b"\n")) == [("ERROR", 1, "BAD_REQUEST")]
    assert len(session.log) == 1
    assert session.log[0].startswith("request 1: invalid grammar")
    assert session.log[0].isprintable()
    assert len(session.log[0]) <= 300
