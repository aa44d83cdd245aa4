"""Strict JSON bodies (http.md §2, "JSON"; bugs B32)."""

from __future__ import annotations

import json
from math import inf

import pytest

from generated import errors, limits
from server import json_pieces
from server.api.body import BEYOND, MOST_DIGITS, read_object


def refusal(data: bytes) -> errors.ApiError:
    with pytest.raises(errors.ApiError) as caught:
        read_object(data)
    assert (caught.value.name, caught.value.param, caught.value.code) == ("malformed_body", None, None)
    return caught.value


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "Expecting value"),
        (b'{"a":', "Expecting value"),
        (b"{'a':1}", "property name"),
        (b'{"a":1,}', "property name"),
        (b'{"a":"\xff"}', "UTF-8"),
        (b'{"a":"\xed\xa0\xbd"}', "UTF-8"),
        (b'{"a":"\x01"}', "control character"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b'{"a":[1e400]}', "out of range"),
        (b'{"a":{"b":[[-1e400]]}}', "out of range"),
        (b'{"a":[' + b"1" * 5000 + b"]}", "out of range"),
        (b'{"a":{"b":-' + b"1" * 5000 + b"}}", "out of range"),
        (b"1e400", "out of range"),
        (b"[1e400]", "out of range"),
        (b'{"a":1e400,"b":Infinity}', "Infinity is not JSON"),
        (b'{"a":1e400,}', "property name"),
        (b'\xef\xbb\xbf{"a":1}', "BOM"),
    ],
)
def test_section_2_what_is_not_a_strict_json_object_is_refused(data: bytes, word: str) -> None:
    assert word in refusal(data).message


@pytest.mark.parametrize(
    "data",
    [
        rb'{"a":"\ud83d"}',
        rb'{"\udc00":1}',
        rb'{"a":"\ude00\ud83d"}',
        rb'{"a":"x\\\ud83d"}',
        rb'{"a":1,"a":"\ud800x"}',
    ],
)
def test_section_2_lone_surrogates_are_refused_anywhere(data: bytes) -> None:
    assert "surrogate" in refusal(data).message


def test_section_2_surrogate_pairs_and_escaped_backslashes_pass() -> None:
    assert read_object(rb'{"a":"\ud83d\ude00","b":"\\ud83d"}') == {"a": "😀", "b": "\\ud83d"}


def test_section_2_of_duplicate_keys_the_last_wins() -> None:
    assert read_object(b'{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_b32_nesting_beyond_the_limit_is_refused_and_at_the_limit_passes(opening: bytes) -> None:
    def nested(levels: int) -> bytes:
        closing = b"]" if opening == b"[" else b"}"
        return b'{"x":' + opening * levels + b"1" + closing * levels + b"}"

    assert "nested" in refusal(nested(limits.JSON_DEPTH)).message
    assert "nested" in refusal(nested(100_000)).message
    assert "x" in read_object(nested(limits.JSON_DEPTH - 1))


def test_brackets_in_strings_and_side_by_side_are_no_nesting() -> None:
    many = 3 * limits.JSON_DEPTH
    data = b'{"s":"' + b"[{" * many + b'","l":[' + b",".join([b'["\\"["]'] * many) + b"]}"
    assert len(read_object(data)["l"]) == many


def test_a_string_without_an_end_is_read_once_however_many_quotes_are_in_it() -> None:
    """Looked through again from each of its quotes, this text would take hours, and every client with it."""
    data = b'{"l":[' + b"[]," * (2 * limits.JSON_DEPTH) + b'"' + b'\\"' * 1_000_000
    assert "Unterminated string" in refusal(data).message


def test_section_6_integers_are_exact_up_to_the_length_that_python_writes() -> None:
    assert read_object(b'{"a":' + b"9" * 400 + b"}")["a"] == int("9" * 400)
    longest = b"-" + b"9" * MOST_DIGITS
    assert read_object(b'{"a":[' + longest + b"]}") == {"a": [int(longest)]}
    assert MOST_DIGITS == 4300 and len(str(BEYOND)) == MOST_DIGITS


def test_section_6_a_number_out_of_range_is_for_its_field_to_refuse() -> None:
    digits = b"1" * (MOST_DIGITS + 1)
    data = b'{"a":1e400,"b":-1e400,"c":' + digits + b',"d":-' + digits + b',"e":[1.5,7,{"f":"1e400"}]}'
    expected = {"a": inf, "b": -inf, "c": BEYOND, "d": -BEYOND, "e": [1.5, 7, {"f": "1e400"}]}
    assert read_object(data) == expected
    padded = data[:-1] + b',"g":"' + b"x" * 100_000 + b'"}'  # larger than what is decoded in one go
    assert read_object(padded) == {**expected, "g": "x" * 100_000}


class Counted(json_pieces.LargeDict):
    """An object whose end is seen."""

    alive = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1
        super().__del__()


def test_what_was_decoded_in_vain_is_gone_when_the_body_is_decoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both would be there at once: twice the memory for a large body with one large number."""
    alive: list[int] = []
    decode = json_pieces.decode

    def note(text: str, decoder: json.JSONDecoder) -> object:
        alive.append(Counted.alive)
        return decode(text, decoder)

    monkeypatch.setattr(json_pieces, "LargeDict", Counted)
    monkeypatch.setattr(json_pieces, "decode", note)
    body = read_object(b"{" + b'"a":1,' * json_pieces.WINDOW + b'"b":1e400}')
    assert type(body) is Counted
    assert body == {"a": 1, "b": inf}
    assert alive == [0, 0]
