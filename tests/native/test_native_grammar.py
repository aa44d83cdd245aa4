"""What the native engine's grammars let through: JSON that validates, text of the language, no other text.

The model is random, so that whatever a grammar allows comes up sooner or later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.engine.checkpoints import RECIPES, write_checkpoint
from tests.engine.engine_process import EngineProcess, submit
from tests.native.heavy_masks import MASKS, PROMPT, cancel_while_waiting

SLOTS = 8
LIMIT = 480


@pytest.fixture(scope="module")
def engine(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """A random llama with two plain tags and the end tokens of glm."""
    directory = write_checkpoint(tmp_path_factory.mktemp("llama"), RECIPES["llama"])
    with EngineProcess(command, directory, {"KV_SLOTS": str(SLOTS)}) as running:
        yield running


@pytest.fixture
def generate(engine: EngineProcess) -> Callable[[str | bytes], list[bytes]]:
    """Texts of SLOTS samples under a grammar that reached their end by themselves."""
    used = max((getattr(frame, "id", 0) for frame in engine.received), default=0)

    def run(grammar: str | bytes) -> list[bytes]:
        nonlocal used
        text = grammar.encode() if isinstance(grammar, str) else grammar
        ids = range(used + 1, used + 1 + SLOTS)
        used += SLOTS
        heat = (0.0, 0.5, 1.0, 1.5, 2.0, 1.0, 0.8, 1.2)
        engine.send(
            b"".join(
                submit(number, PROMPT, LIMIT, slot=slot, temperature=heat[slot], extra=text)
                for slot, number in enumerate(ids)
            )
        )
        engine.wait_ends(ids)
        ends = {number: engine.of(number)[-1] for number in ids}
        assert all(end.KIND == "DONE" for end in ends.values()), (list(ends.values()), engine.log[-500:])
        return [engine.text(number) for number, end in ends.items() if not end.length_limited]

    return run


SCHEMAS: dict[str, Any] = {
    "closed object": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "optional properties": {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"const": 1}, "d": {"const": 2}},
        "required": ["c"],
        "additionalProperties": False,
    },
    "additional properties": {
        "type": "object",
        "properties": {"ab": {"type": "null"}, "a": {"type": "boolean"}, "": {"const": 1}, "é": {"const": 2}},
        "additionalProperties": {"type": "integer", "minimum": 7, "maximum": 9},
        "required": ["zz"],
    },
    "array": {"type": "array", "items": {"enum": ["red", "blue", 3, None]}, "minItems": 1, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "boolean"}, {"const": "x"}], "items": False},
    "long tuple": {"prefixItems": [{"type": "null"}], "items": {"const": 0}, "minItems": 2, "maxItems": 4},
    "several types": {"type": ["null", "boolean", "integer"], "minimum": -3, "maximum": 12},
    "constant": {"const": {"nested": [1, 2.5, {"deep": 'é"\\\n'}], "empty": {}}},
    "values of a type": {"type": "string", "enum": [1, "one", None, "two"]},
    "choice": {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 2, "maxLength": 3}]},
    "one of types": {"oneOf": [{"type": "null"}, {"type": "integer", "minimum": 5, "maximum": 5}]},
    "all of one": {"allOf": [{"type": "boolean"}]},
    "reference": {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "array", "items": {"$ref": "#/$defs/c"},
                  "maxItems": 2}, "c": {"enum": [True]}}},
    "recursion": {
        "type": "object",
        "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
        "required": ["next"],
        "additionalProperties": False,
    },
    "number": {"type": "number", "exclusiveMinimum": -2.5, "maximum": 12},
    "negative number": {"type": "number", "minimum": -40, "exclusiveMaximum": -3},
    "any number": {"type": "number"},
    "open below": {"type": "integer", "maximum": -100},
    "open above": {"type": "integer", "exclusiveMinimum": 99999},
    "annotations": {"title": "t", "description": "d", "format": "x", "default": 1, "type": "boolean"},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_json_always_validates(name: str, generate: Callable[[str], list[bytes]]) -> None:
    texts = generate(json.dumps(SCHEMAS[name]))
    assert texts, "no sample came to its end"
    for text in texts:
        jsonschema.validate(json.loads(text), SCHEMAS[name])


def test_any_object_is_an_object(generate: Callable[[str], list[bytes]]) -> None:
    for text in generate('{"type":"object"}'):
        assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (7, 103), (-17, 1234), (-250, -99), (998, 100001), (-1, 1)]
)
def test_integer_bounds(low: int, high: int, generate: Callable[[str], list[bytes]]) -> None:
    """Samples are inside and in one form; a range of one value at each bound gives exactly that value."""
    for value in {low, min(low + 1, high), max(high - 1, low), high}:
        only = {"type": "integer", "minimum": value, "maximum": value}
        assert set(generate(json.dumps(only))) == {str(value).encode()}
    for text in generate(json.dumps({"type": "integer", "minimum": low, "maximum": high})):
        assert low <= int(text) <= high
        assert re.fullmatch(rb"0|-?[1-9][0-9]*", text)


LANGUAGES = [
    ('root ::= "yes" | "no"', r"yes|no"),
    ('root ::= item+ "!"\nitem ::= [a-c] "é"\n', r"([a-c]é)+!"),
    ("root ::= [^a-zA-Z\\x00-\\x1f]{2,4}", r"[^a-zA-Z\x00-\x1f]{2,4}"),
    ('root ::= ( # comment\n  "a" |\n  "b" ) x?\nx ::= "\\n" "\\u00e9" "\\"" "\\x41"', '[ab](\né"A)?'),
    ('root ::= "(" root? ")"', r"\(+\)+"),
    ('root ::= a\n  | "z"\na ::= "q" ""', r"q|z"),
    ('root ::= "a"{3} "b"{0,2} "c"{2,3}', r"aaab{0,2}c{2,3}"),
    ('root ::= ("x"?)* "."', r"x*\."),
    ("root ::= [日本語🎈]", r"[日本語🎈]"),
    ('root ::= "a" * [0-9] {2} ("b" | "c")\t? "d" { 1 , 2 } x +\nx ::= "e"', r"a*[0-9]{2}[bc]?d{1,2}e+"),
    ('root ::= (\n"a"\n*\n"b" # comment\n{2}\n) "c"', r"a*b{2}c"),
    ('root ::= "a"{2}{2} "b"?* "c" + ? [de]{0,1} {3} "."', r"aaaab*c*[de]{0,3}\."),
    ('root ::= "a"{7}{0} "b"', r"b"),
    ('root ::= root | "a"', r"a"),
    ('root ::= a | "c"\na ::= root | "b" ""', r"[bc]"),
    ('root ::= ("a"?){0,2000} "b"', r"a*b"),
]


@pytest.mark.parametrize(("grammar", "language"), LANGUAGES)
def test_text_stays_in_the_language(
    grammar: str, language: str, generate: Callable[[str], list[bytes]]
) -> None:
    texts = generate(grammar)
    assert texts, "no sample came to its end"
    for text in texts:
        assert re.fullmatch(language, text.decode(), re.DOTALL), text


def test_any_character_is_one_character(generate: Callable[[str], list[bytes]]) -> None:
    for text in generate("root ::= . . ."):
        assert len(text.decode("utf-8")) == 3


INVALID: list[tuple[bytes, str]] = [
    (b"root ::= (", "a group without end"),
    (b"root ::= missing", "a rule that is used and not defined"),
    (b"not a grammar", "a rule that is defined twice or not at all"),
    (b'root ::= "a"\nroot ::= "b"', "a rule that is defined twice or not at all"),
    (b'start ::= "a"', "no rule named root"),
    (b" ", "no rule named root"),
    (b"\xff", "the grammar is not UTF-8 text"),
    (b"[1]", "a rule without a name"),
    (b"[" * 100000, "a rule without a name"),
    (b'root ::= root "a" | "b"', "a rule begins with itself"),
    (b"root ::= root", "the grammar allows no text"),
    (b'root ::= "a"{3,1}', "a malformed repetition"),
    (b'root ::= "a"{1000000}', "a malformed repetition"),
    (b"root ::= " + b'"a"{99999} ' * 25, "the grammar is too large"),
    (b"root ::= [z-a]", "a range that ends before it begins"),
    (b'root ::= "\\q"', "an unknown escape"),
    (b'root ::= "a', "a literal without end"),
    (b"root ::= " + b"(" * 100, "groups nested too deeply"),
    (b'{"type":"banana"}', "a type that does not exist"),
    (b'{"type":"object"', "a rule without a name"),
    (b'{"$ref":"#/nope"}', "a $ref to nothing"),
    (b'{"$ref":"http://example.org"}', "a $ref to another document"),
    (b'{"$ref":"#/$defs/a/anyOf/x","$defs":{"a":{"anyOf":[true]}}}', "a $ref to nothing"),
    (b'{"$ref":"#/$defs/a/anyOf/00","$defs":{"a":{"anyOf":[true]}}}', "a $ref to nothing"),
    (b'{"$ref":"#/$defs/a/anyOf/1","$defs":{"a":{"anyOf":[true]}}}', "a $ref to nothing"),
    (b"false", "the schema allows nothing"),
    (b'{"type":"string","pattern":"a"}', "a keyword that is not supported"),
    (b'{"type":"integer","minimum":3,"maximum":2}', "bounds with no integer between them"),
    (b'{"type":"string","minLength":3,"maxLength":2}', "a minLength above its maxLength"),
    (b'{"type":"array","items":false,"minItems":1}', "more items than it allows"),
    (b'{"required":["a"],"additionalProperties":false}', "requires a property that it does not allow"),
    (b'{"oneOf":[{"type":"integer"},{"type":"number"}]}', "a oneOf whose choices may overlap"),
    (b'{"enum":["a"],"type":"null"}', "an enum without a value of its type"),
    (b'{"anyOf":[true],"type":"null"}', "combines keywords in a way that is not supported"),
]


def next_request(engine: EngineProcess) -> int:
    return max((getattr(frame, "id", 0) for frame in engine.received), default=0) + 1


def refusal(engine: EngineProcess, grammar: bytes) -> str:
    """Why the log says a grammar is refused; the next request must work."""
    request = next_request(engine)
    engine.ask(request, PROMPT, 5, extra=grammar)
    assert engine.error(request) == ("BAD_REQUEST",)
    before, _, reason = engine.log.strip().split("\n")[-1].partition("invalid grammar: ")
    assert f"request {request}: " in before
    engine.ask(request + 1, PROMPT, 5, extra=b'root ::= "works"')
    assert engine.text(request + 1) == b"works"
    return reason


@pytest.mark.parametrize(("grammar", "reason"), INVALID)
def test_invalid_grammars_are_refused(grammar: bytes, reason: str, engine: EngineProcess) -> None:
    assert reason in refusal(engine, grammar)


def lines(line: str, count: int) -> str:
    return "".join(f"{line.format(i, i + 1)}\n" for i in range(count))


TOO_LARGE = "the grammar is too large"
TOO_LONG = "the grammar takes too long"
MANY_KEYS = ",".join(f'"{"k" * 200}{i}":{{}}' for i in range(4000))
NESTED = "(" * 12 + '"a1"' + ' | "q"){0,100}' * 12
HEAVY = {
    "copies": ("root ::= " + '"a"{100000}' * 20000, TOO_LARGE),
    "copies in groups": ("root ::= " + ('"a"{100000}' * 19 + "(") * 60, TOO_LARGE),
    "copies of groups": ('root ::= "a"{1000}{1000}' + '"b"{100000}{100000}' * 10, TOO_LARGE),
    "copies in alternatives": ("root ::= " + '"a"{100000} | ' * 60000 + '"b"', TOO_LARGE),
    "stacked repetitions": ('root ::= "a"' + "*" * 1000000, TOO_LARGE),
    "any characters": ("root ::= " + "." * 1000000, TOO_LARGE),
    "keys": ('{"properties":{' + MANY_KEYS + "}}", TOO_LARGE),
    "tuples": (
        '{"anyOf":[' + ",".join(['{"prefixItems":[' + "{}," * 4000 + '{}],"maxItems":100000}'] * 80) + "]}",
        TOO_LARGE,
    ),
    "copies of copies": ('root ::= "(" root ")" | ((.{0,300}){0,300})', TOO_LONG),
    "nested choices": ("root ::= " + NESTED, TOO_LONG),
    "optional parts": ('root ::= ("a"?){0,100000} "b"', TOO_LONG),
    "alternatives": ("root ::= " + "|" * 1000000, TOO_LONG),
    "left recursion": (
        "root ::= a0\n" + lines('a{0} ::= a{1} "x"', 40000) + "a40000 ::= a0",
        "a rule begins with itself",
    ),
    "left recursion behind nothing": (
        'root ::= a "b"\na ::= b* c? root "d" | "e"\nb ::= "f"\nc ::= ""',
        "a rule begins with itself",
    ),
    "rules": (lines('x{0}::=""', 80000), "no rule named root"),
    "undefined rules": (
        "root ::= " + " ".join(f"x{i}" for i in range(140000)),
        "a rule that is used and not defined",
    ),
}


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_grammars_are_refused(name: str, engine: EngineProcess) -> None:
    grammar, reason = HEAVY[name]
    assert refusal(engine, grammar.encode()) == reason


TEXT_X = {
    "chain of rules": "root ::= a0\n" + lines("a{0} ::= a{1}", 50000) + 'a50000 ::= "x"',
    "many rules": 'root ::= "x"\n' + lines('x{0}::=""', 80000),
    "many references": json.dumps(
        {
            "anyOf": [{"$ref": f"#/$defs/{i}"} for i in range(15000)],
            "$defs": {str(i): {"$ref": "#/$defs/last/20"} for i in range(15000)}
            | {"last": [False] * 20 + [{"const": "x"}]},
        }
    ),
    "chain of references": json.dumps(
        {
            "$ref": "#/$defs/0",
            "$defs": {str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}]} for i in range(10000)}
            | {"10000": {"const": "x"}},
        }
    ),
}


@pytest.mark.parametrize("name", TEXT_X)
def test_large_grammars_of_little_text(name: str, generate: Callable[[str], list[bytes]]) -> None:
    assert {text.strip(b'"') for text in generate(TEXT_X[name])} == {b"x"}


def test_objects_of_many_properties(generate: Callable[[str], list[bytes]]) -> None:
    keys = {f"k{i}": {"const": i} for i in range(4000)}
    for closed in (False, True):
        schema = {
            "properties": keys,
            "type": "object",
            "additionalProperties": False if closed else {"const": 1},
        }
        for text in generate(json.dumps(schema)):
            value = json.loads(text)
            assert all(keys.get(key, {"const": 1})["const"] == item for key, item in value.items())
            assert not closed or value.keys() <= keys.keys()


def test_a_grammar_that_becomes_heavy_ends_its_request_only(engine: EngineProcess) -> None:
    """Its beginning is longer than any token, so that the first mask is a light one."""
    request = next_request(engine)
    start = "zq7" * 40
    engine.ask(request, PROMPT, LIMIT, extra=f'root ::= "{start}" (.{{0,300}}){{0,300}}'.encode())
    assert engine.of(request)[-1].words == ("grammar", "failed")
    assert f"request {request}: grammar failed: no token may follow" in engine.log
    engine.ask(request + 1, PROMPT, 5, extra=b'root ::= "works"')
    assert engine.text(request + 1) == b"works"


def test_heavy_grammars_share_a_step(engine: EngineProcess) -> None:
    """They wait for each other, not everybody for all of them; what comes out is the same."""
    plain = 10_090  # what is sampled, and so how heavy it is, depends on the numbers
    heavy = range(plain + 1, plain + SLOTS)

    def command(number: int) -> bytes:
        return submit(number, PROMPT, 16, slot=number - plain, temperature=1.0, extra=MASKS)

    engine.send(submit(plain, PROMPT, 80, extra=b"root ::= [a-z]{80}") + b"".join(map(command, heavy)))
    engine.wait_ends([plain, *heavy])
    order = [frame.id for frame in engine.received if frame.KIND == "DATA" and frame.id >= plain]
    last = max(place for place, number in enumerate(order) if number != plain)
    assert order[:last].count(plain) >= 30  # 23 were it a token of each in every step
    together = {number: engine.text(number) for number in heavy}
    engine.received.clear()
    for number in heavy:
        engine.send(command(number))
        engine.wait_ends([number])
    assert {number: engine.text(number) for number in heavy} == together


def test_a_request_that_waits_for_its_mask_is_cancelled(engine: EngineProcess) -> None:
    first = 20_000  # the same here
    assert cancel_while_waiting(engine, first, range(first + 1, first + SLOTS))
    engine.ask(first + SLOTS, PROMPT, 5, extra=b'root ::= "works"')
    assert engine.text(first + SLOTS) == b"works"


def test_a_model_without_end_token_takes_no_grammar(command: list[str], tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path, RECIPES["llama"])
    (directory / "generation_config.json").write_text('{"eos_token_id": []}', encoding="utf-8")
    with EngineProcess(command, directory) as running:
        running.ask(1, PROMPT, 5, extra=b'root ::= "a"')
        assert running.error(1) == ("BAD_REQUEST",)
        assert "invalid grammar: the model has no end token" in running.log
