"""The exact JSON text of one argument of a tool call."""

from __future__ import annotations

import pytest

from server.text.arguments import argument_json, arguments_json


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
