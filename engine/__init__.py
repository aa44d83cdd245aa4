"""Engines: programs that play the engine side of the serve protocol (wire.md)."""
