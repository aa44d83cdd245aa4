"""View of the C header: limits, structs, writers for every message, parsers for every message."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Model, UintType
from . import c_agree, c_read, c_write
from .c_types import uint

HEADER = "generated/c/colibri_wire.h"
AGREE = "generated/c/agree.c"

NO_FAULT = "none"
"""What the C reader calls a message that is all right."""


def build(model: Model) -> Mapping[str, object]:
    """Outputs of the C target."""
    agree = {
        "frames": [c_agree.shown(message) for message in model.frames],
        "commands": [c_agree.shown(message) for message in model.commands],
    }
    return {HEADER: _header(model), AGREE: agree}


def _header(model: Model) -> dict[str, object]:
    limits = [
        {
            "macro": f"COLIBRI_LIMIT_{limit.name.upper()}",
            "value": uint(limit.value),
            "doc": limit.doc,
            "unit": limit.unit,
        }
        for limit in model.limits
    ]
    variables = [
        {"macro": f"COLIBRI_ENV_{variable.name}", "name": variable.name, "doc": variable.doc}
        for variable in model.launch.environment
    ]
    markers = [
        {"macro": f"COLIBRI_MARKUP_{kind.name}_{marker.name}".upper(), "text": marker.text, "doc": marker.doc}
        for kind in model.markup
        for marker in kind.markers
    ]
    names = [NO_FAULT, *(fault.name for fault in model.faults)]
    identifier = model.commands[0].field("id").type
    if not isinstance(identifier, UintType):
        raise ValueError("request ids are unsigned integers")
    return {
        "id_low": uint(identifier.low),
        "id_high": uint(identifier.high),
        "tables": c_read.tables(model.frames),
        "version": model.protocol.version,
        "fingerprint_base": model.fingerprint_base,
        "fingerprint_full": model.fingerprint_full,
        "limits": limits,
        "variables": variables,
        "markers": markers,
        "rules": [{"macro": f"COLIBRI_RULE_{name.upper()}", "name": name} for name in names],
        "wire_errors": [error.name for error in model.wire_errors if error.on_wire],
        "sentinel": model.handshake.sentinel,
        "handshake": c_write.writer(model.handshake.message),
        "handshake_reader": c_read.reader(model.handshake.message),
        "frame_writers": [c_write.writer(message) for message in model.frames],
        "command_writers": [c_write.writer(message) for message in model.commands],
        "command_readers": [c_read.reader(message) for message in model.commands],
        "frame_readers": [c_read.reader(message) for message in model.frames],
    }
