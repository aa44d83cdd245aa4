"""What the client of a request is told when the engine ends it with ERROR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from generated import errors
from generated.errors import WireCode
from server.wire.events import Submission

GRAMMAR_PARAM: Final = "response_format"
"""The field a complaint about the grammar is attributed to, on every endpoint that takes one."""


def refusal(words: Sequence[str], submission: Submission) -> errors.ApiError:
    """The API error that the words of an ERROR frame are for this submission.

    The table of wire.md section 4, and one thing it cannot know: the header is ours, so an engine that calls
    a request with grammar text bad means the grammar, which http.md section 11 makes a fault of the client.
    With token ids as well nobody can tell which of the two it means, and the table has it as the ids.
    """
    if submission.extra and not submission.ids and errors.wire_code(words) is WireCode.BAD_REQUEST:
        return errors.invalid_value(
            param=GRAMMAR_PARAM, message="The engine cannot enforce this grammar or JSON schema."
        )
    return errors.join_wire_error(words, ids=submission.ids, prompt_param=submission.prompt_param)
