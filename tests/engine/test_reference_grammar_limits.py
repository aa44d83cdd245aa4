"""The limits of llguidance in the reference engine: what can be foreseen is refused with its request, what
cannot ends the request, and never passes for a text that is whole.
"""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pytest
from llguidance import LLMatcher, LLParserLimits

from engine.reference import grammar, schema_numbers
from engine.reference.grammar import GrammarCompiler, GrammarConstraint, GrammarError, grammar_source
from engine.reference.schema_width import widest_row

END = 256
COMPILER = GrammarCompiler(
    [*(bytes([byte]) for byte in range(256)), b"<end>"],
    frozenset(),
    frozenset({END}),
    lambda text: [*text.encode()],
)
"""Every byte is a token."""
LOGITS = np.zeros(257, dtype=np.float32)


def optional(count: int, letter: str = "p", **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"{letter}{place}": {"const": 1} for place in range(count)},
        **more,
    }


def under_limits(schema: dict[str, Any], text: str, **limits: int) -> tuple[GrammarConstraint, Any]:
    """The constraint behind a text of a schema, and its matcher, under limits of the library."""
    COMPILER.compile(b"true")  # makes the tokenizer
    matcher = LLMatcher(
        COMPILER._tokenizer,
        grammar_source(json.dumps(schema).encode()),
        log_level=0,
        limits=LLParserLimits(verbose_errors=False, **limits),
    )
    matcher.consume_tokens([*text.encode()])
    return GrammarConstraint(matcher, 257), matcher


FORESEEN: dict[str, tuple[dict[str, Any], str, int]] = {
    "an object": (optional(100), "{", 407),
    "two of its properties are required": (optional(100, required=["p60", "p70"]), "{", 247),
    "an object in another": (
        optional(1) | {"properties": {"a": optional(50)}, "required": ["a"]},
        '{"a":{',
        207,
    ),
    "choices": ({"anyOf": [optional(3, f"p{place}_") for place in range(9)]}, "{", 171),
    "choices in choices": (
        {"anyOf": [{"anyOf": [optional(2, f"p{one}{two}_") for two in range(3)]} for one in range(3)]},
        "{",
        135,
    ),
    "all of": ({"allOf": [optional(20, "a"), optional(30, "b")]}, "{", 207),
    "all of choices": (
        {"allOf": [{"anyOf": [optional(3, f"{letter}{place}_") for place in range(4)]} for letter in "ab"]},
        "{",
        496,
    ),
    "a reference": ({"$ref": "#/$defs/a~1b%20", "$defs": {"a/b ": optional(40)}}, "{", 167),
}
"""A schema, a text, and the items of the row behind it."""


@pytest.mark.parametrize("name", FORESEEN)
def test_rows_are_foreseen(name: str) -> None:
    """Pins how the library writes objects."""
    schema, text, items = FORESEEN[name]
    assert widest_row(schema) == items
    under_limits(schema, text, max_items_in_row=items)[0].restrict(LOGITS)
    _, matcher = under_limits(schema, text, max_items_in_row=20)
    found = re.search("Current row has ([0-9]+) items", matcher.get_error())
    assert found is not None
    assert int(found[1]) <= items


TAKEN: dict[str, tuple[dict[str, Any], str]] = {
    "in one object": (optional(4000), '{"p7":1,"p3999":1}'),
    "in an object in another": (
        {
            "type": "object",
            "properties": {"a": optional(4000)},
            "required": ["a"],
            "additionalProperties": False,
        },
        '{"a":{"p3999":1}}',
    ),
    "of two schemas": ({"allOf": [optional(2000, "a"), optional(2000, "b")]}, '{"a1999":1,"b1999":1}'),
    "of many objects": (
        {"anyOf": [optional(5, f"p{place}_", additionalProperties=False) for place in range(700)]},
        '{"p699_4":1}',
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_thousands_of_optional_properties_are_taken(name: str) -> None:
    schema, text = TAKEN[name]
    constraint = COMPILER.compile(json.dumps(schema).encode())
    for token in text.encode():
        assert np.isfinite(constraint.restrict(LOGITS)[token])
        constraint.accept(token)


REFUSED: dict[str, dict[str, Any]] = {
    "in one object": optional(5000),
    "in an object in another": {"properties": {"a": {"items": [{"not": True}, optional(5000)]}}},
    "of two schemas": {"allOf": [optional(3000, "a"), optional(3000, "b")]},
    "of a reference and its neighbours": {"$ref": "#/$defs/0/1", "$defs": {"0": [1, optional(4999)]}}
    | optional(9, "q"),
    "of many objects": {"anyOf": [optional(5, f"p{place}_") for place in range(900)]},
    "of choices of choices": {"allOf": [{"anyOf": [optional(1), optional(2)]}] * 5000},
}


@pytest.mark.parametrize("name", REFUSED)
def test_more_of_them_are_refused_at_once(name: str) -> None:
    with pytest.raises(
        GrammarError, match=r"^the schema has too many optional properties or choices in one place"
    ):
        COMPILER.compile(json.dumps(REFUSED[name]).encode())


@pytest.mark.parametrize(
    "schema",
    [
        optional(9000, required=[f"p{place}" for place in range(9000)]),
        {"enum": [f"value {place}" for place in range(20_000)]},
        {"anyOf": [{"type": ["string", "null"], "maxLength": place} for place in range(5000)]},
        {"anyOf": [{"const": place} for place in range(5000)], "default": optional(4000)},
        {
            "$ref": "#/$defs/0",
            "$defs": {str(place): {"$ref": f"#/$defs/{place + 1}"} for place in range(9000)},
        },
        {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}]},
        {"$ref": "elsewhere", "anyOf": 1, "properties": ["p"], "required": {}, "enum": None, "type": {}},
    ],
)
def test_what_takes_few_items_is_not_suspected(schema: dict[str, Any]) -> None:
    assert widest_row(schema) <= 16_007


