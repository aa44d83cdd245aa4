"""Checking a request body in the order the spec gives, first fault wins (http.md §6, §7, §8, §16).

The tables know the fields; the flow they cannot know (prompts, messages, tools …) hangs on their hooks. No
value of a body is compared with a number here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from generated import errors, families
from generated.fields import ENDPOINTS, Field, FieldEnvironment, Hook
from server.api.gateway import Gateway
from server.chat.conversation import conversation_slot

Values = dict[str, Any]
"""Checked values by field name; hooks put theirs in under their own names."""

HookHandler = Callable[[Values], None]

_LONGEST_MODEL_SHOWN = 200


def field_environment(gateway: Gateway) -> FieldEnvironment:
    """The facts about the server that the tables judge by."""
    settings = gateway.settings
    return FieldEnvironment(
        can=gateway.model.family.can,
        last_slot=settings.kv_slots - 1,
        settings={
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
        },
    )


def require_model(body: Mapping[str, Any], served: str) -> None:
    """404 unless the body names the served model exactly."""
    model = body.get("model")
    if model != served:
        shown = model[:_LONGEST_MODEL_SHOWN] if isinstance(model, str) else "(none)"
        raise errors.model_not_found(model=shown, served=served)


class Order:
    """One order of an endpoint's checks, made ready for one server."""

    def __init__(self, endpoint: str, order: str, environment: FieldEnvironment) -> None:
        """``order`` is its name in the spec."""
        self._environment = environment
        self._absent: Values = {}
        self._steps: list[tuple[str, Field | None, bool]] = []
        """Fields by name, and whether to ask even where the body has none; hooks have no field."""
        for step in ENDPOINTS[endpoint].orders[order]:
            if isinstance(step, Hook):
                self._steps.append((step.name, None, True))
                continue
            alone = _stands_alone(step)
            self._steps.append((step.name, step, not alone))
            if alone:
                self._absent[step.name] = step.check({}, environment)

    def run(self, body: Mapping[str, Any], hooks: Mapping[str, HookHandler]) -> Values:
        """Walk the order over ``body`` and return the values. Raises the ApiError of the first fault."""
        values = self._absent.copy()
        for name, field, always in self._steps:
            if field is None:
                hooks[name](values)
            elif always or name in body:
                values[name] = field.check(body, self._environment)
        return values


def _stands_alone(field: Field) -> bool:
    """Whether its absence means the same whatever else is in the body."""
    return not field.required and field.loses_to is None


def require_scores(values: Values, family: families.Family) -> None:
    """The hook ``logprobs_capability``: families that give no numbers refuse them, once every field that
    speaks of numbers is known to be right (http.md §9.1).
    """
    if values["logprobs"] and families.LOGPROBS not in family.can:
        raise errors.unsupported_parameter(
            param="logprobs",
            message=f"Models of the family {family.name} are served without log probabilities.",
        )


def require_unstreamed(values: Values) -> None:
    """The hook ``scores_with_stream``: log probabilities are not streamed (http.md §9.1)."""
    if values["logprobs"] and values["stream"]:
        raise errors.unsupported_parameter(
            param="logprobs", message="Log probabilities are not streamed; leave out stream or logprobs."
        )


def wanted_slot(gateway: Gateway, values: Values, messages: Sequence[object] | None = None) -> int | None:
    """The KV slot to ask for: the client's own, else the conversation's, else None for any (http.md §12)."""
    slot: int | None = values["cache_slot"]
    if slot is None and messages is not None and gateway.settings.kv_slots > 1:
        return conversation_slot(messages, gateway.settings.kv_slots)
    return slot
