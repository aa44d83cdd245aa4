"""One kind of client after the other, over raw sockets; each says exactly what a healthy gateway answers.

A client function takes the port and a random generator and returns nothing: it raises :class:`Unexpected` for
any other answer than the ones it names. ``KINDS`` gives every client its weight. Prompts contain a word that
chooses the engine's script, see ``SCRIPTS``.
"""

from __future__ import annotations

import json
import random
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

TEXT: Final = "Héllo 🙂"
_ACCEPT: Final = "ACCEPT <id> 7"
_DONE: Final = "DONE <id> STAT 3 2.5 0 1.0 7 0"
_ANSWER: Final = [
    _ACCEPT,
    "DATA <id> <n> => Hé",
    "DATA <id> <n> => llo \\xf0\\x9f",
    "DATA <id> <n> => \\x99\\x82",
]
SCRIPTS: Final = {
    "dies": [_ACCEPT, "DATA <id> <n> => Hé", "@exit 3"],
    "refuses": ["ERROR <id> CONTEXT_EXCEEDED 4097 4096"],
    "thinks": ["@sleep 0.05", *_ANSWER, _DONE],
    "dawdles": [*_ANSWER, "@sleep 0.2", _DONE],
    "hangs": [*_ANSWER, "@sleep 30", _DONE],
    "": [*_ANSWER, _DONE],
}
"""Word in the prompt → frames; the empty word is in every prompt."""

WAIT_SECONDS: Final = 20.0
_RESET: Final = struct.pack("ii", 1, 0)


class Unexpected(Exception):
    """An answer that a healthy gateway does not give."""


class Answer:
    """One HTTP answer: status and body; ``whole`` is false for one that was cut."""

    def __init__(self, data: bytes) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        self.status = int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0
        self.raw = data
        headers = head.lower()
        if b"transfer-encoding: chunked" in headers:
            self.body, self.whole = _unchunked(body)
        else:
            size = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self.body, self.whole = body, size.isdigit() and len(body) == int(size)

    def expect(self, status: int) -> Any:
        """The JSON body of a whole answer with this status."""
        if (self.status, self.whole) != (status, True):
            raise Unexpected(f"wanted a whole {status}: {self.raw[-600:]!r}")
        return json.loads(self.body)

    def events(self, end: bytes) -> list[Any]:
        """The JSON data of a complete stream that ends as it should."""
        if (self.status, self.whole) != (200, True) or not self.body.endswith(end):
            raise Unexpected(f"wanted a whole stream: {self.raw[-600:]!r}")
        lines = [line for line in self.body.splitlines() if line.startswith(b"data: {")]
        return [json.loads(line.removeprefix(b"data: ")) for line in lines]


def _unchunked(body: bytes) -> tuple[bytes, bool]:
    whole = b""
    while True:
        size, found, rest = body.partition(b"\r\n")
        if not found:
            return whole, False
        if size == b"0":
            return whole, rest == b"\r\n"
        whole += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]


