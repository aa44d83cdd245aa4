"""Conformance of every engine: no grammar text ends the process or keeps it from the next request.

Whether such a text is taken or refused is the engine's, and pinned here with the reason of its log.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from generated import limits
from tests.engine.conformance import PROMPT, Number
from tests.engine.engine_process import EngineProcess


def references(link: Callable[[dict[str, str]], Any], count: int) -> str:
    """A schema whose definitions refer to each other, one after the other."""
    definitions: dict[str, Any] = {
        str(place): link({"$ref": f"#/$defs/{place + 1}"}) for place in range(count)
    }
    definitions[str(count)] = {"const": 1}
    return json.dumps({"$ref": "#/$defs/0", "$defs": definitions}, separators=(",", ":"))


def optional(count: int, letter: str = "p") -> dict[str, Any]:
    """A schema of an object with optional properties."""
    properties = {f"{letter}{place}": {"const": 1} for place in range(count)}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def chain(count: int, end: str) -> str:
    """GBNF rules that name each other, one after the other."""
    return "".join(f"a{place}::=a{place + 1}\n" for place in range(count)) + f"a{count}::={end}\nroot::=a0"


HOSTILE = {
    "references": references(lambda link: link, 12_000),
    "references in items": references(lambda link: {"items": link}, 2000),
    "references in properties": references(lambda link: {"properties": {"a": link}}, 2000),
    "references in allOf": references(lambda link: {"allOf": [link]}, 12_000),
    "references in anyOf": references(lambda link: {"anyOf": [link, {"const": 2}]}, 2000),
    "many references": json.dumps(
        {"anyOf": [{"$ref": f"#/$defs/{place}"} for place in range(5000)]}
        | {"$defs": {str(place): {"const": place} for place in range(5000)}}
    ),
    "a chain of rules": chain(9000, '"x"'),
    "a chain of rules that comes back": chain(9000, '"x" root?'),
    "many rules": "".join(f'x{place}::=""\n' for place in range(60_000)) + 'root::="a"',
    "many names": "root::=" + " ".join(f"n{place}" for place in range(100_000)),
    "long repetitions": "root ::= " + '"a"{100000}' * 20_000,
    "nullable repetitions": "root ::= " + '("a"?)*' * 4000,
    "a long nullable repetition": 'root ::= ("a"?){0,20000} "b"',
    "a repetition of repetitions": 'root ::= ((.{0,50}){0,50}) "b"',
    "the same in a recursion": 'root ::= "(" root ")" | ((.{0,50}){0,50})',
    "choices of nothing": "root ::= " + "|" * 500_000,
    "groups of nothing": "root ::= " + "()" * 250_000,
    "open groups": "root ::= " + "(" * 500_000,
    "a class of many characters": f"root ::= [{''.join(map(chr, range(0x4E00, 0x9FFF, 2)))}]",
    "open objects": '{"a":' * 100_000,
    "optional properties": json.dumps({"properties": {f"p{place}": {"const": 1} for place in range(3000)}}),
    "an object of 4000 optional properties": json.dumps(optional(4000)),
    "such an object in another": json.dumps(
        {"type": "object", "properties": {"a": optional(4000)}, "required": ["a"]}
    ),
    "a choice of 600 objects": json.dumps({"anyOf": [optional(5, f"p{place}_") for place in range(600)]}),
    "an object of 6000 optional properties": json.dumps(optional(6000)),
    "choices behind a text": 'root ::= "x" ("a"'
    + "".join(f' | "{chr(0x4E00 + place)}"' for place in range(9000))
    + ') ("(" root ")")?',
    "the least integer of 64 bits": '{"const":-9223372036854775808}',
    "integers far below it": '{"type":"integer","minimum":-1e300,"maximum":-1e299}',
    "a multiple of many remainders": '{"multipleOf":2147483648}',
    "a number no float holds": '{"const":12345678901234567890123}',
    "a decimal of 400 zeros": f'{{"const":0.5{"0" * 400}}}',
    "a decimal of 5000 zeros": f'{{"const":0.5{"0" * 5000}}}',
}


TOO_LARGE = "the grammar is too large: more than 40000 tokens"
REFUSED = {
    "native": {
        "many names": "a rule that is used and not defined",
        "long repetitions": "the grammar is too large",
        "choices of nothing": "the grammar takes too long",
        "open groups": "groups nested too deeply",
        "a class of many characters": "the grammar is too large",
        "open objects": "a rule without a name",
        "a decimal of 400 zeros": "a rule without a name",
        "a decimal of 5000 zeros": "a rule without a name",
        "integers far below it": "the schema has a bound that is malformed or too large",
        "a multiple of many remainders": "the schema has a keyword that is not supported",
        "an object of 6000 optional properties": "the schema has a property twice, or too many of them",
    },
    "reference": {
        "many rules": TOO_LARGE,
        "many names": TOO_LARGE,
        "long repetitions": TOO_LARGE,
        "choices of nothing": TOO_LARGE,
        "groups of nothing": TOO_LARGE,
        "open groups": TOO_LARGE,
        "a class of many characters": "line 1: a character class of more than 4096 ranges",
        "open objects": "the JSON Schema is nested too deeply",
        "the least integer of 64 bits": "the number -9223372036854775808 is too large",
        "integers far below it": "the number -1e300 is too large",
        "a multiple of many remainders": "the multiples have too many remainders",
        "an object of 6000 optional properties": (
            "the schema has too many optional properties or choices in one place: over 20000 items"
        ),
        "a number no float holds": "the number 12345678901234567890123 is too large",
        "a decimal of 400 zeros": f"the number 0.5{'0' * 37} has more than 300 characters",
        "a decimal of 5000 zeros": f"the number 0.5{'0' * 37} has more than 300 characters",
    },
}
"""What each engine refuses, and why; it takes all others."""


@pytest.fixture(scope="module")
def engine(command: list[str], models: dict[str, Path]) -> Iterator[EngineProcess]:
    """The model that may end its turn: no other takes a grammar."""
    with EngineProcess(command, models["llama"]) as running:
        yield running


def test_a_process_with_few_addresses_serves_what_its_stack_bears(models: dict[str, Path]) -> None:
    """The reference engine wants a stack of a gibibyte and takes what there is."""
    limited = ["sh", "-c", 'ulimit -v 1200000; exec "$0" "$@"', sys.executable, "-m", "engine.reference"]
    with EngineProcess(limited, models["llama"], {"OPENBLAS_NUM_THREADS": "1"}) as engine:
        engine.ask(1, PROMPT, 20, extra=b'{"const":"small"}')
        assert engine.text(1) == b'"small"'
        engine.ask(2, PROMPT, 3, extra=b'{"const":1' + b" " * 700_000 + b"}")
        assert engine.error(2) == ("BAD_REQUEST",)
        assert "bytes this process has the stack for" in engine.log
        engine.ask(3, PROMPT, 3)
        assert engine.of(3)[-1].completion_tokens == 3


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_grammar_is_answered(
    name: str, engine: EngineProcess, command: list[str], number: Number
) -> None:
    grammar = HOSTILE[name].encode()
    assert len(grammar) <= limits.EXTRA_BYTES
    reason = REFUSED["reference" if "engine.reference" in command else "native"].get(name)
    hostile, after = number(), number()
    end = engine.ask(hostile, PROMPT, 3, extra=grammar)[-1]
    if reason is None:
        assert end.KIND == "DONE"
    else:
        assert engine.error(hostile) == ("BAD_REQUEST",)
        assert engine.log.endswith(f"request {hostile}: invalid grammar: {reason}\n")
    engine.ask(after, PROMPT, 3)
    assert engine.of(after)[-1].completion_tokens == 3


def test_a_grammar_that_becomes_heavy_ends_its_request_only(engine: EngineProcess, number: Number) -> None:
    """It begins with a text longer than any token, so that the first mask is a light one."""
    heavy, after = number(), number()
    parts = " ".join(f"(.{{0,90}} [a-{chr(97 + place % 26)}] .{{7,80}})?" for place in range(60))
    engine.ask(heavy, PROMPT, 1000, extra=f'root ::= "{"zq7" * 40}" {parts} "!"'.encode())
    assert [frame.KIND for frame in engine.of(heavy)][:2] == ["ACCEPT", "DATA"]
    assert engine.of(heavy)[-1].words == ("grammar", "failed")
    assert f"request {heavy}: grammar failed: " in engine.log
    engine.ask(after, PROMPT, 20, extra=b'root ::= "works"')
    assert engine.text(after) == b"works"
