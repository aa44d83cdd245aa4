"""Conformance of every engine: constants of a JSON Schema come out as one text, whatever their spelling."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.conformance import PROMPT, Number
from tests.engine.engine_process import EngineProcess

TEXTS = {
    "1": "1",
    "1.0": "1",
    "-1.50": "-1.5",
    "0.10": "0.1",
    "1e2": "100",
    "1E+2": "100",
    "12.5e-1": "1.25",
    "120e-1": "12",
    "0.0012e2": "0.12",
    "2.5e-5": "0.000025",
    "0": "0",
    "0.000": "0",
    "0e5": "0",
    "-0": "-0",
    "-0.0": "-0",
    "9007199254740991": "9007199254740991",
    "9007199254740992.0": "9007199254740992",
    "1.2345678901234568e20": "123456789012345680000",
    "1e21": "1000000000000000000000",
    "1.7976931348623157e308": "17976931348623157" + "0" * 292,
    "5e-22": "0." + "0" * 21 + "5",
    "3.141592653589793": "3.141592653589793",
    '[1.0, [2e1, {"a": 0.10}], {}, []]': '[1,[20,{"a":0.1}],{},[]]',
    '{"b": true, "a": null, "\\u00e9\\n": false}': '{"b":true,"a":null,"é\\n":false}',
    '{"a": 1, "a": 2.0}': '{"a":2}',
    '"a\\u0041\\"\\\\\\/\\u00e9é\\ud83d\\ude00\\u2028</b>"': '"aA\\"\\\\/éé😀\u2028</b>"',
    '"\\u0000"': '"\\u0000"',
    '""': '""',
}


@pytest.fixture(scope="module")
def engine(command: list[str], models: dict[str, Path]) -> Iterator[EngineProcess]:
    """The model that may end its turn: no other takes a grammar."""
    with EngineProcess(command, models["llama"]) as running:
        yield running


def answer(engine: EngineProcess, request: int, schema: str) -> str:
    """The whole text under a schema that allows only one."""
    end = engine.ask(request, PROMPT, 1000, extra=schema.encode())[-1]
    assert end.KIND == "DONE"
    assert not end.length_limited
    return engine.text(request).decode()


@pytest.mark.parametrize("written", TEXTS)
def test_a_constant_has_one_text(written: str, engine: EngineProcess, number: Number) -> None:
    assert answer(engine, number(), f'{{"const":{written}}}') == TEXTS[written]
    assert answer(engine, number(), f'{{"enum":[{written}]}}') == TEXTS[written]
    inside = f'{{"type":"object","properties":{{"p":{{"const":{written}}}}},"required":["p"],'
    assert answer(engine, number(), inside + '"additionalProperties":false}') == f'{{"p":{TEXTS[written]}}}'


@pytest.mark.parametrize(
    "written", ["1e400", "-1e400", "1e-400", "9007199254740993", "0.1000000000000000055"]
)
def test_a_constant_is_never_another_number(
    written: str, engine: EngineProcess, command: list[str], number: Number
) -> None:
    """The reference engine refuses what it would round, the native engine keeps every digit."""
    request = number()
    engine.ask(request, PROMPT, 1000, extra=f'{{"const":{written}}}'.encode())
    if "engine.reference" in command:
        assert engine.error(request) == ("BAD_REQUEST",)
    else:
        assert Decimal(engine.text(request).decode()) == Decimal(written)


NUMBERS = st.builds(
    lambda digits, places: float(f"{digits}e{places}"), st.integers(-(10**15), 10**15), st.integers(-20, 5)
) | st.integers(-(2**53), 2**53)
"""Numbers that both engines take."""
STRINGS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
CONSTANTS: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | STRINGS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=4,
)


def plain(value: Any) -> str:
    """The text of a constant as every engine writes it."""
    if isinstance(value, list):
        return f"[{','.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{plain(key)}:{plain(item)}' for key, item in value.items())}}}"
    if isinstance(value, float):
        digits = f"{Decimal(repr(value)):f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    return json.dumps(value, ensure_ascii=False)


IDS = count(10_000_000)


@given(st.lists(CONSTANTS, min_size=4, max_size=4))
def test_any_constant_has_the_same_text_in_every_engine(engine: EngineProcess, values: list[Any]) -> None:
    assert answer(engine, next(IDS), json.dumps({"const": values}, ensure_ascii=False)) == plain(values)


@given(st.decimals(-(10**12), 10**12, places=3), st.integers(-19, 6), st.sampled_from(["e", "E"]))
def test_any_spelling_of_a_number_has_the_same_text(
    engine: EngineProcess, digits: Decimal, exponent: int, mark: str
) -> None:
    written = f"{digits}{mark}{exponent}"
    assert answer(engine, next(IDS), f'{{"const":{written}}}') == plain(float(written))


@given(st.floats(-1e100, 1e100))
def test_any_float_keeps_its_value_or_is_refused(engine: EngineProcess, value: float) -> None:
    request = next(IDS)
    engine.ask(request, PROMPT, 1000, extra=json.dumps({"const": value}).encode())
    text = engine.text(request).decode()
    if text:
        assert text == plain(value)
    else:
        assert engine.error(request) == ("BAD_REQUEST",)
        assert engine.log.endswith((" would be rounded\n", " is too large\n"))
