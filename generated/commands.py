# Generated from spec/protocol.yaml (target python, template python/commands.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Commands: what the gateway sends to the engine. Classes, a sans-IO reader, and a writer for each.

Framing before meaning: the reader takes the byte counts of a header first, and whatever else is wrong with it, it
consumes the payload they name before it refuses. So a refused command never desynchronises the stream, and no byte
of a payload is ever read as a command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple, final

from .limits import COMMAND_LINE_BYTES
from .wire import (
    EXCERPT_BYTES,
    BadWord,
    FieldError,
    Message,
    ProtocolFault,
    ranged_real,
    read_keys,
    split_words,
    uint,
)


@final
class Submit(Message):
    """Start one request. Whatever is wrong with the header, a reader consumes the payload it names before it
    refuses. ``SUBMIT <id> <slot> <prompt_size> <max_tokens> <temperature> <top_p> [<extra_size>
    [<key>=<value>]*]`` (spec: commands.SUBMIT)
    """

    KIND: ClassVar[str] = "SUBMIT"
    __match_args__ = (
        "id",
        "slot",
        "prompt",
        "max_tokens",
        "temperature",
        "top_p",
        "extra",
        "logprobs",
        "ids",
        "pin",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        id: int,
        slot: int,
        prompt: bytes,
        max_tokens: int,
        temperature: float,
        top_p: float,
        extra: bytes = b"",
        *,
        logprobs: int | None = None,
        ids: int | None = None,
        pin: int | None = None,
    ) -> None:
        self.id = id
        """Request id: minted by the gateway, increasing, never taken from a client, unique among requests in
        flight. 1 … 18446744073709551615.
        """
        self.slot = slot
        """KV slot the request runs on. 0 … 511."""
        self.prompt = prompt
        """UTF-8 text, or with ids=1 ASCII decimal token ids separated by single spaces."""
        self.max_tokens = max_tokens
        """Most tokens to generate. Unit: tokens. 0 … 2147483647."""
        self.temperature = temperature
        """Sampling temperature; 0 is greedy."""
        self.top_p = top_p
        """Nucleus mass; may not become 0 in single precision."""
        self.extra = extra
        """Grammar text: raw GBNF or a JSON Schema."""
        self.logprobs = logprobs
        """Per-token numbers and k alternatives wanted; k > 0 makes the engine send one ECHO per prompt token
        and a numeric tail on every DATA. 0 … 32. Needs: logprobs. None: absent.
        """
        self.ids = ids
        """The prompt is token ids. 0 … 1. Needs: token_ids. None: absent."""
        self.pin = pin
        """Keep the KV state after prefill so that later requests with the same prefix can rewind to it. 0 …
        1. Needs: pin. None: absent.
        """


@final
class Image(Message):
    """An image for the SUBMIT that follows immediately with the same id. ``IMAGE <id> <image_size> <grid_h>
    <grid_w>`` (spec: commands.IMAGE)
    """

    KIND: ClassVar[str] = "IMAGE"
    __match_args__ = ("id", "image", "grid_h", "grid_w")
    __slots__ = __match_args__

    def __init__(self, id: int, image: bytes, grid_h: int, grid_w: int) -> None:
        self.id = id
        """Request id: minted by the gateway, increasing, never taken from a client, unique among requests in
        flight. 1 … 18446744073709551615.
        """
        self.image = image
        """The image's patches as the family reads them."""
        self.grid_h = grid_h
        """Side of the image's patch grid. Unit: patches. 1 … 65535."""
        self.grid_w = grid_w
        """Side of the image's patch grid. Unit: patches. 1 … 65535."""


@final
class Stop(Message):
    """A stop sequence matched; finish the request now with DONE. Sent once. ``STOP <id>`` (spec:
    commands.STOP)
    """

    KIND: ClassVar[str] = "STOP"
    __match_args__ = ("id",)
    __slots__ = __match_args__

    def __init__(self, id: int) -> None:
        self.id = id
        """Request id: minted by the gateway, increasing, never taken from a client, unique among requests in
        flight. 1 … 18446744073709551615.
        """


@final
class Cancel(Message):
    """The client is gone; answered by ERROR CANCELLED, or by the DONE it raced with. The slot stays taken
    until then. ``CANCEL <id>`` (spec: commands.CANCEL)
    """

    KIND: ClassVar[str] = "CANCEL"
    __match_args__ = ("id",)
    __slots__ = __match_args__

    def __init__(self, id: int) -> None:
        self.id = id
        """Request id: minted by the gateway, increasing, never taken from a client, unique among requests in
        flight. 1 … 18446744073709551615.
        """


Command = Submit | Image | Stop | Cancel
"""Any command."""

