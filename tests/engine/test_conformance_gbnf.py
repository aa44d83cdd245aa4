"""Conformance of every engine: GBNF as llama.cpp reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conformance import PROMPT, Number
from tests.engine.engine_process import EngineProcess

TEXTS = {
    'root ::= "a\nb"': b"a\nb",
    'root ::= "a\r\n\n" b\nb ::= "\n" | "\n"\n': b"a\r\n\n\n",
    'root ::= "#\nroot ::= |" [\n] "\\n"': b"#\nroot ::= |\n\n",
    'root ::= "x\n"{2} # "\n"\n' + 'b ::= "é\n"': None,
    'root ::= "a\\\nb"': None,
    'root ::= "a\n': None,
    'root ::= "a\nroot ::= "b"': None,
}
"""The only text of each grammar; None: refused."""


@pytest.fixture(scope="module")
def engine(command: list[str], models: dict[str, Path]) -> Iterator[EngineProcess]:
    """The model that may end its turn: no other takes a grammar."""
    with EngineProcess(command, models["llama"]) as running:
        yield running


@pytest.mark.parametrize("grammar", TEXTS)
def test_a_line_end_in_a_literal_stands_for_itself(
    grammar: str, engine: EngineProcess, number: Number
) -> None:
    """Whoever writes a grammar in a string of a program has one where a backslash and an n were meant."""
    request = number()
    engine.ask(request, PROMPT, 100, extra=grammar.encode())
    if TEXTS[grammar] is None:
        assert engine.error(request) == ("BAD_REQUEST",)
    else:
        assert engine.text(request) == TEXTS[grammar]
