"""Log probabilities: held compactly while the engine reports them, written as JSON in one pass (http.md
§9.3).

A record is what the engine says about one token: its bytes, its own value, and a table of alternatives in
wire order. Records live in arrays, about 12 bytes per table entry and nothing per Python object, in blocks
that are let go as soon as they are written, so that 65,536 prompt positions with 32 alternatives each stay
far below 100 MB.

Guarantees: a token's value is the one of its own record; of its table the first entry in wire order with
that very value bears the token's text and all others bear their ids; tables are cut to what was asked for,
the best values stay, in descending order; numbers that are not finite become null; prompt positions are
exactly 0…N−1 or the assembly refuses.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Final, NamedTuple, Protocol

import orjson

from server.text.records import RecordSpans
from server.text.utf8 import Utf8Decoder

_BLOCK: Final = 256
"""Records per block: the unit in which memory is given back while writing."""


class EchoOutOfPlace(Exception):
    """The engine's prompt positions are not exactly 0…N−1, once each."""


class Record(NamedTuple):
    """One token: its own bytes, its own value in nats (None: none was sent), and its table in wire order."""

    payload: bytes
    logprob: float | None
    tokens: Sequence[int]
    values: Sequence[float]


class _Frame(Protocol):
    """A frame that tells of one token."""

    @property
    def payload(self) -> bytes: ...
    @property
    def logprob(self) -> float | None: ...
    @property
    def tokens(self) -> Sequence[int] | None: ...
    @property
    def token_logprobs(self) -> Sequence[float] | None: ...


class _PlacedFrame(_Frame, Protocol):
    """A frame that tells of one token of the prompt."""

    @property
    def position(self) -> int: ...


class _Block:
    __slots__ = ("logprobs", "payload", "payload_ends", "table_ends", "tokens", "values")

    def __init__(self) -> None:
        self.payload = bytearray()
        self.payload_ends = array("Q")
        self.logprobs = array("d")
        self.table_ends = array("Q")
        self.tokens = array("i")
        self.values = array("d")

    def add(self, record: Record) -> None:
        self.payload += record.payload
        self.payload_ends.append(len(self.payload))
        self.logprobs.append(float("nan") if record.logprob is None else record.logprob)
        self.tokens.extend(record.tokens)
        self.values.extend(record.values)
        self.table_ends.append(len(self.tokens))

    def extend(self, frames: Sequence[_Frame]) -> None:
        """`add` for the records of many frames, column by column."""
        start = len(self.payload)
        self.payload += b"".join([frame.payload for frame in frames])
        lengths = accumulate([len(frame.payload) for frame in frames], initial=start)
        self.payload_ends.extend(islice(lengths, 1, None))
        self.logprobs.extend([float("nan") if frame.logprob is None else frame.logprob for frame in frames])
        tables = [frame.tokens or () for frame in frames]
        counts = accumulate(map(len, tables), initial=len(self.tokens))
        self.table_ends.extend(islice(counts, 1, None))
        self.tokens.extend(chain.from_iterable(tables))
        self.values.extend(chain.from_iterable([frame.token_logprobs or () for frame in frames]))

    def records(self) -> Iterator[Record]:
        """Every record, in order."""
        payload, tokens, values = bytes(self.payload), self.tokens.tolist(), self.values.tolist()
        byte_start = entry_start = 0
        for byte_end, logprob, entry_end in zip(
            self.payload_ends, self.logprobs, self.table_ends, strict=True
        ):
            yield Record(
                payload[byte_start:byte_end],
                logprob,
                tokens[entry_start:entry_end],
                values[entry_start:entry_end],
            )
            byte_start, entry_start = byte_end, entry_end

    def record(self, index: int) -> Record:
        byte_start = self.payload_ends[index - 1] if index else 0
        entry_start = self.table_ends[index - 1] if index else 0
        entry_end = self.table_ends[index]
        return Record(
            bytes(self.payload[byte_start : self.payload_ends[index]]),
            self.logprobs[index],
            self.tokens[entry_start:entry_end].tolist(),
            self.values[entry_start:entry_end].tolist(),
        )


