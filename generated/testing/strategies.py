# Generated from spec/protocol.yaml (target testing, template testing/strategies.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Hypothesis strategies for messages: valid ones with what they must be read as, and malformed ones with the fault.

Nothing here uses the readers or writers under test. :data:`FRAME_SHAPES` and :data:`COMMAND_SHAPES` are the layouts of
the spec as data; :func:`valid` spells a message in any of the ways a reader has to accept, :func:`malformed` makes one
thing wrong and says which. Expected numbers come from ``int`` and ``float`` on the very text that is sent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from .. import commands, frames
from ..wire import Message

SENTINEL: Final = frames.SENTINEL


# ---------------------------------------------------------------- layouts as data


class Uint(NamedTuple):
    """An unsigned number.

    ``payload``: the attribute whose byte count it is. ``counts``: it counts a repeat. ``unreadable``: what any other
    word is read as, instead of being a fault.
    """

    field: str
    attribute: str
    low: int
    high: int
    payload: str | None = None
    counts: bool = False
    unreadable: int | None = None


class Real(NamedTuple):
    """A number. Bounds are inclusive; ``general``: an exponent is allowed; ``single``: bounds hold in single precision."""

    field: str
    attribute: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    finite: bool = False
    general: bool = False
    single: bool = False


class Visible(NamedTuple):
    """One word of free text."""

    field: str
    attribute: str


class Hexadecimal(NamedTuple):
    """Pairs of hexadecimal digits."""

    field: str
    attribute: str


class Fixed(NamedTuple):
    """A word that is always the same."""

    text: bytes


class Rest(NamedTuple):
    """The rest of the line as words of free text."""

    field: str
    attribute: str
    at_least: int


class Repeat(NamedTuple):
    """The words, as often as the field ``counter`` says."""

    counter: str
    words: tuple[Any, ...]


class Tail(NamedTuple):
    """Parts that may be absent as a whole."""

    parts: tuple[Any, ...]


class Keys(NamedTuple):
    """Extension keys: name, least and greatest value, in wire order."""

    known: tuple[tuple[str, int, int], ...]


class Ignored(NamedTuple):
    """Further words that are dropped."""


class Shape(NamedTuple):
    """One message: what it is made of and what it is read as."""

    kind: str
    message: Callable[..., Message]
    parts: tuple[Any, ...]
    payloads: tuple[str, ...]
    """Attributes of the payloads, in order."""
    drained: bool
    """The payload is not kept."""
    spans: tuple[tuple[int, int | None], ...]
    """Numbers of words, the kind included, that some form of the layout has."""
    only_with: tuple[tuple[str, int, str], ...]
    """Rules (field, value, key): the field has that value only with the key above zero."""
    lead: bytes = b""
    """Bytes before the header line."""


