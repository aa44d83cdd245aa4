"""Chats with tools: which tool to call with which arguments, and the answer from its result.

Tools come with names, parameter names and schemas in many forms, half of them made up, so that the model
reads the declaration instead of remembering it. Cities and made-up words of the held-out part never occur
in training calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from engine.nano.arithmetic import NUMBER_LIMIT
from engine.nano.corpus import load_corpus, phrases
from engine.nano.exercise import invented_word, pair_is_held_out, text_is_held_out, vary

Schema = dict[str, Any]


@dataclass(frozen=True)
class ToolExercise:
    """A question that needs one tool: declaration, right call, a result the client may send, and the right
    answer.
    """

    task: str
    question: str
    tool: Schema
    name: str
    arguments: tuple[tuple[str, str], ...]
    call_reasoning: str
    result: str
    answer_reasoning: str
    answer: str


_SKIES: Final = phrases("tool_skies")
_WEATHER_NAMES: Final = phrases("tool_weather_names")
_PLACE_KEYS: Final = phrases("tool_place_keys")
_WEATHER: Final = phrases("tool_weather")
_TIME: Final = phrases("tool_time")
_TIME_NAMES: Final = phrases("tool_time_names")
_CALC_NAMES: Final = phrases("tool_calc_names")
_SEARCH_NAMES: Final = phrases("tool_search_names")
_SEARCH: Final = phrases("tool_search")
_QUERY_KEYS: Final = phrases("tool_query_keys")
_VERBS: Final = phrases("tool_verbs")
_GENERIC: Final = phrases("tool_generic")
_TEXT_RESULTS: Final = phrases("tool_text_results")


def declare(random: Random, name: str, about: str, parameters: Sequence[tuple[str, str, str]]) -> Schema:
    """A declaration in one of the forms clients send; parameters are (name, JSON type, description)."""
    described = random.random() < 0.5
    properties = {
        key: ({"type": kind, "description": text} if described else {"type": kind})
        for key, kind, text in parameters
    }
    schema: Schema = {"type": "object", "properties": properties}
    if random.random() < 0.8:
        schema["required"] = [key for key, _, _ in parameters]
    if random.random() < 0.15:
        schema["additionalProperties"] = False
    function: Schema = {"name": name}
    if random.random() < 0.75:
        function["description"] = about
    function["parameters"] = schema
    if random.random() < 0.1:
        function["strict"] = True
    return function if random.random() < 0.15 else {"type": "function", "function": function}


def place(random: Random, held_out: bool) -> str:
    """A city: real or made up, always from the asked side of the held-out rule."""
    while True:
        if random.random() < 0.5:
            name = random.choice(load_corpus().cities)
        else:
            name = " ".join(
                invented_word(random).capitalize() for _ in range(random.choices((1, 2), (80, 20))[0])
            )
        if random.random() < 0.08:
            name += f", {invented_word(random).capitalize()}"
        if text_is_held_out(name.split(",")[0]) == held_out:
            return name


def phrase(random: Random, held_out: bool) -> str:
    """One to three words to search for or to hand over."""
    words = []
    for _ in range(random.choices((1, 2, 3), (45, 38, 17))[0]):
        while True:
            word = (
                invented_word(random)
                if held_out or random.random() < 0.5
                else random.choice(load_corpus().words)
            )
            if text_is_held_out(word) == held_out or word in load_corpus().words:
                break
        words.append(word.capitalize() if random.random() < 0.15 else word)
    return " ".join(words)


def weather(random: Random, held_out: bool) -> ToolExercise:
    """The weather in a city."""
    name, key, city = random.choice(_WEATHER_NAMES), random.choice(_PLACE_KEYS), place(random, held_out)
    about = random.choice(
        ("Get the weather.", "Get current temperature for a given location.", "Weather of a city")
    )
    tool = declare(
        random,
        name,
        about,
        [(key, "string", random.choice(("The city", "City and country", "Name of the city")))],
    )
    if random.random() < 0.15:  # an optional parameter that no answer needs
        schema = tool.get("function", tool)["parameters"]
        schema["required"] = [key]
        schema["properties"]["unit"] = {"type": "string", "enum": ["celsius", "fahrenheit"]}
    sky, degrees = random.choice(_SKIES), random.randint(-15, 40)
    heat = random.choice(("temperature", "temp", "temp_c", "temperature_c", "degrees"))
    seen = random.choice(("sky", "condition", "conditions", "weather", "description", "summary"))
    form = random.random()
    answer = f"In {city} it is {degrees} degrees and {sky}."
    if form < 0.45:
        pairs: Schema = {heat: degrees, seen: sky}
        if random.random() < 0.3:
            pairs = {seen: sky, heat: degrees}
        if random.random() < 0.25:
            pairs = {key: city, **pairs}
        result = json.dumps(pairs, ensure_ascii=False)
    elif form < 0.75:
        result = random.choice(
            ("{s}, {d} degrees", "{d} degrees, {s}", "{d} C, {s}", "{s}, {d} C", "{d} degrees and {s}")
        ).format(s=sky, d=degrees)
    elif form < 0.9:
        result, answer = json.dumps({heat: degrees}), f"In {city} it is {degrees} degrees."
    else:
        result, answer = sky, f"In {city} it is {sky}."
    return ToolExercise(
        "weather",
        vary(random, random.choice(_WEATHER).format(x=city)),
        tool,
        name,
        ((key, city),),
        f"I need the weather in {city}.",
        result,
        f"The tool gave the weather in {city}.",
        answer,
    )


def clock(random: Random, held_out: bool) -> ToolExercise:
    """The time in a city."""
    name, key, city = random.choice(_TIME_NAMES), random.choice(_PLACE_KEYS), place(random, held_out)
    tool = declare(
        random,
        name,
        random.choice(("Get the time.", "Current local time of a city")),
        [(key, "string", "The city")],
    )
    time = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}"
    result = (
        time if random.random() < 0.5 else json.dumps({random.choice(("time", "local_time", "now")): time})
    )
    return ToolExercise(
        "time",
        vary(random, random.choice(_TIME).format(x=city)),
        tool,
        name,
        ((key, city),),
        f"I need the time in {city}.",
        result,
        f"The tool gave the time in {city}.",
        f"The time in {city} is {time}.",
    )


def calculator(random: Random, held_out: bool) -> ToolExercise:
    """A sum handed to a calculator."""
    limit = NUMBER_LIMIT if random.random() < 0.7 else 99999
    while True:
        first, second = random.randint(1, limit), random.randint(1, limit)
        if pair_is_held_out(first, second) == held_out:
            break
    operation = random.choice("+-*")
    value = {"+": first + second, "-": first - second, "*": first * second}[operation]
    name = random.choice(_CALC_NAMES)
    if name == "add_numbers":
        operation, value = "+", first + second
        keys = random.choice((("a", "b"), ("x", "y"), ("first", "second")))
        tool = declare(
            random,
            name,
            "Add two numbers.",
            [(key, random.choice(("integer", "number")), "A number") for key in keys],
        )
        arguments: tuple[tuple[str, str], ...] = ((keys[0], str(first)), (keys[1], str(second)))
    else:
        key = random.choice(("expression", "expression", "expr", "formula", "input"))
        tool = declare(
            random,
            name,
            random.choice(("Evaluate an expression.", "A calculator")),
            [(key, "string", "The expression")],
        )
        arguments = ((key, f"{first} {operation} {second}"),)
    question = random.choice(
        (
            "what is {e}?",
            "calculate {e}.",
            "compute {e}.",
            "how much is {e}?",
            "{e}",
            "use the calculator: {e}",
            "what's {e}?",
        )
    )
    result = (
        str(value)
        if random.random() < 0.5
        else json.dumps({random.choice(("result", "value", "answer")): value})
    )
    return ToolExercise(
        "calculator",
        vary(random, question.format(e=f"{first} {operation} {second}")),
        tool,
        name,
        arguments,
        "I use the calculator.",
        result,
        f"The tool gave {value}.",
        f"The result is {value}.",
    )


def _plain_result(random: Random, held_out: bool) -> tuple[str, str]:
    """A result of no known form and what the answer quotes of it."""
    draw = random.random()
    if draw < 0.35:
        text = phrase(random, held_out)
        return text, text
    if draw < 0.5:
        text = random.choice(_TEXT_RESULTS)
        return text, text
    if draw < 0.6:
        text = str(random.randint(0, 10 ** random.randint(1, 5)))
        return text, text
    keys = random.sample(
        ("status", "id", "name", "result", "count", "state", "title", "total", "price", "user", "value"),
        random.choice((1, 1, 2, 3)),
    )
    pairs = {
        key: (random.randint(0, 9999) if random.random() < 0.4 else phrase(random, held_out)) for key in keys
    }
    if len(pairs) == 1:
        return json.dumps(pairs, ensure_ascii=False), str(next(iter(pairs.values())))
    return json.dumps(pairs, ensure_ascii=False), ", ".join(f"{key} {value}" for key, value in pairs.items())


def search(random: Random, held_out: bool) -> ToolExercise:
    """A search for some words."""
    name, key, words = random.choice(_SEARCH_NAMES), random.choice(_QUERY_KEYS), phrase(random, held_out)
    tool = declare(
        random,
        name,
        random.choice(("Search the web.", "Search documents", "Find pages about a topic")),
        [(key, "string", "What to search")],
    )
    result, quoted = _plain_result(random, held_out)
    return ToolExercise(
        "search",
        vary(random, random.choice(_SEARCH).format(x=words)),
        tool,
        name,
        ((key, words),),
        f"I search for {words}.",
        result,
        "The tool gave a result.",
        f"The result is: {quoted}",
    )


def generic(random: Random, held_out: bool) -> ToolExercise:
    """A tool with a made-up name and one or two parameters; the user names the values."""

    def word() -> str:
        return random.choice(load_corpus().words) if random.random() < 0.5 else invented_word(random, (1, 2))

    verb, noun = random.choice(_VERBS), word()
    name = random.choice((f"{verb}_{noun}", f"{verb}_{noun}", noun, f"{noun}.{verb}", f"{verb}-{noun}"))
    keys = [
        random.choice(
            ("name", "id", "title", "user", "color", "to", "text", "amount", "date", "number", "path", word())
        )
    ]
    if random.random() < 0.3:
        keys.append(random.choice(("size", "count", "level", "mode", "speed")))
    parameters, arguments = [], []
    for key in keys:
        number = key in ("amount", "number", "size", "count", "level", "speed") or random.random() < 0.1
        parameters.append((key, "integer" if number else "string", f"The {key}"))
        arguments.append((key, str(random.randint(0, 9999)) if number else phrase(random, held_out)))
    tool = declare(random, name, f"{verb.capitalize()} the {noun}.", parameters)
    question = random.choice(_GENERIC).format(
        n=name, w=f"{verb} the {noun}", k=arguments[0][0], v=arguments[0][1]
    )
    if len(arguments) > 1:
        question = question.rstrip(".") + f" and {arguments[1][0]} {arguments[1][1]}."
    result, quoted = _plain_result(random, held_out)
    return ToolExercise(
        "generic",
        question[0].upper() + question[1:] if random.random() < 0.5 else question,
        tool,
        name,
        tuple(arguments),
        f"I call {name}.",
        result,
        "The tool gave a result.",
        f"The result is: {quoted}",
    )


TOOLS: Final[tuple[tuple[Callable[[Random, bool], ToolExercise], float], ...]] = (
    (weather, 28.0),
    (clock, 11.0),
    (calculator, 10.0),
    (search, 23.0),
    (generic, 28.0),
)


def tool_exercise(random: Random, held_out: bool = False) -> ToolExercise:
    """One exercise of the usual mix."""
    return random.choices([make for make, _ in TOOLS], [share for _, share in TOOLS])[0](random, held_out)
