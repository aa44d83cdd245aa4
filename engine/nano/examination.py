"""The questions the embedded model is examined with: held-out prompts, the exact right answer of each.

Number pairs, cities and made-up words come from the held-out part; facts and fixed answers cannot be held
out, so they are asked again in the phrasings of the training data. Questions depend on the seed alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from engine.nano import chat_tasks, tool_tasks
from engine.nano.arithmetic import arithmetic_exercise, draw_operands, too_large
from engine.nano.documents import name_turns
from engine.nano.exercise import Exercise
from engine.nano.layout import DOCUMENT_START, Mode, effort_line, tool_call, tools_turn

EXAMINATION_SEED: Final = 20_261
CONTEXT_LENGTHS: Final = (128, 256, 512, 1024, 1500, 1900)
"""Prompt sizes, in tokens, of the questions asked after a long chat."""
_ANSWER_TOKENS: Final = 500
_OPENINGS: Final = {Mode.DIRECT: "direct", Mode.THINK: "reasoning"}


@dataclass(frozen=True)
class Question:
    """One prompt for the engine; ``expected`` is the whole answer after any reasoning."""

    task: str
    mode: str
    prompt: str
    expected: str
    max_tokens: int = _ANSWER_TOKENS


@dataclass(frozen=True)
class Verdict:
    """``exact``: the whole answer is right and the turn ended by itself; ``form``: reasoning closed once,
    turn ended.
    """

    exact: bool
    form: bool
    ended: bool


def judge(question: Question, text: str, ended: bool) -> Verdict:
    """Compare the engine's text, markers included, with the one right answer."""
    if question.mode == "raw":
        number = re.match(r" -?\d+(?!\d)", text)
        return Verdict(exact=number is not None and number[0] == question.expected, form=True, ended=True)
    reasoned = question.mode == _OPENINGS[Mode.THINK]
    answer = text.partition("</think>")[2] if reasoned else text
    form = ended and text.count("</think>") == int(reasoned)
    return Verdict(exact=form and answer == question.expected, form=form, ended=ended)


def _head(mode: Mode) -> str:
    return DOCUMENT_START + (effort_line("High") if mode is Mode.THINK else "")


def _opening(mode: Mode) -> str:
    return f"<|assistant|>{mode.value}"


def chat_question(exercise: Exercise, mode: Mode, before: str = "") -> Question:
    """The exercise as the last turn of a chat; ``before`` is the rendered chat up to it."""
    prompt = f"{before or _head(mode)}<|user|>{exercise.question}{_opening(mode)}"
    return Question(exercise.task, _OPENINGS[mode], prompt, exercise.answer)


def _arithmetic(operation: str, digits: int) -> Callable[[Random], Exercise]:
    return lambda random: arithmetic_exercise(random, operation, digits, held_out=True)


CHAT_TASKS: Final[dict[str, Callable[[Random], Exercise]]] = {
    **{f"add {digits}-digit": _arithmetic("+", digits) for digits in (1, 2, 3)},
    **{f"subtract {digits}-digit": _arithmetic("-", digits) for digits in (1, 2, 3)},
    "multiply": _arithmetic("*", 1),
    "divide": _arithmetic("/", 1),
    "too large": too_large,
    "capital": chat_tasks.capital,
    "unknown capital": chat_tasks.unknown_capital,
    "opposite": chat_tasks.opposite,
    "colour": chat_tasks.colour,
    "plural": chat_tasks.plural,
    "sound": chat_tasks.sound,
    "next day or month": chat_tasks.following,
    "term": chat_tasks.term,
    "copy": lambda random: chat_tasks.copy(random, held_out=True),
    "count": chat_tasks.count,
    "compare": chat_tasks.compare,
    "greeting": chat_tasks.greeting,
    "identity": chat_tasks.identity,
    "abilities": chat_tasks.abilities,
    "fallback": chat_tasks.fallback,
    "weather without tool": chat_tasks.weather_without_tool,
    "json": chat_tasks.in_json,
}
TOOL_TASKS: Final[dict[str, Callable[[Random, bool], tool_tasks.ToolExercise]]] = {
    "weather": tool_tasks.weather,
    "time": tool_tasks.clock,
    "calculator": tool_tasks.calculator,
    "search": tool_tasks.search,
    "generic": tool_tasks.generic,
}


def chat_questions(count: int, tasks: tuple[str, ...] | None = None) -> Iterator[Question]:
    """``count`` questions per task and mode."""
    for task, make in CHAT_TASKS.items():
        for mode, name in _OPENINGS.items():
            random = Random(f"{EXAMINATION_SEED}/{task}/{name}")
            if tasks is None or task in tasks:
                for _ in range(count):
                    exercise = make(random)
                    yield Question(task, name, chat_question(exercise, mode).prompt, exercise.answer)


def tool_questions(count: int, tasks: tuple[str, ...] | None = None) -> Iterator[Question]:
    """``count`` calls and ``count`` answers from a result, per tool and mode; held-out cities, words and
    numbers.
    """
    for task, make in TOOL_TASKS.items():
        for mode, name in _OPENINGS.items():
            random = Random(f"{EXAMINATION_SEED}/tool/{task}/{name}")
            for _ in range(count if tasks is None or task in tasks else 0):
                exercise = make(random, True)
                call = tool_call(exercise.name, exercise.arguments)
                asked = f"{_head(mode)}{tools_turn([exercise.tool])}<|user|>{exercise.question}"
                yield Question(f"call {task}", name, asked + _opening(mode), call)
                answered = f"<|assistant|><think></think>{call}<|observation|>"
                answered += f"<tool_response>{exercise.result}</tool_response>"
                yield Question(
                    f"answer after {task}", name, asked + answered + _opening(mode), exercise.answer
                )


def equation_questions(count: int) -> Iterator[Question]:
    """Raw completions: a started document, the left side of a sum, one line wanted."""
    random = Random(f"{EXAMINATION_SEED}/equations")
    for _ in range(count):
        first, second = draw_operands(random, "+", 1, held_out=False)
        yield Question(
            "raw completion of a 1-digit sum",
            "raw",
            f"{DOCUMENT_START}{first} + {second} =",
            f" {first + second}",
            3,
        )


def filler_turn(random: Random) -> str:
    """One finished turn of an ordinary chat."""
    makers = [make for make, _ in chat_tasks.TURNS]
    exercise = random.choices(makers, [share for _, share in chat_tasks.TURNS])[0](random)
    return f"<|user|>{exercise.question}<|assistant|><think></think>{exercise.answer}"


def context_questions(
    count: int, length: Callable[[str], int], limits: tuple[int, ...] = CONTEXT_LENGTHS
) -> Iterator[Question]:
    """Sums of two digits and the recall of a name at the end of long chats; ``length`` counts the tokens
    of a text.
    """
    for limit in limits:
        random = Random(f"{EXAMINATION_SEED}/context/{limit}")
        for number in range(count):
            if number % 2:
                told, exercise = name_turns(random)
                before = (
                    f"{_head(Mode.DIRECT)}<|user|>{told.question}<|assistant|><think></think>{told.answer}"
                )
            else:
                exercise, before = arithmetic_exercise(random, "+", 2, held_out=True), _head(Mode.DIRECT)
            room = limit - length(before) - 64
            while room > 0:
                turn = filler_turn(random)
                room -= length(turn)
                before += turn if room > 0 else ""
            question = chat_question(exercise, Mode.DIRECT, before)
            task = "name recalled" if number % 2 else "add 2-digit"
            yield Question(f"{task} at {limit} tokens", "direct", question.prompt, question.expected, 48)
