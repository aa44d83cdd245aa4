"""Nothing stays behind a request: objects, threads and descriptors after many are as many as after a few."""

from __future__ import annotations

import gc
import os
import threading


def test_no_growth(serve, request_bytes, eventually):
    site = serve()
    kinds = [
        request_bytes("POST", "/v1/completions", b"x" * 100),
        request_bytes("POST", "/stream", b"a,b,c"),
        request_bytes("POST", "/v1/nope", b"x" * 100),
        request_bytes("GET", "/health"),
        b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
    ]

    def some(count: int) -> tuple[int, int, int]:
        for number in range(count):
            with site.connect() as client:
                for data in kinds:
                    client.send(data)
                    client.answer()
                    site.record()
            with site.connect() as client:
                client.send(request_bytes("POST", "/hold", b""))
                exchange = site.held()
                stream = exchange.open_stream()
                stream.write(b"x")
                exchange.client.on_gone(lambda: None)
                if number % 2:
                    stream.finish()
            site.record()
        site.requests.clear()
        assert eventually(lambda: site.server.connections == 0)
        del exchange, stream
        gc.collect()
        return len(gc.get_objects()), threading.active_count(), len(os.listdir("/proc/self/fd"))

    some(10)
    objects, threads, files = some(10)
    more_objects, more_threads, more_files = some(200)
    assert more_objects < objects + 100
    assert more_threads <= threads + 1
    assert more_files == files
