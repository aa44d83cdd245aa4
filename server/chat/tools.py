"""Declared tools and the choice among them (http.md §10).

Guarantees: a declaration has a non-empty name and an object of parameters or none; `ToolUse` says what is
offered to the model and parsed from its answer, which is the same set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from generated import errors, families
from generated.words import NAMED_TOOL_CHOICE_TYPE, TOOL_TYPE, ToolChoiceWord
from server.text import ToolSignature

_WORDS = tuple(ToolChoiceWord)


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool as the client declared it; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The wrapped form that chat templates expect."""
        function: dict[str, Any] = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        if self.parameters is not None:
            function["parameters"] = self.parameters
        return {"type": TOOL_TYPE, "function": function}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What the model may call. `must`: None, or "any" when it has to call one of the offered tools, "named"
    when only the one tool the client named is offered and has to be called."""

    offered: tuple[ToolDeclaration, ...] = ()
    must: Literal["any", "named"] | None = None

    @property
    def active(self) -> bool:
        """Tools are offered, and calls are parsed from the answer."""
        return bool(self.offered)

    @property
    def signatures(self) -> list[ToolSignature]:
        """What the text pipeline needs to know."""
        return [ToolSignature.from_schema(tool.name, tool.parameters) for tool in self.offered]

    @property
    def instruction(self) -> str:
        """The sentence the model is told when it has no choice, else `""`."""
        if self.must == "named":
            return f"You must call the tool {self.offered[0].name} now."
        return "You must call one of the tools now." if self.must == "any" else ""


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """The declarations of a request and the field they came in."""

    tools: tuple[ToolDeclaration, ...] = field(default=())
    param: str = "tools"


def read_tools(body: Mapping[str, object]) -> DeclaredTools:
    """The field `tools`, else `functions`; null and `[]` are absent. Raises invalid_value."""
    for param in ("tools", "functions"):
        value = body.get(param)
        if value is None or value == []:
            continue
        if not isinstance(value, list):
            raise errors.invalid_value(param=param, message=f"{param} must be a list of declarations.")
        return DeclaredTools(
            tuple(_read_tool(entry, f"{param}.{index}") for index, entry in enumerate(value)), param
        )
    return DeclaredTools()


def _read_tool(entry: object, path: str) -> ToolDeclaration:
    if not isinstance(entry, dict):
        raise errors.invalid_value(param=path, message="A tool must be an object.")
    function = entry.get("function", entry)
    path = f"{path}.function"
    if not isinstance(function, dict):
        raise errors.invalid_value(param=path, message="The function of a tool must be an object.")
    return read_declaration(function, path, "parameters")


def read_declaration(value: Mapping[str, Any], path: str, schema: str) -> ToolDeclaration:
    """A tool whose parameters are in the field `schema` of `value`. Raises invalid_value, naming the element
    at `path`."""
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise errors.invalid_value(
            param=f"{path}.name", message="The name of a tool must be a non-empty string."
        )
    parameters = value.get(schema)
    if not isinstance(parameters, (dict, type(None))):
        raise errors.invalid_value(
            param=f"{path}.{schema}", message=f"The {schema} of a tool must be a JSON schema object."
        )
    description = value.get("description")
    return ToolDeclaration(name, description if isinstance(description, str) else None, parameters)


def choose_tools(declared: DeclaredTools, choice: object, family: families.Family) -> ToolUse:
    """The field `tool_choice` held against the declarations. Raises unsupported_value, invalid_value or,
    when the family has no tool syntax and tools are to be offered, unsupported_parameter."""
    if isinstance(choice, str) and choice not in _WORDS:
        raise errors.unsupported_value(
            param="tool_choice",
            message=f"tool_choice must be one of {', '.join(_WORDS)}, or name a declared tool.",
        )
    if choice == ToolChoiceWord.NONE:
        return ToolUse()
    if choice is not None and not declared.tools:
        raise errors.invalid_value(param="tool_choice", message="tool_choice needs declared tools.")
    if isinstance(choice, (str, type(None))):
        use = ToolUse(declared.tools, "any" if choice == ToolChoiceWord.REQUIRED else None)
    else:
        use = ToolUse((_named(declared, choice),), "named")
    return offered_to(use, family)


def offered_to(use: ToolUse, family: families.Family) -> ToolUse:
    """`use`, unless the family cannot be offered tools. Raises unsupported_parameter."""
    if use.active and families.TOOLS not in family.can:
        raise errors.unsupported_parameter(
            param="tools", message=f"Models of the family {family.name} are not served with tools."
        )
    return use


def _named(declared: DeclaredTools, choice: object) -> ToolDeclaration:
    name: object = None
    if isinstance(choice, dict) and choice.get("type", NAMED_TOOL_CHOICE_TYPE) == NAMED_TOOL_CHOICE_TYPE:
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, dict) else None
    tool = next((tool for tool in declared.tools if tool.name == name), None)
    if tool is None:
        raise errors.invalid_value(
            param="tool_choice", message="tool_choice must name one of the declared tools."
        )
    return tool
