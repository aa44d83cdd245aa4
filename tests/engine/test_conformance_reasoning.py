"""Conformance of every engine: a grammar holds from the end of the reasoning on, which cannot end the turn.

The model is random; both the tag that closes the reasoning and the ends of a turn come up every few tokens.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.engine.checkpoints import END_NAMES, RECIPES, write_checkpoint
from tests.engine.conformance import Number, Start, prompt_ids
from tests.engine.engine_process import EngineProcess, submit

OPEN, CLOSE = "<think>", b"</think>"
PROMPT = f"<|user|>a number<|assistant|>{OPEN}"
LIMIT = 400
SLOTS = 8
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}
GRAMMAR = json.dumps(SCHEMA).encode()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loud = {CLOSE.decode(): 3.0} | dict.fromkeys(END_NAMES, 3.0)
    return write_checkpoint(tmp_path_factory.mktemp("loud"), replace(RECIPES["llama"], loud=loud))


@pytest.fixture(scope="module")
def engine(command: list[str], directory: Path) -> Iterator[EngineProcess]:
    with EngineProcess(command, directory, {"KV_SLOTS": str(SLOTS)}) as running:
        yield running


def check_answer(text: bytes) -> bytes:
    """The reasoning of a text whose answer keeps the schema."""
    reasoning, closed, answer = text.partition(CLOSE)
    assert closed, text
    jsonschema.validate(json.loads(answer), SCHEMA)
    return reasoning


def data(found: list[Any]) -> list[Any]:
    return [frame for frame in found if frame.KIND == "DATA"]


def test_the_grammar_holds_after_the_reasoning_however_tokens_are_chosen(
    engine: EngineProcess, number: Number
) -> None:
    heats = (0.0, 0.3, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3)
    free, held = [number() for _ in heats], [number() for _ in heats]
    for ids, extra in ((free, b""), (held, GRAMMAR)):
        requests = enumerate(zip(ids, heats, strict=True))
        engine.send(
            b"".join(
                submit(one, PROMPT, LIMIT, slot=slot, temperature=heat, top_p=0.95, extra=extra)
                for slot, (one, heat) in requests
            )
        )
        engine.wait_ends(ids)
    reasonings = [check_answer(engine.text(one)) for one in held]
    assert all(engine.of(one)[-1].length_limited == 0 for one in held)
    assert sum(not b'{"ok":'.startswith(reasoning[:6]) for reasoning in reasonings) > SLOTS / 2, "not free"
    assert any(CLOSE not in engine.text(one) for one in free), "no turn would have ended in the reasoning"


def test_the_reasoning_is_that_of_a_request_without_grammar(engine: EngineProcess, number: Number) -> None:
    """As far as the latter goes: it may end the turn. The log probabilities are the model's in both."""
    held = data(engine.ask(number(), PROMPT, LIMIT, logprobs=5, extra=GRAMMAR))
    free = data(engine.ask(number(), PROMPT, LIMIT, logprobs=5))
    reasoning = check_answer(b"".join(frame.payload for frame in held))
    expected = b"".join(frame.payload for frame in free).partition(CLOSE)[0]
    assert expected and reasoning.startswith(expected)
    for one, other in zip(held, free, strict=False):
        assert one.tokens == other.tokens and one.token_logprobs == pytest.approx(other.token_logprobs)
        if one.payload != other.payload:
            assert other.payload == b"", "only an end of the turn is not chosen"
            break
        assert one.logprob == pytest.approx(other.logprob)
        if one.payload == CLOSE:
            break
    else:
        raise AssertionError("the two never part")


def test_a_reasoning_that_is_not_closed_ends_by_length(engine: EngineProcess, number: Number) -> None:
    whole = check_answer(engine.text(ask(engine, number())))
    short = number()
    done = engine.ask(short, PROMPT, 1, extra=GRAMMAR)[-1]
    assert (done.length_limited, done.completion_tokens) == (1, 1)
    assert engine.text(short) and whole.startswith(engine.text(short))


def ask(engine: EngineProcess, request: int, prompt: str | bytes = PROMPT, **fields: Any) -> int:
    """Run one request under the grammar; returns its id."""
    engine.ask(request, prompt, LIMIT, extra=GRAMMAR, **fields)
    return request


def test_a_line_end_behind_the_open_tag_is_no_part_of_the_answer(
    engine: EngineProcess, number: Number
) -> None:
    """Templates of several families open the reasoning with the tag and a line end, or two."""
    for blanks in ("\n", "\n\n", " \t\r\n "):
        check_answer(engine.text(ask(engine, number(), PROMPT + blanks)))
    for other in ("", "\n\n", "x", OPEN + "x\n"):
        jsonschema.validate(json.loads(engine.text(ask(engine, number(), "a number" + other))), SCHEMA)


def test_ids_prefix_reuse_and_company_change_nothing(engine: EngineProcess, number: Number) -> None:
    first = engine.text(ask(engine, number()))
    again = engine.text(ask(engine, number()))
    ids = " ".join(map(str, prompt_ids(PROMPT))).encode()
    by_ids = engine.text(ask(engine, number(), ids, ids=1, slot=1))
    alone = number()
    engine.ask(alone, PROMPT, 60)
    together = [number() for _ in range(4)]
    engine.send(
        b"".join(
            submit(request, PROMPT, 60 if slot % 2 else LIMIT, slot=slot, extra=b"" if slot % 2 else GRAMMAR)
            for slot, request in enumerate(together)
        )
    )
    engine.wait_ends(together)
    check_answer(first)
    assert again == by_ids == engine.text(together[0]) == engine.text(together[2]) == first
    assert engine.text(together[1]) == engine.text(together[3]) == engine.text(alone)


@pytest.mark.parametrize(
    "prompt", ["<|assistant|>", f"{OPEN}{CLOSE.decode()}", f"{OPEN}so", f"x {OPEN[:-1]}"]
)
def test_any_other_prompt_is_held_from_the_first_token_on(
    prompt: str, engine: EngineProcess, number: Number
) -> None:
    text = engine.text(ask(engine, number(), prompt))
    jsonschema.validate(json.loads(text), SCHEMA)


def test_a_tokenizer_without_the_closing_tag_knows_no_reasoning(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(directory, tmp_path / "model"))
    tokenizer = (copy / "tokenizer.json").read_text(encoding="utf-8")
    assert tokenizer.count(CLOSE.decode()) == 1
    (copy / "tokenizer.json").write_text(tokenizer.replace(CLOSE.decode(), "</thought>"), encoding="utf-8")
    engine = start(copy)
    jsonschema.validate(json.loads(engine.text(ask(engine, 1))), SCHEMA)