@pytest.mark.parametrize(
    ("schema", "text", "limits"),
    [
        ({"type": "object"}, '{"a":', {"step_max_items": 10}),
        ({"type": "object"}, '{"', {"step_lexer_fuel": 50}),
        ({"type": "string", "maxLength": 900}, '"' + "a" * 50, {"max_lexer_states": 40}),
    ],
)
def test_a_limit_met_in_a_mask_is_no_end_of_the_text(
    schema: dict[str, Any], text: str, limits: dict[str, int]
) -> None:
    """The library then allows nothing but the end tokens."""
    constraint, matcher = under_limits(schema, text, **limits)
    assert not matcher.is_error()
    with pytest.raises(GrammarError, match=r"Too many items|too many expressions|too many states"):
        constraint.restrict(LOGITS)


def test_a_limit_met_by_a_token_is_no_end_of_the_text() -> None:
    constraint, _ = under_limits(optional(50), "", max_items_in_row=100)
    constraint.restrict(LOGITS)
    with pytest.raises(GrammarError, match=r"Current row has 207 items; max is 100"):
        constraint.accept(ord("{"))


def test_a_mask_or_token_that_takes_too_long_ends_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = COMPILER.compile(b'root ::= "ab"')
    monkeypatch.setattr(grammar, "MOST_SECONDS", -1.0)
    with pytest.raises(GrammarError, match=r"^the grammar takes too long$"):
        constraint.restrict(LOGITS)
    with pytest.raises(GrammarError, match=r"^the grammar takes too long$"):
        constraint.accept(ord("a"))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"enum":["a",{"b":[9007199254740993]}]}', "the constant 9007199254740993 would be rounded"),
        ('{"const":1e-23}', "the constant 1E-23 would be rounded"),
        ('{"const":-9223372036854775807}', "the number -9223372036854775807 is too large"),
        *(
            (f'{{"const":{sign}0.5{"0" * zeros}}}', f"the number {start} has more than 300 characters")
            for zeros in (400, 5000)
            for sign, start in (("", "0.5" + "0" * 37), ("-", "-0.5" + "0" * 36))
        ),
        ('{"const":1e-9999999999999999999}', "the number 1e-9999999999999999999 is too small"),
        ('{"allOf":[{"multipleOf":1009},{"multipleOf":1013}]}', "the multiples have too many remainders"),
        ('{"multipleOf":0.1234567}', "the multiples have too many remainders"),
    ],
)
def test_numbers_that_the_library_would_not_keep_are_refused(schema: str, reason: str) -> None:
    with pytest.raises(GrammarError) as found:
        COMPILER.compile(schema.encode())
    assert str(found.value) == reason


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"integer","maximum":9223372036854775807}',
        '{"type":"integer","maximum":9007199254740993,"default":9007199254740993}',
        '{"anyOf":[{"multipleOf":0.01},{"multipleOf":1000},{"multipleOf":1e9},{"multipleOf":720}]}',
        '{"enum":[true,0.5,18446744073709550000,{"const":null}]}',
    ],
)
def test_numbers_that_it_keeps_are_taken(schema: str) -> None:
    COMPILER.compile(schema.encode())


