"""One question with its right answer, and the rule that keeps some of them out of training.

The held-out part is fixed by a checksum, never by a random draw: a number pair is held out in either order
and for every operation, a city for every tool, a made-up word wherever it would have to be copied.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from random import Random
from typing import Final

HELD_OUT_SHARE: Final = 10
"""One in this many number pairs, cities and made-up words is held out."""

_ONSETS: Final = (
    "b",
    "br",
    "c",
    "ch",
    "cl",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "pr",
    "qu",
    "r",
    "s",
    "sh",
    "sk",
    "st",
    "t",
    "th",
    "tr",
    "v",
    "w",
    "x",
    "y",
    "z",
    "",
)
_VOWELS: Final = ("a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "ou", "y", "au")
_CODAS: Final = (
    "",
    "",
    "",
    "n",
    "r",
    "l",
    "s",
    "t",
    "m",
    "nd",
    "rk",
    "ck",
    "x",
    "ld",
    "st",
    "g",
    "ng",
    "th",
    "p",
    "b",
)


@dataclass(frozen=True)
class Exercise:
    """A user turn, the reasoning that leads to the answer, and the exact answer."""

    task: str
    question: str
    reasoning: str
    answer: str


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def pair_is_held_out(first: int, second: int) -> bool:
    """True when no training document may ask about these two numbers; pairs of single digits never are."""
    low, high = sorted((first, second))
    return high >= 10 and _checksum(f"{low} {high}") % HELD_OUT_SHARE == 0


def text_is_held_out(text: str) -> bool:
    """True when no training document may ask the model to copy this word or city."""
    return _checksum(text.lower()) % HELD_OUT_SHARE == 0


def invented_word(random: Random, syllables: tuple[int, int] = (1, 3)) -> str:
    """A pronounceable lower-case word that exists in no list."""
    count = random.randint(*syllables)
    return "".join(
        random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS) for _ in range(count)
    )


def vary(random: Random, sentence: str) -> str:
    """The same sentence as people type it: capital or not, closing mark or not, a polite word before it."""
    if random.random() < 0.4:
        sentence = sentence[:1].upper() + sentence[1:]
    if random.random() < 0.25:
        sentence = sentence.rstrip("?.")
    draw = random.random()
    if draw < 0.04:
        sentence = "please " + sentence
    elif draw < 0.07:
        sentence = "hey, " + sentence
    elif draw < 0.09:
        sentence = "Hi! " + sentence
    elif draw < 0.11 and sentence[-1:] not in "?.":
        sentence += " please"
    return sentence
