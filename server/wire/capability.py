"""What is known about an engine's reading of extension headers, and when a probe must go first (wire.md
section 6).

An engine of an older build does not drain the payload of a SUBMIT whose extension keys it cannot read: it
runs every line of it as a command. So such a SUBMIT may carry a line that starts with a command word only to
an engine that has shown that it understands extensions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from generated import commands, errors
from server.wire.events import Submission

COMMAND_LINE: Final = re.compile(
    rb"(?:^|\n)[ \t\r\v\f]*(?:%s)" % b"|".join(kind.KIND.encode() for kind in commands.COMMANDS)
)
"""A line that some reader could take for a command.

Deliberately wider than the grammar: a needless probe costs one token.
"""

PROBE_PROMPT: Final = b"x"
PROBE_IDS: Final = b"0"  # one byte as well, and an id every vocabulary has

T = TypeVar("T")


def extension_keys(submission: Submission) -> frozenset[str]:
    """The extension keys the SUBMIT will carry.

    Grammar text alone is none: every GLM build reads a seventh word.
    """
    used = {"logprobs": submission.logprobs > 0, "ids": submission.ids, "pin": submission.pin}
    return frozenset(key for key, wanted in used.items() if wanted)


def probe_for(submission: Submission) -> Submission:
    """The same extension on the same slot with a one-byte prompt and one token."""
    return replace(
        submission, prompt=PROBE_IDS if submission.ids else PROBE_PROMPT, extra=b"", image=None, max_tokens=1
    )


def unsupported_error(keys: frozenset[str]) -> errors.ApiError:
    """The 503 of a request whose extension the engine never acknowledged (wire.md section 5)."""
    return errors.engine_tok_ids_unsupported() if keys == {"ids"} else errors.engine_logprobs_unsupported()


class ExtensionSupport:
    """Proofs for and against extension support, for the life of one engine process."""

    def __init__(self) -> None:
        self._proven = False
        self._refused: list[frozenset[str]] = []

    def prove(self) -> None:
        """The engine answered an extension request by its id: it reads such headers and drains payloads."""
        self._proven = True

    def refuse(self, keys: frozenset[str]) -> None:
        """The engine answered a request with these keys as one that cannot read its header."""
        self._refused.append(keys)

    def is_refused(self, keys: frozenset[str]) -> bool:
        """True if a header with no more than these keys was refused, so that this one is bound to be."""
        return any(refused <= keys for refused in self._refused)

    def needs_probe(self, submission: Submission, keys: frozenset[str]) -> bool:
        """True if sending the submission to an engine of unknown age could run client text as commands."""
        if not keys or self._proven:
            return False
        return COMMAND_LINE.search(submission.prompt + submission.extra) is not None


@dataclass
class PendingProbe(Generic[T]):
    """A probe in flight.

    ``owner`` is the held request whose extension and slot it borrows; all of ``held`` wait for it.
    """

    probe: T
    owner: T
    held: list[T]