FRAME_SHAPES: Final[tuple[Shape, ...]] = (
    Shape(
        kind="ACCEPT",
        message=frames.Accept,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("prompt_tokens", "prompt_tokens", 0, 9223372036854775807),
            Ignored(),
        ),
        payloads=(),
        drained=False,
        spans=((3, None),),
        only_with=(),
    ),
    Shape(
        kind="DATA",
        message=frames.Data,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("size", "size", 0, 65536, payload="payload"),
            Tail(
                (
                    Real("logprob", "logprob"),
                    Uint("k", "k", 0, 32, counts=True),
                    Repeat(
                        "k",
                        (Uint("token", "tokens", 0, 2147483647), Real("token_logprob", "token_logprobs")),
                    ),
                ),
            ),
        ),
        payloads=("payload",),
        drained=False,
        spans=((3, 3), (5, None)),
        only_with=(),
    ),
    Shape(
        kind="ECHO",
        message=frames.Echo,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("size", "size", 0, 65536, payload="payload"),
            Uint("position", "position", 0, 4294967295),
            Real("logprob", "logprob"),
            Uint("k", "k", 0, 32, counts=True),
            Repeat("k", (Uint("token", "tokens", 0, 2147483647), Real("token_logprob", "token_logprobs"))),
        ),
        payloads=("payload",),
        drained=False,
        spans=((6, None),),
        only_with=(),
    ),
    Shape(
        kind="TOOL",
        message=frames.Tool,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("size", "size", 0, 65536, payload="payload"),
        ),
        payloads=("payload",),
        drained=False,
        spans=((3, 3),),
        only_with=(),
    ),
    Shape(
        kind="DONE",
        message=frames.Done,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Fixed(b"STAT"),
            Uint("completion_tokens", "completion_tokens", 0, 9223372036854775807),
            Real("tokens_per_second", "tokens_per_second", finite=True),
            Real("cache_hit_percent", "cache_hit_percent", finite=True),
            Real("rss_gb", "rss_gb", finite=True),
            Tail(
                (
                    Uint("prompt_tokens", "prompt_tokens", 0, 9223372036854775807),
                    Tail((Uint("length_limited", "length_limited", 0, 1), Ignored())),
                ),
            ),
        ),
        payloads=(),
        drained=False,
        spans=((7, None),),
        only_with=(),
    ),
    Shape(
        kind="ERROR",
        message=frames.Error,
        parts=(Uint("id", "id", 0, 18446744073709551615, unreadable=0), Rest("words", "words", 0)),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="PROF",
        message=frames.Prof,
        parts=(
            Real("wall_s", "wall_s", finite=True),
            Real("prompt_tokens", "prompt_tokens", finite=True),
            Real("completion_tokens", "completion_tokens", finite=True),
            Real("disk_s", "disk_s", finite=True),
            Real("wait_s", "wait_s", finite=True),
            Real("matmul_s", "matmul_s", finite=True),
            Real("attention_s", "attention_s", finite=True),
            Real("head_s", "head_s", finite=True),
            Real("forwards", "forwards", finite=True),
            Ignored(),
        ),
        payloads=(),
        drained=False,
        spans=((10, None),),
        only_with=(),
    ),
    Shape(
        kind="TIERS",
        message=frames.Tiers,
        parts=(
            Real("vram", "vram", finite=True),
            Real("ram", "ram", finite=True),
            Real("disk", "disk", finite=True),
            Real("vram_gb", "vram_gb", finite=True),
            Real("ram_gb", "ram_gb", finite=True),
            Ignored(),
        ),
        payloads=(),
        drained=False,
        spans=((6, None),),
        only_with=(),
    ),
    Shape(
        kind="HWINFO",
        message=frames.Hwinfo,
        parts=(
            Real("cores", "cores", finite=True),
            Real("ram_total_gb", "ram_total_gb", finite=True),
            Real("ram_available_gb", "ram_available_gb", finite=True),
            Real("gpus", "gpus", finite=True),
            Real("vram_total_gb", "vram_total_gb", finite=True),
            Rest("names", "names", 1),
        ),
        payloads=(),
        drained=False,
        spans=((7, None),),
        only_with=(),
    ),
    Shape(
        kind="EMAP",
        message=frames.Emap,
        parts=(
            Uint("rows", "rows", 0, 9223372036854775807),
            Uint("cols", "cols", 0, 9223372036854775807),
            Hexadecimal("cells", "cells"),
        ),
        payloads=(),
        drained=False,
        spans=((4, 4),),
        only_with=(),
    ),
    Shape(
        kind="HITS",
        message=frames.Hits,
        parts=(
            Uint("rows", "rows", 0, 9223372036854775807),
            Uint("cols", "cols", 0, 9223372036854775807),
            Hexadecimal("cells", "cells"),
        ),
        payloads=(),
        drained=False,
        spans=((4, 4),),
        only_with=(),
    ),
    Shape(
        kind="PERF",
        message=frames.Perf,
        parts=(Rest("words", "words", 1),),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="ENTROPY",
        message=frames.Entropy,
        parts=(Rest("words", "words", 1),),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="GPUS",
        message=frames.Gpus,
        parts=(Rest("words", "words", 1),),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="TOPK",
        message=frames.Topk,
        parts=(Rest("words", "words", 1),),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="REPIN",
        message=frames.Repin,
        parts=(Rest("words", "words", 1),),
        payloads=(),
        drained=False,
        spans=((2, None),),
        only_with=(),
    ),
    Shape(
        kind="GRPP",
        message=frames.Grpp,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("size", "size", 0, 65536, payload="payload"),
            Uint("position", "position", 0, 4294967295),
            Real("logprob", "logprob"),
            Uint("k", "k", 0, 9223372036854775807),
            Ignored(),
        ),
        payloads=("payload",),
        drained=True,
        spans=((6, None),),
        only_with=(),
    ),
    Shape(
        kind="GRPG",
        message=frames.Grpg,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("size", "size", 0, 65536, payload="payload"),
            Uint("member", "member", 0, 2147483647),
            Uint("position", "position", 0, 4294967295),
            Real("logprob", "logprob"),
            Uint("k", "k", 0, 9223372036854775807),
            Ignored(),
        ),
        payloads=("payload",),
        drained=True,
        spans=((7, None),),
        only_with=(),
    ),
    Shape(
        kind="GRPS",
        message=frames.Grps,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("member", "member", 0, 2147483647),
            Uint("prompt_count", "prompt_count", 0, 9223372036854775807),
            Uint("member_count", "member_count", 0, 9223372036854775807),
        ),
        payloads=(),
        drained=False,
        spans=((5, 5),),
        only_with=(),
    ),
    Shape(
        kind="GRPE",
        message=frames.Grpe,
        parts=(
            Uint("id", "id", 1, 18446744073709551615, unreadable=0),
            Uint("member", "member", 0, 2147483647),
            Real("sum", "sum"),
            Uint("count", "count", 0, 9223372036854775807),
            Uint("greedy", "greedy", 0, 1),
        ),
        payloads=(),
        drained=False,
        spans=((6, 6),),
        only_with=(),
    ),
    Shape(
        kind="STAT",
        message=frames.Ready,
        parts=(
            Uint("completion_tokens", "completion_tokens", 0, 9223372036854775807),
            Real("tokens_per_second", "tokens_per_second", finite=True),
            Real("cache_hit_percent", "cache_hit_percent", finite=True),
            Real("rss_gb", "rss_gb", finite=True),
            Tail(
                (
                    Uint("prompt_tokens", "prompt_tokens", 0, 9223372036854775807),
                    Tail((Uint("length_limited", "length_limited", 0, 1), Ignored())),
                ),
            ),
        ),
        payloads=(),
        drained=False,
        spans=((5, None),),
        only_with=(),
        lead=SENTINEL,
    ),
)
"""Every frame, the handshake last."""