COMMANDS: Final[tuple[type[Command], ...]] = (
    Submit,
    Image,
    Stop,
    Cancel,
)
"""Every kind, in the order of the spec."""


class Refusal(NamedTuple):
    """A command that was framed, so that its payload is gone, and is not acceptable. Answer ``ERROR <id> <code>``."""

    id: int
    """Request id, or 0 where the header's id cannot be read."""
    code: str
    """Wire error to answer with."""
    field: str
    """Field at fault, or ""."""
    rule: str
    """A key of :data:`generated.wire.RULES`."""
    kind: str = ""
    """Kind of the message, or "" when it is not known."""


# ---------------------------------------------------------------- reading headers

_Framed = tuple[tuple[int, ...], Callable[..., Command]]
"""An acceptable header: the sizes of its payloads, and what makes the command of them."""

_SUBMIT_KEYS: Final[Mapping[str, tuple[int, int]]] = {
    "logprobs": (0, 32),
    "ids": (0, 1),
    "pin": (0, 1),
}


def _read_submit(header: list[bytes]) -> _Framed:
    """``SUBMIT <id> <slot> <prompt_size> <max_tokens> <temperature> <top_p> [<extra_size> [<key>=<value>]*]``"""
    found = len(header)
    if found < 7:
        raise BadWord("", "word_count")
    extra_size: int = 0
    keys: dict[str, int] = {}
    id = uint(header[1], "id", 1, 18446744073709551615)
    slot = uint(header[2], "slot", 0, 511)
    prompt_size = uint(header[3], "prompt_size", 0, 16777216)
    max_tokens = uint(header[4], "max_tokens", 0, 2147483647)
    temperature = ranged_real(header[5], "temperature", 0.0, 2.0)
    top_p = ranged_real(header[6], "top_p", 7.006492321624087e-46, 1.0)
    if found > 7:
        extra_size = uint(header[7], "extra_size", 0, 1048576)
        keys = read_keys(header[8:], _SUBMIT_KEYS)
    if max_tokens == 0 and not keys.get("logprobs"):
        raise BadWord("max_tokens", "range")
    return (prompt_size, extra_size), lambda prompt, extra: Submit(
        id=id,
        slot=slot,
        prompt=prompt,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        extra=extra,
        logprobs=keys.get("logprobs"),
        ids=keys.get("ids"),
        pin=keys.get("pin"),
    )


def _read_image(header: list[bytes]) -> _Framed:
    """``IMAGE <id> <image_size> <grid_h> <grid_w>``"""
    found = len(header)
    if found != 5:
        raise BadWord("", "word_count")
    id = uint(header[1], "id", 1, 18446744073709551615)
    image_size = uint(header[2], "image_size", 1, 67108864)
    grid_h = uint(header[3], "grid_h", 1, 65535)
    grid_w = uint(header[4], "grid_w", 1, 65535)
    return (image_size,), lambda image: Image(
        id=id,
        image=image,
        grid_h=grid_h,
        grid_w=grid_w,
    )


def _read_stop(header: list[bytes]) -> _Framed:
    """``STOP <id>``"""
    found = len(header)
    if found != 2:
        raise BadWord("", "word_count")
    id = uint(header[1], "id", 1, 18446744073709551615)
    return (), lambda: Stop(
        id=id,
    )


def _read_cancel(header: list[bytes]) -> _Framed:
    """``CANCEL <id>``"""
    found = len(header)
    if found != 2:
        raise BadWord("", "word_count")
    id = uint(header[1], "id", 1, 18446744073709551615)
    return (), lambda: Cancel(
        id=id,
    )


class _Kind(NamedTuple):
    """What is needed to frame a command without understanding it."""

    read: Callable[[list[bytes]], _Framed]
    id_place: int
    id_low: int
    id_high: int
    size_places: tuple[int, ...]
    """Places of the payload sizes in the header, the kind being at 0."""


_KINDS: Final[Mapping[bytes, _Kind]] = {
    b"SUBMIT": _Kind(
        read=_read_submit,
        id_place=1,
        id_low=1,
        id_high=18446744073709551615,
        size_places=(3, 7),
    ),
    b"IMAGE": _Kind(
        read=_read_image,
        id_place=1,
        id_low=1,
        id_high=18446744073709551615,
        size_places=(2,),
    ),
    b"STOP": _Kind(
        read=_read_stop,
        id_place=1,
        id_low=1,
        id_high=18446744073709551615,
        size_places=(),
    ),
    b"CANCEL": _Kind(
        read=_read_cancel,
        id_place=1,
        id_low=1,
        id_high=18446744073709551615,
        size_places=(),
    ),
}

