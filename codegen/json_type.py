"""JSON type expressions of the section ``objects`` and of request fields, parsed.

``[integer?]``, ``'stop' | 'length'``, ``Usage?`` → :class:`~codegen.model.JsonType`. A text is read
completely or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .model import JsonType

PLAIN_TYPES: Final = ("string", "integer", "number", "boolean", "object")

_LITERAL = re.compile(r"'([^']*)'\Z")
_OBJECT_NAME = re.compile(r"[A-Z][A-Za-z0-9]*\Z")


def parse_type(text: str) -> JsonType | None:
    """``[integer?]``, ``'stop' | 'length'``, ``Usage?``, … → its tree; None when it cannot be read."""
    text = text.strip()
    if text.endswith("?"):
        inner = parse_type(text[:-1])
        return (
            None if inner is None else JsonType(inner.kind, inner.of, inner.literals, inner.reference, True)
        )
    if "|" in text:
        matches = [_LITERAL.match(part.strip()) for part in text.split("|")]
        literals = tuple(match[1] for match in matches if match)
        return JsonType("literal", literals=literals) if len(literals) == len(matches) else None
    if match := _LITERAL.match(text):
        return JsonType("literal", literals=(match[1],))
    if text.startswith("[") and text.endswith("]"):
        inner = parse_type(text[1:-1])
        return None if inner is None else JsonType("list", of=(inner,))
    if text in PLAIN_TYPES:
        return JsonType(text)
    return JsonType("reference", reference=text) if _OBJECT_NAME.match(text) else None


def references_of(parsed: JsonType) -> Iterator[str]:
    """Names of the objects a type expression refers to."""
    if parsed.reference is not None:
        yield parsed.reference
    for part in parsed.of:
        yield from references_of(part)
