"""One record and one log line per request; never the key, never a query string."""

from __future__ import annotations

import json
import logging

import pytest

from server.http import RedactKey
from server.http.accesslog import CANCELLED, ERROR, OK, REFUSED, AccessLog, AccessRecord

KEY = "sk-very-secret"


@pytest.fixture
def lines(caplog):
    """Text of the access lines so far."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records if record.name == "colibri.access"]


def test_outcomes(serve, request_bytes, eventually):
    site = serve(key=KEY)
    wanted = [
        (request_bytes("POST", "/v1/completions", b"", x_api_key=KEY), OK),
        (request_bytes("POST", "/v1/completions", b""), REFUSED),
        (request_bytes("POST", "/v1/nope", b"", x_api_key=KEY), REFUSED),
        (request_bytes("OPTIONS", "/v1/nope"), OK),
        (request_bytes("POST", "/broken", b"raise", x_api_key=KEY), ERROR),
        (request_bytes("POST", "/stream", b"", x_api_key=KEY), OK),
        (request_bytes("POST", "/broken", b"midway", x_api_key=KEY), ERROR),
    ]
    with site.connect() as client:
        for data, outcome in wanted:
            client.send(data)
            client.answer()
            assert site.record().outcome == outcome
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold", b"", x_api_key=KEY))
        site.held()
    assert site.record().outcome == CANCELLED
    with site.connect() as client:
        client.send(b"nonsense\r\n\r\n")
        client.answer()
    assert site.record().outcome == REFUSED
    assert site.begun == len(wanted) + 2


def test_record_of_a_stream(serve, request_bytes):
    site = serve()
    with site.connect() as client:
        client.send(request_bytes("POST", "/hold?key=value", b""))
        exchange = site.held()
        exchange.note(queue_wait_ms=12, prompt_tokens=3)
        stream = exchange.open_stream()
        stream.write(b"12345")
        exchange.note(completion_tokens=4)
        stream.finish(b"67")
        client.answer()
    record = site.record()
    assert (record.method, record.path, record.route, record.status) == ("POST", "/hold", "/hold", 200)
    assert (record.queue_wait_ms, record.prompt_tokens, record.completion_tokens) == (12, 3, 4)
    assert (record.bytes_sent, record.outcome, record.request_id) == (7, OK, exchange.request_id)
    with pytest.raises(TypeError):
        exchange.note(status=500)


def test_route_label_is_from_a_closed_set(serve, request_bytes):
    site = serve()
    with site.connect() as client:
        client.send(request_bytes("GET", "/v1/models/any/id") + request_bytes("GET", "/v1/models/%00"))
        client.send(request_bytes("GET", "/nope") + request_bytes("PUT", "/health"))
        routes = []
        for _ in range(4):
            client.answer("GET")
            routes.append(site.record().route)
    assert routes == ["/v1/models/{id}", "/v1/models/{id}", "", "/health"]


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_secret_in_any_line(serve, request_bytes, lines, caplog, as_json):
    site = serve(key=KEY, json_log=as_json)
    with site.connect() as client:
        for data in (
            request_bytes("GET", f"/v1/models/{KEY}?api_key={KEY}&token=hidden", x_api_key=KEY),
            request_bytes("GET", f"/{KEY}/x?token=hidden", authorization=f"Bearer {KEY}", x_request_id=KEY),
            request_bytes("POST", "/broken", b"raise", x_api_key=KEY),
            request_bytes("GET", f"/{KEY}", host="evil.example"),
            request_bytes("GET", f"/{KEY}", host=KEY),
        ):
            client.send(data)
            client.answer("GET")
            site.record()
        client.send(f"GET /{KEY} HTTP/1.1\r\nX: {KEY}\r\nBad\r\n\r\n".encode())
        client.answer("GET")
        site.record()
    assert len(lines()) == 6
    assert KEY not in caplog.text
    assert "hidden" not in caplog.text
    assert "path=/v1/models/[key]" in lines()[0] or json.loads(lines()[0])["path"] == "/v1/models/[key]"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_long_path_is_cut_after_the_key_is_out_so_that_no_part_of_it_stays(as_json):
    record = AccessRecord("req_1", "127.0.0.1", "GET", "/" + "x" * 190 + KEY + "y" * 50, status=404)
    record.close()
    line = AccessLog(as_json=as_json, key=KEY).line(record)
    assert "x" * 190 + "[key]yyyy" + ('"' if as_json else " ") in line


def test_json_line():
    record = AccessRecord(
        "req_1", "127.0.0.1", "POST", "/v1/completions", status=200, bytes_sent=9, queue_wait_ms=0
    )
    record.completion_tokens = 16
    record.close()
    line = AccessLog(as_json=True, key=None).line(record)
    fields = json.loads(line)
    assert list(fields) == [
        "time",
        "event",
        "request_id",
        "client",
        "method",
        "path",
        "status",
        "outcome",
        "duration_ms",
        "queue_wait_ms",
        "completion_tokens",
        "bytes",
    ]
    assert (fields["event"], fields["outcome"], fields["queue_wait_ms"], fields["status"]) == (
        "request",
        "ok",
        0,
        200,
    )


def test_text_line_is_one_line():
    record = AccessRecord("req_1", "127.0.0.1", "GET", "/caf\xe9", reason='said "no"\nto it')
    record.close()
    line = AccessLog(as_json=False, key=None).line(record)
    assert "\n" not in line
    assert 'path="/caf\\u00e9"' in line
    assert 'reason="said \\"no\\"\\nto it"' in line
    assert "status=0 outcome=cancelled" in line


def test_redaction_for_other_loggers():
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "key %s used", (KEY,), None)
    assert RedactKey(KEY).filter(record)
    assert record.getMessage() == "key [key] used"
    try:
        raise RuntimeError(f"no {KEY}")
    except RuntimeError as fault:
        failed = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed", (), (type(fault), fault, fault.__traceback__)
        )
    assert RedactKey(KEY).filter(failed)
    shown = logging.Formatter().format(failed)
    assert KEY not in shown
    assert "RuntimeError: no [key]" in shown
