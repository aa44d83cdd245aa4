# Generated from spec/protocol.yaml (target python, template python/frames.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Frames: what the engine sends to the gateway. Classes, a sans-IO reader, and a writer for each.

The reader decides first where a message ends and then what it means; it checks every limit before it reads what the
limit is about, so that the way the bytes are cut into pieces never changes what comes out. It fails closed: the first
fault is the last thing it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import isfinite
from operator import index
from typing import Any, ClassVar, Final, final

from .limits import FRAME_LINE_BYTES
from .wire import (
    EXCERPT_BYTES,
    BadWord,
    FieldError,
    Message,
    ProtocolFault,
    finite_real,
    hexadecimal,
    is_hexadecimal,
    is_visible,
    literal,
    plain_numbers,
    real,
    split_words,
    uint,
    uint_or,
    visible,
)

SENTINEL: Final = b"\x01\x01READY\x01\x01\n"
"""Ends the start-up banner; one line with the engine's first numbers follows it."""


@final
class Accept(Message):
    """The prompt fits and its prefill begins. A streaming answer is committed on it, never earlier. ``ACCEPT
    <id> <prompt_tokens> ...`` (spec: frames.ACCEPT)
    """

    KIND: ClassVar[str] = "ACCEPT"
    __match_args__ = ("id", "prompt_tokens")
    __slots__ = __match_args__

    def __init__(self, id: int, prompt_tokens: int) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.prompt_tokens = prompt_tokens
        """A number of tokens. Unit: tokens. 0 … 9223372036854775807."""


@final
class Data(Message):
    """A piece of generated text. With the log probability channel on it carries the numbers of its token, and
    a token the engine swallows still gets one with an empty payload. ``DATA <id> <size> [<logprob> <k>
    (<token> <token_logprob>){k}]`` (spec: frames.DATA)
    """

    KIND: ClassVar[str] = "DATA"
    __match_args__ = ("id", "payload", "logprob", "tokens", "token_logprobs")
    __slots__ = __match_args__

    def __init__(
        self,
        id: int,
        payload: bytes,
        logprob: float | None = None,
        tokens: tuple[int, ...] | None = None,
        token_logprobs: tuple[float, ...] | None = None,
    ) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.payload = payload
        """Bytes of the text piece; may split a UTF-8 character, may be empty."""
        self.logprob = logprob
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats. None:
        absent.
        """
        self.tokens = tokens
        """Token id; the engine owns the bound of its vocabulary. 0 … 2147483647. None: absent."""
        self.token_logprobs = token_logprobs
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats. None:
        absent.
        """


@final
class Echo(Message):
    """Read-out of one prompt token. Sent only to requests that asked for log probabilities; it does not count
    as acceptance. ``ECHO <id> <size> <position> <logprob> <k> (<token> <token_logprob>){k}`` (spec:
    frames.ECHO)
    """

    KIND: ClassVar[str] = "ECHO"
    __match_args__ = ("id", "payload", "position", "logprob", "tokens", "token_logprobs")
    __slots__ = __match_args__

    def __init__(
        self,
        id: int,
        payload: bytes,
        position: int,
        logprob: float,
        tokens: tuple[int, ...],
        token_logprobs: tuple[float, ...],
    ) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.payload = payload
        """The prompt token's own bytes."""
        self.position = position
        """Place of a token in the prompt; every place exactly once, in any order. Unit: tokens. 0 …
        4294967295.
        """
        self.logprob = logprob
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats."""
        self.tokens = tokens
        """Token id; the engine owns the bound of its vocabulary. 0 … 2147483647."""
        self.token_logprobs = token_logprobs
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats."""


@final
class Tool(Message):
    """Structured sideband of families that parse tool calls themselves; an empty payload says that the
    request has one. ``TOOL <id> <size>`` (spec: frames.TOOL)
    """

    KIND: ClassVar[str] = "TOOL"
    __match_args__ = ("id", "payload")
    __slots__ = __match_args__

    def __init__(self, id: int, payload: bytes) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.payload = payload
        """The sideband record."""


@final
class Done(Message):
    """The request ended in order. ``DONE <id> STAT <completion_tokens> <tokens_per_second>
    <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]`` (spec: frames.DONE)
    """

    KIND: ClassVar[str] = "DONE"
    __match_args__ = (
        "id",
        "completion_tokens",
        "tokens_per_second",
        "cache_hit_percent",
        "rss_gb",
        "prompt_tokens",
        "length_limited",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        id: int,
        completion_tokens: int,
        tokens_per_second: float,
        cache_hit_percent: float,
        rss_gb: float,
        prompt_tokens: int | None = None,
        length_limited: int | None = None,
    ) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.completion_tokens = completion_tokens
        """A number of tokens. Unit: tokens. 0 … 9223372036854775807."""
        self.tokens_per_second = tokens_per_second
        """A generation speed. Unit: tokens/s."""
        self.cache_hit_percent = cache_hit_percent
        """A percentage. Unit: percent."""
        self.rss_gb = rss_gb
        """An amount of memory. Unit: GB."""
        self.prompt_tokens = prompt_tokens
        """A number of tokens. Unit: tokens. 0 … 9223372036854775807. None: absent."""
        self.length_limited = length_limited
        """1 when max_tokens ended the request. 0 … 1. None: absent."""


@final
class Error(Message):
    """The request failed, or a command was refused; id 0 when the refused header's id could not be read.
    ``ERROR <id> <words>*`` (spec: frames.ERROR)
    """

    KIND: ClassVar[str] = "ERROR"
    __match_args__ = ("id", "words")
    __slots__ = __match_args__

    def __init__(self, id: int, words: tuple[str, ...]) -> None:
        self.id = id
        """Request id, or 0. 0 … 18446744073709551615."""
        self.words = words
        """A code of `wire_errors` with its details, or free words."""


@final
class Prof(Message):
    """Where the time of a turn went. ``PROF <wall_s> <prompt_tokens> <completion_tokens> <disk_s> <wait_s>
    <matmul_s> <attention_s> <head_s> <forwards> ...`` (spec: frames.PROF)
    """

    KIND: ClassVar[str] = "PROF"
    __match_args__ = (
        "wall_s",
        "prompt_tokens",
        "completion_tokens",
        "disk_s",
        "wait_s",
        "matmul_s",
        "attention_s",
        "head_s",
        "forwards",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        wall_s: float,
        prompt_tokens: float,
        completion_tokens: float,
        disk_s: float,
        wait_s: float,
        matmul_s: float,
        attention_s: float,
        head_s: float,
        forwards: float,
    ) -> None:
        self.wall_s = wall_s
        """A duration. Unit: seconds."""
        self.prompt_tokens = prompt_tokens
        """A measurement: may carry a sign and any number of decimals."""
        self.completion_tokens = completion_tokens
        """A measurement: may carry a sign and any number of decimals."""
        self.disk_s = disk_s
        """A duration. Unit: seconds."""
        self.wait_s = wait_s
        """A duration. Unit: seconds."""
        self.matmul_s = matmul_s
        """A duration. Unit: seconds."""
        self.attention_s = attention_s
        """A duration. Unit: seconds."""
        self.head_s = head_s
        """A duration. Unit: seconds."""
        self.forwards = forwards
        """A measurement: may carry a sign and any number of decimals."""


