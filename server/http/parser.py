"""Parsing one request off the socket: a strict HTTP/1 head, then a body whose end is never in doubt.

Stricter than waitress's parser, which it extends: a head that leaves any doubt about framing, host or target
is a fault, and the connection is not used after a fault. Nothing is decided here about who may do what; see
:mod:`server.http.gate`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from waitress.adjustments import Adjustments
from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser

from server.http.bodies import ChunkedBody, Discarded, FixedBody

_REQUEST_LINE: Final = re.compile(
    rb"(?P<method>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) (?P<target>[\x21-\x7e\x80-\xff]+)"
    rb" HTTP/(?P<major>[0-9])\.(?P<minor>[0-9])"
)
_HEADER_LINE: Final = re.compile(
    rb"(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]+):(?P<value>[\t\x20-\x7e\x80-\xff]*)"
)
_ABSOLUTE: Final = re.compile(rb"https?://(?P<authority>[^/?@]*)(?P<rest>[/?].*)?", re.IGNORECASE)
_LINE_FAULT: Final = re.compile(rb"\x00|(?<!\r)\n|\r[^\n]")  # NUL, bare LF, bare CR
_PLAIN_DIGITS: Final = re.compile(r"[0-9]+")
_MOST_DIGITS: Final = 18  # more are over any limit
_HEAD_END: Final = b"\r\n\r\n"
_BODILESS_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class HeadFault(Exception):
    """The head cannot be accepted; the text says why, for the client."""


class RequestLine(NamedTuple):
    """A request line taken apart; ``host`` is the authority of an absolute-form target. With ``fault`` set
    only what stands before the fault is known.
    """

    fault: str = ""
    method: str = ""
    version: str = ""
    target: str = ""
    host: str | None = None
    raw_path: str = ""
    path: str = ""
    query: str = ""


@lru_cache(maxsize=64)
def _request_line(line: bytes) -> RequestLine:
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        return RequestLine("the request line is not valid")
    if found["major"] != b"1":
        return RequestLine("only HTTP/1.0 and HTTP/1.1 are spoken here")
    version = "1.0" if found["minor"] == b"0" else "1.1"
    method, target, host = found["method"].decode("ascii"), found["target"], None
    if b"#" in target:
        return RequestLine("the target has a fragment", method, version)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        host = absolute["authority"].decode("latin-1")
        target = absolute["rest"] or b"/"
        if target.startswith(b"?"):
            target = b"/" + target
    elif not target.startswith(b"/") and not (target == b"*" and method == "OPTIONS"):
        return RequestLine("the target is neither a path nor an http URL", method, version)
    path, _, query = target.partition(b"?")
    return RequestLine(
        "",
        method,
        version,
        target.decode("latin-1"),
        host,
        path.decode("latin-1"),
        unquote_to_bytes(path).decode("latin-1"),
        query.decode("latin-1"),
    )


@lru_cache(maxsize=64)
def _header_name(name: bytes) -> str:
    """The name in waitress form; empty for one that would be taken for the header with a dash."""
    return "" if b"_" in name else name.decode("ascii").upper().replace("-", "_")


class RequestParser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Feed it with :meth:`received` until ``completed``.

    After the head: ``head_finished``, and either ``fault`` (text for a 400; the connection is unusable) or
    ``command``, ``raw_path``, ``path`` (decoded, latin-1 as WSGI wants it), ``query``, ``headers``, ``host``
    (the value to be guarded), ``version`` ("1.0" or "1.1"), ``keep_alive``, ``expects_continue``,
    ``content_length``, ``has_body``. After the body: ``completed``, or ``fault``."""

    fault: str | None = None
    completed: bool
    head_finished = False
    request_line_finished = False
    judged = False
    raw_path = ""
    host: str | None = None
    keep_alive = False
    asked_keep_alive = False
    expects_continue = False
    command = ""
    body: FixedBody | ChunkedBody | None = None
    too_large = False

    def __init__(self, adj: Adjustments, *, max_header_bytes: int, max_body_bytes: int) -> None:
        super().__init__(adj)
        self._max_header_bytes = max_header_bytes
        self._max_body_bytes = max_body_bytes
        self._head = bytearray()

    @property
    def has_body(self) -> bool:
        """Body bytes, or the chunk that says there are none, follow the head."""
        return self.body is not None

    @property
    def untouched(self) -> bool:
        """No byte of a request has come yet (empty lines before a request line do not count)."""
        return not self._head and not self.head_finished

    def received(self, data: bytes) -> int:
        """Takes what belongs to this request and stops after the head, so that it can be judged; returns how
        many bytes were taken.
        """
        if self.completed or self.fault is not None:
            return 0
        if not self.head_finished:
            return self._receive_head(data)
        body = self.body
        assert body is not None  # completed otherwise
        taken = body.received(data)
        if body.error is not None:
            self.fault = body.error
        elif max(len(body), body.announced if isinstance(body, ChunkedBody) else 0) > self._max_body_bytes:
            self.too_large = True
        self.completed = body.completed
        return taken

    # -- head ------------------------------------------------------------------------------------------------

    def _receive_head(self, data: bytes) -> int:
        skipped = 0
        if not self._head:  # empty lines before a request line are allowed (RFC 9112 §2.2)
            skipped = len(data) - len(data.lstrip(b"\r\n"))
            data = data[skipped:]
            if not data:
                return skipped
        searched = max(0, len(self._head) - len(_HEAD_END) + 1)
        before = len(self._head)
        self._head += data
        end = self._head.find(_HEAD_END, searched)
        if end >= 0:
            del self._head[end + len(_HEAD_END) :]
        self._check_lines(max(0, before - 1))
        if self.fault is None and end >= 0:
            self.head_finished = True
            try:
                self._parse(bytes(self._head[:end]))
            except HeadFault as fault:
                self.fault = str(fault)
        return skipped + len(self._head) - before

    def _check_lines(self, start: int) -> None:
        """Faults that need not wait for the end of the head, and the request line itself as soon as it is
        there.
        """
        try:
            if not self.request_line_finished and (end := self._head.find(b"\r\n")) >= 0:
                self.request_line_finished = True
                self._parse_request_line(bytes(self._head[:end]))
            if _LINE_FAULT.search(self._head, start):
                raise HeadFault("its head has a bare CR, a bare LF or a NUL")
            if len(self._head) > self._max_header_bytes:
                raise HeadFault(f"its head is larger than {self._max_header_bytes} bytes")
        except HeadFault as fault:
            self.fault = str(fault)
            # Origin and X-Request-Id shape the answer
            self._collect_headers(bytes(self._head).split(b"\r\n")[1:])

    def _parse_request_line(self, line: bytes) -> None:
        parsed = _request_line(line)
        self.command = parsed.method
        if parsed.method:
            self.version = parsed.version
        if parsed.fault:
            raise HeadFault(parsed.fault)
        self.host = parsed.host
        self.raw_path = parsed.raw_path
        self.path = parsed.path
        self.query = parsed.query
        self.request_uri = parsed.target

    def _parse(self, head: bytes) -> None:
        counted = self._collect_headers(head.split(b"\r\n")[1:])
        if counted is None:
            raise HeadFault("a header line is not valid")
        self.url_scheme = self.adj.url_scheme
        self._check_host(counted["HOST"])
        self._settle_connection()
        self._frame_body(counted["CONTENT_LENGTH"], counted["TRANSFER_ENCODING"])

    def _collect_headers(self, lines: list[bytes]) -> dict[str, int] | None:
        """Fill ``headers`` from the valid lines; how often the framing headers came, or None when a line is
        not valid.
        """
        counted = {"HOST": 0, "CONTENT_LENGTH": 0, "TRANSFER_ENCODING": 0}
        valid = True
        for line in lines:
            found = _HEADER_LINE.fullmatch(line)
            if found is None:
                valid = False
                continue
            written, content = found.groups()
            name = _header_name(written)
            if not name:
                continue
            value = content.strip(b" \t").decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
            if name in counted:
                counted[name] += 1
        return counted if valid else None

    def _check_host(self, count: int) -> None:
        if count > 1 or (count == 0 and self.version == "1.1"):
            raise HeadFault("exactly one Host header is needed")
        if self.host is None:  # the target of an absolute-form request overrides the header (RFC 9112 §3.2.2)
            self.host = self.headers.get("HOST")

    def _settle_connection(self) -> None:
        options = {option.strip(" \t").lower() for option in self.headers.get("CONNECTION", "").split(",")}
        self.asked_keep_alive = "keep-alive" in options
        self.keep_alive = "close" not in options and (self.version == "1.1" or self.asked_keep_alive)
        expect = self.headers.get("EXPECT", "").lower()
        self.expects_continue = self.version == "1.1" and expect == "100-continue"

    def _frame_body(self, lengths: int, codings: int) -> None:
        coding = self.headers.pop("TRANSFER_ENCODING", "")
        if codings:
            if lengths:
                raise HeadFault("it has both Content-Length and Transfer-Encoding")
            if codings > 1 or coding.lower() != "chunked" or self.version == "1.0":
                raise HeadFault("the only Transfer-Encoding understood is chunked, on HTTP/1.1")
            self.body = ChunkedBody(self._buffer())
        elif lengths:
            length = self.headers["CONTENT_LENGTH"]
            if lengths > 1 or not _PLAIN_DIGITS.fullmatch(length):
                raise HeadFault("Content-Length is not one plain number")
            digits = length.lstrip("0") or "0"
            self.content_length = int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
            if self.content_length:
                self.body = FixedBody(self.content_length, self._buffer())
        self.completed = self.body is None

    # -- body ------------------------------------------------------------------------------------------------

    def _buffer(self) -> OverflowableBuffer | Discarded:
        if self.command in _BODILESS_METHODS:
            return Discarded()
        return OverflowableBuffer(self.adj.inbuf_overflow)

    @property
    def body_size(self) -> int:
        """Bytes of the body that the application can read."""
        if self.body is None or isinstance(self.body.getbuf(), Discarded):
            return 0
        return len(self.body)

    def discard_body(self) -> None:
        """Drop the body, come or to come; its end is still found."""
        if self.body is not None:
            self.body.discard()

    def get_body_stream(self) -> BinaryIO:
        """The body as received, for reading from its start."""
        return self.body.getfile() if self.body is not None else Discarded().getfile()

    def body_bytes(self) -> bytes:
        """The body as received, whole."""
        return self.body.whole() if self.body is not None else b""

    def close(self) -> None:
        """Free the body."""
        if self.body is not None:
            self.body.getbuf().close()
