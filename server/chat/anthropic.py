"""The Anthropic Messages dialect on the way in: its fields, read into the neutral form of the chat (http.md
§16).

Guarantees: what comes out is the same `Message`, `ToolUse` and `ThinkingMode` a chat request gives, so
everything behind it is shared; unknown fields are ignored at any depth; each fault names its element. All
errors of these endpoints leave in the Anthropic envelope, which the caller sees to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from generated import errors, families, limits
from generated.words import AnthropicMessageRole, AnthropicThinkingType, AnthropicToolChoiceType
from server.chat.conversation import without_changing_lines
from server.chat.messages import Message, ReplayedCall, plain_text
from server.chat.policy import ThinkingMode, resolve_thinking
from server.chat.tools import DeclaredTools, ToolDeclaration, ToolUse, offered_to, read_declaration

ERROR_PREFIX = "Error: "
"""Begins the text of a tool result that the client marked as an error."""
_THINKING_ON: Mapping[str, bool] = {
    AnthropicThinkingType.ENABLED: True,
    AnthropicThinkingType.ADAPTIVE: True,
    AnthropicThinkingType.DISABLED: False,
}
_CHOICES = tuple(AnthropicToolChoiceType)
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    AnthropicMessageRole.SYSTEM: ("text",),
    AnthropicMessageRole.USER: ("text", "tool_result"),
    AnthropicMessageRole.ASSISTANT: ("text", "thinking", "redacted_thinking", "tool_use"),
}
_HOLDERS: Mapping[str, str] = {
    AnthropicMessageRole.SYSTEM: "a system message",
    AnthropicMessageRole.USER: "a user message",
    AnthropicMessageRole.ASSISTANT: "an assistant message",
}
_TEXT_BLOCKS = ("text",)


def read_stop_sequences(value: object) -> tuple[str, ...]:
    """The field `stop_sequences`; null, `[]` and `""` are absent. Raises invalid_value."""
    if value is None or value == "":
        return ()
    if not isinstance(value, list) or len(value) > limits.STOP_SEQUENCES:
        raise errors.invalid_value(
            param="stop_sequences",
            message=f"stop_sequences must be a list of at most {limits.STOP_SEQUENCES} strings.",
        )
    for index, member in enumerate(value):
        if not isinstance(member, str) or not member:
            raise errors.invalid_value(
                param=f"stop_sequences.{index}", message="A stop sequence must be a non-empty string."
            )
    return tuple(value)


def read_system(value: object) -> str:
    """The field `system`: a string, a list of text blocks, or absent, `""`. Raises invalid_request.

    Lines that a client changes on every request are left out, so that the prompt's beginning stays the same.
    """
    if value is None:
        return ""
    texts = _texts(value, "system", _HOLDERS[AnthropicMessageRole.SYSTEM])
    return "".join(map(without_changing_lines, texts))


def with_system(system: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation with its system text in front."""
    return (Message("system", system), *messages) if system else tuple(messages)


def read_anthropic_messages(value: object) -> tuple[Message, ...]:
    """The field `messages`. Tool results become turns of their own before the text of the same turn. A system
    message of nothing but lines that change on every request is no turn.

    Raises invalid_request, unsupported_role or unsupported_content_type.
    """
    if not isinstance(value, list) or not value:
        raise errors.invalid_request(
            param="messages", message="messages must be a non-empty list of messages."
        )
    turns = tuple(
        turn for index, entry in enumerate(value) for turn in _read_turns(entry, f"messages.{index}")
    )
    if not turns:
        raise errors.invalid_request(
            param="messages", message="messages must be a non-empty list of messages with text of their own."
        )
    return turns


def _read_turns(entry: object, path: str) -> list[Message]:
    if not isinstance(entry, dict):
        raise errors.invalid_request(param=path, message="A message must be an object.")
    role = entry.get("role")
    if not isinstance(role, str) or role not in _BLOCKS:
        raise errors.unsupported_role(
            param=f"{path}.role", message=f"The role of a message must be one of {', '.join(_BLOCKS)}."
        )
    content = entry.get("content")
    path = f"{path}.content"
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise errors.invalid_request(
            param=path, message="The content of a message must be a string or a list of blocks."
        )
    blocks = [
        _checked_block(block, f"{path}.{index}", _BLOCKS[role], _HOLDERS[role])
        for index, block in enumerate(content)
    ]
    if role == AnthropicMessageRole.USER:
        return _user_turns(blocks)
    texts = [_text(block, where) for block, where in blocks if block["type"] == "text"]
    text = "".join(texts)
    if role == AnthropicMessageRole.SYSTEM:
        kept = "".join(map(without_changing_lines, texts))
        return [Message("system", kept)] if kept == text or kept.strip() else []
    thought = "".join(_thought(block, where) for block, where in blocks if block["type"] == "thinking")
    calls = tuple(_replayed_call(block, where) for block, where in blocks if block["type"] == "tool_use")
    return [Message("assistant", text, thought, calls)]


_Block = tuple[dict[str, Any], str]


