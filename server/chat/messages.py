"""The conversation of a chat request, validated into one neutral form (http.md §8).

Guarantees: a message that comes out has text without NUL, a known role (`developer` has become `system`),
and replayed tool calls with a name and an object of arguments. The first fault is raised, naming the
element.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from generated import errors
from generated.words import ContentPartType, MessageRole
from server.strict_json import is_too_deep, without_lone_surrogates

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: Mapping[str, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.TOOL: "tool",
}
_TEXT_PARTS = tuple(ContentPartType)
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A tool call of an earlier assistant turn; `arguments` as the model had given them."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    identifier: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `reasoning` and `calls` belong to assistant turns, `call_identifier` to tool turns."""

    role: Role
    text: str
    reasoning: str = ""
    calls: tuple[ReplayedCall, ...] = ()
    call_identifier: str | None = None


def read_messages(value: object) -> tuple[Message, ...]:
    """The field `messages`. Raises invalid_request, unsupported_role or unsupported_content_type."""
    if not isinstance(value, list) or not value:
        raise errors.invalid_request(
            param="messages", message="messages must be a non-empty list of messages."
        )
    return tuple(_read_message(message, f"messages.{index}") for index, message in enumerate(value))


def _read_message(value: object, path: str) -> Message:
    if not isinstance(value, dict):
        raise errors.invalid_request(param=path, message="A message must be an object.")
    word = value.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise errors.unsupported_role(
            param=f"{path}.role", message=f"The role of a message must be one of {', '.join(_ROLES)}."
        )
    text = _read_content(value.get("content"), f"{path}.content", role)
    if role == "tool":
        identifier = value.get("tool_call_id")
        return Message(role, text, call_identifier=identifier if isinstance(identifier, str) else None)
    if role != "assistant":
        return Message(role, text)
    return Message(
        role, text, _read_reasoning(value, path), _read_calls(value.get("tool_calls"), f"{path}.tool_calls")
    )


def _read_content(value: object, path: str, role: Role) -> str:
    if value is None and role == "assistant":
        return ""
    if isinstance(value, str):
        return plain_text(value, path)
    if not isinstance(value, list):
        raise errors.invalid_request(
            param=path, message="The content of a message must be a string or a list of parts."
        )
    return "".join(_read_part(part, f"{path}.{index}") for index, part in enumerate(value))


def _read_part(value: object, path: str) -> str:
    if not isinstance(value, dict) or value.get("type") not in _TEXT_PARTS:
        raise errors.unsupported_content_type(
            param=path, message=f"A content part must have the type {' or '.join(_TEXT_PARTS)}."
        )
    text = value.get("text")
    if not isinstance(text, str):
        raise errors.invalid_request(
            param=f"{path}.text", message="The text of a content part must be a string."
        )
    return plain_text(text, f"{path}.text")


def _read_reasoning(message: Mapping[str, object], path: str) -> str:
    """The first spelling that holds any text; all are checked."""
    spelled = [_read_optional_text(message.get(name), name, f"{path}.{name}") for name in _REASONING_FIELDS]
    return next(filter(None, spelled), "")


def _read_optional_text(value: object, name: str, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise errors.invalid_request(param=path, message=f"{name} must be a string.")
    return plain_text(value, path)


def _read_calls(value: object, path: str) -> tuple[ReplayedCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise errors.invalid_request(param=path, message="tool_calls must be a list.")
    return tuple(_read_call(call, f"{path}.{index}") for index, call in enumerate(value))


def _read_call(value: object, path: str) -> ReplayedCall:
    if not isinstance(value, dict):
        raise errors.invalid_request(param=path, message="A tool call must be an object.")
    function = value.get("function")
    if not isinstance(function, dict):
        raise errors.invalid_request(
            param=f"{path}.function", message="The function of a tool call must be an object."
        )
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise errors.invalid_request(
            param=f"{path}.function.name", message="The name of a tool call must be a non-empty string."
        )
    arguments = function.get("arguments")
    if not isinstance(arguments, (str, dict, type(None))):
        raise errors.invalid_request(
            param=f"{path}.function.arguments",
            message="The arguments of a tool call must be a string or an object.",
        )
    identifier = value.get("id")
    return ReplayedCall(
        plain_text(name, f"{path}.function.name"),
        _arguments(arguments),
        identifier if isinstance(identifier, str) else None,
    )


def _arguments(value: str | dict[str, Any] | None) -> Mapping[str, Any]:
    """Arguments as an object; text that is not one, or too deep for a body, replays as no arguments.

    Half a surrogate pair, which a model can write as an escape, replays as U+FFFD.
    """
    if isinstance(value, str):
        if is_too_deep(value):
            return {}
        try:
            parsed = json.loads(without_lone_surrogates(value))
        except (ValueError, RecursionError):
            return {}
        return parsed if isinstance(parsed, dict) else {}
    return value or {}


def plain_text(text: str, path: str) -> str:
    """`text`, unless it holds NUL, which an engine might take for its end.

    Raises invalid_request on the whole field that `path` is in, as NUL in a prompt is refused on `prompt`
    (http.md §7); the message names the element.
    """
    if "\0" in text:
        raise errors.invalid_request(
            param=path.partition(".")[0], message=f"The text of {path} must not contain the NUL character."
        )
    return text


def plain_messages(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    """Role and text of each message as JSON values: what `conversation_slot` takes."""
    return [{"role": message.role, "content": message.text} for message in messages]
