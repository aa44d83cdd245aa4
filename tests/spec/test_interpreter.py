"""The oracle behind the examples, held against every vector made for the readers in Python and C."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.interpret import Refused, interpret
from codegen.model import Message, Model
from codegen.resolve import load_model

ROOT = Path(__file__).resolve().parents[2]
EMPTY_LINES = re.compile(rb"(?:[ \t]*\n)+")


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(ROOT / "spec/protocol.yaml")


def message_of(
    model: Model, name: str, data: bytes, messages: tuple[Message, ...]
) -> tuple[Message | None, bytes]:
    """The message a vector is about, and its bytes without the empty lines before them."""
    if name.startswith("READY "):
        return model.handshake.message, data
    leading = EMPTY_LINES.match(data)
    body = data[leading.end() :] if leading else data
    kind = (body.split(maxsplit=1) or [b""])[0].decode("latin-1")
    return next((message for message in messages if message.name == kind), None), body


def value_of(told: object) -> object:
    """A value of a vector as the interpreter gives it: bytes from hex, real numbers from their text."""
    if isinstance(told, dict):
        return bytes.fromhex(told["hex"]) if "hex" in told else float(told["real"])
    return [value_of(part) for part in told] if isinstance(told, list) else told


@pytest.mark.parametrize("file", ["frames", "commands"])
def test_every_vector_has_the_verdict_the_layout_gives(model: Model, file: str) -> None:
    vectors = json.loads((ROOT / f"generated/vectors/{file}.json").read_text(encoding="utf-8"))
    messages = model.frames if file == "frames" else model.commands
    wrong = []
    for vector in vectors:
        message, body = message_of(model, vector["name"], bytes.fromhex(vector["hex"]), messages)
        refusal = vector.get("fault") or vector.get("refusal")
        expected = (refusal["field"], refusal["rule"]) if refusal else None
        values: dict[str, object] = {}
        try:
            if message is None:
                raise Refused("", "unknown_kind")
            values = dict(interpret(model, message, body))
            found = None
        except Refused as refused:
            found = (refused.field, refused.rule)
        told = vector["gives"]["values"] if "gives" in vector else {}
        different = [key for key, value in told.items() if repr(values.get(key)) != repr(value_of(value))]
        if found != expected or different:
            wrong.append((vector["name"], vector["shown"], expected, found, different))
    assert wrong == []
    assert len(vectors) > 250


WORDS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "7",
        "99999999999999999999",
        "1e999",
        "nan",
        "x",
        "=",
        "ids=1",
        "logprobs=",
        "\x7f",
        "0a",
    ]
)


@given(
    index=st.integers(0, 100),
    words=st.lists(WORDS | st.text(max_size=3), max_size=12),
    rest=st.binary(max_size=8),
)
def test_any_bytes_are_values_or_a_refusal(model: Model, index: int, words: list[str], rest: bytes) -> None:
    messages = (*model.frames, *model.commands, model.handshake.message)
    message = messages[index % len(messages)]
    data = " ".join([message.layout.kind, *words]).encode() + b"\n" + rest
    try:
        values = interpret(model, message, data)
    except Refused as refused:
        known = {field.name for field in message.fields} | {key.name for key in message.keys}
        assert refused.field in known | {""} or refused.rule == "unknown_key"
    else:
        required = {field.attribute for field in message.fields if not field.optional}
        assert required <= set(values)
