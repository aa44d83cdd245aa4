# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
"""Version of the protocol."""

BASE: Final = "f812a989121a6f860982afb87325c1b7ea711f4d113d48d195707871bc551e14"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "2d9a026a72495989de315f1b728ee992d2c259f9e89544996219b0d240419ddc"
"""Everything promised, prose left out."""