COMMAND_SHAPES: Final[tuple[Shape, ...]] = (
    Shape(
        kind="SUBMIT",
        message=commands.Submit,
        parts=(
            Uint("id", "id", 1, 18446744073709551615),
            Uint("slot", "slot", 0, 511),
            Uint("prompt_size", "prompt_size", 0, 16777216, payload="prompt"),
            Uint("max_tokens", "max_tokens", 0, 2147483647),
            Real("temperature", "temperature", low=0.0, high=2.0, finite=True, general=True, single=True),
            Real("top_p", "top_p", low=0.0, high=1.0, above=0.0, finite=True, general=True, single=True),
            Tail(
                (
                    Uint("extra_size", "extra_size", 0, 1048576, payload="extra"),
                    Keys((("logprobs", 0, 32), ("ids", 0, 1), ("pin", 0, 1))),
                ),
            ),
        ),
        payloads=("prompt", "extra"),
        drained=False,
        spans=((7, None),),
        only_with=(("max_tokens", 0, "logprobs"),),
    ),
    Shape(
        kind="IMAGE",
        message=commands.Image,
        parts=(
            Uint("id", "id", 1, 18446744073709551615),
            Uint("image_size", "image_size", 1, 67108864, payload="image"),
            Uint("grid_h", "grid_h", 1, 65535),
            Uint("grid_w", "grid_w", 1, 65535),
        ),
        payloads=("image",),
        drained=False,
        spans=((5, 5),),
        only_with=(),
    ),
    Shape(
        kind="STOP",
        message=commands.Stop,
        parts=(Uint("id", "id", 1, 18446744073709551615),),
        payloads=(),
        drained=False,
        spans=((2, 2),),
        only_with=(),
    ),
    Shape(
        kind="CANCEL",
        message=commands.Cancel,
        parts=(Uint("id", "id", 1, 18446744073709551615),),
        payloads=(),
        drained=False,
        spans=((2, 2),),
        only_with=(),
    ),
)
"""Every command."""


class Spelled(NamedTuple):
    """A message in words: (field, text) after the kind, its payloads, and what it must be read as."""

    shape: Shape
    words: list[tuple[str, bytes]]
    payloads: list[bytes]
    message: Message

    def header(self, separators: list[bytes] | None = None) -> bytes:
        """The header line without its line feed."""
        texts = [self.shape.kind.encode(), *(text for _, text in self.words)]
        gaps = separators or [b" "] * (len(texts) - 1)
        return texts[0] + b"".join(gap + text for gap, text in zip(gaps, texts[1:], strict=True))

    def data(self, separators: list[bytes] | None = None) -> bytes:
        """All bytes of the message."""
        payload = b"".join(self.payloads) + b"\n" if self.shape.payloads else b""
        return self.shape.lead + self.header(separators) + b"\n" + payload


class Sample(NamedTuple):
    """Bytes and the one message they must be read as."""

    data: bytes
    message: Message


class Malformed(NamedTuple):
    """Bytes, what is wrong with them, and the fault that must be raised for it."""

    data: bytes
    kind: str
    field: str
    rule: str
    how: str
    fatal: bool
    """A fault that ends the stream; False for a command that is refused and skipped."""
    request_id: int
    """Id a refusal must carry; 0 for frames."""


def same(left: object, right: object) -> bool:
    """Equal kinds and values, nan being equal to itself."""
    return type(left) is type(right) and repr(left) == repr(right)


# ---------------------------------------------------------------- words


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf")


def in_range(part: Real, value: float) -> bool:
    """Whether a reader has to take ``value`` for this number."""
    judged = _single(value) if part.single else value
    if value != value or value in (float("inf"), float("-inf")):
        return not part.finite
    return (
        (part.low is None or (value >= part.low and judged >= part.low))
        and (part.above is None or (value > part.above and judged > part.above))
        and (part.high is None or value <= part.high)
    )


@cache
def uint_texts(low: int, high: int) -> st.SearchStrategy[bytes]:
    """Spellings of the numbers ``low`` … ``high``, the ends often, leading zeros sometimes."""
    numbers = st.one_of(st.sampled_from([low, min(low + 1, high), high]), st.integers(low, high))
    zeros = st.sampled_from([0, 0, 0, 1, 25])
    return st.builds(lambda number, extra: b"0" * extra + str(number).encode(), numbers, zeros)