@final
class Tiers(Message):
    """Experts held in each memory tier. ``TIERS <vram> <ram> <disk> <vram_gb> <ram_gb> ...`` (spec:
    frames.TIERS)
    """

    KIND: ClassVar[str] = "TIERS"
    __match_args__ = ("vram", "ram", "disk", "vram_gb", "ram_gb")
    __slots__ = __match_args__

    def __init__(self, vram: float, ram: float, disk: float, vram_gb: float, ram_gb: float) -> None:
        self.vram = vram
        """A measurement: may carry a sign and any number of decimals."""
        self.ram = ram
        """A measurement: may carry a sign and any number of decimals."""
        self.disk = disk
        """A measurement: may carry a sign and any number of decimals."""
        self.vram_gb = vram_gb
        """An amount of memory. Unit: GB."""
        self.ram_gb = ram_gb
        """An amount of memory. Unit: GB."""


@final
class Hwinfo(Message):
    """The machine the engine runs on. ``HWINFO <cores> <ram_total_gb> <ram_available_gb> <gpus>
    <vram_total_gb> <names>+`` (spec: frames.HWINFO)
    """

    KIND: ClassVar[str] = "HWINFO"
    __match_args__ = ("cores", "ram_total_gb", "ram_available_gb", "gpus", "vram_total_gb", "names")
    __slots__ = __match_args__

    def __init__(
        self,
        cores: float,
        ram_total_gb: float,
        ram_available_gb: float,
        gpus: float,
        vram_total_gb: float,
        names: tuple[str, ...],
    ) -> None:
        self.cores = cores
        """A measurement: may carry a sign and any number of decimals."""
        self.ram_total_gb = ram_total_gb
        """An amount of memory. Unit: GB."""
        self.ram_available_gb = ram_available_gb
        """An amount of memory. Unit: GB."""
        self.gpus = gpus
        """A measurement: may carry a sign and any number of decimals."""
        self.vram_total_gb = vram_total_gb
        """An amount of memory. Unit: GB."""
        self.names = names
        """Names as `cpu|gpu`, may contain spaces."""


@final
class Emap(Message):
    """Where each expert lives: one byte per cell, two bits of tier (0 disk, 1 RAM, 2 VRAM) and six bits of
    log2 heat. ``EMAP <rows> <cols> <cells>`` (spec: frames.EMAP)
    """

    KIND: ClassVar[str] = "EMAP"
    __match_args__ = ("rows", "cols", "cells")
    __slots__ = __match_args__

    def __init__(self, rows: int, cols: int, cells: str) -> None:
        self.rows = rows
        """A count. 0 … 9223372036854775807."""
        self.cols = cols
        """A count. 0 … 9223372036854775807."""
        self.cells = cells
        """Pairs of hexadecimal digits."""


@final
class Hits(Message):
    """Which experts the turn used; one bit per cell. ``HITS <rows> <cols> <cells>`` (spec: frames.HITS)"""

    KIND: ClassVar[str] = "HITS"
    __match_args__ = ("rows", "cols", "cells")
    __slots__ = __match_args__

    def __init__(self, rows: int, cols: int, cells: str) -> None:
        self.rows = rows
        """A count. 0 … 9223372036854775807."""
        self.cols = cols
        """A count. 0 … 9223372036854775807."""
        self.cells = cells
        """Pairs of hexadecimal digits."""


@final
class Perf(Message):
    """Advisory line of a sibling lineage; consumed, kept only as the last line seen. ``PERF <words>+`` (spec:
    frames.PERF)
    """

    KIND: ClassVar[str] = "PERF"
    __match_args__ = ("words",)
    __slots__ = __match_args__

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        """One word of free text."""

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@final
class Entropy(Message):
    """Advisory line of a sibling lineage; consumed, kept only as the last line seen. ``ENTROPY <words>+``
    (spec: frames.ENTROPY)
    """

    KIND: ClassVar[str] = "ENTROPY"
    __match_args__ = ("words",)
    __slots__ = __match_args__

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        """One word of free text."""

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@final
class Gpus(Message):
    """Advisory line of a sibling lineage; consumed, kept only as the last line seen. ``GPUS <words>+`` (spec:
    frames.GPUS)
    """

    KIND: ClassVar[str] = "GPUS"
    __match_args__ = ("words",)
    __slots__ = __match_args__

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        """One word of free text."""

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@final
class Topk(Message):
    """Advisory line of a sibling lineage; consumed, kept only as the last line seen. ``TOPK <words>+`` (spec:
    frames.TOPK)
    """

    KIND: ClassVar[str] = "TOPK"
    __match_args__ = ("words",)
    __slots__ = __match_args__

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        """One word of free text."""

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@final
class Repin(Message):
    """Advisory line of a sibling lineage; consumed, kept only as the last line seen. ``REPIN <words>+``
    (spec: frames.REPIN)
    """

    KIND: ClassVar[str] = "REPIN"
    __match_args__ = ("words",)
    __slots__ = __match_args__

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        """One word of free text."""

    @property
    def text(self) -> str:
        """The words with single spaces between them."""
        return " ".join(self.words)


@final
class Grpp(Message):
    """Group scoring, prompt token. Consumed without effect, even if its id is live. Experimental. Read and
    then dropped. ``GRPP <id> <size> <position> <logprob> <k> ...`` (spec: frames.GRPP)
    """

    KIND: ClassVar[str] = "GRPP"
    __match_args__ = ("id", "position", "logprob", "k")
    __slots__ = __match_args__

    def __init__(self, id: int, position: int, logprob: float, k: int) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.position = position
        """Place of a token in the prompt; every place exactly once, in any order. Unit: tokens. 0 …
        4294967295.
        """
        self.logprob = logprob
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats."""
        self.k = k
        """A count. 0 … 9223372036854775807."""


@final
class Grpg(Message):
    """Group scoring, token of a member. Consumed without effect; field names are provisional. Experimental.
    Read and then dropped. ``GRPG <id> <size> <member> <position> <logprob> <k> ...`` (spec: frames.GRPG)
    """

    KIND: ClassVar[str] = "GRPG"
    __match_args__ = ("id", "member", "position", "logprob", "k")
    __slots__ = __match_args__

    def __init__(self, id: int, member: int, position: int, logprob: float, k: int) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.member = member
        """Member of a group. 0 … 2147483647."""
        self.position = position
        """Place of a token in the prompt; every place exactly once, in any order. Unit: tokens. 0 …
        4294967295.
        """
        self.logprob = logprob
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats."""
        self.k = k
        """A count. 0 … 9223372036854775807."""


