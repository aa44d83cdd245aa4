"""The layout notation: what a line parses to, and where the columns of its parts are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codegen.findings import Findings, Location
from codegen.layout import (
    Counted,
    Extensions,
    Ignored,
    Layout,
    Literal,
    Optional,
    Rest,
    Word,
    parse_layout,
)
from codegen.source import Scalar


def parsed(text: str) -> Layout:
    findings = Findings()
    layout = parse_layout(Scalar(Location("s.yaml", 3, 13), text, True), findings, "frame X")
    assert list(findings) == []
    assert layout is not None
    return layout


def test_numeric_tail() -> None:
    layout = parsed("DATA <id> [<k> (<token> <lp>){k}]")
    tail = (Word("k", 11), Counted((Word("token", 16), Word("lp", 24)), "k", 15, 30))
    assert layout.kind == "DATA"
    assert layout.parts == (Word("id", 5), Optional(tail, 10))
    assert layout.field_names() == ["id", "k", "token", "lp"]


def test_literal_ignored_rest_and_extensions() -> None:
    assert parsed("DONE <id> STAT <a> ...").parts == (
        Word("id", 5),
        Literal("STAT", 10),
        Word("a", 15),
        Ignored(19),
    )
    assert parsed("PERF <words>+").parts == (Rest("words", 1, 5),)
    assert parsed("ERROR <id> <words>*").parts == (Word("id", 6), Rest("words", 0, 11))
    assert parsed("ASK [<n> [<key>=<value>]*]").parts == (
        Optional((Word("n", 5), Extensions("key", "value", 9)), 4),
    )


def test_spacing_is_normalised_in_the_text_only() -> None:
    layout = parsed("ASK   <id>  [ <n> ]")
    assert layout.text == "ASK <id> [ <n> ]"
    assert layout.parts == (Word("id", 6), Optional((Word("n", 14),), 12))


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)


@given(
    st.lists(NAMES, unique=True, max_size=6),
    st.sampled_from(["", " ...", " <rest>*", " <rest>+", " [<tail>]"]),
)
def test_every_line_of_words_parses_to_itself(names: list[str], ending: str) -> None:
    names = [name for name in names if name not in ("rest", "tail")]
    text = " ".join(["KIND", *(f"<{name}>" for name in names)]) + ending
    layout = parsed(text)
    assert layout.text == text
    assert layout.field_names()[: len(names)] == names
    for part in layout.parts:
        if isinstance(part, Word):
            assert text[part.offset :].startswith(f"<{part.name}>")


@given(st.text(alphabet="ABC <>[](){}=*+.abk01", max_size=40))
def test_any_text_is_a_layout_or_a_finding_inside_the_line(text: str) -> None:
    findings = Findings()
    layout = parse_layout(Scalar(Location("s.yaml", 3, 13), text, True), findings, "frame X")
    assert (layout is None) == findings.has_errors
    for finding in findings:
        assert 13 <= finding.location.column <= 13 + len(text)
