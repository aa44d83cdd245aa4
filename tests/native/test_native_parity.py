"""The native engine computes what the reference computes: same tokens, log probabilities within 1e-4."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from generated import limits
from tests.engine.checkpoints import RECIPES, Recipe, write_checkpoint
from tests.engine.engine_process import EngineProcess, submit
from tests.native.test_native_grammar import LANGUAGES, SCHEMAS

NANO = Path(__file__).parents[2] / "engine" / "nano" / "model"
REFERENCE = [sys.executable, "-m", "engine.reference"]
TOLERANCE = 1e-4
PROMPT = "[gMASK]<sop><|user|>the other 12 in an hour<|assistant|><think></think>"
QUESTIONS = ("what is 2 + 2?", "what is the capital of France?", "the weather in Rome", "count to five")


def nano_prompt(question: str) -> str:
    """A question as the embedded model has learnt it."""
    return f"[gMASK]<sop><|user|>\n{question}<|assistant|>\n<think></think>\n"


def assert_near(ours: float, theirs: float) -> None:
    """Equal within the tolerance; both nan counts as equal."""
    assert (math.isnan(ours) and math.isnan(theirs)) or abs(ours - theirs) < TOLERANCE


def assert_same_numbers(ours: list[Any], theirs: list[Any]) -> None:
    """The same frames with the same pieces, and numbers within the tolerance."""
    assert [frame.KIND for frame in ours] == [frame.KIND for frame in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        if mine.KIND not in ("DATA", "ECHO"):
            continue
        assert mine.payload == other.payload
        assert_near(mine.logprob, other.logprob)
        for first, second in zip(mine.token_logprobs, other.token_logprobs, strict=True):
            assert_near(first, second)
        known = dict(zip(other.tokens, other.token_logprobs, strict=True))
        for token, value in zip(mine.tokens, mine.token_logprobs, strict=True):
            assert_near(value, known.get(token, other.token_logprobs[-1]))


def grouped(heads: int) -> Recipe:
    """A model with so many query heads for each of its two key-value heads."""
    shape = {"num_attention_heads": 2 * heads, "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 64}
    return Recipe({"model_type": "qwen2", **shape}, dtype="F16", seed=10)


GROUPED = {f"groups of {heads}": grouped(heads) for heads in (1, 3, 7, 8, 9, 16)}
"""Around the number of rows attention takes at a time, 8."""


@pytest.fixture(params=[*RECIPES, *GROUPED, "nano"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A checkpoint of each model type, dtype and layout, and the embedded model."""
    if request.param != "nano":
        return write_checkpoint(tmp_path, {**RECIPES, **GROUPED}[request.param])
    return Path(shutil.copytree(NANO, tmp_path / "nano"))


def test_numbers_equal_the_reference(command: list[str], directory: Path) -> None:
    found = []
    for program in (command, REFERENCE):
        with EngineProcess(program, directory) as engine:
            scored = engine.ask(1, PROMPT * 6, 40, logprobs=limits.TOP_K)
            engine.submit(2, PROMPT, 60, slot=1)
            engine.submit(3, "the hour " * 40, 60, slot=2)
            engine.wait_ends([2, 3])
            found.append((scored, engine.text(2), engine.text(3)))
    (scored, *texts), (expected, *expected_texts) = found
    assert_same_numbers(scored, expected)
    assert texts == expected_texts


def test_answers_of_the_embedded_model(command: list[str], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(NANO, tmp_path / "nano"))
    texts = []
    for program in (command, REFERENCE):
        with EngineProcess(program, directory) as engine:
            engine.send(
                b"".join(
                    submit(slot + 1, nano_prompt(question), 80, slot=slot)
                    for slot, question in enumerate(QUESTIONS)
                )
            )
            engine.wait_ends(range(1, len(QUESTIONS) + 1))
            texts.append([engine.text(number) for number in range(1, len(QUESTIONS) + 1)])
    assert texts[0] == texts[1]
    assert all(texts[0])


_SMALLER = (
    *("long tuple", "additional properties", "constant"),
    *("number", "negative number", "any number", "open above", "open below"),
)
"""Schemas whose language is smaller in the native engine: `README.md` beside it says what it leaves out."""
GRAMMARS = [
    *(json.dumps(SCHEMAS[name]) for name in SCHEMAS if name not in _SMALLER),
    *(grammar for grammar, _ in LANGUAGES),
    json.dumps({"type": "array", "items": {"type": "string"}}),
]