@cache
def real_texts(part: Real) -> st.SearchStrategy[bytes]:
    """Spellings of numbers in range: any number of decimals, a sign, an exponent where allowed, not finite where allowed."""
    bounded = part.low is not None or part.high is not None
    if bounded:
        values = st.floats(part.low or 0.0, part.high, width=32)
    else:
        values = st.floats(-1e12, 1e12)
    forms = st.sampled_from(["%.0f", "%.1f", "%.3f", "%.6f", "%.17f", "%.30f", "+%.2f", "00%.1f"])
    texts = st.builds(lambda form, value: form % value, forms, values).map(
        lambda text: text.replace("+-", "-")
    )
    texts = texts.map(lambda text: text.replace("00-", "-00"))
    more = [st.sampled_from(["0", "-0.000", ".5", "1.", "1.0", "0.25"])]
    if not bounded:
        more.append(st.sampled_from(["-1.", "-.5", "123456789012345678901234567890", "0." + "0" * 60 + "1"]))
    if part.general:
        more.append(st.builds(lambda value: f"{value:.8g}", values))
        more.append(st.sampled_from(["1e0", "5e-1", "1E-3", "2e-05", "1e-30"]))
    if not part.finite:
        more.append(st.sampled_from(["nan", "inf", "-inf"]))
    return st.one_of(texts, *more).filter(lambda text: in_range(part, float(text))).map(str.encode)


@cache
def visible_texts() -> st.SearchStrategy[bytes]:
    """Words of visible bytes; valid UTF-8 or not."""
    common = st.text(
        st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=9
    )
    any_byte = st.lists(st.integers(0x21, 0xFF).filter(lambda byte: byte != 0x7F), min_size=1, max_size=6)
    return st.one_of(common.map(str.encode), any_byte.map(bytes))


@cache
def hexadecimal_texts() -> st.SearchStrategy[bytes]:
    """Pairs of hexadecimal digits in either case."""
    digits = st.binary(min_size=1, max_size=9)
    return st.one_of(
        digits.map(lambda data: data.hex().encode()), digits.map(lambda data: data.hex().upper().encode())
    )


@cache
def word_texts(part: Any) -> st.SearchStrategy[bytes]:
    """Good spellings of one word."""
    if isinstance(part, Uint):
        return uint_texts(part.low, part.high)
    if isinstance(part, Real):
        return real_texts(part)
    return hexadecimal_texts() if isinstance(part, Hexadecimal) else visible_texts()


def word_value(part: Any, text: bytes) -> Any:
    """What a good spelling means."""
    if isinstance(part, Uint):
        return int(text)
    return float(text) if isinstance(part, Real) else text.decode("utf-8", "replace")


UNREADABLE_UINTS: Final = (
    b"+5",
    b"1_0",
    b"0x1",
    b"5.",
    b"5.0",
    b"five",
    b"1e3",
    b"nan",
    b"\xd9\xa3",
    b"1\r",
    b"5;",
    b"--1",
    b"-",
)
UNREADABLE_REALS: Final = (
    b"1_0", b"infinity", b"Infinity", b"NaN", b"-nan", b"+inf", b"INF", b"nan(1)", b".", b"+", b"--1", b"1.2.3",
    b"0x1p3", b"1,5", b"1.5\r", b"\xd9\xa3", b"1e", b"e5",
)  # fmt: skip
WITH_EXPONENT: Final = (b"1e3", b"1E3", b"1.5e-1", b"1e+0")
TOO_LONG: Final = b"9" * 30


@cache
def unreadable_texts(part: Any) -> st.SearchStrategy[bytes] | None:
    """Spellings that are no such word at all (rule ``word``); None where any word is taken."""
    if isinstance(part, Uint):
        return None if part.unreadable is not None else st.sampled_from(UNREADABLE_UINTS)
    if isinstance(part, Real):
        return st.sampled_from(UNREADABLE_REALS if part.general else UNREADABLE_REALS + WITH_EXPONENT)
    if isinstance(part, Hexadecimal):
        return st.sampled_from([b"0", b"0g", b"abc", b"0x10", b"0a0b0", b"\xd9\xa3"])
    return st.sampled_from([b"a\x7fb", b"\x00", b"bell\x07", b"a\rb"])


@cache
def outside_texts(part: Any) -> st.SearchStrategy[bytes] | None:
    """Spellings of numbers out of range (rule ``range``); None where there are none."""
    if isinstance(part, Uint) and part.unreadable is not None:
        return None
    if isinstance(part, Uint):
        choices = [
            str(part.high + 1).encode(),
            b"-1",
            b"-0",
            b"-5",
            TOO_LONG,
            b"0" * 30 + str(part.high + 1).encode(),
        ]
        return st.sampled_from([*choices, *([str(part.low - 1).encode()] if part.low > 0 else [])])
    if isinstance(part, Real) and part.finite:
        choices = [b"nan", b"inf", b"-inf"]
        if part.high is not None:
            choices += [
                b"%.8g" % (part.high * 2 + 1),
                b"%.17g" % (part.high * (1 + 2**-50) + 2**-60),
                b"1e300",
            ]
        if part.low is not None:
            choices += [b"%.8g" % (part.low - 1), b"-0.0000001"]
        if part.above is not None:
            choices += [b"%.8g" % part.above, b"%.8g" % (part.above - 1)]
            choices += [b"1e-50", b"7.0064923e-46"] if part.single and part.above == 0 else []
        if part.high is None and part.low is None:
            choices += [b"9" * 400]
        return st.sampled_from(choices)
    return None