@final
class Grps(Message):
    """Group scoring, sizes of a member. Consumed without effect; field names are provisional. Experimental.
    Read and then dropped. ``GRPS <id> <member> <prompt_count> <member_count>`` (spec: frames.GRPS)
    """

    KIND: ClassVar[str] = "GRPS"
    __match_args__ = ("id", "member", "prompt_count", "member_count")
    __slots__ = __match_args__

    def __init__(self, id: int, member: int, prompt_count: int, member_count: int) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.member = member
        """Member of a group. 0 … 2147483647."""
        self.prompt_count = prompt_count
        """A count. 0 … 9223372036854775807."""
        self.member_count = member_count
        """A count. 0 … 9223372036854775807."""


@final
class Grpe(Message):
    """Group scoring, end of a member. Consumed without effect; field names are provisional. Experimental.
    Read and then dropped. ``GRPE <id> <member> <sum> <count> <greedy>`` (spec: frames.GRPE)
    """

    KIND: ClassVar[str] = "GRPE"
    __match_args__ = ("id", "member", "sum", "count", "greedy")
    __slots__ = __match_args__

    def __init__(self, id: int, member: int, sum: float, count: int, greedy: int) -> None:
        self.id = id
        """Id of the SUBMIT. An engine that echoes what it could not read names no request: the frame is
        consumed and dropped. 1 … 18446744073709551615.
        """
        self.member = member
        """Member of a group. 0 … 2147483647."""
        self.sum = sum
        """Natural logarithm of a probability; nan where there is nothing to condition on. Unit: nats."""
        self.count = count
        """A count. 0 … 9223372036854775807."""
        self.greedy = greedy
        """0 or 1. 0 … 1."""


@final
class Ready(Message):
    """Any bytes up to the sentinel are a log banner and are discarded; after the sentinel one STAT line, then
    only frames. The gateway sends nothing before READY. ``STAT <completion_tokens> <tokens_per_second>
    <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]`` (spec: handshake.STAT)
    """

    KIND: ClassVar[str] = "READY"
    __match_args__ = (
        "completion_tokens",
        "tokens_per_second",
        "cache_hit_percent",
        "rss_gb",
        "prompt_tokens",
        "length_limited",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        completion_tokens: int,
        tokens_per_second: float,
        cache_hit_percent: float,
        rss_gb: float,
        prompt_tokens: int | None = None,
        length_limited: int | None = None,
    ) -> None:
        self.completion_tokens = completion_tokens
        """A number of tokens. Unit: tokens. 0 … 9223372036854775807."""
        self.tokens_per_second = tokens_per_second
        """A generation speed. Unit: tokens/s."""
        self.cache_hit_percent = cache_hit_percent
        """A percentage. Unit: percent."""
        self.rss_gb = rss_gb
        """An amount of memory. Unit: GB."""
        self.prompt_tokens = prompt_tokens
        """A number of tokens. Unit: tokens. 0 … 9223372036854775807. None: absent."""
        self.length_limited = length_limited
        """0 or 1. 0 … 1. None: absent."""


Frame = (
    Accept
    | Data
    | Echo
    | Tool
    | Done
    | Error
    | Prof
    | Tiers
    | Hwinfo
    | Emap
    | Hits
    | Perf
    | Entropy
    | Gpus
    | Topk
    | Repin
    | Grpp
    | Grpg
    | Grps
    | Grpe
    | Ready
)
"""Any frame. :class:`Ready` is the handshake."""

FRAMES: Final[tuple[type[Frame], ...]] = (
    Accept,
    Data,
    Echo,
    Tool,
    Done,
    Error,
    Prof,
    Tiers,
    Hwinfo,
    Emap,
    Hits,
    Perf,
    Entropy,
    Gpus,
    Topk,
    Repin,
    Grpp,
    Grpg,
    Grps,
    Grpe,
)
"""Every kind a running engine sends, in the order of the spec."""

NO_EFFECT: Final[tuple[type[Frame], ...]] = (Grpp, Grpg, Grps, Grpe)
"""Kinds that are read and then dropped, even if their id is in flight."""

ADVISORY: Final[tuple[type[Frame], ...]] = (Perf, Entropy, Gpus, Topk, Repin)
"""Kinds of which only the last line seen is of interest."""

TELEMETRY: Final[tuple[type[Frame], ...]] = (
    Prof,
    Tiers,
    Hwinfo,
    Emap,
    Hits,
    Perf,
    Entropy,
    Gpus,
    Topk,
    Repin,
)
"""Kinds that belong to no request, the advisory ones included."""


# ---------------------------------------------------------------- reading headers

_Awaited = tuple[int, type[Any], tuple[Any, ...], tuple[Any, ...] | None]
"""A header whose payload is still to come: payload size, class, values before the payload, values after it.

The last is None where the payload is consumed and not kept.
"""


def _read_accept(header: list[bytes]) -> Accept:
    """``ACCEPT <id> <prompt_tokens> ...``"""
    found = len(header)
    if found < 3:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    prompt_tokens = uint(header[2], "prompt_tokens", 0, 9223372036854775807)
    return Accept(id=id, prompt_tokens=prompt_tokens)


def _read_data(header: list[bytes]) -> _Awaited:
    """``DATA <id> <size> [<logprob> <k> (<token> <token_logprob>){k}]``"""
    found = len(header)
    if found != 3 and found < 5:
        raise BadWord("", "word_count")
    logprob: float | None = None
    tokens: tuple[int, ...] | None = None
    token_logprobs: tuple[float, ...] | None = None
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    size = uint(header[2], "size", 0, 65536)
    if found > 3:
        logprob = real(header[3], "logprob")
        k = uint(header[4], "k", 0, 32)
        if found != 5 + 2 * k:
            raise BadWord("", "word_count")
        token_list: list[int] = []
        token_logprob_list: list[float] = []
        for place in range(5, 5 + 2 * k, 2):
            token_list.append(uint(header[place], "token", 0, 2147483647))
            token_logprob_list.append(real(header[place + 1], "token_logprob"))
        tokens = tuple(token_list)
        token_logprobs = tuple(token_logprob_list)
    return size, Data, (id,), (logprob, tokens, token_logprobs)


