"""Tool calls in the answer: B49, B82, B84, B87 to B90, B92, B93 and the properties of the splitter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import limits
from server.text import ContentDelta, Pipeline, ReasoningDelta, Thinking, ToolCall, ToolSignature
from server.text.arguments import argument_json
from server.text.tools import CLOSE, OPEN, ToolSplitter

from .splitting import cuts, dense_texts, singles

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["x"],
    "properties": {
        "x": {"type": "string"},
        "n": {"type": "integer"},
        "b": {"type": "boolean"},
        "u": {"type": ["null", "number"]},
        "o": {"type": "object"},
        "l": {"type": "array"},
        "any": {},
    },
}
F = ToolSignature.from_schema("f", SCHEMA)
NOW = ToolSignature.from_schema("now", {})


def call(name: str, **pairs: str) -> str:
    inner = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in pairs.items())
    return f"{OPEN}{name}{inner}{CLOSE}"


def split(pieces: list[str], salvage: bool = False) -> tuple[str, list[tuple[str, Any]]]:
    """Joined content and the calls with parsed arguments."""
    splitter = ToolSplitter([F, NOW], salvage)
    out = [piece for text in pieces for piece in splitter.feed(text)] + splitter.finish()
    content = "".join(piece.text for piece in out if isinstance(piece, ContentDelta))
    calls = [(piece.name, json.loads(piece.arguments)) for piece in out if isinstance(piece, ToolCall)]
    assert splitter.calls == len(calls)
    return content, calls


FRAGMENTS = [
    OPEN,
    CLOSE,
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "f",
    "now",
    "x",
    call("f", x="1"),
    call("now"),
    call("other", k="v"),
]


@settings(max_examples=400)
@given(st.data(), dense_texts(FRAGMENTS), st.booleans())
def test_any_split_gives_the_same_content_and_calls(data: st.DataObject, text: str, salvage: bool) -> None:
    whole = split([text], salvage)
    assert split(singles(text), salvage) == whole
    assert split(data.draw(cuts(text)), salvage) == whole


@given(dense_texts(["<tool", "_call>", "<arg_key>", "plain", OPEN, "<tool_call> is a marker"]))
def test_text_without_a_closing_tag_and_without_arguments_is_content(text: str) -> None:
    if (
        "</tool" not in text
        and "</arg_value>" not in text
        and not text.rstrip("</tol_ca>").endswith(("f", "now"))
    ):
        assert split(singles(text)) == (text, [])


values = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<"), max_size=12)
segments = st.lists(
    st.one_of(
        st.text(alphabet="ab <>\n", max_size=8),
        st.tuples(
            st.sampled_from(["f", "now", "other.tool-1"]),
            st.dictionaries(st.sampled_from(["x", "y z"]), values),
        ),
    ),
    max_size=5,
)


@given(st.data(), segments)
def test_prose_and_well_formed_calls_come_apart_exactly(
    data: st.DataObject, parts: list[str | tuple[str, dict[str, str]]]
) -> None:
    text = "".join(part if isinstance(part, str) else call(part[0], **part[1]) for part in parts)
    content, calls = split(data.draw(cuts(text)))
    assert content == "".join(part for part in parts if isinstance(part, str))
    assert [name for name, _ in calls] == [part[0] for part in parts if not isinstance(part, str)]
    given_x = [part[1].get("x") for part in parts if not isinstance(part, str) and part[0] == "f"]
    assert [arguments.get("x") for name, arguments in calls if name == "f"] == given_x


@given(dense_texts([OPEN, "<tool", "text"]))
def test_outside_a_call_only_a_prefix_of_the_opening_tag_is_held(text: str) -> None:
    splitter = ToolSplitter([F])
    for place, char in enumerate(text):
        splitter.feed(char)
        if not splitter.idle and not splitter.inside_call:
            fed = text[: place + 1]
            assert any(fed.endswith(OPEN[:length]) for length in range(1, len(OPEN)))


def test_b84_parallel_calls_come_out_one_by_one_at_their_closing_tags() -> None:
    splitter = ToolSplitter([F, NOW])
    assert splitter.feed(call("f", x="1") + OPEN) == [ToolCall("f", '{"x":"1"}')]
    assert splitter.feed("now" + CLOSE) == [ToolCall("now", "{}")]


def test_b87_a_call_without_arguments_streams_like_any_other() -> None:
    splitter = ToolSplitter([F, NOW])
    assert splitter.feed("<tool_call>no") == []
    assert splitter.feed("w</tool_c") == []
    assert splitter.feed("all>") == [ToolCall("now", "{}")]


@pytest.mark.parametrize(
    "text", ["01234", "1e5", "true", "null", "{}", " padded \n", "", "a\u2028b", '"q"', "\\u2192"]
)
def test_b88_a_declared_string_is_kept_character_for_character(text: str) -> None:
    assert split([call("f", x=text)]) == ("", [("f", {"x": text})])


@pytest.mark.parametrize(
    "key, text, value",
    [
        ("n", "7", 7),
        ("n", " 7 ", 7),
        ("n", "true", "true"),
        ("n", "2.5", "2.5"),
        ("n", "x", "x"),
        ("n", "2.0", 2.0),
        ("n", "9" * 30, int("9" * 30)),
        ("n", "9" * 5000, "9" * 5000),
        ("n", "NaN", "NaN"),
        ("u", "2.5", 2.5),
        ("u", "null", None),
        ("u", "false", "false"),
        ("b", "true", True),
        ("b", "False", "False"),
        ("b", "1", "1"),
        ("o", '{"a":[1]}', {"a": [1]}),
        ("o", "[1]", "[1]"),
        ("o", "{", "{"),
        ("l", "[1]", [1]),
        ("l", "[" * 100_000, "[" * 100_000),
        ("any", "1", 1),
        ("any", "true", True),
        ("any", "word", "word"),
        ("undeclared", '{"k":null}', {"k": None}),
    ],
)
def test_b88_other_types_are_json_when_it_fits_and_text_when_not(key: str, text: str, value: object) -> None:
    content, calls = split([call("f", **{key: text})])
    assert (content, calls) == ("", [("f", {key: value})])
    assert type(calls[0][1][key]) is type(value)


def test_b88_types_are_the_same_in_one_piece_and_in_many() -> None:
    text = call("f", x="01", n="7", u="null", o='{"a":1}')
    assert (
        split(singles(text)) == split([text]) == ("", [("f", {"x": "01", "n": 7, "u": None, "o": {"a": 1}})])
    )


def test_b89_arguments_are_one_json_text_that_keeps_escapes_and_large_numbers() -> None:
    assert argument_json(r'["\u2192", "\"q\"", 1e400]', ("array",)) == r'["\u2192", "\"q\"", 1e400]'
    assert argument_json('say "hi"\\', ("string",)) == r'"say \"hi\"\\"'
    splitter = ToolSplitter([F])
    assert splitter.feed(call("f", x='a "b"', n="7")) == [ToolCall("f", '{"x":"a \\"b\\"","n":7}')]


def test_section_10_json_too_deep_to_be_sent_back_is_kept_as_text() -> None:
    deepest = "[" * limits.JSON_DEPTH + "]" * limits.JSON_DEPTH
    assert argument_json(deepest, ("array",)) == deepest
    assert argument_json(f"[{deepest}]", ("array",)) == f'"[{deepest}]"'
    assert argument_json(f'"{deepest}[[["', ()) == f'"{deepest}[[["'


def test_b90_a_split_marker_leaks_no_markup_and_the_name_keeps_its_head() -> None:
    pieces = ["<tool", "_call>tool_search<arg_key>q</arg_key><arg_value>a</arg_value></tool_call>"]
    assert split(pieces) == ("", [("tool_search", {"q": "a"})])


def test_b92_text_before_the_marker_streams_piece_by_piece() -> None:
    splitter = ToolSplitter([F])
    assert splitter.feed("Sure") == [ContentDelta("Sure")]
    assert splitter.feed(". <tool_") == [ContentDelta(". ")]
    assert splitter.feed("x") == [ContentDelta("<tool_x")]


def test_b93_finish_reason_is_tool_calls_when_there_was_a_call() -> None:
    pipeline = Pipeline(tools=[F])
    pieces = pipeline.feed(b"Sure. " + call("f", x="1").encode() + b" tail")
    assert pieces == [ContentDelta("Sure. "), ToolCall("f", '{"x":"1"}'), ContentDelta(" tail")]
    assert pipeline.finish() == []
    assert pipeline.finish_reason == "tool_calls"


def test_b82_a_call_mentioned_in_the_reasoning_is_not_taken() -> None:
    pipeline = Pipeline(thinking=Thinking.ON, tools=[F])
    pieces = pipeline.feed(b"plan <tool_call>no</tool_call></think><tool_call>f</tool_call>")
    assert pieces == [ReasoningDelta("plan <tool_call>no</tool_call>"), ToolCall("f", "{}")]


@pytest.mark.parametrize("cut", ["one", "many"])
def test_b49_a_call_cut_by_the_limit_is_length_and_nothing_is_invented(cut: str) -> None:
    data = b"<tool_call>f<arg_key>p</arg_key><arg_value>/a"
    pipeline = Pipeline(tools=[F])
    fed = [pipeline.feed(piece) for piece in ([data] if cut == "one" else singles(data))]
    assert [piece for pieces in fed for piece in pieces] == []
    assert pipeline.finish(length_limited=True) == [ContentDelta(data.decode())]
    assert pipeline.finish_reason == "length"


def test_b49_a_complete_call_before_the_cut_one_is_given_and_length_still_wins() -> None:
    pipeline = Pipeline(tools=[F])
    assert pipeline.feed((call("f", x="1") + OPEN + "f<arg_key>x").encode()) == [ToolCall("f", '{"x":"1"}')]
    pipeline.finish(length_limited=True)
    assert pipeline.finish_reason == "length"


def test_the_limit_in_prose_behind_a_complete_call_leaves_tool_calls() -> None:
    pipeline = Pipeline(tools=[F])
    pipeline.feed((call("f", x="1") + " and so").encode())
    pipeline.finish(length_limited=True)
    assert pipeline.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "text, arguments",
    [
        ("<tool_call>f<arg_key>x</arg_key><arg_value>A</arg_value></tool_cal", {"x": "A"}),
        ("<tool_call>f<arg_key>x</arg_key><arg_value>A</arg_value>", {"x": "A"}),
        ("<tool_call>f<arg_key>x</arg_key><arg_value>A</arg_value><arg_key>n", {"x": "A"}),
        ("<tool_call>f", {}),
        ("<tool_call>\nf\n</", {}),
    ],
)
def test_an_unclosed_last_call_is_recovered_from_a_complete_pair_or_a_declared_name(
    text: str, arguments: dict[str, str]
) -> None:
    assert split([text]) == split(singles(text)) == ("", [("f", arguments)])


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_call>g",
        "<tool_call>f and",
        "<tool_call>f<arg_key>x</arg_key><arg_value>A",
        "<tool_call>f</tool_cal is how",
        "the <tool_call> marker opens a call",
        "use <tool_call>some words</tool_call> like this",
        "<tool_call></tool_call>",
        "<tool_call>?</tool_call>",
        "</tool_call> alone",
        "<arg_key>x</arg_key>",
    ],
)
def test_prose_with_markers_survives_whole(text: str) -> None:
    assert split([text]) == split(singles(text)) == (text, [])


def test_prose_with_a_marker_before_a_real_call_does_not_swallow_it() -> None:
    text = "The <tool_call> marker: " + call("f", x="1")
    assert split([text]) == ("The <tool_call> marker: ", [("f", {"x": "1"})])
    declared = "<tool_call>f is called so: " + call("f", x="1")
    assert split(singles(declared)) == ("<tool_call>f is called so: ", [("f", {"x": "1"})])


def test_prose_behind_a_marker_is_released_as_soon_as_it_cannot_be_a_call() -> None:
    splitter = ToolSplitter([F])
    assert splitter.feed("<tool_call> mark") == []
    assert splitter.feed("er opens") == [ContentDelta("<tool_call> marker opens")]


def test_a_call_may_span_lines_and_a_value_may_hold_an_opening_tag() -> None:
    text = "<tool_call>\nf\n<arg_key>x</arg_key>\n<arg_value>a\n<tool_call> b</arg_value>\n</tool_call>"
    assert split([text]) == split(singles(text)) == ("", [("f", {"x": "a\n<tool_call> b"})])


def test_a_closed_call_of_a_tool_nobody_declared_is_a_call() -> None:
    assert split([call("other.tool-1", k="1")]) == ("", [("other.tool-1", {"k": 1})])


def test_a_key_given_twice_keeps_its_last_value() -> None:
    text = "<tool_call>f" + "".join(f"<arg_key>x</arg_key><arg_value>{v}</arg_value>" for v in "12") + CLOSE
    assert split([text]) == ("", [("f", {"x": "2"})])


@pytest.mark.parametrize("salvage, arguments", [(True, {"x": "Rome"}), (False, {})])
def test_salvage_gives_a_bare_body_to_the_first_required_parameter(
    salvage: bool, arguments: dict[str, str]
) -> None:
    assert split(["<tool_call>f(Rome)</tool_call>"], salvage) == ("", [("f", arguments)])
    assert split(["<tool_call>f <arg_value>Rome</tool_call>"], salvage) == ("", [("f", arguments)])
    assert split(["<tool_call>f<arg_key>x</arg_key>Rome</tool_call>"], salvage) == ("", [("f", arguments)])


def test_salvage_never_touches_a_call_with_arguments_or_without_a_body() -> None:
    assert split([call("f", n="1")], True) == ("", [("f", {"n": 1})])
    assert split([call("f")], True) == ("", [("f", {})])
    assert split([call("now(1)")], True) == ("", [("now", {})])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"properties": 5},
        {"properties": {"x": 5}},
        {"required": "x"},
        {"properties": {"x": {"type": [1, None]}}, "required": [3]},
    ],
)
def test_a_schema_that_is_not_understood_declares_nothing(schema: object) -> None:
    signature = ToolSignature.from_schema("f", schema)
    assert signature.types == {}


def test_salvage_is_off_unless_asked_for() -> None:
    assert Pipeline(tools=[F]).feed(b"<tool_call>f(Rome)</tool_call>") == [ToolCall("f", "{}")]
    assert Pipeline(tools=[F], salvage=True).feed(b"<tool_call>f(Rome)</tool_call>") == [
        ToolCall("f", '{"x":"Rome"}')
    ]


def test_a_call_swallows_text_behind_its_name_and_among_its_arguments() -> None:
    splitter = ToolSplitter([F])
    seen = []
    for piece in (
        "Hi ",
        "<tool_call>",
        "f",
        "<arg_key>",
        "x",
        "</arg_key><arg_value>Ro",
        "me</arg_value>",
        CLOSE,
    ):
        splitter.feed(piece)
        seen.append(splitter.swallowing)
    assert seen == [False, False, False, True, True, True, True, False]
