"""The baseline of the gateway benchmark: the least a Python process can do between an engine and its clients.

    python tests/bench/bare_relay.py ENGINE

Reads the engine's pipe, wraps each text in one event of the gateway's shape and sends it to the socket of its
request: per read of the pipe one ``send`` for each stream. No HTTP parsing (any bytes that arrive are a
request), no checks, no escaping, no deadlines, no cancellation, no logging, no flow control: a blocking send.
Prints the port it listens on.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CREATED = int(time.time())
EVENT = (
    b'data: {"id":"cmpl-00000000000000000000000000000000","object":"text_completion","created":%d,'
    b'"model":"m","choices":[{"index":0,"text":"%%s","logprobs":null,"finish_reason":%%s}]}\n\n'
) % CREATED


class Relay:
    """One engine, and one socket for each of its requests."""

    def __init__(self, engine: str) -> None:
        self.engine = subprocess.Popen(
            [engine, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.clients: dict[bytes, socket.socket] = {}
        self.requests = 0
        self.rest = b""
        self.poll = select.epoll()

    def run(self) -> None:
        assert self.engine.stdout is not None
        pipe = self.engine.stdout.fileno()
        while b"STAT 0" not in os.read(pipe, 1 << 16):
            pass
        print(self.listener.getsockname()[1], flush=True)
        connections: dict[int, socket.socket] = {}
        self.poll.register(pipe, select.EPOLLIN)
        self.poll.register(self.listener, select.EPOLLIN)
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == pipe:
                    self.relay(self.rest + os.read(pipe, 1 << 16))
                elif descriptor == self.listener.fileno():
                    client, _ = self.listener.accept()
                    connections[client.fileno()] = client
                    self.poll.register(client, select.EPOLLIN)
                else:
                    self.submit(connections[descriptor])

    def submit(self, client: socket.socket) -> None:
        """One read is one request; none is the end of the connection."""
        data = client.recv(1 << 16)
        if not data:
            self.poll.unregister(client)
            return
        tokens = data.partition(b'"max_tokens": ')[2].partition(b",")[0]
        self.requests += 1
        identifier = b"%d" % self.requests
        self.clients[identifier] = client
        client.sendall(HEAD)
        assert self.engine.stdin is not None
        self.engine.stdin.write(b"SUBMIT %s 0 1 %s 0 1\nx\n" % (identifier, tokens))

    def relay(self, data: bytes) -> None:
        """Send the events of every whole frame; keep the beginning of one that is cut."""
        out: dict[bytes, list[bytes]] = {}
        place = 0
        while (end := data.find(b"\n", place)) >= 0:
            words = data[place:end].split()
            if words[0] == b"DATA":
                after = end + 1 + int(words[2])
                if after >= len(data):
                    break
                out.setdefault(words[1], []).append(EVENT % (data[end + 1 : after], b"null"))
                end = after
            elif words[0] == b"DONE":
                out.setdefault(words[1], []).append(EVENT % (b"", b'"stop"') + b"data: [DONE]\n\n")
            place = end + 1
            if words[0] == b"DONE":
                self.send(words[1], out.pop(words[1]), b"0\r\n\r\n")
                del self.clients[words[1]]
        self.rest = data[place:]
        for identifier, events in out.items():
            self.send(identifier, events, b"")

    def send(self, identifier: bytes, events: list[bytes], end: bytes) -> None:
        body = b"".join(events)
        self.clients[identifier].sendall(b"%x\r\n%s\r\n%s" % (len(body), body, end))


if __name__ == "__main__":
    Relay(sys.argv[1]).run()