def _read_echo(header: list[bytes]) -> _Awaited:
    """``ECHO <id> <size> <position> <logprob> <k> (<token> <token_logprob>){k}``"""
    found = len(header)
    if found < 6:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    size = uint(header[2], "size", 0, 65536)
    position = uint(header[3], "position", 0, 4294967295)
    logprob = real(header[4], "logprob")
    k = uint(header[5], "k", 0, 32)
    if found != 6 + 2 * k:
        raise BadWord("", "word_count")
    token_list: list[int] = []
    token_logprob_list: list[float] = []
    for place in range(6, 6 + 2 * k, 2):
        token_list.append(uint(header[place], "token", 0, 2147483647))
        token_logprob_list.append(real(header[place + 1], "token_logprob"))
    tokens = tuple(token_list)
    token_logprobs = tuple(token_logprob_list)
    return size, Echo, (id,), (position, logprob, tokens, token_logprobs)


def _read_tool(header: list[bytes]) -> _Awaited:
    """``TOOL <id> <size>``"""
    found = len(header)
    if found != 3:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    size = uint(header[2], "size", 0, 65536)
    return size, Tool, (id,), ()


def _read_done(header: list[bytes]) -> Done:
    """``DONE <id> STAT <completion_tokens> <tokens_per_second> <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]``"""
    found = len(header)
    if found < 7:
        raise BadWord("", "word_count")
    prompt_tokens: int | None = None
    length_limited: int | None = None
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    literal(header[2], b"STAT")
    completion_tokens = uint(header[3], "completion_tokens", 0, 9223372036854775807)
    tokens_per_second = finite_real(header[4], "tokens_per_second")
    cache_hit_percent = finite_real(header[5], "cache_hit_percent")
    rss_gb = finite_real(header[6], "rss_gb")
    if found > 7:
        prompt_tokens = uint(header[7], "prompt_tokens", 0, 9223372036854775807)
        if found > 8:
            length_limited = uint(header[8], "length_limited", 0, 1)
    return Done(
        id=id,
        completion_tokens=completion_tokens,
        tokens_per_second=tokens_per_second,
        cache_hit_percent=cache_hit_percent,
        rss_gb=rss_gb,
        prompt_tokens=prompt_tokens,
        length_limited=length_limited,
    )


def _read_error(header: list[bytes]) -> Error:
    """``ERROR <id> <words>*``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 0, 18446744073709551615, 0)
    words = tuple(visible(word, "words") for word in header[2:])
    return Error(id=id, words=words)


def _read_prof(header: list[bytes]) -> Prof:
    """``PROF <wall_s> <prompt_tokens> <completion_tokens> <disk_s> <wait_s> <matmul_s> <attention_s> <head_s> <forwards> ...``"""
    found = len(header)
    if found < 10:
        raise BadWord("", "word_count")
    wall_s = finite_real(header[1], "wall_s")
    prompt_tokens = finite_real(header[2], "prompt_tokens")
    completion_tokens = finite_real(header[3], "completion_tokens")
    disk_s = finite_real(header[4], "disk_s")
    wait_s = finite_real(header[5], "wait_s")
    matmul_s = finite_real(header[6], "matmul_s")
    attention_s = finite_real(header[7], "attention_s")
    head_s = finite_real(header[8], "head_s")
    forwards = finite_real(header[9], "forwards")
    return Prof(
        wall_s=wall_s,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        disk_s=disk_s,
        wait_s=wait_s,
        matmul_s=matmul_s,
        attention_s=attention_s,
        head_s=head_s,
        forwards=forwards,
    )


def _read_tiers(header: list[bytes]) -> Tiers:
    """``TIERS <vram> <ram> <disk> <vram_gb> <ram_gb> ...``"""
    found = len(header)
    if found < 6:
        raise BadWord("", "word_count")
    vram = finite_real(header[1], "vram")
    ram = finite_real(header[2], "ram")
    disk = finite_real(header[3], "disk")
    vram_gb = finite_real(header[4], "vram_gb")
    ram_gb = finite_real(header[5], "ram_gb")
    return Tiers(vram=vram, ram=ram, disk=disk, vram_gb=vram_gb, ram_gb=ram_gb)


def _read_hwinfo(header: list[bytes]) -> Hwinfo:
    """``HWINFO <cores> <ram_total_gb> <ram_available_gb> <gpus> <vram_total_gb> <names>+``"""
    found = len(header)
    if found < 7:
        raise BadWord("", "word_count")
    cores = finite_real(header[1], "cores")
    ram_total_gb = finite_real(header[2], "ram_total_gb")
    ram_available_gb = finite_real(header[3], "ram_available_gb")
    gpus = finite_real(header[4], "gpus")
    vram_total_gb = finite_real(header[5], "vram_total_gb")
    names = tuple(visible(word, "names") for word in header[6:])
    return Hwinfo(
        cores=cores,
        ram_total_gb=ram_total_gb,
        ram_available_gb=ram_available_gb,
        gpus=gpus,
        vram_total_gb=vram_total_gb,
        names=names,
    )


def _read_emap(header: list[bytes]) -> Emap:
    """``EMAP <rows> <cols> <cells>``"""
    found = len(header)
    if found != 4:
        raise BadWord("", "word_count")
    rows = uint(header[1], "rows", 0, 9223372036854775807)
    cols = uint(header[2], "cols", 0, 9223372036854775807)
    cells = hexadecimal(header[3], "cells")
    return Emap(rows=rows, cols=cols, cells=cells)


def _read_hits(header: list[bytes]) -> Hits:
    """``HITS <rows> <cols> <cells>``"""
    found = len(header)
    if found != 4:
        raise BadWord("", "word_count")
    rows = uint(header[1], "rows", 0, 9223372036854775807)
    cols = uint(header[2], "cols", 0, 9223372036854775807)
    cells = hexadecimal(header[3], "cells")
    return Hits(rows=rows, cols=cols, cells=cells)


def _read_perf(header: list[bytes]) -> Perf:
    """``PERF <words>+``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    words = tuple(visible(word, "words") for word in header[1:])
    return Perf(words=words)


def _read_entropy(header: list[bytes]) -> Entropy:
    """``ENTROPY <words>+``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    words = tuple(visible(word, "words") for word in header[1:])
    return Entropy(words=words)


def _read_gpus(header: list[bytes]) -> Gpus:
    """``GPUS <words>+``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    words = tuple(visible(word, "words") for word in header[1:])
    return Gpus(words=words)


