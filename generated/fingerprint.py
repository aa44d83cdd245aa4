# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
"""Version of the protocol."""

BASE: Final = "99b4d360e58ec6720b29916c375175153a54e1889cba0b2ffb25dad4107f3128"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "b2c03b5f8ea3d03e3307646ce3de8363fcf090a9c8a3f1c58a3f36af697bacd6"
"""Everything promised, prose left out."""