class Records:
    """Records in the order in which they were added."""

    __slots__ = ("_blocks", "_count")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, record: Record) -> None:
        """Append one record."""
        if self._count % _BLOCK == 0:
            self._blocks.append(_Block())
        self._blocks[-1].add(record)
        self._count += 1

    def extend(self, frames: Sequence[_Frame]) -> None:
        """Append the records of many frames."""
        place = 0
        while place < len(frames):
            if self._count % _BLOCK == 0:
                self._blocks.append(_Block())
            part = frames[place : place + _BLOCK - self._count % _BLOCK]
            self._blocks[-1].extend(part)
            self._count += len(part)
            place += len(part)

    def __getitem__(self, index: int) -> Record:
        return self._blocks[index // _BLOCK].record(index % _BLOCK)

    def payloads(self) -> Iterator[bytes]:
        """The bytes of every record, in order."""
        for block in self._blocks:
            start = 0
            for end in block.payload_ends:
                yield bytes(block.payload[start:end])
                start = end

    def pending(self) -> bytes:
        """What their bytes, one after the other, leave unfinished of a character."""
        decoder = Utf8Decoder()
        for block in self._blocks:
            decoder.feed(bytes(block.payload))
        return decoder.pending

    def drain(self) -> Iterator[Record]:
        """Every record, in order; a block's memory is released once it has been passed. Empties the
        collection.
        """
        blocks, self._blocks, self._count = self._blocks, [], 0
        blocks.reverse()
        while blocks:
            yield from blocks.pop().records()


class EchoRecords:
    """Records of prompt tokens, which come in any order and say their place."""

    __slots__ = ("_in_order", "_positions", "_records")

    def __init__(self) -> None:
        self._records = Records()
        self._positions = array("Q")
        self._in_order = True

    def __len__(self) -> int:
        return len(self._records)

    def add(self, position: int, record: Record) -> None:
        """Take the record of prompt position ``position``."""
        if position != len(self._records):
            self._in_order = False
        self._positions.append(position)
        self._records.add(record)

    def extend(self, frames: Sequence[_PlacedFrame]) -> None:
        """Take the records of many frames."""
        first = len(self._records)
        positions = [frame.position for frame in frames]
        if positions != list(range(first, first + len(frames))):
            self._in_order = False
        self._positions.extend(positions)
        self._records.extend(frames)

    def placed(self) -> Records:
        """The records by position. Raises EchoOutOfPlace unless every position 0…N−1 came exactly once."""
        if self._in_order:
            return self._records
        source = array("q", bytes(8 * len(self._records)))
        seen = bytearray(len(self._records))
        for index, position in enumerate(self._positions):
            if position >= len(seen) or seen[position]:
                raise EchoOutOfPlace(f"prompt position {position} is out of range or came twice")
            seen[position] = True
            source[position] = index
        placed = Records()
        for index in source:
            placed.add(self._records[index])
        return placed

    def pending(self) -> bytes:
        """The unfinished character at the end of the prompt as far as it is known; b"" when the places have
        gaps.
        """
        try:
            return self.placed().pending()
        except EchoOutOfPlace:
            return b""


class _Labelled(NamedTuple):
    text: str
    record: Record


def _labelled(records: Records, spans: RecordSpans) -> Iterator[_Labelled]:
    """Each record with its text: ``""`` while it only begins a character; a dangling end goes to the last
    one.
    """
    last: _Labelled | None = None
    for record in records.drain():
        if last is not None:
            yield last
        last = _Labelled(spans.add(record.payload), record)
    if last is not None:
        yield _Labelled(last.text + spans.finish(), last.record)


class CompletionScores:
    """The ``logprobs`` object of a text completion, and the prompt text that an echo puts before the
    answer.
    """

    def __init__(self, top: int) -> None:
        """``top``: entries wanted of each table."""
        self._top = top
        self._columns: tuple[list[bytes], ...] = ([], [], [], [])
        self._texts: list[str] = []
        self._logprobs: list[float | None] = []
        self._tables: list[dict[str, float]] = []
        self._offsets: list[int] = []
        self.prompt_text = ""
        """Text of the prompt records; complete after :meth:`add_prompt`."""

    def add_prompt(self, prompt: Records, *, complete: bool) -> None:
        """Write the prompt's records. ``complete``: nothing generated follows, so a dangling character ends
        here.
        """
        decoder = Utf8Decoder()
        texts: list[str] = []
        offset = 0
        last = len(prompt) - 1
        for index, record in enumerate(prompt.drain()):
            text = decoder.feed(record.payload)
            if complete and index == last:
                text += decoder.finish()
            self._add(text, record, offset)
            offset += len(text)
            texts.append(text)
        self.prompt_text = "".join(texts)

    def add_generated(
        self, generated: Records, pending: bytes, removed: Sequence[tuple[int, int | None]]
    ) -> None:
        """Write the generated records that survived.

        ``pending`` and ``removed`` are the pipeline's: the bytes it started with, and the code point ranges
        of the decoded text that its stop filter dropped.
        """
        flags = surviving(generated, pending, removed)
        start = 0
        shift = len(self.prompt_text)
        gaps = [(first, last) for first, last in removed if last is not None]
        for index, (text, record) in enumerate(_labelled(generated, RecordSpans(pending))):
            while gaps and gaps[0][1] <= start:
                first, last = gaps.pop(0)
                shift -= last - first
            if flags[index]:
                self._add(text, record, start + shift)
            start += len(text)

    def add_unreported(self, offset: int) -> None:
        """Write the entry of a token that an engine sampled without saying anything about it."""
        self._add("", Record(b"", None, (), ()), offset)

    def _add(self, text: str, record: Record, offset: int) -> None:
        self._texts.append(text)
        self._logprobs.append(record.logprob)
        self._tables.append(_table_object(record, text, self._top))
        self._offsets.append(offset)
        if len(self._texts) == _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._texts:
            return
        texts, logprobs, tables, offsets = self._columns
        texts.append(_members(self._texts))
        logprobs.append(_members(self._logprobs))
        tables.append(_members(self._tables))
        offsets.append(_members(self._offsets))
        for rows in (self._texts, self._logprobs, self._tables, self._offsets):
            rows.clear()

    def chunks(self) -> list[bytes]:
        """The JSON of the object, in pieces."""
        self._flush()
        written: list[bytes] = []
        names = (b'{"tokens":[', b'],"token_logprobs":[', b'],"top_logprobs":[', b'],"text_offset":[')
        for name, column in zip(names, self._columns, strict=True):
            written.append(name)
            for index, piece in enumerate(column):
                written.extend((b",", piece) if index else (piece,))
        written.append(b"]}")
        return written


def surviving(records: Records, pending: bytes, removed: Sequence[tuple[int, int | None]]) -> list[bool]:
    """One flag a record: none of its characters was dropped by the stop filter."""
    spans = RecordSpans(pending)
    for payload in records.payloads():
        spans.add(payload)
    return spans.survivors(removed)


def chat_content(records: Records, texts: Sequence[str | None], top: int) -> list[bytes]:
    """The JSON of the ``logprobs`` object of a chat choice, in pieces.

    ``texts``: what each record shows, None for one that is left out; ``top``: entries wanted of each table.
    """
    written = [b'{"content":[']
    separator = b""
    for text, record in zip(texts, records.drain(), strict=True):
        if text is not None:
            entry = {
                "token": text,
                "logprob": record.logprob,
                "bytes": list(record.payload),
                "top_logprobs": _table_list(record, text, top),
            }
            written.append(separator + orjson.dumps(entry))
            separator = b","
    written.append(b'],"refusal":null}')
    return written


def record_texts(records: Records, pending: bytes = b"") -> list[str]:
    """The text of each record: ``""`` while it only begins a character; a dangling end goes to the last
    one.
    """
    spans = RecordSpans(pending)
    texts = [spans.add(payload) for payload in records.payloads()]
    if texts:
        texts[-1] += spans.finish()
    return texts


def _members(values: Sequence[object]) -> bytes:
    """``values`` as the inside of a JSON array; numbers that are not finite become null."""
    return orjson.dumps(values)[1:-1]


def _own_place(record: Record) -> int | None:
    """Place in wire order of the entry that is the token itself: the first with its very value."""
    try:
        return record.values.index(record.logprob)
    except ValueError:
        return None


def _ranked(values: list[float]) -> list[int]:
    """Places in descending order of value, equal ones in wire order, those that are no number last."""
    return sorted(range(len(values)), key=lambda place: _rank(values[place]), reverse=True)


def _rank(value: float) -> float:
    return value if value == value else float("-inf")


def _labels(record: Record, text: str) -> list[str]:
    labels = [f"<token_id:{token}>" for token in record.tokens]
    own = _own_place(record)
    if own is not None:
        labels[own] = text
    return labels


def _table_object(record: Record, text: str, top: int) -> dict[str, float]:
    """The table as label → value, the best first; where two labels collide the higher value stays."""
    if len(record.values) == 1:
        token, value = record.tokens[0], record.values[0]
        return {text if value == record.logprob else f"<token_id:{token}>": value}
    labels, values = _labels(record, text), list(record.values)
    if values != sorted(values, reverse=True):
        order = _ranked(values)
        labels, values = [labels[place] for place in order], [values[place] for place in order]
    table = dict(zip(labels, values, strict=True))
    if len(table) != len(labels):
        table = dict(zip(reversed(labels), reversed(values), strict=True))
        table = dict(reversed(table.items()))
    if len(table) > top:
        table = dict(islice(table.items(), top))
    return table


def _table_list(record: Record, text: str, top: int) -> list[dict[str, Any]]:
    """The table as entries; the same token twice is listed once, with its higher value."""
    labels, values = _labels(record, text), list(record.values)
    own = _own_place(record)
    entries: dict[int, dict[str, Any]] = {}
    for place in _ranked(values):
        data = list(record.payload) if place == own else None
        entry = {"token": labels[place], "logprob": values[place], "bytes": data}
        entries.setdefault(record.tokens[place], entry)
    return list(islice(entries.values(), top))