def _read_topk(header: list[bytes]) -> Topk:
    """``TOPK <words>+``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    words = tuple(visible(word, "words") for word in header[1:])
    return Topk(words=words)


def _read_repin(header: list[bytes]) -> Repin:
    """``REPIN <words>+``"""
    found = len(header)
    if found < 2:
        raise BadWord("", "word_count")
    words = tuple(visible(word, "words") for word in header[1:])
    return Repin(words=words)


def _read_grpp(header: list[bytes]) -> _Awaited:
    """``GRPP <id> <size> <position> <logprob> <k> ...``"""
    found = len(header)
    if found < 6:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    size = uint(header[2], "size", 0, 65536)
    position = uint(header[3], "position", 0, 4294967295)
    logprob = real(header[4], "logprob")
    k = uint(header[5], "k", 0, 9223372036854775807)
    return size, Grpp, (id, position, logprob, k), None


def _read_grpg(header: list[bytes]) -> _Awaited:
    """``GRPG <id> <size> <member> <position> <logprob> <k> ...``"""
    found = len(header)
    if found < 7:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    size = uint(header[2], "size", 0, 65536)
    member = uint(header[3], "member", 0, 2147483647)
    position = uint(header[4], "position", 0, 4294967295)
    logprob = real(header[5], "logprob")
    k = uint(header[6], "k", 0, 9223372036854775807)
    return size, Grpg, (id, member, position, logprob, k), None


def _read_grps(header: list[bytes]) -> Grps:
    """``GRPS <id> <member> <prompt_count> <member_count>``"""
    found = len(header)
    if found != 5:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    member = uint(header[2], "member", 0, 2147483647)
    prompt_count = uint(header[3], "prompt_count", 0, 9223372036854775807)
    member_count = uint(header[4], "member_count", 0, 9223372036854775807)
    return Grps(id=id, member=member, prompt_count=prompt_count, member_count=member_count)


def _read_grpe(header: list[bytes]) -> Grpe:
    """``GRPE <id> <member> <sum> <count> <greedy>``"""
    found = len(header)
    if found != 6:
        raise BadWord("", "word_count")
    id = uint_or(header[1], 1, 18446744073709551615, 0)
    member = uint(header[2], "member", 0, 2147483647)
    sum = real(header[3], "sum")
    count = uint(header[4], "count", 0, 9223372036854775807)
    greedy = uint(header[5], "greedy", 0, 1)
    return Grpe(id=id, member=member, sum=sum, count=count, greedy=greedy)


def _read_ready(header: list[bytes]) -> Ready:
    """``STAT <completion_tokens> <tokens_per_second> <cache_hit_percent> <rss_gb> [<prompt_tokens> [<length_limited> ...]]``"""
    found = len(header)
    literal(header[0], b"STAT")
    if found < 5:
        raise BadWord("", "word_count")
    prompt_tokens: int | None = None
    length_limited: int | None = None
    completion_tokens = uint(header[1], "completion_tokens", 0, 9223372036854775807)
    tokens_per_second = finite_real(header[2], "tokens_per_second")
    cache_hit_percent = finite_real(header[3], "cache_hit_percent")
    rss_gb = finite_real(header[4], "rss_gb")
    if found > 5:
        prompt_tokens = uint(header[5], "prompt_tokens", 0, 9223372036854775807)
        if found > 6:
            length_limited = uint(header[6], "length_limited", 0, 1)
    return Ready(
        completion_tokens=completion_tokens,
        tokens_per_second=tokens_per_second,
        cache_hit_percent=cache_hit_percent,
        rss_gb=rss_gb,
        prompt_tokens=prompt_tokens,
        length_limited=length_limited,
    )


def _read_plain_data(line: bytes) -> _Awaited | None:
    """DATA with its table, all numbers at once; None unless everything is plain, in range and not 0."""
    values = plain_numbers(line, 5)
    if values is None or len(values) < 4:
        return None
    id, size, logprob, k = values[:4]
    try:
        tokens = tuple(map(index, values[4::2]))
        token_logprobs = tuple(map(float, values[5::2]))
        logprob = float(logprob)
    except (TypeError, OverflowError):
        return None
    if not (
        type(k) is int
        and 1 <= k <= 32
        and len(values) == 4 + 2 * k
        and type(id) is int
        and 1 <= id <= 18446744073709551615
        and type(size) is int
        and 1 <= size <= 65536
        and min(tokens) >= 1
        and max(tokens) <= 2147483647
    ):
        return None
    return size, Data, (id,), (logprob, tokens, token_logprobs)


def _read_plain_echo(line: bytes) -> _Awaited | None:
    """ECHO with its table, all numbers at once; None unless everything is plain, in range and not 0."""
    values = plain_numbers(line, 5)
    if values is None or len(values) < 5:
        return None
    id, size, position, logprob, k = values[:5]
    try:
        tokens = tuple(map(index, values[5::2]))
        token_logprobs = tuple(map(float, values[6::2]))
        logprob = float(logprob)
    except (TypeError, OverflowError):
        return None
    if not (
        type(k) is int
        and 1 <= k <= 32
        and len(values) == 5 + 2 * k
        and type(id) is int
        and 1 <= id <= 18446744073709551615
        and type(size) is int
        and 1 <= size <= 65536
        and type(position) is int
        and 1 <= position <= 4294967295
        and min(tokens) >= 1
        and max(tokens) <= 2147483647
    ):
        return None
    return size, Echo, (id,), (position, logprob, tokens, token_logprobs)


_READERS: Final[Mapping[bytes, Callable[[list[bytes]], Frame | _Awaited]]] = {
    b"ACCEPT": _read_accept,
    b"DATA": _read_data,
    b"ECHO": _read_echo,
    b"TOOL": _read_tool,
    b"DONE": _read_done,
    b"ERROR": _read_error,
    b"PROF": _read_prof,
    b"TIERS": _read_tiers,
    b"HWINFO": _read_hwinfo,
    b"EMAP": _read_emap,
    b"HITS": _read_hits,
    b"PERF": _read_perf,
    b"ENTROPY": _read_entropy,
    b"GPUS": _read_gpus,
    b"TOPK": _read_topk,
    b"REPIN": _read_repin,
    b"GRPP": _read_grpp,
    b"GRPG": _read_grpg,
    b"GRPS": _read_grps,
    b"GRPE": _read_grpe,
}

_QUICK_READERS: Final[Mapping[bytes, Callable[[bytes], _Awaited | None]]] = {
    b"DATA": _read_plain_data,
    b"ECHO": _read_plain_echo,
}


def _read_line(line: bytes) -> Frame | _Awaited | None:
    """The frame or awaited payload of one header line; None for an empty line. Raises ProtocolFault."""
    quick = _QUICK_READERS.get(line[: line.find(b" ")])
    if quick is not None:
        awaited = quick(line)
        if awaited is not None:
            return awaited
    header = split_words(line)
    if not header:
        return None
    reader = _READERS.get(header[0])
    if reader is None:
        raise ProtocolFault("", "", "unknown_kind", line[:EXCERPT_BYTES])
    return _refusing(header[0].decode("ascii"), reader, header, line)


def _read_opening(line: bytes) -> Frame | _Awaited | None:
    """Like :func:`_read_line` for the line after the sentinel."""
    header = split_words(line)
    return _refusing(Ready.KIND, _read_ready, header, line) if header else None


def _refusing(
    kind: str,
    reader: Callable[[list[bytes]], Frame | _Awaited],
    header: list[bytes],
    line: bytes,
) -> Frame | _Awaited:
    try:
        return reader(header)
    except BadWord as bad:
        raise ProtocolFault(kind, bad.field, bad.rule, line[:EXCERPT_BYTES]) from None


def _long_payload(lines: list[bytes], start: int, size: int, kind: type[Any]) -> tuple[int, bytes]:
    """A payload of ``size`` bytes with line feeds in it, from ``lines[start]`` on, and the place of its last line.

    That place is the last of ``lines`` when the payload, or the line feed after it, has not come yet. Raises
    ProtocolFault when something else stands in the place of that line feed.
    """
    end, last = start, len(lines) - 1
    held = len(lines[start])
    while held < size and end < last:
        end += 1
        held += 1 + len(lines[end])
    payload = b"\n".join(lines[start : end + 1])
    if held > size:
        excerpt = payload[max(0, size - EXCERPT_BYTES + 1) : size + 1]
        raise ProtocolFault(kind.KIND, "", "terminator", excerpt)
    return end, payload


# ---------------------------------------------------------------- the reader

_CACHED_LINE_BYTES: Final = 40
_CACHED_LINES: Final = 4096


class FrameReader:
    """Cuts the engine's output into frames. No I/O, no clock, no thread: bytes in, frames out.

    Memory is bounded by one message: the longest line and the largest payload. Short headers of payload frames repeat
    all the time (one id, few sizes), so what they mean is remembered, for at most 4,096 of them.
    """

    __slots__ = ("_banner", "_dead", "_headers", "_held", "_pieces", "_read", "_wanted")

    def __init__(self, handshake: bool = True) -> None:
        """With ``handshake`` everything up to the sentinel is discarded and :class:`Ready` is the first frame."""
        self._banner: bytes | None = b"" if handshake else None
        self._read = _read_opening if handshake else _read_line
        self._dead = False
        self._headers: dict[bytes, _Awaited] = {}
        self._pieces: list[bytes] = []  # of the message that is not complete yet
        self._held = 0  # bytes in them
        self._wanted = 0  # bytes that message has in all; 0 while its header line is not complete

    @property
    def ready(self) -> bool:
        """Whether the handshake is over."""
        return self._read is _read_line

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame | ProtocolFault]:
        """All frames that ``data`` completes, in order. A fault is the last item, and nothing ever follows it."""
        if self._dead:
            return []
        data = bytes(data)
        if self._banner is not None:
            data = self._skip_banner(data)
        if self._pieces:
            self._pieces.append(data)
            if self._is_useless(data):
                self._held += len(data)
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        frames: list[Frame | ProtocolFault] = []
        try:
            rest = self._consume(data.split(b"\n"), frames)
        except ProtocolFault as fault:
            self._dead = True
            self._headers.clear()
            frames.append(fault)
            return frames
        self._held = len(rest)
        if rest:
            self._pieces.append(rest)
        return frames

    def eof(self) -> ProtocolFault | None:
        """The stream ended: a ``truncated`` fault if that was inside a message or before the handshake was over."""
        rest = b"".join(self._pieces)
        if self._dead or (self.ready and not split_words(rest)):
            return None
        self._dead = True
        header = split_words(rest.partition(b"\n")[0]) if self._wanted else []
        kind = header[0].decode("ascii") if header else ""
        return ProtocolFault(kind if self.ready else Ready.KIND, "", "truncated", rest[:EXCERPT_BYTES])

    def _skip_banner(self, data: bytes) -> bytes:
        """What follows the sentinel, or nothing while it has not come."""
        banner = (self._banner or b"") + data
        _, found, rest = banner.partition(SENTINEL)
        self._banner = None if found else banner[-len(SENTINEL) + 1 :]
        return rest

    def _is_useless(self, data: bytes) -> bool:
        """Whether the message in the making cannot be told more about with ``data`` than without it."""
        held = self._held + len(data)
        if self._wanted:
            return held < self._wanted
        return held <= FRAME_LINE_BYTES and b"\n" not in data

    def _consume(self, lines: list[bytes], frames: list[Frame | ProtocolFault]) -> bytes:
        """Add every complete message of ``lines`` to ``frames``; returns the bytes of the first incomplete one.

        ``lines`` is the input cut at its line feeds, so the last one is not complete. A payload without line feeds is
        one of them, and that it is followed by one needs no other check than its length.
        """
        append, remembered = frames.append, self._headers.get
        place, last = 0, len(lines) - 1
        while place < last:
            line = lines[place]
            awaited = remembered(line)
            if awaited is None:
                if len(line) > FRAME_LINE_BYTES:
                    break
                found = self._read(line)
                if found is None:
                    place += 1
                    continue
                if isinstance(found, Message):
                    self._read = _read_line
                    append(found)
                    place += 1
                    continue
                awaited = found
                self._remember(line, awaited)
            size, kind, before, after = awaited
            end = place + 1
            payload = lines[end]
            if len(payload) != size or end == last:
                end, payload = _long_payload(lines, end, size, kind)
                if end == last:
                    self._wanted = len(line) + 1 + size + 1
                    return b"\n".join(lines[place:])
            append(kind(*before, payload, *after) if after is not None else kind(*before))
            place = end + 1
        if len(lines[place]) > FRAME_LINE_BYTES:
            raise ProtocolFault("", "", "line_limit", lines[place][:EXCERPT_BYTES])
        self._wanted = 0
        return lines[place]

    def _remember(self, line: bytes, awaited: _Awaited) -> None:
        if len(line) <= _CACHED_LINE_BYTES:
            if len(self._headers) >= _CACHED_LINES:
                self._headers.clear()
            self._headers[line] = awaited


# ---------------------------------------------------------------- writers


def write_accept(id: int, prompt_tokens: int) -> bytes:
    """The bytes of ACCEPT. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("ACCEPT", "id", "range")
    if not 0 <= prompt_tokens <= 9223372036854775807:
        raise FieldError("ACCEPT", "prompt_tokens", "range")
    line = b"ACCEPT %d %d" % (id, prompt_tokens)
    return line + b"\n"


