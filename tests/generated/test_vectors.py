"""The Python readers on every vector that follows from the spec; the C tests read the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generated import commands, frames

VECTORS = Path(frames.__file__).with_name("vectors")


def load(name: str) -> list[dict[str, Any]]:
    return json.loads((VECTORS / f"{name}.json").read_text())


def decoded(value: Any) -> Any:
    """A value of a vector as a reader gives it."""
    if isinstance(value, dict):
        return float(value["real"]) if "real" in value else bytes.fromhex(value["hex"])
    return tuple(decoded(part) for part in value) if isinstance(value, list) else value


def verdict(vector: dict[str, Any], said: list[Any], end: Any) -> None:
    """Assert that a reader said exactly what the vector asks for."""
    if "gives" in vector:
        [message] = said
        assert end is None
        assert vector["gives"]["kind"] == message.KIND
        values = {name: decoded(value) for name, value in vector["gives"]["values"].items()}
        if not vector["gives"].get("partial"):
            assert list(message.as_dict()) == list(values)
        assert repr({name: getattr(message, name) for name in values}) == repr(values)
    elif "refusal" in vector:
        [refusal] = said
        assert end is None
        assert isinstance(refusal, commands.Refusal)
        assert refusal._asdict() == vector["refusal"]
    else:
        expected = vector["fault"]
        fault = end if expected["at"] == "eof" else said[-1]
        assert len(said) == (0 if expected["at"] == "eof" else 1)
        assert isinstance(fault, frames.ProtocolFault)
        assert (fault.kind, fault.field, fault.rule) == (
            expected["kind"],
            expected["field"],
            expected["rule"],
        )
        if "code" in expected:
            assert fault.wire_code == expected["code"]


@pytest.mark.parametrize("step", [None, 1, 7], ids=["whole", "bytewise", "by sevens"])
@pytest.mark.parametrize("name", ["frames", "commands"])
def test_every_vector(name: str, step: int | None) -> None:
    failures = []
    for vector in load(name):
        data = bytes.fromhex(vector["hex"])
        reader: Any = commands.CommandReader()
        if name == "frames":
            reader = frames.FrameReader(handshake=frames.SENTINEL in data)
        size = step or max(len(data), 1)
        said = [item for at in range(0, len(data), size) for item in reader.feed(data[at : at + size])]
        try:
            verdict(vector, said, reader.eof())
        except (AssertionError, ValueError, IndexError) as error:
            failures.append(f"{vector['name']}: {vector['shown']}: {said} {error}")
    assert failures == []


@pytest.mark.parametrize(("name", "kinds"), [("frames", frames.FRAMES), ("commands", commands.COMMANDS)])
def test_every_message_has_good_and_bad_vectors(name: str, kinds: tuple[type[Any], ...]) -> None:
    vectors = load(name)
    good = {vector["gives"]["kind"] for vector in vectors if "gives" in vector}
    bad = {(vector.get("fault") or vector["refusal"])["kind"] for vector in vectors if "gives" not in vector}
    expected = {kind.KIND for kind in kinds} | ({"READY"} if name == "frames" else set())
    assert good == expected
    assert bad == expected | {""}


def test_names_are_unique() -> None:
    for name in ("frames", "commands"):
        labels = [vector["name"] for vector in load(name)]
        assert sorted(labels) == sorted(set(labels))
