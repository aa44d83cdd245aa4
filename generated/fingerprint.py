# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.1.0"
"""Version of the protocol."""

BASE: Final = "63c919f9d1b2c4b3e86fb1113966a2a579adcc4988890fabe5757ddce11ea7ce"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "feec7e39b7b2b60ba4387a075c9808acb673accb3ea28e3559f3f284b60d96d2"
"""Everything promised, prose left out."""