def write_data(
    id: int,
    payload: bytes,
    logprob: float | None = None,
    tokens: Sequence[int] = (),
    token_logprobs: Sequence[float] = (),
) -> bytes:
    """The bytes of DATA. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("DATA", "id", "range")
    if len(payload) > 65536:
        raise FieldError("DATA", "size", "range")
    if logprob is not None:
        if len(token_logprobs) != len(tokens):
            raise FieldError("DATA", "token_logprob", "count")
        if len(tokens) > 32:
            raise FieldError("DATA", "k", "range")
        if tokens and (min(tokens) < 0 or max(tokens) > 2147483647):
            raise FieldError("DATA", "token", "range")
    if logprob is None and tokens:
        raise FieldError("DATA", "logprob", "missing")
    line = b"DATA %d %d" % (id, len(payload))
    if logprob is not None:
        line += b" %.6f %d" % (logprob, len(tokens))
        pairs = zip(tokens, token_logprobs, strict=True)
        line += b" %d %.6f" * len(tokens) % tuple(chain.from_iterable(pairs))
    return b"%b\n%b\n" % (line, payload)


def write_echo(
    id: int,
    payload: bytes,
    position: int,
    logprob: float,
    tokens: Sequence[int] = (),
    token_logprobs: Sequence[float] = (),
) -> bytes:
    """The bytes of ECHO. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("ECHO", "id", "range")
    if len(payload) > 65536:
        raise FieldError("ECHO", "size", "range")
    if not 0 <= position <= 4294967295:
        raise FieldError("ECHO", "position", "range")
    if len(token_logprobs) != len(tokens):
        raise FieldError("ECHO", "token_logprob", "count")
    if len(tokens) > 32:
        raise FieldError("ECHO", "k", "range")
    if tokens and (min(tokens) < 0 or max(tokens) > 2147483647):
        raise FieldError("ECHO", "token", "range")
    line = b"ECHO %d %d %d %.6f %d" % (id, len(payload), position, logprob, len(tokens))
    pairs = zip(tokens, token_logprobs, strict=True)
    line += b" %d %.6f" * len(tokens) % tuple(chain.from_iterable(pairs))
    return b"%b\n%b\n" % (line, payload)


