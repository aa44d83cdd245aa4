"""Conformance of every engine: log probabilities, scoring, end tokens, and text held to a grammar."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from generated import limits
from tests.engine.checkpoints import BASE, RECIPES, build_tokenizer
from tests.engine.conformance import PROMPT, Number, Start, ending_at, kinds
from tests.engine.engine_process import EngineProcess


def test_log_probabilities(engine: EngineProcess, number: Number) -> None:
    request, plain = number(), number()
    found = engine.ask(request, PROMPT, 10, logprobs=limits.TOP_K)
    prompt = build_tokenizer().encode(PROMPT, add_special_tokens=False).ids
    assert kinds(found) == ["ACCEPT", "ECHO", "DATA", "DONE"]
    echoes = [frame for frame in found if frame.KIND == "ECHO"]
    data = [frame for frame in found if frame.KIND == "DATA"]
    assert sorted(echo.position for echo in echoes) == list(range(len(prompt)))
    assert (
        b"".join(echo.payload for echo in sorted(echoes, key=lambda echo: echo.position)) == PROMPT.encode()
    )
    for echo in echoes:
        if echo.position == 0:
            assert math.isnan(echo.logprob) and len(echo.tokens) == 0
            continue
        numbers = dict(zip(echo.tokens, echo.token_logprobs, strict=True))
        assert len(numbers) == limits.TOP_K
        assert sum(map(math.exp, numbers.values())) <= 1.0001
        token = prompt[echo.position]
        assert numbers.get(token, echo.logprob) == pytest.approx(echo.logprob, abs=1e-6)
        assert echo.logprob <= max(numbers.values()) + 1e-6
    for frame in data:
        best = int(np.argmax(frame.token_logprobs))
        assert frame.logprob == pytest.approx(frame.token_logprobs[best], abs=1e-6)
    engine.ask(plain, PROMPT, 10)
    assert engine.text(plain) == engine.text(request)


def test_probabilities_of_the_whole_vocabulary_sum_to_one(start: Start, tmp_path: Path) -> None:
    """A vocabulary no larger than the largest table: the table is the distribution."""
    engine = start("llama")
    (done,) = [frame for frame in engine.ask(1, "the", 1, logprobs=limits.TOP_K) if frame.KIND == "DATA"]
    listed = sum(map(math.exp, done.token_logprobs))
    least = min(map(math.exp, done.token_logprobs))
    rest = RECIPES["llama"].config.get("vocab_size", BASE["vocab_size"]) - limits.TOP_K
    assert listed <= 1.0001 and listed + rest * least >= 0.9999


def test_scoring_only(engine: EngineProcess, number: Number) -> None:
    request, refused = number(), number()
    found = engine.ask(request, PROMPT, 0, logprobs=1)
    assert kinds(found) == ["ACCEPT", "ECHO", "DONE"]
    assert found[-1].completion_tokens == 0
    assert len(found) - 2 == found[0].prompt_tokens
    engine.send(b"SUBMIT %d 0 1 0 0 1\nx\n" % refused)
    engine.wait_ends([refused])
    assert engine.error(refused) == ("BAD_REQUEST",)


def test_end_token_is_swallowed(start: Start, models: dict[str, Path], tmp_path: Path) -> None:
    endless = start()
    tokens = [f.tokens[0] for f in endless.ask(1, PROMPT, 12, logprobs=1) if f.KIND == "DATA"]
    end = next(index for index, token in enumerate(tokens) if index >= 2 and token not in tokens[:index])
    engine = start(ending_at(models["endless"], tokens[end], tmp_path / "ending"))
    plain = engine.ask(1, PROMPT, 12)
    assert len([frame for frame in plain if frame.KIND == "DATA"]) == end
    assert (plain[-1].KIND, plain[-1].length_limited, plain[-1].completion_tokens) == ("DONE", 0, end + 1)
    numbers = [frame for frame in engine.ask(2, PROMPT, 12, logprobs=1) if frame.KIND == "DATA"]
    assert len(numbers) == end + 1
    assert (numbers[-1].payload, numbers[-1].tokens[0]) == (b"", tokens[end])
    assert engine.text(2) == engine.text(1)


SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}


def test_grammar_is_enforced(start: Start) -> None:
    engine = start("llama")
    schema = json.dumps(SCHEMA).encode()
    for slot in range(4):
        engine.submit(slot + 1, PROMPT, 100, slot=slot, temperature=0.9, extra=schema)
    engine.wait_ends([1, 2, 3, 4])
    for request in (1, 2, 3, 4):
        jsonschema.validate(json.loads(engine.text(request)), SCHEMA)
        assert engine.of(request)[-1].length_limited == 0
    engine.ask(5, PROMPT, 100, extra=b'root ::= ("ab" | "cd") "!"')
    assert engine.text(5) in (b"ab!", b"cd!")
    engine.ask(6, PROMPT, 100, extra=b"root ::= (")
    assert engine.error(6) == ("BAD_REQUEST",)
