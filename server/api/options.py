"""The options every generating endpoint shares (http.md §6): the checks that are flow, and the checked
values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.api.checks import HookHandler, Values
from server.api.gateway import Gateway
from server.chat.response_format import read_response_format, require_grammar
from server.chat.tools import DeclaredTools, ToolUse, choose_tools, read_tools
from server.wire.events import Submission


@dataclass(frozen=True, slots=True)
class Options:
    """What the engine is told besides the prompt, and how the answer is to be sent.

    ``grammar`` is empty for free text; ``logprobs`` 0 means that no numbers are wanted.
    """

    max_tokens: int
    temperature: float
    top_p: float
    grammar: bytes
    logprobs: int
    stream: bool
    include_usage: bool

    @classmethod
    def of(cls, values: Values, *, grammar: bytes = b"", logprobs: int = 0) -> Options:
        """From the checked values of an endpoint."""
        stream_options = values.get("stream_options") or {}
        return cls(
            max_tokens=values["max_tokens"],
            temperature=values["temperature"],
            top_p=values["top_p"],
            grammar=grammar,
            logprobs=logprobs,
            stream=values["stream"],
            include_usage=stream_options.get("include_usage") is True,
        )

    def submission(self, prompt: bytes, slot: int, *, ids: bool = False, prompt_param: str) -> Submission:
        """The SUBMIT of one prompt on one slot."""
        return Submission(
            prompt=prompt,
            slot=slot,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            extra=self.grammar,
            logprobs=self.logprobs,
            ids=ids,
            prompt_param=prompt_param,
        )


class OptionHooks:
    """The hooks that both OpenAI endpoints have in their orders, and what they found."""

    def __init__(self, gateway: Gateway, body: Mapping[str, Any]) -> None:
        self._family = gateway.model.family
        self._body = body
        self._declared = DeclaredTools()
        self.tool_use = ToolUse()
        self.grammar = b""

    def table(self) -> dict[str, HookHandler]:
        """Handlers by hook name."""
        return {
            "tools": self._tools,
            "tool_choice": self._tool_choice,
            "response_format": self._response_format,
            "grammar_capability": self._grammar_capability,
            "admission": lambda values: None,
        }

    def _tools(self, values: Values) -> None:
        self._declared = read_tools(self._body)

    def _tool_choice(self, values: Values) -> None:
        self.tool_use = choose_tools(self._declared, self._body.get("tool_choice"), self._family)

    def _response_format(self, values: Values) -> None:
        self.grammar = read_response_format(self._body.get("response_format"))

    def _grammar_capability(self, values: Values) -> None:
        require_grammar(self.grammar, self._family)