def write_tool(id: int, payload: bytes) -> bytes:
    """The bytes of TOOL. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("TOOL", "id", "range")
    if len(payload) > 65536:
        raise FieldError("TOOL", "size", "range")
    line = b"TOOL %d %d" % (id, len(payload))
    return b"%b\n%b\n" % (line, payload)


def write_done(
    id: int,
    completion_tokens: int,
    tokens_per_second: float,
    cache_hit_percent: float,
    rss_gb: float,
    prompt_tokens: int | None = None,
    length_limited: int | None = None,
) -> bytes:
    """The bytes of DONE. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("DONE", "id", "range")
    if not 0 <= completion_tokens <= 9223372036854775807:
        raise FieldError("DONE", "completion_tokens", "range")
    if not isfinite(tokens_per_second):
        raise FieldError("DONE", "tokens_per_second", "range")
    if not isfinite(cache_hit_percent):
        raise FieldError("DONE", "cache_hit_percent", "range")
    if not isfinite(rss_gb):
        raise FieldError("DONE", "rss_gb", "range")
    if prompt_tokens is not None:
        if not 0 <= prompt_tokens <= 9223372036854775807:
            raise FieldError("DONE", "prompt_tokens", "range")
        if length_limited is not None and not 0 <= length_limited <= 1:
            raise FieldError("DONE", "length_limited", "range")
    if prompt_tokens is None and length_limited is not None:
        raise FieldError("DONE", "prompt_tokens", "missing")
    line = b"DONE %d STAT %d %.3f %.3f %.3f" % (
        id,
        completion_tokens,
        tokens_per_second,
        cache_hit_percent,
        rss_gb,
    )
    if prompt_tokens is not None:
        line += b" %d" % prompt_tokens
        if length_limited is not None:
            line += b" %d" % length_limited
    return line + b"\n"


def write_error(id: int, *words: str) -> bytes:
    """The bytes of ERROR. Raises FieldError for a value the wire cannot carry."""
    if not 0 <= id <= 18446744073709551615:
        raise FieldError("ERROR", "id", "range")
    if not all(map(is_visible, words)):
        raise FieldError("ERROR", "words", "word")
    line = b"ERROR %d" % id
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_prof(
    wall_s: float,
    prompt_tokens: float,
    completion_tokens: float,
    disk_s: float,
    wait_s: float,
    matmul_s: float,
    attention_s: float,
    head_s: float,
    forwards: float,
) -> bytes:
    """The bytes of PROF. Raises FieldError for a value the wire cannot carry."""
    if not isfinite(wall_s):
        raise FieldError("PROF", "wall_s", "range")
    if not isfinite(prompt_tokens):
        raise FieldError("PROF", "prompt_tokens", "range")
    if not isfinite(completion_tokens):
        raise FieldError("PROF", "completion_tokens", "range")
    if not isfinite(disk_s):
        raise FieldError("PROF", "disk_s", "range")
    if not isfinite(wait_s):
        raise FieldError("PROF", "wait_s", "range")
    if not isfinite(matmul_s):
        raise FieldError("PROF", "matmul_s", "range")
    if not isfinite(attention_s):
        raise FieldError("PROF", "attention_s", "range")
    if not isfinite(head_s):
        raise FieldError("PROF", "head_s", "range")
    if not isfinite(forwards):
        raise FieldError("PROF", "forwards", "range")
    line = b"PROF %.6f %.3f %.3f %.6f %.6f %.6f %.6f %.6f %.3f" % (
        wall_s,
        prompt_tokens,
        completion_tokens,
        disk_s,
        wait_s,
        matmul_s,
        attention_s,
        head_s,
        forwards,
    )
    return line + b"\n"


def write_tiers(vram: float, ram: float, disk: float, vram_gb: float, ram_gb: float) -> bytes:
    """The bytes of TIERS. Raises FieldError for a value the wire cannot carry."""
    if not isfinite(vram):
        raise FieldError("TIERS", "vram", "range")
    if not isfinite(ram):
        raise FieldError("TIERS", "ram", "range")
    if not isfinite(disk):
        raise FieldError("TIERS", "disk", "range")
    if not isfinite(vram_gb):
        raise FieldError("TIERS", "vram_gb", "range")
    if not isfinite(ram_gb):
        raise FieldError("TIERS", "ram_gb", "range")
    line = b"TIERS %.3f %.3f %.3f %.3f %.3f" % (vram, ram, disk, vram_gb, ram_gb)
    return line + b"\n"


def write_hwinfo(
    cores: float,
    ram_total_gb: float,
    ram_available_gb: float,
    gpus: float,
    vram_total_gb: float,
    *names: str,
) -> bytes:
    """The bytes of HWINFO. Raises FieldError for a value the wire cannot carry."""
    if not isfinite(cores):
        raise FieldError("HWINFO", "cores", "range")
    if not isfinite(ram_total_gb):
        raise FieldError("HWINFO", "ram_total_gb", "range")
    if not isfinite(ram_available_gb):
        raise FieldError("HWINFO", "ram_available_gb", "range")
    if not isfinite(gpus):
        raise FieldError("HWINFO", "gpus", "range")
    if not isfinite(vram_total_gb):
        raise FieldError("HWINFO", "vram_total_gb", "range")
    if not names:
        raise FieldError("HWINFO", "names", "word_count")
    if not all(map(is_visible, names)):
        raise FieldError("HWINFO", "names", "word")
    line = b"HWINFO %.3f %.3f %.3f %.3f %.3f" % (cores, ram_total_gb, ram_available_gb, gpus, vram_total_gb)
    line += b"".join(b" " + word.encode() for word in names)
    return line + b"\n"


