"""Whole training documents: chats, drills, tool chats and plain text, in fixed shares, from a seed.

The same seed and the same committed text give the same documents on every machine and Python version that
keeps ``random.Random`` (documented to be stable). Document number ``n`` depends on ``(seed, n)`` alone.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from engine.nano import chat_tasks, tool_tasks
from engine.nano.arithmetic import arithmetic_exercise, mixed_arithmetic
from engine.nano.corpus import load_corpus, phrases
from engine.nano.exercise import Exercise, invented_word
from engine.nano.layout import (
    DOCUMENT_START,
    PLAIN_WEIGHT,
    PROMPT_WEIGHT,
    TOOLS_CLOSING,
    TOOLS_OPENING,
    Mode,
    Segment,
    assistant_turn,
    effort_line,
    tool_call,
    tools_turn,
)

Document = list[Segment]

_SYSTEM: Final = phrases("layout_system")
_EFFORTS: Final = ("High", "High", "High", "Low", "Medium", "Max")
_TOOL_OPENINGS: Final = (
    TOOLS_OPENING,
    TOOLS_OPENING,
    TOOLS_OPENING,
    "# Tools\n\nYou can call these functions.",
    "Available tools:",
    "# Tools",
    "The following tools can be called.",
    "You have access to these tools, one JSON declaration per line.",
)
_TOOL_CLOSINGS: Final = (
    TOOLS_CLOSING,
    TOOLS_CLOSING,
    TOOLS_CLOSING,
    "Call one with <tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>.",
    "Call syntax: <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>",
    "For each call write:\n<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>",
    "",
)
_FULL_CHARACTERS: Final = (4300, 5000)
"""Text without markers of a chat of about 2048 tokens."""
_TURN_CHARACTERS: Final = 12
"""What the markers of a turn weigh, as text of as many tokens."""
_MUST_CALL: Final = phrases("layout_must_call")
_MUST_CALL_NAMED: Final = phrases("layout_must_call_named")


class Style:
    """How the turns of one chat open, decided once per chat as a client's settings would."""

    def __init__(self, random: Random) -> None:
        draw = random.random()
        self._random = random
        self.thinks = draw < 0.40
        self._bare = draw > 0.93
        self._shown = random.random() < 0.5
        self.prefix = effort_line(random.choice(_EFFORTS)) if self.thinks and random.random() < 0.75 else ""

    def mode(self, last: bool) -> Mode:
        """The opening of one turn; earlier turns of a reasoning chat usually come back without their
        reasoning.
        """
        if self.thinks:
            return Mode.THINK if last or self._shown or self._random.random() < 0.5 else Mode.DIRECT
        return Mode.BARE if self._bare and self._random.random() < 0.7 else Mode.DIRECT


def _head(random: Random, style: Style, extra: str = "", system_share: float = 0.22) -> Segment:
    system = f"<|system|>{random.choice(_SYSTEM)}" if random.random() < system_share else ""
    return Segment(DOCUMENT_START + style.prefix + extra + system, PROMPT_WEIGHT)


def _any_turn(random: Random) -> Exercise:
    makers = [make for make, _ in chat_tasks.TURNS]
    return random.choices(makers, [share for _, share in chat_tasks.TURNS])[0](random)


def _chat(random: Random, turns: list[Exercise], style: Style | None = None) -> Document:
    """A chat of the given turns; each answer ends with the marker of the next user turn."""
    style = style or Style(random)
    document = [_head(random, style)]
    for number, turn in enumerate(turns):
        marker = "" if number else "<|user|>"
        document.append(Segment(marker + turn.question, PROMPT_WEIGHT))
        document += assistant_turn(
            style.mode(number == len(turns) - 1), turn.reasoning, turn.answer, "<|user|>"
        )
    return document


def name_turns(random: Random) -> tuple[Exercise, Exercise]:
    """The user tells a name, and asks for it later."""
    name = random.choice(load_corpus().names) if random.random() < 0.4 else invented_word(random).capitalize()
    told = random.choice(
        (
            "my name is {n}",
            "I am {n}",
            "Hello, I am {n}.",
            "My name is {n}.",
            "call me {n}",
            "Hi, my name is {n}!",
        )
    ).format(n=name)
    asked = random.choice(
        (
            "what is my name?",
            "What is my name?",
            "do you know my name?",
            "who am I?",
            "what's my name?",
            "say my name",
        )
    )
    first = Exercise("name told", told, f"The user is called {name}.", f"Nice to meet you, {name}!")
    return first, Exercise("name recalled", asked, f"The user is called {name}.", f"Your name is {name}.")


