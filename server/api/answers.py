"""Parts of answers that several endpoints share."""

from __future__ import annotations

from typing import NamedTuple

from generated.frames import Done


class Usage(NamedTuple):
    """Tokens of a request; a prompt that the engine has not counted counts as 0 (wire.md §3)."""

    prompt: int
    completion: int

    def __add__(self, other: object) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(self.prompt + other.prompt, self.completion + other.completion)

    def openai(self) -> dict[str, int]:
        """The ``usage`` object."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


def usage_of(done: Done, accepted: int | None = None) -> Usage:
    """What DONE counted.

    ``accepted`` is ACCEPT's number of prompt tokens, for answers that fall back to it where DONE has none.
    """
    prompt = accepted if done.prompt_tokens is None else done.prompt_tokens
    return Usage(prompt or 0, done.completion_tokens)
