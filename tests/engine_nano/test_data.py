"""The training data of the embedded model: right answers, a pure function of the seed, nothing leaks."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import islice
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer

from engine.nano import MODEL_DIRECTORY, tool_tasks
from engine.nano.arithmetic import arithmetic_exercise, reason_difference, reason_order, reason_sum, solve
from engine.nano.chat_tasks import TURNS, copy
from engine.nano.corpus import load_corpus
from engine.nano.documents import Stream, document, documents
from engine.nano.exercise import pair_is_held_out, text_is_held_out
from engine.nano.layout import ANSWER_WEIGHT, PROMPT_WEIGHT, SPECIAL_TOKENS, TAG_TOKENS
from engine.nano.shards import make_rows

LONG_LENGTH = 2048
RESULT = re.compile(r"(\d+) ([-+*/]) (\d+) = (-?\d+)\.")
CALCULATE = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}


def text_of(seed: int, number: int, stream: Stream = Stream.SHORT) -> str:
    return "".join(segment.text for segment in document(seed, number, stream))


def test_documents_are_a_pure_function_of_seed_and_number() -> None:
    digest = hashlib.sha256()
    for number in range(300):
        digest.update(text_of(5, number).encode())
    again = hashlib.sha256("".join(text_of(5, number) for number in range(300)).encode())
    assert digest.hexdigest() == again.hexdigest()
    assert text_of(5, 7) == "".join(part.text for part in next(islice(documents(5), 7, None)))
    assert text_of(5, 7) != text_of(6, 7)


def test_every_result_in_the_training_data_is_right() -> None:
    checked = 0
    for number in range(1500):
        for first, sign, second, result in RESULT.findall(text_of(11, number)):
            assert CALCULATE[sign](int(first), int(second)) == int(result)
            checked += 1
    assert checked > 1000


def test_held_out_pairs_never_occur_in_training_documents() -> None:
    for number in range(1500):
        for first, sign, second, _ in RESULT.findall(text_of(12, number)):
            if sign in "+-":
                assert not pair_is_held_out(int(first), int(second)), (first, second)


def test_names_are_asked_for_over_the_whole_context() -> None:
    """From the name to the first question for it: many distances near the longest, no length left out."""
    tokenizer = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))
    distances = []
    for number in range(150):
        before, told, asked = 0, 0, 0
        for segment in document(1, number, Stream.FULL):
            if segment.text.startswith("Nice to meet you, ") or "</think>Nice to meet you, " in segment.text:
                told = before
            if not asked and segment.weight == ANSWER_WEIGHT and "Your name is " in segment.text:
                asked = before
            before += len(tokenizer.encode(segment.text, add_special_tokens=False).ids)
        assert 0 < told < asked
        distances.append(asked - told)
    assert sum(1500 < distance < LONG_LENGTH for distance in distances) > 30
    assert sum(distance < 800 for distance in distances) > 10


def test_every_second_long_row_begins_with_a_chat_of_its_own() -> None:
    tokenizer = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))
    rows = make_rows(tokenizer, 3, 4, LONG_LENGTH, Stream.LONG)
    assert rows.tokens.shape == (4, LONG_LENGTH + 1)
    assert rows.weights.shape == (4, LONG_LENGTH)
    for row in (1, 3):
        text = text_of(3, row, Stream.FULL)
        ids = tokenizer.encode(text, add_special_tokens=False).ids[: LONG_LENGTH + 1]
        assert list(rows.tokens[row][: len(ids)]) == ids
        assert set(rows.weights[row][: len(ids) - 1].tolist()) == {
            float(np.float16(PROMPT_WEIGHT)),
            ANSWER_WEIGHT,
        }
    joined = "".join(text_of(3, number, Stream.LONG) for number in range(60))
    ids = tokenizer.encode(joined, add_special_tokens=False).ids
    for row in (0, 2):
        first = row * (LONG_LENGTH + 1)
        assert list(rows.tokens[row]) == ids[first : first + LONG_LENGTH + 1]


def test_held_out_words_are_never_copied_in_training() -> None:
    random = Random(3)
    known = {word.lower() for word in (*load_corpus().words, *load_corpus().names)}
    for _ in range(500):
        for word in copy(random).answer.rstrip("!.").split():
            if word.isalpha() and word.lower() not in known and word not in " ".join(load_corpus().cities):
                assert not text_is_held_out(word) or not word.islower()
        place = tool_tasks.place(random, held_out=False)
        assert not text_is_held_out(place.split(",")[0])
        assert text_is_held_out(tool_tasks.place(random, held_out=True).split(",")[0])


def test_examined_pairs_are_held_out() -> None:
    random = Random(4)
    for _ in range(200):
        exercise = arithmetic_exercise(random, "+", 3, held_out=True)
        match = RESULT.fullmatch(exercise.answer)
        assert match is not None
        assert pair_is_held_out(int(match[1]), int(match[3]))


def test_column_methods() -> None:
    assert reason_sum(347, 285) == (
        "347+285. ones: 7+5=12, write 2, carry 1. tens: 1+4+8=13, write 3, carry 1. "
        "hundreds: 1+3+2=6, write 6, carry 0. So 632."
    )
    assert reason_sum(9, 95) == (
        "09+95. ones: 9+5=14, write 4, carry 1. tens: 1+0+9=10, write 0, carry 1. So 104."
    )
    assert reason_difference(305, 92) == (
        "305-092: 3>0. ones: 5-2=3, borrow 0. tens: 10-9=1, borrow 1. hundreds: 3-1-0=2, borrow 0. So 213."
    )
    assert reason_difference(42, 47) == (
        "42-47: 4=4, 2<7. minus 47-42. ones: 7-2=5, borrow 0. tens: 4-4=0, borrow 0. So -5."
    )
    assert reason_order(305, 92) == "3>0"
    assert reason_order(7, 7) == "7=7"
    assert solve("/", 84, 7) == ("12 times 7 is 84.", "84 / 7 = 12.")


@pytest.mark.parametrize("make", [make for make, _ in TURNS])
def test_no_turn_contains_a_marker(make: object) -> None:
    random = Random(9)
    for _ in range(30):
        exercise = make(random)  # type: ignore[operator]
        for text in (exercise.question, exercise.reasoning, exercise.answer):
            assert text
            assert not any(token in text for token in (*SPECIAL_TOKENS, *TAG_TOKENS))


def test_tool_results_and_declarations_are_json() -> None:
    random = Random(10)
    for _ in range(300):
        exercise = tool_tasks.tool_exercise(random)
        function = exercise.tool.get("function", exercise.tool)
        assert function["name"] == exercise.name
        assert [key for key, _ in exercise.arguments] == list(function["parameters"]["properties"])[
            : len(exercise.arguments)
        ]
        if exercise.result.startswith("{"):
            json.loads(exercise.result)
