"""The KV slot of a conversation: the same one on every turn, without keeping state (http.md §12).

Guarantees: the slot depends only on the messages up to the first user message, without the system lines
that some clients change on every request; the dialect's validation is not needed for it to be computed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

CHANGING_LINE = "x-anthropic-billing-header"
"""Beginning of a system line that differs on every request of the same conversation."""
_SYSTEM_ROLES = ("system", "developer")


def conversation_slot(messages: Sequence[object], slots: int) -> int:
    """The slot, 0 to `slots` - 1, of the conversation that begins with `messages` (JSON values as sent)."""
    opening: list[object] = []
    for message in messages:
        if isinstance(message, Mapping):
            if message.get("role") in _SYSTEM_ROLES:
                message = _without_changing_lines(message)
                if message is None:
                    continue
            opening.append(message)
            if message.get("role") == "user":
                break
        else:
            opening.append(message)
    digest = hashlib.sha1(json.dumps(opening, sort_keys=True).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") % slots


def without_changing_lines(text: str) -> str:
    """`text` without the lines that change every request; a text without such a line is unchanged."""
    if CHANGING_LINE not in text:
        return text
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(CHANGING_LINE))


def _without_changing_lines(message: Mapping[str, object]) -> Mapping[str, object] | None:
    """The message without changing lines, or None when nothing else was in it."""
    content = message.get("content")
    if isinstance(content, str):
        cleaned = without_changing_lines(content)
        if cleaned == content:
            return message
        return {**message, "content": cleaned} if cleaned.strip() else None
    if not isinstance(content, list):
        return message
    parts: list[object] = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else None
        if isinstance(text, str) and (cleaned := without_changing_lines(text)) != text:
            if cleaned.strip():
                parts.append({**part, "text": cleaned})
        else:
            parts.append(part)
    return {**message, "content": parts} if parts or not content else None
