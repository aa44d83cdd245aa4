# Generated from spec/protocol.yaml (target python, template python/fingerprint.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Fingerprints of the contract this code was generated from (SHA-256, hexadecimal); the C header carries the same two."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
"""Version of the protocol."""

BASE: Final = "f812a989121a6f860982afb87325c1b7ea711f4d113d48d195707871bc551e14"
"""What the bytes on the wire must be: equal on both sides means plain requests are understood."""

FULL: Final = "c24e674f34ba76ef1006589a80c7e50dcace2c7842037ff1c457a4ee4600e724"
"""Everything promised, prose left out."""
