"""The exact JSON text of one argument of a tool call."""

from __future__ import annotations

import pytest

from server.text.arguments import ToolSignature, argument_json, arguments_json


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("é\n", ("string",), '"é\\n"'),
        ("12", ("string",), '"12"'),
        (" 12 ", ("integer",), "12"),
        ("1.50", ("number",), "1.50"),
        ("12345678901234567890", ("integer",), "12345678901234567890"),
        ("1.0", ("integer",), "1.0"),
        ("1.5", ("integer",), '"1.5"'),
        ("true", ("integer",), '"true"'),
        ("true", ("boolean",), "true"),
        ("null", ("null", "integer"), "null"),
        ("null", ("integer",), '"null"'),
        ("null", ("null",), "null"),
        ("vielleicht ja: é", ("boolean",), '"vielleicht ja: é"'),
        ("NaN", ("number",), '"NaN"'),
        ("[é", (), '"[é"'),
        ('{"a": "\\u00e9"}', (), '{"a": "\\u00e9"}'),
        ('["é"]', ("object",), '"[\\"é\\"]"'),
    ],
)
def test_json_of_an_argument(text, types, expected):
    assert argument_json(text, types) == expected


def test_the_name_of_an_argument_is_written_as_it_is():
    assert arguments_json({"größe": "1", 'a"b': "x"}, None) == '{"größe":1,"a\\"b":"x"}'


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ("string",)),
        ({"type": ["null", "integer"]}, ("null", "integer")),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ("string", "null")),
        ({"oneOf": [{"type": "integer"}, {"type": ["integer", "string"]}]}, ("integer", "string")),
        ({"allOf": [{"description": "a name"}, {"type": "string"}]}, ("string",)),
        ({"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}]}, ("string", "null")),
        ({"$ref": "#/$defs/a~1b"}, ("boolean",)),
        ({"enum": ["1", "2"]}, ("string",)),
        ({"enum": [None, 2, 1.5, "x"]}, ("null", "integer", "number", "string")),
        ({"const": "7"}, ("string",)),
        ({"const": True}, ("boolean",)),
        ({"type": "string", "enum": [1]}, ("string",)),
        ({"description": "anything"}, None),
        ({"$ref": "#/$defs/Nowhere"}, None),
        ({"$ref": "http://elsewhere/schema"}, None),
        ({"$ref": "#/$defs/Circle"}, None),
        ({"anyOf": "string"}, None),
        ({"enum": []}, None),
        (True, None),
    ],
)
def test_the_types_a_parameter_declares(schema, types):
    definitions = {
        "City": {"enum": ["Rome", "Oslo"]},
        "a/b": {"type": "boolean"},
        "Circle": {"anyOf": [{"$ref": "#/$defs/Circle"}]},
    }
    root = {"properties": {"x": schema}, "$defs": definitions}
    assert ToolSignature.from_schema("f", root).types.get("x") == types


def test_b88_what_looks_like_a_number_stays_the_string_its_schema_allows():
    root = {
        "properties": {
            "zip": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "floor": {"enum": ["1", "2"]},
            "size": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        }
    }
    written = {"zip": "12345", "floor": "1", "size": "12"}
    signature = ToolSignature.from_schema("f", root)
    assert arguments_json(written, signature) == '{"zip":"12345","floor":"1","size":12}'
    assert arguments_json({"zip": "null", "size": "null"}, signature) == '{"zip":"null","size":null}'


def test_references_to_references_end():
    def several(name):
        return {"anyOf": [{"$ref": f"#/$defs/{name}"}] * 100}

    root = {
        "properties": {f"p{number}": several("a") for number in range(100)},
        "$defs": {"a": several("b"), "b": several("c"), "c": several("d"), "d": {"type": "string"}},
    }
    signature = ToolSignature.from_schema("f", root)
    assert signature.types == {}


@pytest.mark.parametrize(("others", "types"), [(9_999, ("string",)), (10_000, None)])
def test_the_last_part_that_is_looked_at_is_the_ten_thousandth(
    others: int, types: tuple[str, ...] | None
) -> None:
    unsaid: dict[str, object] = {f"p{number}": {} for number in range(others)}
    root = {"properties": {**unsaid, "x": {"anyOf": [{"type": "string"}]}}}
    assert ToolSignature.from_schema("f", root).types.get("x") == types