_LARGEST_SIZE: Final = 2**63 - 1
"""Most bytes a refused header can name: more is not a byte count anybody can send."""


def _named_bytes(kind: _Kind, header: list[bytes]) -> int | None:
    """Payload bytes a header names, whatever else is wrong with it; None when it names none that can be read."""
    total = None
    for place in kind.size_places:
        if place < len(header):
            try:
                total = (total or 0) + uint(header[place], "", 0, _LARGEST_SIZE)
            except BadWord:
                break
    return total


def _named_id(kind: _Kind, header: list[bytes]) -> int:
    """The request id of a header, or 0."""
    if kind.id_place >= len(header):
        return 0
    try:
        return uint(header[kind.id_place], "", kind.id_low, kind.id_high)
    except BadWord:
        return 0


# ---------------------------------------------------------------- the reader


class CommandReader:
    """Cuts the gateway's output into commands. No I/O, no clock, no thread: bytes in, commands out.

    Memory is bounded by one command: the payload of a header that will be refused is dropped as it comes.
    """

    __slots__ = ("_dead", "_held", "_pieces", "_refusal", "_skip", "_wanted")

    def __init__(self) -> None:
        self._dead = False
        self._pieces: list[bytes] = []  # of the command that is not complete yet
        self._held = 0  # bytes in them
        self._wanted = 0  # bytes that command has in all; 0 while its header line is not complete
        self._refusal: Refusal | None = None  # what to say once the payload of a refused header is gone
        self._skip = 0  # bytes of that payload still to come

    def feed(self, data: bytes | bytearray | memoryview) -> list[Command | Refusal | ProtocolFault]:
        """All commands and refusals that ``data`` completes, in order. A fault is the last item, and nothing follows it."""
        if self._dead:
            return []
        data = bytes(data)
        if self._pieces:
            self._pieces.append(data)
            if self._is_useless(data):
                self._held += len(data)
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        found: list[Command | Refusal | ProtocolFault] = []
        try:
            start = self._consume(data, found)
        except ProtocolFault as fault:
            self._dead = True
            found.append(fault)
            return found
        self._held = len(data) - start
        if self._held:
            self._pieces.append(data[start:])
        return found

    def eof(self) -> ProtocolFault | None:
        """The stream ended: a ``truncated`` fault if that was inside a command, None if it was between two."""
        rest = b"".join(self._pieces)
        if self._dead or (self._refusal is None and not split_words(rest)):
            return None
        self._dead = True
        header = split_words(rest.partition(b"\n")[0]) if self._wanted else []
        kind, request_id = "", 0
        if self._refusal is not None:
            kind, request_id = self._refusal.kind, self._refusal.id
        elif header:
            kind, request_id = header[0].decode("ascii"), _named_id(_KINDS[header[0]], header)
        return ProtocolFault(kind, "", "truncated", rest[:EXCERPT_BYTES], "BAD_FRAME", request_id)

    def _is_useless(self, data: bytes) -> bool:
        """Whether the command in the making cannot be told more about with ``data`` than without it."""
        held = self._held + len(data)
        if self._wanted:
            return held < self._wanted
        return held <= COMMAND_LINE_BYTES and b"\n" not in data

    def _consume(self, data: bytes, found: list[Command | Refusal | ProtocolFault]) -> int:
        """Add everything complete in ``data`` to ``found``; returns where the first incomplete command starts."""
        start = 0
        while True:
            if self._refusal is not None:
                start = self._drain(data, start, found)
                if self._refusal is not None:
                    return start
            end = data.find(b"\n", start)
            if end < 0 or end - start > COMMAND_LINE_BYTES:
                break
            header = split_words(data[start:end])
            if not header:
                start = end + 1
                continue
            framed = self._read(header, found)
            if framed is None:
                start = end + 1
                continue
            sizes, make = framed
            stop = end + 1 + sum(sizes)
            if sizes and stop >= len(data):
                self._wanted = stop + 1 - start
                return start
            found.append(make(*self._payloads(data, end + 1, sizes, header)))
            start = stop + 1 if sizes else end + 1
        if len(data) - start > COMMAND_LINE_BYTES:
            excerpt = data[start : start + EXCERPT_BYTES]
            raise ProtocolFault("", "", "line_limit", excerpt, "BAD_FRAME")
        self._wanted = 0
        return start

    def _read(
        self,
        header: list[bytes],
        found: list[Command | Refusal | ProtocolFault],
    ) -> _Framed | None:
        """The framed command, or None after a refusal: said at once, or kept until the named payload is gone."""
        kind = _KINDS.get(header[0])
        if kind is None:
            found.append(Refusal(0, "BAD_REQUEST", "", "unknown_kind"))
            return None
        try:
            return kind.read(header)
        except BadWord as bad:
            request_id = _named_id(kind, header)
            refusal = Refusal(request_id, "BAD_REQUEST", bad.field, bad.rule, header[0].decode("ascii"))
        named = _named_bytes(kind, header)
        if named is None:
            found.append(refusal)
        else:
            self._refusal, self._skip = refusal, named
        return None

    def _drain(self, data: bytes, start: int, found: list[Command | Refusal | ProtocolFault]) -> int:
        """Drop the payload of the refused header; refuse once its terminator has come."""
        taken = min(self._skip, len(data) - start)
        self._skip -= taken
        start += taken
        self._wanted = 0
        refusal = self._refusal
        if self._skip or start >= len(data) or refusal is None:
            return start
        if data[start] != 10:
            excerpt = data[start : start + 1]
            raise ProtocolFault(refusal.kind, "", "terminator", excerpt, "BAD_FRAME", refusal.id)
        self._refusal = None
        found.append(refusal)
        return start + 1

    def _payloads(self, data: bytes, start: int, sizes: tuple[int, ...], header: list[bytes]) -> list[bytes]:
        """The payloads of a complete command. Raises ProtocolFault when no line feed follows them."""
        payloads = []
        for size in sizes:
            payloads.append(data[start : start + size])
            start += size
        if sizes and data[start] != 10:
            kind = header[0].decode("ascii")
            request_id = _named_id(_KINDS[header[0]], header)
            raise ProtocolFault(kind, "", "terminator", data[start : start + 1], "BAD_FRAME", request_id)
        return payloads


