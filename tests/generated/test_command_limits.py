"""The limits of a command's words, at the limit and one beyond it."""

from __future__ import annotations

import pytest

from generated import limits
from generated.commands import CommandReader, Image, Refusal, Submit


def read(keys: str):
    (outcome,) = CommandReader().feed(f"SUBMIT 5 0 2 16 0 1 0 {keys}\nhi\n".encode())
    return outcome


def test_name_of_a_key():
    longest = "a" * limits.KEY_NAME_LENGTH
    assert read(f"{longest}=1") == Refusal(5, "BAD_REQUEST", longest, "unknown_key", "SUBMIT")
    assert read(f"{longest}a=1") == Refusal(5, "BAD_REQUEST", "", "word", "SUBMIT")


def test_value_of_a_key():
    outcome = read("logprobs=" + "1".rjust(limits.KEY_VALUE_DIGITS, "0"))
    assert isinstance(outcome, Submit)
    assert outcome.logprobs == 1
    refusal = read("logprobs=" + "1".rjust(limits.KEY_VALUE_DIGITS + 1, "0"))
    assert refusal == Refusal(5, "BAD_REQUEST", "logprobs", "range", "SUBMIT")


@pytest.mark.parametrize("size", [limits.IMAGE_BYTES, limits.IMAGE_BYTES + 1])
def test_size_of_an_image(size):
    reader = CommandReader()
    assert reader.feed(f"IMAGE 5 {size} 1 1\n".encode()) == []
    piece = bytes(1 << 20)
    for _ in range(size // len(piece)):
        assert reader.feed(piece) == []
    (outcome,) = reader.feed(bytes(size % len(piece)) + b"\n")
    if size == limits.IMAGE_BYTES:
        assert isinstance(outcome, Image)
        assert len(outcome.image) == size
    else:
        assert outcome == Refusal(5, "BAD_REQUEST", "image_size", "range", "IMAGE")
