"""Numbers larger than any machine's: each field says by itself whether they are a fault (http.md §6)."""

from __future__ import annotations

from typing import Any

import pytest

PATHS = {
    "/v1/completions": b'"prompt":"hi"',
    "/v1/chat/completions": b'"messages":[{"role":"user","content":"hi"}]',
    "/v1/messages": b'"max_tokens":8,"messages":[{"role":"user","content":"hi"}]',
}
LONG = b"1" * 5001


def post(gateway: Any, path: str, member: bytes) -> Any:
    return gateway.post(path, b'{"model":"test-model",' + PATHS[path] + b"," + member + b"}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("number", [b"1e400", b"-1e400", LONG, b"-" + LONG])
@pytest.mark.parametrize("field", ["temperature", "top_p", "cache_slot", "stream"])
def test_a_field_with_bounds_is_named(gateway: Any, path: str, number: bytes, field: str) -> None:
    gateway.plan()
    answer = post(gateway, path, b'"%s":%s' % (field.encode(), number))
    assert answer.status == 400
    said = answer.json["error"]
    assert said["message"].startswith(f"{field} must be ")
    assert said.get("param", field) == field  # the Anthropic form has none
    assert gateway.submits() == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("number", [b"1e400", b"-1e400", LONG])
@pytest.mark.parametrize("field", ["seed", "user", "metadata", "of_nobody"])
def test_a_field_that_takes_anything_or_nobody_reads_takes_it(
    gateway: Any, path: str, number: bytes, field: str
) -> None:
    gateway.plan()
    assert post(gateway, path, b'"%s":%s' % (field.encode(), number)).status == 200
    assert len(gateway.submits()) == 1


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("digits", [4300, 4301, 5001])
def test_a_token_limit_of_any_length_is_lowered_to_the_servers(gateway: Any, path: str, digits: int) -> None:
    gateway.plan()
    assert post(gateway, path, b'"max_tokens":' + b"1" * digits).status == 200
    assert gateway.submits()[0].split(b" ")[3] == b"16"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("field", ["tools", "metadata"])
@pytest.mark.parametrize("number", [b"1e400", LONG])
def test_within_a_list_or_an_object_it_is_a_fault_of_the_body(
    gateway: Any, path: str, field: str, number: bytes
) -> None:
    gateway.plan()
    answer = post(gateway, path, b'"%s":[{"a":%s}]' % (field.encode(), number))
    assert answer.status == 400
    assert "a number is out of range" in answer.json["error"]["message"]
    assert answer.json["error"].get("param") is None
    assert gateway.submits() == []
