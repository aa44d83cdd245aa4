"""Short exercises other than arithmetic: facts, copying, counting, greetings, terms, and the honest fallback.

Facts are trained in every phrasing: a fact can only be known or unknown. Copying is tested on held-out words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from engine.nano.arithmetic import mixed_arithmetic, reason_order, too_large
from engine.nano.corpus import load_corpus, phrases
from engine.nano.exercise import Exercise, invented_word, text_is_held_out, vary

_CAPITAL: Final = phrases("chat_capital")
_COUNTRY: Final = phrases("chat_country")
_OPPOSITE: Final = phrases("chat_opposite")
_COLOUR: Final = phrases("chat_colour")
_PLURAL: Final = phrases("chat_plural")
_SOUND: Final = phrases("chat_sound")
_AFTER: Final = phrases("chat_after")
_TERM: Final = phrases("chat_term")
_COPY: Final = phrases("chat_copy")
_GREET: Final = phrases("chat_greet")
_WELL: Final = phrases("chat_well")
_IDENTITY: Final = phrases("chat_identity")
_ABILITIES: Final = phrases("chat_abilities")
_THANKS: Final = phrases("chat_thanks")
_FAREWELL: Final = phrases("chat_farewell")
_WEATHER: Final = phrases("chat_weather")
_UNKNOWN: Final = phrases("chat_unknown")


def _fact(
    task: str, phrases: tuple[str, ...], key: str, reasoning: str, answer: str, random: Random
) -> Exercise:
    return Exercise(task, vary(random, random.choice(phrases).format(x=key)), reasoning, answer)


def capital(random: Random) -> Exercise:
    """The capital of a country, or one time in five the country of a capital."""
    country, city = random.choice(list(load_corpus().table("capitals").items()))
    if random.random() < 0.2:
        answer = f"{city} is the capital of {country}."
        return _fact("country of a capital", _COUNTRY, city, f"{city} belongs to {country}.", answer, random)
    answer = f"The capital of {country} is {city}."
    exercise = _fact(
        "capital", _CAPITAL, country, f"They ask for the capital of {country}. It is {city}.", answer, random
    )
    return replace(exercise, question=exercise.question.lower()) if random.random() < 0.08 else exercise


def unknown_capital(random: Random) -> Exercise:
    """A country that does not exist: the model must not invent a capital."""
    country = invented_word(random, (2, 3)).capitalize() + random.choice(("", "", "ia", "land", "stan"))
    answer = f"I do not know the capital of {country}."
    return _fact(
        "unknown capital", _CAPITAL, country, f"I do not know the country {country}.", answer, random
    )


def opposite(random: Random) -> Exercise:
    """The opposite of a word; half of the pairs are asked from the other side."""
    word, other = random.choice(list(load_corpus().table("opposites").items()))
    if random.random() < 0.5:
        word, other = other, word
    return _fact(
        "opposite", _OPPOSITE, word, f"{word} and {other}.", f"The opposite of {word} is {other}.", random
    )


def colour(random: Random) -> Exercise:
    """The colour of a thing."""
    thing, name = random.choice(list(load_corpus().table("colours").items()))
    answer = f"{thing[0].upper()}{thing[1:]} is {name}."
    return _fact("colour", _COLOUR, thing, f"The colour of {thing} is {name}.", answer, random)


def plural(random: Random) -> Exercise:
    """The plural of a noun."""
    one, many = random.choice(list(load_corpus().table("plurals").items()))
    return _fact("plural", _PLURAL, one, f"one {one}, two {many}.", f"The plural of {one} is {many}.", random)


def sound(random: Random) -> Exercise:
    """What an animal says."""
    animal, noise = random.choice(list(load_corpus().table("sounds").items()))
    return _fact("sound", _SOUND, animal, f"The {animal} says {noise}.", f"A {animal} says {noise}.", random)


def following(random: Random) -> Exercise:
    """The next day or month."""
    name, after = random.choice(list(load_corpus().table("after").items()))
    return _fact(
        "next day or month", _AFTER, name, f"{name}, {after}.", f"After {name} comes {after}.", random
    )


def term(random: Random) -> Exercise:
    """A word of this project explained in one sentence."""
    word, meaning = random.choice(list(load_corpus().table("terms").items()))
    if random.random() < 0.25 and word[0].islower() and not word.endswith(("ing", "ill")):
        word += "s"
    return _fact("term", _TERM, word, f"They ask what {word} means.", meaning, random)


def copy(random: Random, held_out: bool = False) -> Exercise:
    """Repeat a text: known words, made-up words, names, cities, numbers, mixed; the answer is the text
    alone.
    """
    text = copied_text(random, held_out)
    question = random.choice(_COPY).format(x=text)
    if random.random() < 0.5:
        question = question[0].upper() + question[1:]
    return Exercise("copy", question, f"I repeat: {text}", text)


def copied_text(random: Random, held_out: bool = False) -> str:
    """One to five words to be copied; when ``held_out`` every word is a made-up one unseen in training."""

    def piece() -> str:
        draw = random.random()
        if held_out or draw < 0.45:
            while True:
                word = invented_word(random)
                if text_is_held_out(word) == held_out:
                    return word.capitalize() if random.random() < 0.35 else word
        if draw < 0.70:
            return random.choice(load_corpus().words)
        if draw < 0.80:
            return random.choice(load_corpus().names)
        if draw < 0.90:
            return str(random.randint(0, 10 ** random.randint(1, 6)))
        if draw < 0.95:
            return "".join(
                random.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHKLMNPRSTUVWXZ0123456789_")
                for _ in range(random.randint(2, 7))
            )
        return random.choice(_trained_cities())

    words = [piece() for _ in range(random.choices((1, 2, 3, 4, 5), (35, 28, 20, 10, 7))[0])]
    if len(words) > 1 and random.random() < 0.08:
        words[-1] = words[0]
    return " ".join(words) + random.choices(("", "!", "."), (86, 8, 6))[0]


def _trained_cities() -> list[str]:
    return [city for city in load_corpus().cities if not text_is_held_out(city)]


def count(random: Random) -> Exercise:
    """Count up or down between two small numbers."""
    first = random.choice((1, 1, random.randint(0, 90)))
    last = (
        first + random.choices((random.randint(2, 11), random.randint(12, 50), 100 - first), (86, 11, 3))[0]
    )
    last = max(last, first + 2)
    phrases = [
        f"count from {first} to {last}",
        f"count from {first} up to {last}",
        f"list the numbers from {first} to {last}",
    ]
    numbers = list(range(first, last + 1))
    if first == 1:
        phrases += [f"count to {last}", f"can you count to {last}?"]
    if random.random() < 0.35:
        numbers.reverse()
        phrases = [
            f"count down from {last} to {first}",
            f"count backwards from {last} to {first}",
            f"count from {last} to {first}",
        ]
    answer = ", ".join(map(str, numbers)) + "."
    return Exercise(
        "count", vary(random, random.choice(phrases)), f"I count from {numbers[0]} to {numbers[-1]}.", answer
    )


def compare(random: Random) -> Exercise:
    """Which of two different numbers is larger or smaller."""
    while True:
        first, second = (random.randint(0, 10 ** random.randint(1, 3) - 1) for _ in range(2))
        if first != second:
            break
    larger = random.random() < 0.6
    word = random.choice(("larger", "bigger", "greater")) if larger else random.choice(("smaller", "less"))
    phrase = random.choice(
        ("which is {w}, {a} or {b}?", "what is {w}: {a} or {b}?", "which number is {w}, {a} or {b}?")
    )
    result = max(first, second) if larger else min(first, second)
    reasoning = f"{reason_order(first, second)}. {max(first, second)} is more than {min(first, second)}."
    return Exercise(
        "compare", vary(random, phrase.format(w=word, a=first, b=second)), reasoning, f"{result} is {word}."
    )


def _fixed(task: str, phrases: tuple[str, ...], answer: str, reasoning: str) -> Callable[[Random], Exercise]:
    def make(random: Random) -> Exercise:
        question = random.choice(phrases)
        question = vary(random, question) if random.random() < 0.5 else question
        return Exercise(task, question, reasoning, load_corpus().text(answer))

    return make


greeting = _fixed("greeting", _GREET, "greeting", "The user says hello.")
wellbeing = _fixed("wellbeing", _WELL, "well", "The user asks how I am.")
identity = _fixed("identity", _IDENTITY, "identity", "The user asks who I am.")
abilities = _fixed("abilities", _ABILITIES, "abilities", "The user asks what I can do.")
thanks = _fixed("thanks", _THANKS, "thanks", "The user says thanks.")
farewell = _fixed("farewell", _FAREWELL, "farewell", "The user says goodbye.")


def weather_without_tool(random: Random) -> Exercise:
    """A weather question when no tool is offered."""
    question = vary(random, random.choice(_WEATHER).format(x=random.choice(load_corpus().cities)))
    return Exercise(
        "weather without tool", question, "I have no weather tool.", load_corpus().text("no_weather")
    )


def fallback(random: Random) -> Exercise:
    """Anything else: the honest answer that the model does not know."""
    if random.random() < 0.55:
        question = random.choice(load_corpus().questions)
    else:

        def noun() -> str:
            return random.choice(load_corpus().words) if random.random() < 0.6 else invented_word(random)

        question = random.choice(_UNKNOWN).format(x=noun(), y=noun())
    return Exercise("fallback", vary(random, question), "I do not know this.", load_corpus().text("fallback"))


_STORY: Final = phrases("chat_story")


def tale_text(random: Random, hero: str | None = None) -> str:
    """A few composed sentences about people and things: endless simple English."""
    corpus = load_corpus()
    name, other = random.sample(corpus.names, 2)
    name = hero or name
    city, day = random.choice(corpus.cities), random.choice(list(corpus.table("after")))
    thing, place, second = random.sample(corpus.words[:110], 3)
    openings = (
        f"{name} lives in {city}.",
        f"One day {name} found a {thing}.",
        f"{name} and {other} went to {city}.",
        f"On a {day} {name} lost a {thing}.",
    )
    middles = (
        f"Near the {place} there was a {second}.",
        f"{other} wanted the {thing} too.",
        f"They looked at the {place} for a long time.",
        f"The {second} was old and the {thing} was new.",
        f"{name} put the {thing} on the {place}.",
        f"It was cold, and the {place} was dark.",
        f"{other} said: I know this {thing}.",
        f"Nobody saw the {second} behind the {place}.",
        f"{name} asked {other} about the {second}.",
    )
    ends = (
        "In the evening they went home.",
        f"Then {name} gave the {thing} to {other}.",
        f"So the {thing} stayed in {city}.",
        f"After that {name} slept well.",
    )
    return " ".join(
        [random.choice(openings), *random.sample(middles, random.randint(1, 4)), random.choice(ends)]
    )


def story(random: Random) -> Exercise:
    """A story on demand, with a hero when one is named; the only open-ended answer of the model."""
    if random.random() < 0.5:
        hero = random.choice(load_corpus().names)
        question = vary(
            random,
            random.choice(
                ("tell me a story about {n}", "write a story about {n}", "a story about {n}")
            ).format(n=hero),
        )
        return Exercise("story", question, f"I tell a story about {hero}.", tale_text(random, hero))
    return Exercise("story", vary(random, random.choice(_STORY)), "I tell a story.", tale_text(random))


def in_json(random: Random) -> Exercise:
    """A short question with the wish for a JSON answer."""
    if random.random() < 0.6:
        base = mixed_arithmetic(random)
        value: str | int = int(base.answer.rstrip(".").split("= ")[1])
    else:
        base = random.choice((capital, opposite, plural))(random)
        if base.task == "country of a capital":
            value = base.answer.split(" is the capital of ")[1].rstrip(".")
        else:
            value = base.answer.split(" is ")[1].rstrip(".")
    wish = random.choice(
        (
            " Answer in JSON.",
            " Reply in JSON.",
            " as JSON",
            " Give JSON.",
            " Respond with a JSON object.",
            " (JSON)",
        )
    )
    return Exercise("json", base.question + wish, base.reasoning, json.dumps({"answer": value}))


TURNS: Final[tuple[tuple[Callable[[Random], Exercise], float], ...]] = (
    (mixed_arithmetic, 30.0),
    (copy, 17.0),
    (capital, 11.0),
    (fallback, 7.0),
    (term, 6.0),
    (greeting, 4.0),
    (identity, 2.5),
    (abilities, 1.5),
    (wellbeing, 1.2),
    (thanks, 1.5),
    (farewell, 1.2),
    (count, 6.0),
    (opposite, 3.5),
    (plural, 2.5),
    (colour, 2.0),
    (sound, 1.2),
    (following, 1.6),
    (compare, 4.5),
    (too_large, 2.0),
    (unknown_capital, 1.2),
    (weather_without_tool, 1.2),
    (in_json, 2.5),
    (story, 1.5),
)
"""Every kind of turn with its share in ordinary chats."""
