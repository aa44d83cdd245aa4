"""The options every generating endpoint shares (http.md §6): the checks that are flow, and the checked values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generated import errors
from server.api.checks import HookHandler, Values
from server.api.gateway import Gateway
from server.api.response_format import PARAM as RESPONSE_FORMAT
from server.api.response_format import grammar_of


@dataclass(frozen=True, slots=True)
class Options:
    """What the engine and the text pipeline are told. ``grammar`` is empty for plain text."""

    max_tokens: int
    temperature: float
    top_p: float
    stops: tuple[str, ...]
    ignore_leading_stop: bool
    grammar: bytes
    stream: bool
    include_usage: bool


class OptionHooks:
    """The hooks that any endpoint's order may name, and what they found."""

    def __init__(self, gateway: Gateway, body: Mapping[str, Any]) -> None:
        self._can = gateway.model.family.can
        self._body = body
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

    def options(self, values: Values, default_stops: tuple[str, ...] = ()) -> Options:
        """The options; ``default_stops`` are in force when the client named none, and always tolerate a leading match."""
        given: tuple[str, ...] = values.get("stop") or ()
        stream_options = values.get("stream_options") or {}
        return Options(
            max_tokens=values["max_tokens"],
            temperature=values["temperature"],
            top_p=values["top_p"],
            stops=given or default_stops,
            ignore_leading_stop=values["x_colibri_ignore_leading_stop"] if given else bool(default_stops),
            grammar=self.grammar,
            stream=values["stream"],
            include_usage=stream_options.get("include_usage") is True,
        )

    def _tools(self, values: Values) -> None:
        pass

    def _tool_choice(self, values: Values) -> None:
        pass

    def _response_format(self, values: Values) -> None:
        self.grammar = grammar_of(self._body.get(RESPONSE_FORMAT))

    def _grammar_capability(self, values: Values) -> None:
        if self.grammar and "grammar" not in self._can:
            raise errors.unsupported_parameter(
                param=RESPONSE_FORMAT, message="This model's engine does not take grammars."
            )
