# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
"""Version of the protocol."""

BASE: Final = "63c919f9d1b2c4b3e86fb1113966a2a579adcc4988890fabe5757ddce11ea7ce"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "7e62a0b8b680c76bcea2ead3db8a0096bec02b320e4f3cb75fcb5a6f035934d6"
"""Everything promised, prose left out."""