def message(path: str, body: Any, *, method: str = "POST") -> bytes:
    """A request that asks for the connection to be closed."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}"
    return f"{head}\r\n\r\n".encode() + data


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)


def read_all(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    data = b""
    try:
        while part := connection.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    except TimeoutError:
        raise Unexpected(f"no end within {WAIT_SECONDS} s after {data[-300:]!r}") from None
    return data


def ask(port: int, path: str, body: Any, *, method: str = "POST") -> Answer:
    with connect(port) as connection:
        connection.sendall(message(path, body, method=method))
        return Answer(read_all(connection))


def same(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise Unexpected(f"wanted {wanted!r}, got {found!r}")


# -- requests ------------------------------------------------------------------------------------------------


def completion(prompt: Any, *, stream: bool = False, **more: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": prompt, "stream": stream, "max_tokens": 8, "temperature": 0, **more}


def chat(content: str, *, stream: bool = False, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": content}]
    return {"model": "m", "messages": messages, "stream": stream, "max_tokens": 8, **more}


# -- clients that stay ---------------------------------------------------------------------------------------


def json_completion(port: int, rng: random.Random) -> None:
    found = ask(port, "/v1/completions", completion(rng.choice(["hi", "thinks"]))).expect(200)
    same(found["choices"][0]["text"], TEXT)


def json_chat(port: int, rng: random.Random) -> None:
    found = ask(port, "/v1/chat/completions", chat("hi")).expect(200)
    same(found["choices"][0]["message"]["content"], TEXT)


def batch(port: int, rng: random.Random) -> None:
    members = ["hi"] * rng.randrange(2, 6)
    found = ask(port, "/v1/completions", completion(members)).expect(200)
    same([choice["text"] for choice in found["choices"]], [TEXT] * len(members))
    same(found["usage"]["prompt_tokens"], 7 * len(members))


def stream_completion(port: int, rng: random.Random) -> None:
    answer = ask(port, "/v1/completions", completion(rng.choice(["hi", "thinks"]), stream=True))
    events = answer.events(b"data: [DONE]\n\n")
    same("".join(event["choices"][0]["text"] for event in events), TEXT)


def stream_completion_at_once(port: int, rng: random.Random) -> None:
    """The shortest stream there is, over a connection of its own."""
    events = ask(port, "/v1/completions", completion("hi", stream=True)).events(b"data: [DONE]\n\n")
    same("".join(event["choices"][0]["text"] for event in events), TEXT)


def stream_chat(port: int, rng: random.Random) -> None:
    events = ask(port, "/v1/chat/completions", chat("dawdles", stream=True)).events(b"data: [DONE]\n\n")
    same("".join(event["choices"][0]["delta"].get("content", "") for event in events), TEXT)


def stream_message(port: int, rng: random.Random) -> None:
    answer = ask(port, "/v1/messages", chat("hi", stream=True))
    events = answer.events(b'data: {"type":"message_stop"}\n\n')
    same("".join(event["delta"].get("text", "") for event in events if "delta" in event), TEXT)


def kept_alive(port: int, rng: random.Random) -> None:
    """A stream, an answer and a refusal on one connection."""
    with connect(port) as connection:
        for request in (
            message("/v1/completions", completion("hi", stream=True)),
            message("/v1/completions", completion("hi")),
            message("/v1/completions", completion("hi", n=2)),
        ):
            connection.sendall(request.replace(b"Connection: close\r\n", b""))
        connection.sendall(message("/health", b"", method="GET"))
        data = read_all(connection)
    statuses = [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]]
    same(statuses, [200, 200, 400, 200])


def refused(port: int, rng: random.Random) -> None:
    body = rng.choice(
        [completion("hi", n=2), completion(""), completion("refuses"), completion("hi", stop=1)]
    )
    ask(port, "/v1/completions", {**body, "stream": rng.random() < 0.5}).expect(400)


def pages(port: int, rng: random.Random) -> None:
    path, status = rng.choice([("/health", 200), ("/v1/models", 200), ("/v1/nothing", 404)])
    ask(port, path, b"", method="GET").expect(status)


# -- clients that break off, or never were any good ----------------------------------------------------------


def vanish(port: int, rng: random.Random) -> None:
    """Gone before the body, within it, in prefill or mid stream; by reset, close, or a half-close."""
    whole = message("/v1/completions", completion("hangs", stream=True))
    phase = rng.choice(["head", "body", "prefill", "stream"])
    cut = {"head": whole.index(b"\r\n\r\n") - 5, "body": len(whole) - 10}.get(phase, len(whole))
    with connect(port) as connection:
        connection.sendall(whole[:cut])
        if phase == "stream" and not connection.recv(1):
            raise Unexpected("no stream")
        leave = rng.choice(["reset", "close", "half-close"])
        if leave == "half-close":
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)
        elif leave == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


MALFORMED: Final = [
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


def malformed(port: int, rng: random.Random) -> None:
    """Bytes that are no request, or a body that is no JSON: refused, never a 500, never a hang."""
    data = rng.choice([*MALFORMED, message("/v1/completions", rng.randbytes(50))])
    with connect(port) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = Answer(read_all(connection))
    if answer.status >= 500:
        raise Unexpected(f"{data[:80]!r}: {answer.raw[:300]!r}")


def engine_dies(port: int, rng: random.Random) -> None:
    """The engine exits in the middle of this request: its failure has a name, or its stream is cut."""
    stream = rng.random() < 0.5
    answer = ask(port, "/v1/completions", completion("dies", stream=stream))
    if stream and answer.status == 200:
        same((answer.whole, b"[DONE]" in answer.body), (False, False))
    else:
        answer.expect(500)


Client = Callable[[int, random.Random], None]

KINDS: Final[dict[Client, int]] = {
    json_completion: 20,
    json_chat: 10,
    batch: 5,
    stream_completion: 20,
    stream_chat: 8,
    stream_message: 10,
    kept_alive: 5,
    refused: 10,
    pages: 5,
    vanish: 12,
    malformed: 12,
}
"""Client → weight. ``engine_dies`` is not among them: the soak starts it at times of its own."""
