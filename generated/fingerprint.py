# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
"""Version of the protocol."""

BASE: Final = "62221f5350da3b232213c80be454b9c94c1386565cf389107523c0d035f0b825"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "062ece482678ebf44c68281a760db5a68b7d6df3d08764855c4a864defe83c4d"
"""Everything promised, prose left out."""
