"""The prompt of a chat request: the model's own template in a sandbox, else the family's built-in one
(http.md §14).

Guarantees: only text of the template itself can open or close a turn, since all of the client's is
neutralised first; the same request gives the same prompt; a prompt holds no NUL and ends where the
assistant is to write.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2.environment import Template

from generated import errors, families, limits
from server.chat.builtin import BUILTIN
from server.chat.messages import Message, ReplayedCall, plain_text
from server.chat.neutralise import Neutraliser
from server.chat.policy import ThinkingMode
from server.chat.sandbox import ChatSandbox, TemplateFailure, TemplateOverflow, TemplateRefusal, render
from server.chat.special_tokens import control_tokens, token_text
from server.chat.tools import ToolUse
from server.model_files import read_model_file

log = logging.getLogger(__name__)

_TOKEN_VARIABLES = ("bos_token", "eos_token", "pad_token", "unk_token")
_TOOL_TEMPLATE, _DEFAULT_TEMPLATE = "tool_use", "default"


class ChatRenderer:
    """Renders for one model. Safe to use from many threads."""

    def __init__(
        self,
        family: families.Family,
        templates: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        tokens: frozenset[str] = frozenset(),
    ) -> None:
        """`templates`: the model's own by name, `default` and perhaps `tool_use`; none means the built-in
        one. `variables`: what they are given besides the conversation; `tokens`: the tokenizer's control
        tokens.

        Raises TemplateFailure when a template cannot be compiled.
        """
        sandbox = ChatSandbox()
        self._templates: dict[str, Template] = {
            name: sandbox.template(source) for name, source in (templates or {}).items()
        }
        self._variables = dict(variables or {})
        self._builtin, markers = BUILTIN[family.template]
        self._neutraliser = Neutraliser((*tokens, *markers, *family.stops))

    @classmethod
    def load(cls, directory: Path | None, family: families.Family) -> ChatRenderer:
        """Read `chat_template.jinja` and the tokenizer's files of a model directory, as far as they exist.
        Raises TemplateFailure when a template is there and cannot be used."""
        if directory is None:
            return cls(family)
        config = _tokenizer_config(directory)
        return cls(
            family,
            _own_templates(directory, config),
            _token_variables(config),
            control_tokens(directory, config),
        )

    @property
    def own_template(self) -> bool:
        """True when the model's own template is used."""
        return bool(self._templates)

    def prompt(self, messages: Sequence[Message], tools: ToolUse, thinking: ThinkingMode) -> str:
        """The prompt text.

        Raises invalid_request on `messages` when the template refuses the conversation or the prompt would
        hold NUL, invalid_value when the template makes more than the largest prompt, engine_error when it
        fails; the reason is logged and is the error's cause.
        """
        conversation = [self._neutral(message) for message in _instructed(messages, tools.instruction)]
        declarations = [self._neutraliser.value(tool.as_json()) for tool in tools.offered]
        if not self._templates:
            return plain_text(self._builtin(conversation, declarations, thinking), "messages")
        try:
            prompt = render(self._chosen(tools), self._given(conversation, declarations, thinking))
        except TemplateRefusal as refusal:
            log.info("the chat template refused a conversation: %s", refusal)
            raise errors.invalid_request(
                param="messages", message="The model's chat template does not take this conversation."
            ) from refusal
        except TemplateOverflow as overflow:
            log.warning("%s", overflow)
            raise errors.invalid_value(
                param="messages", message=f"The prompt is longer than {limits.PROMPT_BYTES} bytes."
            ) from overflow
        except TemplateFailure as failure:
            log.error("%s", failure)
            raise errors.engine_error() from failure
        return plain_text(prompt, "messages")

    def _chosen(self, tools: ToolUse) -> Template:
        own = self._templates
        wanted = _TOOL_TEMPLATE if tools.active and _TOOL_TEMPLATE in own else _DEFAULT_TEMPLATE
        return own.get(wanted) or next(iter(own.values()))

    def _given(
        self, messages: Sequence[Message], declarations: Sequence[Mapping[str, Any]], thinking: ThinkingMode
    ) -> dict[str, Any]:
        given: dict[str, Any] = {
            **self._variables,
            "messages": [_message_value(message) for message in messages],
            "tools": list(declarations) or None,
            "add_generation_prompt": True,
            "enable_thinking": thinking.on,
        }
        if thinking.on and thinking.effort not in (None, "none"):
            given["reasoning_effort"] = thinking.effort
        return given

    def _neutral(self, message: Message) -> Message:
        safe = self._neutraliser
        calls = tuple(
            ReplayedCall(safe.text(call.name), safe.value(call.arguments), call.identifier)
            for call in message.calls
        )
        return replace(
            message, text=safe.text(message.text), reasoning=safe.text(message.reasoning), calls=calls
        )


def _instructed(messages: Sequence[Message], instruction: str) -> Sequence[Message]:
    """The conversation with the instruction at the end of its opening system message, which is made if need
    be."""
    if not instruction:
        return messages
    if messages and messages[0].role == "system":
        return [replace(messages[0], text=f"{messages[0].text}\n\n{instruction}"), *messages[1:]]
    return [Message("system", instruction), *messages]


def _message_value(message: Message) -> dict[str, Any]:
    """A message as templates expect it: arguments of calls as objects, optional keys absent when empty."""
    value: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning:
        value["reasoning_content"] = message.reasoning
    if message.calls:
        value["tool_calls"] = [
            {
                "id": call.identifier or "",
                "type": "function",
                "function": {"name": call.name, "arguments": dict(call.arguments)},
            }
            for call in message.calls
        ]
    if message.call_identifier is not None:
        value["tool_call_id"] = message.call_identifier
    return value


def _tokenizer_config(directory: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(read_model_file(directory / "tokenizer_config.json"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise TemplateFailure(f"tokenizer_config.json cannot be read: {error}") from error
    return config if isinstance(config, dict) else {}


def _own_templates(directory: Path, config: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {_DEFAULT_TEMPLATE: read_model_file(directory / "chat_template.jinja").decode("utf-8")}
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise TemplateFailure(f"chat_template.jinja cannot be read: {error}") from error
    template = config.get("chat_template")
    if isinstance(template, str):
        return {_DEFAULT_TEMPLATE: template}
    if isinstance(template, list):
        named = (entry for entry in template if isinstance(entry, dict))
        return {
            entry["name"]: entry["template"]
            for entry in named
            if isinstance(entry.get("name"), str) and isinstance(entry.get("template"), str)
        }
    return {}


def _token_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens by the names templates know; each is a string or an object with `content`."""
    named = {name: config[name] for name in _TOKEN_VARIABLES if isinstance(config.get(name), (str, dict))}
    return {name: token_text(token) for name, token in named.items()}