def _checked_block(block: object, path: str, kinds: Sequence[str], holder: str) -> _Block:
    """A block of one of the `kinds`; `holder` is what a message calls the place it is in."""
    if not isinstance(block, dict) or block.get("type") not in kinds:
        raise errors.unsupported_content_type(
            param=path, message=f"A block of {holder} must be one of {', '.join(kinds)}."
        )
    return block, path


def _user_turns(blocks: Sequence[_Block]) -> list[Message]:
    results = [_tool_result(block, path) for block, path in blocks if block["type"] == "tool_result"]
    texts = [_text(block, path) for block, path in blocks if block["type"] == "text"]
    if texts or not results:
        results.append(Message("user", "".join(texts)))
    return results


def _text(block: Mapping[str, Any], path: str) -> str:
    return _string(block, "text", path)


def _thought(block: Mapping[str, Any], path: str) -> str:
    return _string(block, "thinking", path)


def _string(block: Mapping[str, Any], name: str, path: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise errors.invalid_request(
            param=f"{path}.{name}", message=f"The {name} of this block must be a string."
        )
    return plain_text(value, f"{path}.{name}")


def _tool_result(block: Mapping[str, Any], path: str) -> Message:
    content = block.get("content")
    text = "" if content is None else "".join(_texts(content, f"{path}.content", "a tool result"))
    if block.get("is_error") is True:
        text = ERROR_PREFIX + text
    identifier = block.get("tool_use_id")
    return Message("tool", text, call_identifier=identifier if isinstance(identifier, str) else None)


def _replayed_call(block: Mapping[str, Any], path: str) -> ReplayedCall:
    name = _string(block, "name", path)
    if not name:
        raise errors.invalid_request(param=f"{path}.name", message="The name of a tool must not be empty.")
    arguments = block.get("input")
    if not isinstance(arguments, (dict, type(None))):
        raise errors.invalid_request(param=f"{path}.input", message="The input of a tool must be an object.")
    identifier = block.get("id")
    return ReplayedCall(name, arguments or {}, identifier if isinstance(identifier, str) else None)


def _texts(value: object, path: str, holder: str) -> list[str]:
    """A string as the only text, or the texts of a list of text blocks; `holder` is what messages call it."""
    if isinstance(value, str):
        return [plain_text(value, path)]
    if not isinstance(value, list):
        raise errors.invalid_request(param=path, message=f"{path} must be a string or a list of text blocks.")
    checked = [
        _checked_block(block, f"{path}.{index}", _TEXT_BLOCKS, holder) for index, block in enumerate(value)
    ]
    return [_text(block, where) for block, where in checked]


def read_anthropic_tools(value: object) -> DeclaredTools:
    """The field `tools`; null and `[]` are absent. Raises invalid_value."""
    if value is None:
        return DeclaredTools()
    if not isinstance(value, list):
        raise errors.invalid_value(param="tools", message="tools must be a list of tools.")
    return DeclaredTools(tuple(_read_tool(entry, f"tools.{index}") for index, entry in enumerate(value)))


def _read_tool(entry: object, path: str) -> ToolDeclaration:
    if not isinstance(entry, dict):
        raise errors.invalid_value(param=path, message="A tool must be an object.")
    return read_declaration(entry, path, "input_schema")


def choose_anthropic_tools(declared: DeclaredTools, choice: object, family: families.Family) -> ToolUse:
    """The field `tool_choice` held against the declarations. Raises invalid_value, or unsupported_parameter
    when the family cannot be offered tools."""
    kind = choice.get("type") if isinstance(choice, dict) else None
    if choice is not None and kind not in _CHOICES:
        raise errors.invalid_value(
            param="tool_choice", message=f"tool_choice must be an object of the type {', '.join(_CHOICES)}."
        )
    if kind == AnthropicToolChoiceType.NONE:
        return ToolUse()
    if choice is not None and not declared.tools:
        raise errors.invalid_value(param="tool_choice", message="tool_choice needs declared tools.")
    offered, must = declared.tools, None
    if isinstance(choice, dict) and kind == AnthropicToolChoiceType.TOOL:
        offered = tuple(tool for tool in declared.tools if tool.name == choice.get("name"))[:1]
        if not offered:
            raise errors.invalid_value(
                param="tool_choice.name", message="tool_choice must name one of the declared tools."
            )
    required: Mapping[object, Literal["any", "named"]] = {
        AnthropicToolChoiceType.ANY: "any",
        AnthropicToolChoiceType.TOOL: "named",
    }
    must = required.get(kind)
    return offered_to(ToolUse(offered, must), family)


def read_thinking(value: object, family: families.Family) -> ThinkingMode:
    """The field `thinking`: on for `enabled` and `adaptive`. Raises invalid_value."""
    if value is None:
        return resolve_thinking(None, False, family)
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _THINKING_ON:
        raise errors.invalid_value(
            param="thinking", message=f"thinking must be an object of the type {', '.join(_THINKING_ON)}."
        )
    return resolve_thinking(None, _THINKING_ON[kind], family)