def write_emap(rows: int, cols: int, cells: str) -> bytes:
    """The bytes of EMAP. Raises FieldError for a value the wire cannot carry."""
    if not 0 <= rows <= 9223372036854775807:
        raise FieldError("EMAP", "rows", "range")
    if not 0 <= cols <= 9223372036854775807:
        raise FieldError("EMAP", "cols", "range")
    if not is_hexadecimal(cells):
        raise FieldError("EMAP", "cells", "word")
    line = b"EMAP %d %d %b" % (rows, cols, cells.encode())
    return line + b"\n"


def write_hits(rows: int, cols: int, cells: str) -> bytes:
    """The bytes of HITS. Raises FieldError for a value the wire cannot carry."""
    if not 0 <= rows <= 9223372036854775807:
        raise FieldError("HITS", "rows", "range")
    if not 0 <= cols <= 9223372036854775807:
        raise FieldError("HITS", "cols", "range")
    if not is_hexadecimal(cells):
        raise FieldError("HITS", "cells", "word")
    line = b"HITS %d %d %b" % (rows, cols, cells.encode())
    return line + b"\n"


def write_perf(*words: str) -> bytes:
    """The bytes of PERF. Raises FieldError for a value the wire cannot carry."""
    if not words:
        raise FieldError("PERF", "words", "word_count")
    if not all(map(is_visible, words)):
        raise FieldError("PERF", "words", "word")
    line = b"PERF"
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_entropy(*words: str) -> bytes:
    """The bytes of ENTROPY. Raises FieldError for a value the wire cannot carry."""
    if not words:
        raise FieldError("ENTROPY", "words", "word_count")
    if not all(map(is_visible, words)):
        raise FieldError("ENTROPY", "words", "word")
    line = b"ENTROPY"
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_gpus(*words: str) -> bytes:
    """The bytes of GPUS. Raises FieldError for a value the wire cannot carry."""
    if not words:
        raise FieldError("GPUS", "words", "word_count")
    if not all(map(is_visible, words)):
        raise FieldError("GPUS", "words", "word")
    line = b"GPUS"
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_topk(*words: str) -> bytes:
    """The bytes of TOPK. Raises FieldError for a value the wire cannot carry."""
    if not words:
        raise FieldError("TOPK", "words", "word_count")
    if not all(map(is_visible, words)):
        raise FieldError("TOPK", "words", "word")
    line = b"TOPK"
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_repin(*words: str) -> bytes:
    """The bytes of REPIN. Raises FieldError for a value the wire cannot carry."""
    if not words:
        raise FieldError("REPIN", "words", "word_count")
    if not all(map(is_visible, words)):
        raise FieldError("REPIN", "words", "word")
    line = b"REPIN"
    line += b"".join(b" " + word.encode() for word in words)
    return line + b"\n"


def write_grpp(id: int, position: int, logprob: float, k: int, payload: bytes = b"") -> bytes:
    """The bytes of GRPP. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("GRPP", "id", "range")
    if len(payload) > 65536:
        raise FieldError("GRPP", "size", "range")
    if not 0 <= position <= 4294967295:
        raise FieldError("GRPP", "position", "range")
    if not 0 <= k <= 9223372036854775807:
        raise FieldError("GRPP", "k", "range")
    line = b"GRPP %d %d %d %.6f %d" % (id, len(payload), position, logprob, k)
    return b"%b\n%b\n" % (line, payload)


def write_grpg(id: int, member: int, position: int, logprob: float, k: int, payload: bytes = b"") -> bytes:
    """The bytes of GRPG. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("GRPG", "id", "range")
    if len(payload) > 65536:
        raise FieldError("GRPG", "size", "range")
    if not 0 <= member <= 2147483647:
        raise FieldError("GRPG", "member", "range")
    if not 0 <= position <= 4294967295:
        raise FieldError("GRPG", "position", "range")
    if not 0 <= k <= 9223372036854775807:
        raise FieldError("GRPG", "k", "range")
    line = b"GRPG %d %d %d %d %.6f %d" % (id, len(payload), member, position, logprob, k)
    return b"%b\n%b\n" % (line, payload)


def write_grps(id: int, member: int, prompt_count: int, member_count: int) -> bytes:
    """The bytes of GRPS. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("GRPS", "id", "range")
    if not 0 <= member <= 2147483647:
        raise FieldError("GRPS", "member", "range")
    if not 0 <= prompt_count <= 9223372036854775807:
        raise FieldError("GRPS", "prompt_count", "range")
    if not 0 <= member_count <= 9223372036854775807:
        raise FieldError("GRPS", "member_count", "range")
    line = b"GRPS %d %d %d %d" % (id, member, prompt_count, member_count)
    return line + b"\n"


def write_grpe(id: int, member: int, sum: float, count: int, greedy: int) -> bytes:
    """The bytes of GRPE. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("GRPE", "id", "range")
    if not 0 <= member <= 2147483647:
        raise FieldError("GRPE", "member", "range")
    if not 0 <= count <= 9223372036854775807:
        raise FieldError("GRPE", "count", "range")
    if not 0 <= greedy <= 1:
        raise FieldError("GRPE", "greedy", "range")
    line = b"GRPE %d %d %.6f %d %d" % (id, member, sum, count, greedy)
    return line + b"\n"


def write_ready(
    completion_tokens: int,
    tokens_per_second: float,
    cache_hit_percent: float,
    rss_gb: float,
    prompt_tokens: int | None = None,
    length_limited: int | None = None,
) -> bytes:
    """The sentinel and the line after it. Raises FieldError for a value the wire does not carry."""
    if not 0 <= completion_tokens <= 9223372036854775807:
        raise FieldError("READY", "completion_tokens", "range")
    if not isfinite(tokens_per_second):
        raise FieldError("READY", "tokens_per_second", "range")
    if not isfinite(cache_hit_percent):
        raise FieldError("READY", "cache_hit_percent", "range")
    if not isfinite(rss_gb):
        raise FieldError("READY", "rss_gb", "range")
    if prompt_tokens is not None:
        if not 0 <= prompt_tokens <= 9223372036854775807:
            raise FieldError("READY", "prompt_tokens", "range")
        if length_limited is not None and not 0 <= length_limited <= 1:
            raise FieldError("READY", "length_limited", "range")
    if prompt_tokens is None and length_limited is not None:
        raise FieldError("READY", "prompt_tokens", "missing")
    line = b"STAT %d %.3f %.3f %.3f" % (completion_tokens, tokens_per_second, cache_hit_percent, rss_gb)
    if prompt_tokens is not None:
        line += b" %d" % prompt_tokens
        if length_limited is not None:
            line += b" %d" % length_limited
    return SENTINEL + line + b"\n"