@pytest.mark.parametrize("name", ["llama", "qwen2", "nano"])
def test_text_under_a_grammar_is_cut_into_the_same_tokens(
    name: str, command: list[str], tmp_path: Path
) -> None:
    """A grammar masks tokens in both: none is ever put in by the grammar's own reading of the text."""
    if name == "nano":
        directory = Path(shutil.copytree(NANO, tmp_path / "nano"))
    else:
        directory = write_checkpoint(tmp_path, RECIPES[name])
    found = []
    for program in (command, REFERENCE):
        with EngineProcess(program, directory) as engine:
            for request, grammar in enumerate(GRAMMARS, 1):
                engine.ask(request, PROMPT, 60, logprobs=1, extra=grammar.encode())
            found.append([engine.of(request) for request in range(1, len(GRAMMARS) + 1)])
    for grammar, ours, theirs in zip(GRAMMARS, *found, strict=True):
        assert ours[-1].KIND == "DONE", grammar
        assert_same_numbers(ours, theirs)


@pytest.mark.parametrize("name", ["glm", "glm4", "qwen3"])
def test_threads_change_nothing(name: str, command: list[str], tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path, RECIPES[name])
    texts = []
    for threads in ("1", "3"):
        with EngineProcess(command, directory, {"OMP_NUM_THREADS": threads}) as engine:
            engine.ask(1, PROMPT * 8, 30, logprobs=5)
            texts.append([frame for frame in engine.received if frame.KIND in ("DATA", "ECHO")])
    first, second = texts
    for one, other in zip(first, second, strict=True):
        assert (one.payload, list(one.token_logprobs)) == (other.payload, list(other.token_logprobs))


def test_threads_change_nothing_of_eight_requests_at_once(command: list[str], tmp_path: Path) -> None:
    """Steps of eight rows of the embedded model, large enough for helpers to take part in every loop."""
    directory = Path(shutil.copytree(NANO, tmp_path / "nano"))
    found = []
    for threads in ("1", "3"):
        with EngineProcess(command, directory, {"KV_SLOTS": "8", "OMP_NUM_THREADS": threads}) as engine:
            prompts = [nano_prompt(QUESTIONS[slot % len(QUESTIONS)]) + "!" * slot for slot in range(8)]
            engine.send(
                b"".join(
                    submit(slot + 1, prompt, 30, slot=slot, logprobs=2) for slot, prompt in enumerate(prompts)
                )
            )
            engine.wait_ends(range(1, 9))
            found.append(
                [
                    [(frame.payload, frame.logprob, list(frame.token_logprobs)) for frame in frames]
                    for frames in (
                        [frame for frame in engine.of(request) if frame.KIND == "DATA"]
                        for request in range(1, 9)
                    )
                ]
            )
    assert found[0] == found[1]
    assert all(found[0])


def test_tokens_that_wait_for_each_other_are_not_lost(command: list[str], tmp_path: Path) -> None:
    """Where all threads compute, tokens of several steps are written together: all else keeps its place."""
    directory = Path(shutil.copytree(NANO, tmp_path / "nano"))
    prompts = [nano_prompt(question) for question in QUESTIONS]
    settings = {"KV_SLOTS": "8", "OMP_NUM_THREADS": "3"}
    with EngineProcess(command, directory, settings) as engine:
        for slot, prompt in enumerate(prompts):
            engine.submit(slot + 1, prompt, 60, slot=slot)
        engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == len(prompts))
        engine.submit(10, prompts[0], 60, slot=5)
        engine.submit(11, prompts[1], 2000, slot=6)
        engine.wait_for(lambda frame: frame.KIND == "DATA" and frame.id == 11)
        engine.send(b"CANCEL 11\nCANCEL 12\n")
        engine.wait_ends([1, 2, 3, 4, 10, 11, 12])
        assert engine.finish() == 0
        for request in (1, 2, 3, 4, 10):
            kinds = [frame.KIND for frame in engine.of(request)]
            assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("ACCEPT", "DONE", {"DATA"})
        assert engine.text(10) == engine.text(1)
        assert [frame.KIND for frame in engine.of(11)][-1] in ("DONE", "ERROR")
        assert engine.error(12) == ("NOT_FOUND",)
