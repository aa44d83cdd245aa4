"""tools, functions, tool_choice and response_format (http.md §10, §11; cases H-57 to H-72, G-64 to G-80)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generated import limits
from generated.families import FAMILIES
from server.chat import choose_tools, read_response_format, read_tools, require_grammar
from server.chat.tools import ToolDeclaration, ToolUse

from .faults import fault, refused

GLM, OLMOE = FAMILIES["glm"], FAMILIES["olmoe"]
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
F: dict[str, Any] = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
G: dict[str, Any] = {"name": "g"}
DECLARED = read_tools({"tools": [F, G]})


@pytest.mark.parametrize("body", [{}, {"tools": None}, {"tools": []}, {"functions": []}, {"functions": None}])
def test_null_and_empty_lists_are_absent(body: dict[str, object]) -> None:
    assert read_tools(body).tools == ()


def test_declarations_may_be_wrapped_or_bare() -> None:
    assert read_tools({"tools": [F]}).tools == (ToolDeclaration("f", "d", SCHEMA),)
    assert read_tools({"functions": [F["function"]]}).tools == (ToolDeclaration("f", "d", SCHEMA),)
    assert read_tools({"tools": [], "functions": [G]}).tools == (ToolDeclaration("g"),)


@pytest.mark.parametrize(
    "tools, param",
    [
        ("x", "tools"),
        (5, "tools"),
        ({}, "tools"),
        (True, "tools"),
        ([5], "tools.0"),
        ([F, None], "tools.1"),
        ([{"function": "x"}], "tools.0.function"),
        ([{"function": None}], "tools.0.function"),
        ([{}], "tools.0.function.name"),
        ([{"function": {}}], "tools.0.function.name"),
        ([{"function": {"name": ""}}], "tools.0.function.name"),
        ([{"name": 5}], "tools.0.function.name"),
        ([{"type": "web_search"}], "tools.0.function.name"),
        ([{"name": "f", "parameters": []}], "tools.0.function.parameters"),
    ],
)
def test_a_bad_declaration_is_named(tools: object, param: str) -> None:
    assert fault(lambda: read_tools({"tools": tools})) == refused(param, "invalid_value")


def test_functions_faults_name_functions() -> None:
    assert fault(lambda: read_tools({"functions": 5})) == refused("functions", "invalid_value")


@pytest.mark.parametrize("choice", ["maybe", "", "AUTO", "any"])
def test_another_word_is_unsupported(choice: str) -> None:
    assert fault(lambda: choose_tools(DECLARED, choice, GLM)) == refused("tool_choice", "unsupported_value")


@pytest.mark.parametrize(
    "choice",
    [
        5,
        True,
        [],
        {},
        {"function": "f"},
        {"function": {}},
        {"type": "function", "function": {"name": "zzz"}},
        {"type": "allowed_tools", "function": {"name": "f"}},
        {"function": {"name": 5}},
        {"type": "function"},
    ],
)
def test_a_choice_that_names_no_declared_tool_is_invalid(choice: object) -> None:
    assert fault(lambda: choose_tools(DECLARED, choice, GLM)) == refused("tool_choice", "invalid_value")


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "f"}}])
def test_a_choice_without_tools_is_invalid(choice: object) -> None:
    assert fault(lambda: choose_tools(read_tools({}), choice, GLM)) == refused("tool_choice", "invalid_value")


def test_none_offers_nothing_with_and_without_tools() -> None:
    assert choose_tools(DECLARED, "none", GLM) == choose_tools(read_tools({}), "none", GLM) == ToolUse()


def test_auto_and_absent_offer_all_without_instruction() -> None:
    for choice in (None, "auto"):
        use = choose_tools(DECLARED, choice, GLM)
        assert ([tool.name for tool in use.offered], use.instruction) == (["f", "g"], "")


def test_required_offers_all_with_an_instruction() -> None:
    use = choose_tools(DECLARED, "required", GLM)
    assert ([tool.name for tool in use.offered], bool(use.instruction)) == (["f", "g"], True)


@pytest.mark.parametrize("choice", [{"type": "function", "function": {"name": "g"}}, {"name": "g"}])
def test_a_named_tool_is_the_only_one_offered_and_is_named_in_the_instruction(choice: object) -> None:
    use = choose_tools(DECLARED, choice, GLM)
    assert [tool.name for tool in use.offered] == [sig.name for sig in use.signatures] == ["g"]
    assert " g " in use.instruction


def test_a_family_without_tools_refuses_active_declarations_only() -> None:
    assert fault(lambda: choose_tools(DECLARED, None, OLMOE)) == refused("tools", "unsupported_parameter")
    assert choose_tools(DECLARED, "none", OLMOE) == ToolUse()
    assert choose_tools(read_tools({}), None, OLMOE) == ToolUse()


@pytest.mark.parametrize("value", [None, {"type": "text"}, {"type": "text", "json_schema": 5}])
def test_free_text_has_no_grammar(value: object) -> None:
    assert read_response_format(value) == b""


def test_grammars_reach_the_engine() -> None:
    assert json.loads(read_response_format({"type": "json_object"})) == {"type": "object"}
    schema = {"type": "object", "title": "é\u2028", "properties": {"a": {"type": "integer"}}}
    sent = read_response_format({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    assert json.loads(sent) == schema
    assert "é".encode() in sent
    assert read_response_format({"type": "gbnf", "grammar": 'root ::= "ä"\n'}) == 'root ::= "ä"\n'.encode()


@pytest.mark.parametrize(
    "value",
    [
        "json",
        5,
        [],
        {},
        {"type": None},
        {"type": 5},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": "x"},
        {"type": "json_schema", "json_schema": {}},
        {"type": "json_schema", "json_schema": {"schema": True}},
        {"type": "gbnf"},
        {"type": "gbnf", "grammar": "  \n"},
        {"type": "gbnf", "grammar": 5},
        {"type": "gbnf", "grammar": "x" * (limits.EXTRA_BYTES + 1)},
        {"type": "gbnf", "grammar": "é" * (limits.EXTRA_BYTES // 2 + 1)},
    ],
)
def test_a_bad_response_format_is_invalid(value: object) -> None:
    assert fault(lambda: read_response_format(value)) == refused("response_format", "invalid_value")


def test_a_grammar_may_have_exactly_the_limit() -> None:
    assert (
        len(read_response_format({"type": "gbnf", "grammar": "x" * limits.EXTRA_BYTES})) == limits.EXTRA_BYTES
    )


def test_another_type_is_unsupported_and_nul_is_refused() -> None:
    assert fault(lambda: read_response_format({"type": "yaml"})) == refused(
        "response_format", "unsupported_value"
    )
    assert fault(lambda: read_response_format({"type": "gbnf", "grammar": "root\0"})) == refused(
        "response_format", None
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"const": "a\0"},
        {"enum": [1, ["x", "\0"]]},
        {"properties": {"k\0": {}}},
        {"a": [{"b": [{"\0": None}]}]},
    ],
    ids=repr,
)
def test_nul_in_a_schema_is_refused_wherever_it_stands(schema: object) -> None:
    value = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert fault(lambda: read_response_format(value)) == refused("response_format", None)


def test_the_escape_of_nul_as_text_is_no_nul() -> None:
    value = {"type": "json_schema", "json_schema": {"schema": {"const": "\\u0000"}}}
    assert read_response_format(value) == b'{"const":"\\\\u0000"}'


def test_a_family_without_grammar_refuses_one() -> None:
    require_grammar(b"", OLMOE)
    require_grammar(b"{}", GLM)
    assert fault(lambda: require_grammar(b"{}", OLMOE)) == refused("response_format", "unsupported_parameter")