# ---------------------------------------------------------------- valid messages


class _Speller:
    """Draws one message of a shape, part by part."""

    def __init__(self, draw: st.DrawFn, shape: Shape, *, shortest: bool, largest_payload: int) -> None:
        self.draw = draw
        self.shape = shape
        self.shortest = shortest
        self.largest_payload = largest_payload
        self.words: list[tuple[str, bytes]] = []
        self.payloads: dict[str, bytes] = {}
        self.values: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def spelled(self) -> Spelled:
        self.take(self.shape.parts)
        for field, value, key in self.shape.only_with:
            self._obey(field, value, key)
        kept = {} if self.shape.drained else self.payloads
        message = self.shape.message(**self.values, **kept)
        payloads = [self.payloads.get(name, b"") for name in self.shape.payloads]
        return Spelled(self.shape, self.words, payloads, message)

    def take(self, parts: tuple[Any, ...]) -> None:
        for part in parts:
            if isinstance(part, Fixed):
                self.words.append(("", part.text))
            elif isinstance(part, Uint | Real | Visible | Hexadecimal):
                self._word(part)
            elif isinstance(part, Rest):
                self._rest(part)
            elif isinstance(part, Repeat):
                self._repeat(part)
            elif isinstance(part, Tail):
                if not self.shortest and self.draw(st.booleans()):
                    self.take(part.parts)
            elif isinstance(part, Keys):
                self._keys(part)
            elif isinstance(part, Ignored) and not self.shortest:
                self.words += [("", text) for text in self.draw(st.lists(visible_texts(), max_size=3))]

    def _word(self, part: Any) -> None:
        if isinstance(part, Uint) and part.payload is not None:
            most = min(part.high, self.largest_payload)
            payload = self.draw(st.binary(min_size=part.low, max_size=most))
            self.payloads[part.payload] = payload
            self.words.append((part.field, str(len(payload)).encode()))
        elif isinstance(part, Uint) and part.counts:
            count = 0 if self.shortest else self.draw(st.sampled_from([0, 1, 2, part.high]))
            self.counts[part.field] = count
            self.words.append((part.field, str(count).encode()))
        else:
            text = self.draw(word_texts(part))
            self.words.append((part.field, text))
            self.values[part.attribute] = word_value(part, text)

    def _rest(self, part: Rest) -> None:
        most = part.at_least if self.shortest else 4
        texts = self.draw(st.lists(visible_texts(), min_size=part.at_least, max_size=most))
        self.words += [(part.field, text) for text in texts]
        self.values[part.attribute] = tuple(text.decode("utf-8", "replace") for text in texts)

    def _repeat(self, part: Repeat) -> None:
        columns: list[list[Any]] = [[] for _ in part.words]
        plain = self.draw(st.booleans())
        for _ in range(self.counts[part.counter]):
            for word, column in zip(part.words, columns, strict=True):
                text = self.draw(_plain_texts(word) if plain else word_texts(word))
                self.words.append((word.field, text))
                column.append(word_value(word, text))
        for word, column in zip(part.words, columns, strict=True):
            self.values[word.attribute] = tuple(column)

    def _keys(self, part: Keys) -> None:
        for name, low, high in part.known:
            if not self.shortest and self.draw(st.booleans()):
                value = self.draw(st.integers(low, high))
                self.words.append((name, f"{name}={value}".encode()))
                self.values[name] = value

    def _obey(self, field: str, value: int, key: str) -> None:
        """Make a drawn value legal that is so only with a key."""
        if self.values.get(field) == value and not self.values.get(key):
            self.values[field] = value + 1
            self.words = [
                (name, str(value + 1).encode() if name == field else text) for name, text in self.words
            ]


@cache
def _plain_texts(part: Any) -> st.SearchStrategy[bytes]:
    """Numbers as an engine prints them."""
    if isinstance(part, Uint):
        return st.integers(part.low, part.high).map(lambda number: str(number).encode())
    if isinstance(part, Real):
        return st.floats(-30, 0).map(lambda number: b"%.6f" % number)
    return word_texts(part)


@st.composite
def spellings(draw: st.DrawFn, shape: Shape, *, shortest: bool = False, largest_payload: int = 40) -> Spelled:
    """A valid message of ``shape`` in words. ``shortest``: without anything that may be left out."""
    return _Speller(draw, shape, shortest=shortest, largest_payload=largest_payload).spelled()


@st.composite
def valid(draw: st.DrawFn, shape: Shape, *, largest_payload: int = 40) -> Sample:
    """A valid message of ``shape`` with any separators a reader accepts, and empty lines before it."""
    spelled = draw(spellings(shape, largest_payload=largest_payload))
    gaps = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b" \t "])
    separators = [draw(gaps) for _ in spelled.words] if draw(st.booleans()) else None
    blank = b"" if shape.lead else draw(st.sampled_from([b"", b"", b"\n", b"  \n\t\n"]))
    return Sample(blank + spelled.data(separators), spelled.message)


@cache
def valid_frames() -> st.SearchStrategy[Sample]:
    """Any frame but the handshake."""
    return st.one_of([valid(shape) for shape in FRAME_SHAPES if not shape.lead])