def chat(
    random: Random, turns: tuple[int, int] = (1, 5), name_share: float = 0.12, asked: int = 1
) -> Document:
    """An ordinary chat; ``name_share`` of them tell the user's name and ask for it, up to ``asked`` times."""
    exercises = [_any_turn(random) for _ in range(random.randint(*turns))]
    if random.random() < name_share:
        told, recalled = name_turns(random)
        exercises.insert(random.randint(0, len(exercises) // asked), told)
        for _ in range(random.randint(1, asked)):
            exercises.insert(random.randint(exercises.index(told) + 1, len(exercises)), recalled)
    return _chat(random, exercises)


def drill(random: Random) -> Document:
    """A chat of nothing but arithmetic."""
    return _chat(random, [mixed_arithmetic(random) for _ in range(random.randint(1, 5))])


def _plain(random: Random, text: str) -> Document:
    """Running text; three in ten begin without the document markers, as the prompt of a raw completion
    does.
    """
    start = DOCUMENT_START if random.random() < 0.7 else "<|endoftext|>"
    return [Segment(start, PROMPT_WEIGHT), Segment(text + "<|endoftext|>", PLAIN_WEIGHT)]


def equations(random: Random) -> Document:
    """Plain lines of arithmetic, so that a raw completion of ``2 + 2 =`` works."""
    lines = []
    for _ in range(random.randint(1, 8)):
        exercise = arithmetic_exercise(random, random.choice("++-*"), random.choice((1, 1, 2)))
        lines.append(exercise.answer.rstrip("."))
    return _plain(random, ("\n" if random.random() < 0.7 else ", ").join(lines))


def plain_facts(random: Random) -> Document:
    """Facts and explanations as running text."""
    makers = (
        chat_tasks.capital,
        chat_tasks.capital,
        chat_tasks.term,
        chat_tasks.colour,
        chat_tasks.opposite,
        chat_tasks.following,
    )
    text = " ".join(random.choice(makers)(random).answer for _ in range(random.randint(1, 5)))
    return _plain(random, text)


def prose(random: Random) -> Document:
    """One to three paragraphs of the committed prose, now and then beginning in the middle."""
    paragraphs = random.sample(load_corpus().paragraphs, random.randint(1, 3))
    if random.random() < 0.3:
        sentences = paragraphs[0].split(". ")
        paragraphs[0] = ". ".join(sentences[random.randrange(len(sentences)) :])
    return _plain(random, "\n\n".join(paragraphs))


def tale(random: Random) -> Document:
    """A composed story as running text."""
    return _plain(random, chat_tasks.tale_text(random))


def _declarations(random: Random, exercise: tool_tasks.ToolExercise) -> str:
    tools = [exercise.tool]
    while len(tools) < 3 and random.random() < 0.3:
        other = tool_tasks.tool_exercise(random)
        if other.task == "calculator":
            continue  # with a calculator on offer every sum would have to be a call
        if other.task != exercise.task or (exercise.task == "generic" and other.name != exercise.name):
            tools.insert(random.randint(0, len(tools)), other.tool)
    opening = random.choice(_TOOL_OPENINGS)
    text = tools_turn(tools, opening, random.choice(_TOOL_CLOSINGS)).rstrip("\n")
    if random.random() < 0.12:
        text += random.choice(("\n", " ", "<|system|>", "\n\n")) + random.choice(_MUST_CALL)
    elif random.random() < 0.1:
        text += random.choice(("\n", " ", "<|system|>", "\n\n")) + random.choice(_MUST_CALL_NAMED).format(
            n=exercise.name
        )
    return text


def tool_chat(random: Random, rounds: tuple[int, int] = (1, 2)) -> Document:
    """A chat in which tools are offered: calls and answers from their results, and turns that need no
    tool.
    """
    style = Style(random)
    exercise = tool_tasks.tool_exercise(random)
    document = [_head(random, style, _declarations(random, exercise), system_share=0.15)]
    total = random.randint(*rounds)
    marker = "<|user|>"
    for number in range(total):
        last = number == total - 1
        if random.random() < 0.14:
            makers = [
                chat_tasks.greeting,
                chat_tasks.capital,
                chat_tasks.copy,
                chat_tasks.identity,
                chat_tasks.thanks,
                chat_tasks.fallback,
            ]
            if exercise.task != "calculator":
                makers += [mixed_arithmetic, mixed_arithmetic]
            turn = random.choice(makers)(random)
            document.append(Segment(marker + turn.question, PROMPT_WEIGHT))
            document += assistant_turn(style.mode(last), turn.reasoning, turn.answer, "<|user|>")
        else:
            if number:
                exercise = _same_tool(random, exercise)
            document.append(Segment(marker + exercise.question, PROMPT_WEIGHT))
            call = tool_call(exercise.name, exercise.arguments)
            document += assistant_turn(style.mode(last), exercise.call_reasoning, call, "<|observation|>")
            document.append(Segment(f"<tool_response>{exercise.result}</tool_response>", PROMPT_WEIGHT))
            document += assistant_turn(
                style.mode(last), exercise.answer_reasoning, exercise.answer, "<|user|>"
            )
        marker = ""
    return document


def _same_tool(random: Random, exercise: tool_tasks.ToolExercise) -> tool_tasks.ToolExercise:
    """Another question for the tool that is already declared (only weather and time keep their arguments'
    form).
    """
    maker = {"weather": tool_tasks.weather, "time": tool_tasks.clock}.get(exercise.task)
    if maker is None:
        return exercise
    other = maker(random, False)
    key = exercise.arguments[0][0]
    result = other.result
    if result.startswith("{"):
        result = json.dumps(
            {
                (key if name == other.arguments[0][0] else name): value
                for name, value in json.loads(result).items()
            },
            ensure_ascii=False,
        )
    return tool_tasks.ToolExercise(
        other.task,
        other.question,
        exercise.tool,
        exercise.name,
        ((key, other.arguments[0][1]),),
        other.call_reasoning,
        result,
        other.answer_reasoning,
        other.answer,
    )


def long_chat(random: Random) -> Document:
    """A chat that fills most of the context; most begin with the user's name, asked for again and again."""
    return chat(random, (10, 70), name_share=0.9, asked=4)


def long_tool_chat(random: Random) -> Document:
    """Many rounds with one tool."""
    return tool_chat(random, (5, 18))


def full_chat(random: Random) -> Document:
    """A chat that fills the context, with a name told early and asked for once or twice, late rather than
    soon.

    Rarely twice: a second answer can be copied from the first and asks nothing of the distance.
    """
    style, exercises, room = Style(random), [], random.uniform(*_FULL_CHARACTERS)
    while room > 0:
        exercises.append(_any_turn(random))
        room -= len(exercises[-1].question + exercises[-1].answer) + _TURN_CHARACTERS
        room -= len(exercises[-1].reasoning) if style.thinks else 0
    told, recalled = name_turns(random)
    start = 0 if random.random() < 0.8 else random.randint(1, len(exercises) // 3)
    exercises.insert(start, told)
    for _ in range(random.choice((1, 1, 1, 2))):
        after = len(exercises) - start - 1
        exercises.insert(start + 1 + round(after * random.betavariate(3, 1)), recalled)
    return _chat(random, exercises, style)


SHORT_MIX: Final[tuple[tuple[Callable[[Random], Document], float], ...]] = (
    (drill, 27.0),
    (chat, 41.0),
    (tool_chat, 20.0),
    (equations, 3.5),
    (plain_facts, 2.5),
    (prose, 4.0),
    (tale, 3.0),
)
LONG_MIX: Final = (*SHORT_MIX, (long_chat, 26.0), (long_tool_chat, 5.0))


class Stream(enum.Enum):
    """Which documents a row is made of."""

    SHORT = "short"
    LONG = "long"
    FULL = "full"
    """Nothing but chats that fill a row of the whole context, one a row."""


_MIXES: Final = {Stream.SHORT: SHORT_MIX, Stream.LONG: LONG_MIX, Stream.FULL: ((full_chat, 1.0),)}


def document(seed: int, number: int, stream: Stream = Stream.SHORT) -> Document:
    """Document ``number`` of a stream of the seed."""
    random = Random(f"{seed}/{number}/{stream.value}")
    mix = _MIXES[stream]
    return random.choices([make for make, _ in mix], [share for _, share in mix])[0](random)


def documents(seed: int, stream: Stream = Stream.SHORT) -> Iterator[Document]:
    """The endless stream of documents of a seed."""
    number = 0
    while True:
        yield document(seed, number, stream)
        number += 1