# ---------------------------------------------------------------- writers


def write_submit(
    id: int,
    slot: int,
    prompt: bytes,
    max_tokens: int,
    temperature: float,
    top_p: float,
    extra: bytes = b"",
    *,
    logprobs: int | None = None,
    ids: int | None = None,
    pin: int | None = None,
) -> bytes:
    """The bytes of SUBMIT. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("SUBMIT", "id", "range")
    if not 0 <= slot <= 511:
        raise FieldError("SUBMIT", "slot", "range")
    if len(prompt) > 16777216:
        raise FieldError("SUBMIT", "prompt_size", "range")
    if not 0 <= max_tokens <= 2147483647:
        raise FieldError("SUBMIT", "max_tokens", "range")
    if not 0.0 <= temperature <= 2.0:
        raise FieldError("SUBMIT", "temperature", "range")
    if not 7.00649235e-46 <= top_p <= 1.0:
        raise FieldError("SUBMIT", "top_p", "range")
    if len(extra) > 1048576:
        raise FieldError("SUBMIT", "extra_size", "range")
    if logprobs is not None and not 0 <= logprobs <= 32:
        raise FieldError("SUBMIT", "logprobs", "range")
    if ids is not None and not 0 <= ids <= 1:
        raise FieldError("SUBMIT", "ids", "range")
    if pin is not None and not 0 <= pin <= 1:
        raise FieldError("SUBMIT", "pin", "range")
    if max_tokens == 0 and not logprobs:
        raise FieldError("SUBMIT", "max_tokens", "range")
    line = b"SUBMIT %d %d %d %d %.8g %.8g" % (id, slot, len(prompt), max_tokens, temperature, top_p)
    if extra or logprobs is not None or ids is not None or pin is not None:
        line += b" %d" % len(extra)
        if logprobs is not None:
            line += b" logprobs=%d" % logprobs
        if ids is not None:
            line += b" ids=%d" % ids
        if pin is not None:
            line += b" pin=%d" % pin
    return b"%b\n%b%b\n" % (line, prompt, extra)


def write_image(id: int, image: bytes, grid_h: int, grid_w: int) -> bytes:
    """The bytes of IMAGE. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("IMAGE", "id", "range")
    if not 1 <= len(image) <= 67108864:
        raise FieldError("IMAGE", "image_size", "range")
    if not 1 <= grid_h <= 65535:
        raise FieldError("IMAGE", "grid_h", "range")
    if not 1 <= grid_w <= 65535:
        raise FieldError("IMAGE", "grid_w", "range")
    line = b"IMAGE %d %d %d %d" % (id, len(image), grid_h, grid_w)
    return b"%b\n%b\n" % (line, image)


def write_stop(id: int) -> bytes:
    """The bytes of STOP. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("STOP", "id", "range")
    line = b"STOP %d" % id
    return line + b"\n"


def write_cancel(id: int) -> bytes:
    """The bytes of CANCEL. Raises FieldError for a value the wire cannot carry."""
    if not 1 <= id <= 18446744073709551615:
        raise FieldError("CANCEL", "id", "range")
    line = b"CANCEL %d" % id
    return line + b"\n"