@cache
def valid_commands() -> st.SearchStrategy[Sample]:
    """Any command."""
    return st.one_of([valid(shape) for shape in COMMAND_SHAPES])


# ---------------------------------------------------------------- malformed messages


def is_count(shape: Shape, words: int) -> bool:
    """Whether some form of the layout has this number of words, the kind included."""
    return any(low <= words and (high is None or words <= high) for low, high in shape.spans)


def _single_words(parts: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """(place after the kind, part) of every word that is always there."""
    found = []
    for place, part in enumerate(parts):
        if not isinstance(part, Uint | Real | Visible | Hexadecimal | Fixed):
            break
        found.append((place, part))
    return found


class _Breaker:
    """Makes one thing wrong with a spelled message."""

    def __init__(self, draw: st.DrawFn, shape: Shape, *, fatal: bool) -> None:
        self.draw = draw
        self.shape = shape
        self.fatal = fatal

    def ways(self) -> list[Callable[[], Malformed]]:
        """Everything that can be wrong with a message of this shape."""
        words = _single_words(self.shape.parts)
        found = [self.too_few_words, self.wrong_kind, self.glued_kind, self.swapped_kind]
        if any(not isinstance(part, Fixed) and unreadable_texts(part) is not None for _, part in words):
            found.append(self.unreadable_word)
        if any(outside_texts(part) is not None for _, part in words):
            found.append(self.outside_word)
        if any(isinstance(part, Rest) for part in self.shape.parts):
            found.append(self.unreadable_rest)
        if any(isinstance(part, Fixed) for _, part in words):
            found.append(self.wrong_constant)
        if not self._is_open_ended():
            found.append(self.too_many_words)
        if self.fatal and len(words) > 1:
            found += [self.dropped_word, self.glued_words]
        if self.shape.payloads:
            found.append(self.wrong_terminator)
        if any(isinstance(part, Repeat) for part in _deep(self.shape.parts)):
            found += [self.short_table, self.long_table, self.bad_entry]
        if any(isinstance(part, Keys) for part in _deep(self.shape.parts)):
            found += [self.unknown_key, self.duplicate_key, self.swapped_keys, self.glued_key, self.odd_key]
            found.append(self.outside_key)
        if self.shape.only_with:
            found.append(self.value_without_key)
        return found

    def _is_open_ended(self) -> bool:
        return any(high is None for _, high in self.shape.spans)

    def _spelled(self, *, shortest: bool = False) -> Spelled:
        return self.draw(spellings(self.shape, shortest=shortest))

    def _broken(
        self, spelled: Spelled, words: list[tuple[str, bytes]], field: str, rule: str, how: str
    ) -> Malformed:
        """The message with other words; for a command, with exactly the payload that its header still names."""
        changed = spelled._replace(words=words)
        if self.fatal or not self.shape.payloads:
            data = changed.data()
        else:
            named = named_bytes(self.shape, words)
            tail = b"" if named is None else b"p" * named + b"\n"
            data = changed.header() + b"\n" + tail
        request_id = 0 if self.fatal else readable_id(self.shape, words)
        return Malformed(data, self.shape.kind, field, rule, how, self.fatal, request_id)

    def too_few_words(self) -> Malformed:
        spelled = self._spelled(shortest=True)
        kept = self.draw(st.integers(0, len(spelled.words) - 1))
        return self._broken(spelled, spelled.words[:kept], "", "word_count", "too few words")

    def too_many_words(self) -> Malformed:
        spelled = self._spelled(shortest=True)
        words = [*spelled.words, ("", self.draw(visible_texts()))]
        return self._broken(spelled, words, "", "word_count", "too many words")

    def dropped_word(self) -> Malformed:
        spelled = self._spelled(shortest=True)
        words = list(spelled.words)
        del words[self.draw(st.integers(0, len(words) - 1))]
        return self._broken(spelled, words, "", "word_count", "dropped word")

    def glued_words(self) -> Malformed:
        spelled = self._spelled(shortest=True)
        place = self.draw(st.integers(0, len(spelled.words) - 2))
        words = list(spelled.words)
        words[place : place + 2] = [("", words[place][1] + words[place + 1][1])]
        return self._broken(spelled, words, "", "word_count", "glued words")

    def _unknown(self, header: bytes, how: str) -> Malformed:
        return Malformed(self.shape.lead + header + b"\n", "", "", "unknown_kind", how, self.fatal, 0)

    def wrong_kind(self) -> Malformed:
        kind = self.shape.kind
        other = self.draw(st.sampled_from([kind.lower(), kind + "X", kind[:-1], "X" + kind, kind.title()]))
        return self._unknown(
            other.encode() + b" " + b" ".join(text for _, text in self._spelled().words), "wrong kind"
        )

    def glued_kind(self) -> Malformed:
        texts = [text for _, text in self._spelled().words]
        return self._unknown(self.shape.kind.encode() + b" ".join(texts), "glued kind")

    def swapped_kind(self) -> Malformed:
        texts = [b"1"] + [text for _, text in self._spelled().words]
        return self._unknown(b" ".join([texts[0], self.shape.kind.encode(), *texts[1:]]), "swapped kind")

    def _replace_word(
        self, choose: Callable[[Any], st.SearchStrategy[bytes] | None], rule: str, how: str
    ) -> Malformed:
        spelled = self._spelled()
        places = [
            (place, part)
            for place, part in _single_words(self.shape.parts)
            if not isinstance(part, Fixed) and choose(part) is not None
        ]
        place, part = self.draw(st.sampled_from(places))
        texts = choose(part)
        assert texts is not None
        words = list(spelled.words)
        words[place] = (part.field, self.draw(texts))
        if (
            not self.fatal
            and isinstance(part, Uint)
            and part.payload is not None
            and words[place][1].isdigit()
        ):
            words[place] = (part.field, b"-1")  # a readable size would have to be sent in full
        return self._broken(spelled, words, part.field, rule, how)

    def unreadable_word(self) -> Malformed:
        return self._replace_word(unreadable_texts, "word", "unreadable word")

    def outside_word(self) -> Malformed:
        return self._replace_word(outside_texts, "range", "value out of range")

    def unreadable_rest(self) -> Malformed:
        spelled = self._spelled(shortest=True)
        rest = next(part for part in self.shape.parts if isinstance(part, Rest))
        texts = unreadable_texts(rest)
        assert texts is not None
        words = [*spelled.words, (rest.field, self.draw(texts))]
        return self._broken(spelled, words, rest.field, "word", "unreadable word of the rest")

    def wrong_constant(self) -> Malformed:
        spelled = self._spelled()
        places = [(place, part) for place, part in _single_words(self.shape.parts) if isinstance(part, Fixed)]
        place, part = self.draw(st.sampled_from(places))
        words = list(spelled.words)
        words[place] = (
            "",
            self.draw(st.sampled_from([part.text.lower(), part.text + b"X", b"0", part.text[:-1]])),
        )
        return self._broken(spelled, words, "", "constant", "wrong constant")

    def wrong_terminator(self) -> Malformed:
        spelled = self._spelled()
        wrong = self.draw(st.integers(0, 255).filter(lambda byte: byte != 10))
        request_id = 0 if self.fatal else readable_id(self.shape, spelled.words)
        data = spelled.data()[:-1] + bytes([wrong])
        return Malformed(data, self.shape.kind, "", "terminator", "wrong terminator", True, request_id)

    def _table(self) -> tuple[Spelled, int, Repeat]:
        """A spelling with its whole table, the number of words before it, and the repeat."""
        speller = _Speller(self.draw, self.shape, shortest=False, largest_payload=40)
        parts = [part for part in _deep(self.shape.parts) if not isinstance(part, Tail)]
        repeat = next(part for part in parts if isinstance(part, Repeat))
        for part in parts:
            if isinstance(part, Repeat):
                break
            if isinstance(part, Uint) and part.counts:
                speller.counts[part.field] = self.draw(st.sampled_from([1, 2, part.high]))
                speller.words.append((part.field, str(speller.counts[part.field]).encode()))
            else:
                speller.take((part,))
        before = len(speller.words)
        speller.take((repeat,))
        payloads = [speller.payloads.get(name, b"") for name in self.shape.payloads]
        message = self.shape.message(**speller.values, **speller.payloads)
        return Spelled(self.shape, speller.words, payloads, message), before, repeat

    def short_table(self) -> Malformed:
        spelled, before, _ = self._table()
        left = self.draw(st.integers(before, len(spelled.words) - 1))
        return self._broken(spelled, spelled.words[:left], "", "word_count", "table too short")

    def long_table(self) -> Malformed:
        spelled, _, _ = self._table()
        return self._broken(spelled, [*spelled.words, ("", b"1")], "", "word_count", "table too long")

    def bad_entry(self) -> Malformed:
        spelled, before, repeat = self._table()
        place = self.draw(st.integers(before, len(spelled.words) - 1))
        part = repeat.words[(place - before) % len(repeat.words)]
        outside = outside_texts(part)
        rule = "word" if outside is None or self.draw(st.booleans()) else "range"
        texts = unreadable_texts(part) if rule == "word" or outside is None else outside
        assert texts is not None
        words = list(spelled.words)
        words[place] = (part.field, self.draw(texts))
        return self._broken(spelled, words, part.field, rule, "bad table entry")

    def _with_keys(self, make: Callable[[Keys], tuple[list[bytes], str, str]], how: str) -> Malformed:
        """The shortest form up to its keys, with the key words that ``make`` gives, and the field and rule at fault."""
        spelled = self._spelled(shortest=True)
        words = list(spelled.words)
        keys = next(part for part in _deep(self.shape.parts) if isinstance(part, Keys))
        tail = next(part for part in self.shape.parts if isinstance(part, Tail))
        words += [(part.field, b"0") for part in tail.parts if isinstance(part, Uint)]
        texts, field, rule = make(keys)
        return self._broken(spelled, words + [("", text) for text in texts], field, rule, how)

    def unknown_key(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            name = self.draw(st.sampled_from(["wish", "a", "_", keys.known[0][0] + "x", "fifteen_letters"]))
            return [f"{name}=1".encode()], name, "unknown_key"

        return self._with_keys(make, "unknown key")

    def duplicate_key(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            name, low, high = self.draw(st.sampled_from(keys.known))
            return [f"{name}={low}".encode(), f"{name}={high}".encode()], name, "duplicate_key"

        return self._with_keys(make, "duplicate key")

    def swapped_keys(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            place = self.draw(st.integers(0, len(keys.known) - 2))
            later = self.draw(st.integers(place + 1, len(keys.known) - 1))
            first, second = keys.known[later], keys.known[place]
            return (
                [f"{first[0]}={first[2]}".encode(), f"{second[0]}={second[2]}".encode()],
                second[0],
                "key_order",
            )

        return self._with_keys(make, "keys out of order")

    def glued_key(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            name = self.draw(st.sampled_from(keys.known))[0]
            glued = [f"{name}=1{junk}" for junk in (",", "x", ".0", ";ids=1", "=1", "\r")]
            bad = self.draw(st.sampled_from([*glued, f"{name}=", f"{name}=+1", f"{name}= "]))
            return [bad.strip(" ").encode()], name, "word"

        return self._with_keys(make, "junk glued to a value")

    def odd_key(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            name = keys.known[0][0]
            odd = ["sixteen_letters_", name.title(), name + "1", "", name + "-x"]
            text = self.draw(st.sampled_from([*(f"{one}=1" for one in odd), name]))
            return [text.encode()], "", "word"

        return self._with_keys(make, "no key at all")

    def outside_key(self) -> Malformed:
        def make(keys: Keys) -> tuple[list[bytes], str, str]:
            name, _, high = self.draw(st.sampled_from(keys.known))
            digits = self.draw(
                st.sampled_from([str(high + 1), "9" * 10, "9" * 11, "0" * 10 + "1", "9" * 40, "-1"])
            )
            return [f"{name}={digits}".encode()], name, "range"

        return self._with_keys(make, "key value out of range")

    def value_without_key(self) -> Malformed:
        field, value, _ = self.draw(st.sampled_from(self.shape.only_with))
        spelled = self._spelled(shortest=True)
        words = [(name, str(value).encode() if name == field else text) for name, text in spelled.words]
        return self._broken(spelled, words, field, "range", "value without the key that permits it")


def _deep(parts: tuple[Any, ...]) -> list[Any]:
    """All parts, those of tails included, outer before inner."""
    found = []
    for part in parts:
        found.append(part)
        if isinstance(part, Tail):
            found += _deep(part.parts)
    return found


def named_bytes(shape: Shape, words: list[tuple[str, bytes]]) -> int | None:
    """Payload bytes that a header names: the sizes up to the first that cannot be read; None without any."""
    places = [
        place
        for place, part in enumerate(part for part in _deep(shape.parts) if not isinstance(part, Tail))
        if isinstance(part, Uint) and part.payload is not None
    ]
    total = None
    for place in places:
        if place < len(words):
            if not words[place][1].isdigit():
                break
            total = (total or 0) + int(words[place][1])
    return total


def readable_id(shape: Shape, words: list[tuple[str, bytes]]) -> int:
    """The request id in a header, or 0 where it cannot be read."""
    part = shape.parts[0]
    if not words or not isinstance(part, Uint) or not words[0][1].isdigit():
        return 0
    value = int(words[0][1])
    return value if part.low <= value <= part.high else 0


@st.composite
def malformed(draw: st.DrawFn, shape: Shape, *, fatal: bool) -> Malformed:
    """A message of ``shape`` with one thing wrong. ``fatal``: it is a frame, whose readers fail closed."""
    way = draw(st.sampled_from(_Breaker(draw, shape, fatal=fatal).ways()))
    return way()


@cache
def malformed_frames() -> st.SearchStrategy[Malformed]:
    """Any frame but the handshake, with one thing wrong."""
    return st.one_of([malformed(shape, fatal=True) for shape in FRAME_SHAPES if not shape.lead])


@cache
def malformed_commands() -> st.SearchStrategy[Malformed]:
    """Any command, with one thing wrong."""
    return st.one_of([malformed(shape, fatal=False) for shape in COMMAND_SHAPES])


def ways_of(shape: Shape, *, fatal: bool) -> list[str]:
    """Names of everything :func:`malformed` can do to a message of ``shape``."""
    return [way.__name__ for way in _Breaker(lambda strategy: None, shape, fatal=fatal).ways()]  # type: ignore[arg-type]


@st.composite
def broken(draw: st.DrawFn, shape: Shape, way: str, *, fatal: bool) -> Malformed:
    """Like :func:`malformed`, in the way of that name."""
    result: Malformed = getattr(_Breaker(draw, shape, fatal=fatal), way)()
    return result


# ---------------------------------------------------------------- streams


def pieces(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """Any way to cut ``data`` into pieces."""
    cuts = st.lists(st.integers(0, len(data)), max_size=12).map(sorted)
    return cuts.map(
        lambda ends: [data[low:high] for low, high in zip([0, *ends], [*ends, len(data)], strict=True)]
    )
