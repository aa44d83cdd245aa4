"""Every promise can be followed in both directions: item of the spec, row of a reference page, test.

An anchor of `docs/api.md` or `docs/protocol.md` is the path of its item; each item has one, and no anchor is
left without an item. Each frame, command, field, limit and error is named by a test beside the pins,
which hold everything.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import pytest

from codegen.model import Model
from codegen.resolve import load_model
from codegen.views.docs_api import field_path
from codegen.views.markdown import anchor_name

ROOT = Path(__file__).parents[2]

# items whose tests show the promise from outside and so never spell its name
TESTED_BY = {
    "api_errors.invalid_api_key": "http/test_gate.py::test_every_route_needs_the_key_but_the_open_ones",
    "api_errors.malformed_http": "http/test_framing.py::test_bad_chunking",
    "limits.body_bytes": "http/test_bodies.py::test_too_large_by_its_head_alone",
    "limits.header_bytes": "http/test_framing.py::test_doubtful_head",
    "limits.profile_turns": "api/test_pages.py::test_section_5_profile_and_experts_show_what_the_engine_said",
    "limits.template_seconds": "chat/test_sandbox.py::test_a_template_that_does_not_end_is_stopped",
    "limits.client_request_id_length": "http/test_gate.py::test_client_request_id",
    "limits.disconnect_notice_ms": "http/test_disconnect.py::test_a_departure_is_noticed_within_the_limit",
    "limits.listen_backlog": "http/test_deadlines.py::test_two_hundred_clients_in_the_same_instant",
}


@lru_cache(maxsize=1)
def model() -> Model:
    return load_model(ROOT / "spec" / "protocol.yaml")


def documented() -> dict[str, set[str]]:
    """Page -> paths of all items that must have a row on it."""
    messages = [model().handshake.message, *model().commands, *model().frames]
    wire = [*messages, *model().limits, *model().wire_errors, *model().launch.environment]
    wire += [part for message in messages for part in (*message.fields, *message.payloads, *message.keys)]
    wire += [*model().request.states, *model().connection.states]
    http = [*model().endpoints, *model().api_errors, *model().settings, *model().families]
    http += [*model().capabilities, *model().markup]
    http += [marker for kind in model().markup for marker in kind.markers]
    fields = {field_path(endpoint, field) for endpoint in model().endpoints for field in endpoint.fields}
    return {
        "protocol.md": {item.path for item in wire},
        "api.md": {item.path for item in http} | fields,
    }


@pytest.mark.parametrize("page", ["protocol.md", "api.md"])
def test_rows_and_items_are_the_same_set(page):
    anchors = re.findall(r'<a id="([^"]+)"></a>', (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(anchors) == len(set(anchors))
    assert set(anchors) == {anchor_name(path) for path in documented()[page]}


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_into_the_reference_pages_lead_to_an_item(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for target, name in re.findall(r"\]\(([a-z]*\.?m?d?)#([^)]+)\)", text):
        whole = (ROOT / "docs" / (target or page)).read_text(encoding="utf-8")
        headings = {
            re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
            for heading in re.findall(r"^#+ (.+)$", whole, re.MULTILINE)
        }
        known = headings | {
            found for pair in re.findall(r'\{#([^}]+)\}|<a id="([^"]+)"', whole) for found in pair
        }
        assert name in known, f"{page} links to {target}#{name}"


def test_tests_that_name_no_item_exist():
    for path, test in TESTED_BY.items():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / "server" / file).read_text(encoding="utf-8"), path


@lru_cache(maxsize=1)
def all_tests() -> str:
    """All tests in one text, without the pins and without this file."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return "\n".join(
        path.read_text(encoding="utf-8")
        for path in files
        if "pins" not in path.parts and path != Path(__file__)
    )


def is_named(path: str, *names: str | None) -> bool:
    """Whether a test names the item by one of its names."""
    spelled = "|".join(re.escape(name) for name in names if name)
    found = re.search(rf"(?<![A-Za-z_])(?:{spelled})(?![A-Za-z_])", all_tests())
    return path in TESTED_BY or found is not None


def test_every_api_error_is_named_by_a_test():
    errors = model().api_errors
    assert [error.path for error in errors if not is_named(error.path, error.name, error.code)] == []


def test_every_request_field_is_named_by_a_test():
    fields = [field for endpoint in model().endpoints for field in endpoint.fields]
    assert [field.path for field in fields if not is_named(field.path, field.name)] == []


def test_every_limit_and_every_wire_error_is_named_by_a_test():
    limits = [limit for limit in model().limits if not is_named(limit.path, limit.name, limit.name.upper())]
    errors = [
        error for error in model().wire_errors if error.on_wire and not is_named(error.path, error.name)
    ]
    assert [item.path for item in (*limits, *errors)] == []


def test_every_message_and_each_of_its_words_is_in_the_vectors():
    """The vectors are read by the Python and by the C tests; each gives the values of what it holds."""
    for group, messages in (("commands", model().commands), ("frames", model().frames)):
        vectors = json.loads((ROOT / "generated" / "vectors" / f"{group}.json").read_text(encoding="utf-8"))
        text = json.dumps(vectors)
        for message in messages:
            assert f'"{message.name}"' in text, message.path
            for part in (*message.fields, *message.keys):
                assert f'"{part.name}"' in text, part.path
