"""The committed text from which training documents are composed.

Reads ``engine/nano/data`` and nothing else, so the training data never depends on the machine it is made on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

DATA_DIRECTORY: Final = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Corpus:
    """Facts, lists of words and plain paragraphs; every sequence keeps the order of its file."""

    facts: dict[str, Any]
    cities: tuple[str, ...]
    names: tuple[str, ...]
    words: tuple[str, ...]
    questions: tuple[str, ...]
    paragraphs: tuple[str, ...]

    def table(self, name: str) -> dict[str, str]:
        """One table of facts, for example ``capitals``: question word to answer word."""
        table: dict[str, str] = self.facts[name]
        return table

    def text(self, name: str) -> str:
        """One fixed answer, for example ``greeting``."""
        return str(self.facts[name])


def _lines(name: str) -> tuple[str, ...]:
    text = (DATA_DIRECTORY / name).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


@cache
def load_corpus() -> Corpus:
    """Read the committed text once per process."""
    prose = (DATA_DIRECTORY / "prose.txt").read_text(encoding="utf-8")
    return Corpus(
        facts=json.loads((DATA_DIRECTORY / "facts.json").read_text(encoding="utf-8")),
        cities=_lines("cities.txt"),
        names=_lines("names.txt"),
        words=_lines("words.txt"),
        questions=_lines("questions.txt"),
        paragraphs=tuple(part.strip() for part in prose.split("\n\n") if part.strip()),
    )


@cache
def _phrase_file() -> dict[str, Any]:
    phrase_file: dict[str, Any] = json.loads((DATA_DIRECTORY / "phrases.json").read_text(encoding="utf-8"))
    return phrase_file


def phrases(name: str) -> tuple[str, ...]:
    """The ways to say one thing, as committed in ``phrases.json``; a repeated phrase is drawn more often."""
    return tuple(_phrase_file()[name])


def phrase_table(name: str) -> dict[str, tuple[str, ...]]:
    """A table of such lists."""
    return {key: tuple(values) for key, values in _phrase_file()[name].items()}
