"""What a chat request turns on: reasoning, stop sequences, the text pipeline and how the answer's end is
called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generated import families
from generated.http import Outcome
from server.chat.tools import ToolUse
from server.text import Pipeline, Thinking


@dataclass(frozen=True, slots=True)
class ThinkingMode:
    """Whether the model reasons before it answers, and the effort the client asked for, if any.

    `family_can` is False for families without a reasoning section: their text is not split.
    """

    on: bool = False
    effort: str | None = None
    family_can: bool = True

    @property
    def split(self) -> Thinking:
        """What the text pipeline's reasoning split has to do."""
        if not self.family_can:
            return Thinking.ABSENT
        return Thinking.ON if self.on else Thinking.OFF


def resolve_thinking(effort: str | None, enable: bool | None, family: families.Family) -> ThinkingMode:
    """http.md §8: on iff an effort other than `none` was given; an explicit `enable_thinking` wins.

    Both values are already checked. A family without reasoning stays off.
    """
    can = families.THINKING in family.can
    wanted = enable if enable is not None else effort not in (None, "none")
    return ThinkingMode(wanted and can, effort, can)


@dataclass(frozen=True, slots=True)
class StopPolicy:
    """The stop sequences in force. `from_client` is False for the family's own."""

    sequences: tuple[str, ...]
    ignore_leading: bool
    from_client: bool


def chat_stop_policy(client: Sequence[str], ignore_leading: bool, family: families.Family) -> StopPolicy:
    """The client's sequences, which replace the family's; those are always tolerated at the start (§14,
    §15)."""
    if client:
        return StopPolicy(tuple(client), ignore_leading, True)
    return StopPolicy(family.stops, True, False)


def chat_pipeline(stop: StopPolicy, thinking: ThinkingMode, tools: ToolUse, salvage: bool) -> Pipeline:
    """The text pipeline of one chat generation. `salvage`: the setting tool_salvage."""
    return Pipeline(
        stops=stop.sequences,
        ignore_leading_stop=stop.ignore_leading,
        thinking=thinking.split,
        tools=tools.signatures,
        salvage=salvage,
    )


def answer_outcome(pipeline: Pipeline, stops_from_client: bool) -> Outcome:
    """How the answer ended; ask after `pipeline.finish`.

    A sequence of the family's own ends a turn like the model itself does.
    """
    if pipeline.finish_reason is Outcome.STOP and pipeline.stopped and stops_from_client:
        return Outcome.SEQUENCE
    return pipeline.finish_reason
