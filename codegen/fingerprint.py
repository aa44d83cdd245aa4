"""Canonical JSON of a model, and its two fingerprints.

Guarantees: the same promises give the same text on every machine (sorted keys, no whitespace, no places in
files); *base* covers what the bytes on the wire must be (framing, mandatory layouts and their types),
*full* everything but prose, so a changed doc changes neither and an added optional key changes only full.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final

from . import layout as notation
from .findings import Location
from .model import Message, Model, WireType

PROSE: Final = frozenset(
    {"doc", "cause", "remedy", "note", "holds", "title", "examples", "allow", "sections", "source"}
)
"""Keys that explain and do not promise."""

_NEVER: Final = frozenset(
    {"location", "offset", "count_offset", "fingerprint_base", "fingerprint_full", "source"}
)


def plain(value: Any, skip: frozenset[str] = _NEVER) -> Any:
    """A model (or any part of it) as JSON values: dataclasses as objects, tuples as lists, bytes as Latin-1
    text.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {
            field.name: plain(getattr(value, field.name), skip)
            for field in dataclasses.fields(value)
            if field.name not in skip
        }
        if isinstance(value, notation.Part):
            found["part"] = type(value).__name__.lower()
        elif isinstance(value, WireType):
            found["kind"] = type(value).__name__.removesuffix("Type").lower()
        return found
    if isinstance(value, Mapping):
        return {key: plain(part, skip) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, skip) for part in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return None if isinstance(value, Location) else value


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def base_digest(model: Model) -> str:
    """Fingerprint of the mandatory wire layout: framing, sentinel, and each message up to its first
    optional part.
    """
    skip = (
        _NEVER
        | PROSE
        | {"since", "stability", "deprecated", "advisory", "no_effect", "path", "needs", "unit"}
    )
    return digest(
        {
            "framing": plain(model.framing, skip),
            "sentinel": plain(model.handshake.sentinel, skip),
            "messages": {
                f"{message.direction} {message.name}": _mandatory(message, skip)
                for message in (*model.commands, *model.frames, model.handshake.message)
            },
        }
    )


def _mandatory(message: Message, skip: frozenset[str]) -> Any:
    parts = [
        part for part in message.layout.parts if not isinstance(part, notation.Optional | notation.Ignored)
    ]
    fields = [plain(field, skip) for field in message.fields if not field.optional]
    required = {field.name for field in message.fields if not field.optional}
    payloads = [plain(payload, skip) for payload in message.payloads if payload.size in required]
    return {"parts": plain(parts, skip), "fields": fields, "payloads": payloads}


def full_digest(model: Model) -> str:
    """Fingerprint of everything promised, prose left out."""
    return digest(plain(model, _NEVER | PROSE))


def model_json(model: Model) -> str:
    """The whole model as pretty JSON with places left out, in the order of the spec; ends with a newline."""
    found = plain(model)
    found["fingerprint"] = {"base": model.fingerprint_base, "full": model.fingerprint_full}
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def build(model: Model) -> dict[str, str]:
    """View of the target ``model``."""
    return {"generated/model.json": model_json(model)}