@pytest.mark.parametrize("fault", [OverflowError, MemoryError, ValueError, InvalidOperation, RuntimeError])
@pytest.mark.parametrize("text", ["{}", "start: %json {}"])
def test_whatever_a_check_raises_refuses_the_grammar(
    fault: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> int:
        raise fault("of a check")

    for module, name in ((grammar, "widest_row"), (schema_numbers, "check")):
        monkeypatch.setattr(module, name, broken)
        with pytest.raises(GrammarError) as found:
            COMPILER.compile(text.encode())
        assert str(found.value) == f"the JSON Schema cannot be checked: {fault.__name__}: of a check"


def test_a_reference_to_an_item_of_too_many_digits_is_left_to_the_library() -> None:
    schema = {"$ref": f"#/$defs/{'9' * 5000}", "$defs": []}
    assert widest_row(schema) == widest_row({})
    with pytest.raises(GrammarError, match="Failed to parse array index"):
        COMPILER.compile(json.dumps(schema).encode())


def test_few_constants_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of decimals would take the loop thread a second."""
    computed: list[Decimal] = []
    read = schema_numbers._read_by_the_library

    def counted(value: Decimal) -> float:
        computed.append(value)
        return read(value)

    monkeypatch.setattr(schema_numbers, "_read_by_the_library", counted)
    monkeypatch.setattr(schema_numbers, "MOST_COMPUTED", 2)
    short = "0.1,-0.25,1234567890.12345,0.0000001,7,0.0,1e9"
    schema_numbers.check(schema_numbers.load(f'{{"enum":[{short},0.1234567890123456,1e20]}}'))
    assert set(computed) == {Decimal("0.1234567890123456"), Decimal("1e20")}
    with pytest.raises(
        schema_numbers.SchemaError, match=r"^more than 2 constants of many digits or large exponents$"
    ):
        schema_numbers.check(schema_numbers.load(f'{{"enum":[{short},1e20,1e20,1e20]}}'))


def test_short_constants_would_be_kept() -> None:
    """What is not computed for them would come out so."""
    choose = random.Random(1)
    for _ in range(20_000):
        length = choose.randint(1, 15)
        value = Decimal(choose.randrange(10**length)).scaleb(choose.randint(-22, 15 - length))
        assert schema_numbers._is_plain(value)
        nearest = Decimal(repr(float(value)))
        assert nearest == value
        for spelling in (value, nearest):
            assert schema_numbers._read_by_the_library(spelling) == float(value)


def test_numbers_deep_within_constants_are_looked_at_once() -> None:
    """It would be minutes if each constant looked through those within it."""
    numbers = ",".join(map(str, range(120_000)))
    deep = '{"const":' * 300 + f"[{numbers}]" + "}" * 300
    schema_numbers.check(schema_numbers.load(deep))
    with pytest.raises(
        schema_numbers.SchemaError, match=r"^the constant 0\.1000000000000000055 would be rounded$"
    ):
        schema_numbers.check(schema_numbers.load(deep.replace("[0,", "[0.1000000000000000055,")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('start: %json {"const":-9223372036854775808}', "the number -9223372036854775808 is too large"),
        *(
            (
                f'start: %json {{"const":0.5{"0" * zeros}}}',
                f"the number 0.5{'0' * 37} has more than 300 characters",
            )
            for zeros in (400, 5000)
        ),
        ('start: "a" | b\nb: %json\n\t{"multipleOf":2147483648}', "the multiples have too many remainders"),
        (
            f"start: %json {json.dumps(optional(5000))}",
            "the schema has too many optional properties or choices in one place: over 20000 items",
        ),
        (f"start: %json {'[' * 100_000}", "the JSON Schema is nested too deeply"),
    ],
)
def test_schemas_within_lark_are_looked_at_too(text: str, reason: str) -> None:
    with pytest.raises(GrammarError) as found:
        COMPILER.compile(text.encode())
    assert str(found.value) == reason


@pytest.mark.parametrize("between", ["// {}\n", "# {}\n", "/**/", "\\\n"])
def test_the_library_takes_no_schema_that_was_not_looked_at(between: str) -> None:
    """Only blanks may be between the word and the schema."""
    with pytest.raises(GrammarError, match=r'^failed to parse "%json": expected value'):
        COMPILER.compile(f'start: %json {between}{{"const":-9223372036854775808}}'.encode())


@pytest.mark.parametrize("text", ['start: "%json"', 'start: "%json" // or %json x', "start: /%json/"])
def test_the_word_in_a_literal_or_comment_is_no_schema(text: str) -> None:
    constraint = COMPILER.compile(text.encode())
    for token in b"%json":
        assert np.isfinite(constraint.restrict(LOGITS)[token])
        constraint.accept(token)


def test_a_schema_within_lark_is_taken() -> None:
    constraint = COMPILER.compile(b'start: "a" %json {"const": 1.0} "b"')
    for token in b"a1b":
        assert np.isfinite(constraint.restrict(LOGITS)[token])
        constraint.accept(token)
