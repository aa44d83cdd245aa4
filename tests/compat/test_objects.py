"""What a change of one object of the HTTP API means for who sends it and who reads it, on the real model."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen.changes import Snapshot
from codegen.compare import compare
from codegen.fingerprint import model_json
from codegen.resolve import load_model

ROOT = Path(__file__).resolve().parents[2]
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def today() -> dict[str, Any]:
    """The model of today's spec as JSON values."""
    data: dict[str, Any] = json.loads(model_json(load_model(ROOT / "spec/protocol.yaml")))
    return data


def item(data: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in data["objects"] if entry["name"] == name)


def member(data: dict[str, Any], name: str) -> dict[str, Any]:
    owner, _, wanted = name.partition(".")
    return next(entry for entry in item(data, owner)["properties"] if entry["name"] == wanted)


def told(today: dict[str, Any], edit: Edit) -> set[tuple[str, str]]:
    """(rule, item) of every change that ``edit`` makes, without the version's own."""
    changed = copy.deepcopy(today)
    edit(changed)
    changes = compare(Snapshot("old.json", today, {}), Snapshot("new.json", changed, {}))
    return {(change.rule, change.item) for change in changes if not change.rule.startswith("version.")}


def drop(name: str) -> Edit:
    owner, _, wanted = name.partition(".")

    def edit(data: dict[str, Any]) -> None:
        properties = item(data, owner)["properties"]
        properties[:] = [entry for entry in properties if entry["name"] != wanted]

    return edit


def add(owner: str, *, optional: bool) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        properties = item(data, owner)["properties"]
        properties.append({**copy.deepcopy(properties[0]), "name": "fresh", "optional": optional})

    return edit


def change(name: str, **values: Any) -> Edit:
    return lambda data: member(data, name).update(values)


def retype(name: str, **values: Any) -> Edit:
    return lambda data: member(data, name)["type"].update(values)


SENT = {
    "a member goes": (drop("ContentPart.text"), "http.request-field-removed", "ContentPart.text"),
    "an optional one comes": (
        add("ContentPart", optional=True),
        "http.request-optional-added",
        "ContentPart.fresh",
    ),
    "a required one comes": (
        add("ContentPart", optional=False),
        "http.request-required-added",
        "ContentPart.fresh",
    ),
    "optional, then required": (
        change("StreamOptions.include_usage", optional=False),
        "http.request-optional-to-required",
        "StreamOptions.include_usage",
    ),
    "required, then optional": (
        change("ContentPart.text", optional=True),
        "http.request-required-to-optional",
        "ContentPart.text",
    ),
    "null is taken": (
        retype("ContentPart.text", nullable=True),
        "http.request-constraint-relaxed",
        "ContentPart.text",
    ),
    "null is refused": (
        retype("Message.content", nullable=False),
        "http.request-constraint-tightened",
        "Message.content",
    ),
    "another type": (
        retype("ContentPart.text", kind="integer"),
        "http.request-constraint-tightened",
        "ContentPart.text",
    ),
    "a word is refused": (
        retype("ContentPart.type", literals=["text"]),
        "http.request-value-removed",
        "ContentPart.type",
    ),
    "a word is taken": (
        retype("ContentPart.type", literals=["text", "input_text", "image"]),
        "http.request-value-added",
        "ContentPart.type",
    ),
}
READ = {
    "a member goes": (drop("Usage.total_tokens"), "http.response-field-removed", "Usage.total_tokens"),
    "a member comes": (add("Usage", optional=False), "http.response-field-added", "Usage.fresh"),
    "always, then sometimes": (
        change("Usage.total_tokens", optional=True),
        "http.response-required-to-optional",
        "Usage.total_tokens",
    ),
    "sometimes, then always": (
        change("AnswerMessage.reasoning_content", optional=False),
        "http.response-constraint-tightened",
        "AnswerMessage.reasoning_content",
    ),
    "null may come": (
        retype("Usage.total_tokens", nullable=True),
        "http.response-made-nullable",
        "Usage.total_tokens",
    ),
    "null never comes": (
        retype("AnswerMessage.content", nullable=False),
        "http.response-constraint-tightened",
        "AnswerMessage.content",
    ),
    "another type": (
        retype("Usage.total_tokens", kind="string"),
        "http.response-type-changed",
        "Usage.total_tokens",
    ),
    "one word, then any": (
        retype("ChatCompletion.object", kind="string", literals=[]),
        "http.response-constraint-relaxed",
        "ChatCompletion.object",
    ),
    "another word": (
        retype("ChatCompletion.object", literals=["chat.answer"]),
        "http.response-value-added",
        "ChatCompletion.object",
    ),
}


@pytest.mark.parametrize("case", SENT)
def test_an_object_that_clients_send(today: dict[str, Any], case: str) -> None:
    edit, rule, path = SENT[case]
    assert (rule, f"objects.{path}") in told(today, edit)


@pytest.mark.parametrize("case", READ)
def test_an_object_that_clients_read(today: dict[str, Any], case: str) -> None:
    edit, rule, path = READ[case]
    assert (rule, f"objects.{path}") in told(today, edit)


def test_forms_of_an_object_that_clients_send(today: dict[str, Any]) -> None:
    def fewer(data: dict[str, Any]) -> None:
        item(data, "Prompt")["any_of"].pop()

    def more(data: dict[str, Any]) -> None:
        forms = item(data, "Prompt")["any_of"]
        forms.append({**forms[0], "kind": "object"})

    assert told(today, fewer) == {("http.request-value-removed", "objects.Prompt")}
    assert told(today, more) == {("http.request-value-added", "objects.Prompt")}


def test_the_envelope_of_errors_is_judged_as_a_whole(today: dict[str, Any]) -> None:
    assert ("http.error-shape-changed", "objects.ErrorBody") in told(today, drop("ErrorBody.param"))


def test_errors_that_any_request_may_get(today: dict[str, Any]) -> None:
    def fewer(data: dict[str, Any]) -> None:
        data["http"]["errors"].remove("engine_error")

    def more(data: dict[str, Any]) -> None:
        data["http"]["errors"].append("queue_full")

    assert told(today, fewer) == {("http.error-code-removed", "http")}
    assert told(today, more) == {("http.error-code-added", "http")}


def test_a_path_that_loses_or_gets_the_key(today: dict[str, Any]) -> None:
    def locked(data: dict[str, Any]) -> None:
        data["http"]["open_paths"].clear()

    def opened(data: dict[str, Any]) -> None:
        data["http"]["open_paths"].append("/metrics")

    assert told(today, locked) == {("http.auth-added", "http")}
    assert told(today, opened) == {("http.auth-removed", "http")}
