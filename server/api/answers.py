"""Parts of answers that several endpoints share."""

from __future__ import annotations

from typing import NamedTuple

from generated.frames import Done


class Usage(NamedTuple):
    """Tokens of a request; an engine that does not count the prompt's counts as 0 (wire.md §3, DONE)."""

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


def usage_of(done: Done) -> Usage:
    """What DONE counted."""
    return Usage(done.prompt_tokens or 0, done.completion_tokens)
