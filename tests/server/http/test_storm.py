"""Malformed requests from a seeded generator: every connection ends, none with 500, nothing is left behind.

``COLIBRI_STORM`` sets how many (the full run is 10,000); the default keeps the suite quick.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading

COUNT = int(os.environ.get("COLIBRI_STORM", "1200"))
AT_ONCE = 150

HEADER_LINES = [
    b"Host: localhost",
    b"Host: evil.example",
    b"Host:",
    b"Content-Length: 5",
    b"Content-Length: -1",
    b"Content-Length: 1e3",
    b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Expect: 100-continue",
    b"Connection: close",
    b"Connection: keep-alive, x",
    b"Content-Encoding: gzip",
    b"Content-Encoding: br",
    b" folded",
    b"Origin: http://localhost:5173",
    b"X-Request-Id: \xff\xfe",
    b"Authorization: Bearer",
    b"no colon",
    b": empty",
    b"A\x00: b",
    b"A: \r",
    b"A: \n",
    b"A: " + b"b" * 3000,
    b"Upgrade: h2c",
    b"Range: bytes=0-",
    b"Accept: " + b"," * 500,
]
METHODS = [
    b"GET",
    b"POST",
    b"PUT",
    b"HEAD",
    b"OPTIONS",
    b"CONNECT",
    b"get",
    b"",
    b"\x00",
    b"P\xc3\x96ST",
    b"A" * 40,
]
TARGETS = [
    b"/health",
    b"/v1/completions",
    b"/v1/messages",
    b"/stream",
    b"/v1/models/%ff%00",
    b"*",
    b"//",
    b"/../..",
    b"http://",
    b"",
    b"http://localhost/health",
    b"http://[::1",
    b"/%",
    b"/\xff",
    b"/" + b"a" * 2000,
    b"/x y",
    b"/#",
    b"?",
]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"", b"HTTP/1.1\r"]
BODIES = [
    b"",
    b"hello",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhel",
    b"zz\r\n",
    b"ffffffffffffffff\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"\x1f\x8b\x08\x00garbage",
    b"\r\n\r\n\r\n",
    bytes(300),
]


def malformed(random_: random.Random) -> bytes:
    line = random_.choice(
        (b"POST /v1/completions HTTP/1.1", None)
    )  # half of them fail later than at the first line
    lines = [line or b" ".join((random_.choice(METHODS), random_.choice(TARGETS), random_.choice(VERSIONS)))]
    lines += random_.choices(HEADER_LINES, k=random_.randrange(4))
    if random_.random() < 0.7:
        lines.insert(1, b"Host: localhost")
    data = bytearray(b"\r\n".join(lines) + b"\r\n\r\n" + random_.choice(BODIES))
    for _ in range(random_.choice((0, 0, 0, 1, 5))):
        position = random_.randrange(len(data))
        action = random_.randrange(3)
        if action == 0:
            data[position] = random_.randrange(256)
        elif action == 1:
            del data[position : position + random_.randrange(1, 20)]
        else:
            data[position:position] = random_.randbytes(random_.randrange(1, 10))
        if not data:
            return b"\r\n"
    return bytes(data)


def test_storm(serve, clock, request_bytes, eventually):
    threads_before, files_before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    site = serve(clock=clock)
    random_ = random.Random(20_240_229)
    statuses: dict[bytes, int] = {}
    for _ in range(COUNT // AT_ONCE):
        clients = []
        for _ in range(AT_ONCE):
            client = site.connect()
            client.send(malformed(random_) * random_.choice((1, 1, 2)))
            leave = random_.choice((client.vanish, client.half_close, lambda: None))
            leave()
            if leave != client.vanish:
                clients.append(client)
        with site.connect() as last:
            last.send(request_bytes())
            assert last.answer("GET").status == 200  # what was sent before is read
        # all that wait for more have their time over; none may be left hanging
        assert eventually(lambda: site.pass_time(30) or site.server.connections == 0)
        for client in clients:
            received = b""
            with contextlib.suppress(ConnectionResetError):
                received = client.rest()
            client.socket.close()
            for status in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", received, re.MULTILINE):
                statuses[status] = statuses.get(status, 0) + 1
    assert not [status for status in statuses if status >= b"500"], statuses
    assert statuses[b"400"] > COUNT // 5
    assert {b"200", b"204", b"400", b"403", b"404", b"405", b"413", b"415"} <= set(statuses)
    assert eventually(lambda: site.server.connections == 0)
    with site.connect() as client:
        client.send(request_bytes())
        assert client.answer("GET").status == 200
    ended = [site.record() for _ in range(site.begun)]
    assert all(record.outcome in ("ok", "refused", "cancelled") for record in ended)
    site.stop()
    assert threading.active_count() == threads_before
    assert len(os.listdir("/proc/self/fd")) == files_before
