"""The conversation's slot (http.md §12; B105)."""

from __future__ import annotations

import hashlib
import json

from server.chat import conversation_slot

SYSTEM = {"role": "system", "content": "S"}
USER = {"role": "user", "content": "Hi"}
MANY = 2**63


def test_the_slot_is_the_stated_hash_of_the_opening() -> None:
    opening = [SYSTEM, USER]
    digest = hashlib.sha1(json.dumps(opening, sort_keys=True).encode()).digest()
    assert conversation_slot(opening, MANY) == int.from_bytes(digest[:8], "big") % MANY
    assert conversation_slot(opening, 1) == 0


def test_later_turns_keep_the_slot_and_another_opening_changes_it() -> None:
    later = [SYSTEM, USER, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    assert conversation_slot(later, MANY) == conversation_slot([SYSTEM, USER], MANY)
    assert conversation_slot([SYSTEM, {**USER, "content": "Ho"}], MANY) != conversation_slot(
        [SYSTEM, USER], MANY
    )
    assert conversation_slot([USER], MANY) != conversation_slot([SYSTEM, USER], MANY)


def test_the_order_of_keys_does_not_matter() -> None:
    assert conversation_slot([{"content": "Hi", "role": "user"}], MANY) == conversation_slot([USER], MANY)


def test_b105_lines_that_change_every_request_are_left_out() -> None:
    def system(content: object) -> list[object]:
        return [{"role": "system", "content": content}, USER]

    line = "x-anthropic-billing-header: v=1; cch={};"
    plain = conversation_slot([USER], MANY)
    assert conversation_slot(system(line.format("ab12")), MANY) == plain
    assert conversation_slot(system([{"type": "text", "text": line.format("cd34")}]), MANY) == plain
    kept = conversation_slot(system("You help."), MANY)
    assert conversation_slot(system(line.format("1") + "\nYou help."), MANY) == kept
    block = [{"type": "text", "text": "You help."}]
    with_line = [{"type": "text", "text": line.format("2")}, *block]
    assert conversation_slot(system(with_line), MANY) == conversation_slot(system(block), MANY)
    assert conversation_slot([{"role": "user", "content": line}], MANY) != plain


def test_values_of_any_shape_have_a_slot() -> None:
    assert 0 <= conversation_slot([5, None, {"role": ["user"]}, {"role": "system", "content": 5}], 3) < 3
    assert conversation_slot([], 7) in range(7)
