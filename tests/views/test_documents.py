"""The generated documents are what they claim to be: OpenAPI, editor schema, diagrams, tables."""

from __future__ import annotations

import copy
import json
import xml.etree.ElementTree as ElementTree
from functools import lru_cache
from pathlib import Path

import jsonschema
import pytest
import yaml
from openapi_spec_validator import validate

from codegen.model import Model
from codegen.resolve import load_model

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "generated"


@lru_cache(maxsize=1)
def model() -> Model:
    return load_model(ROOT / "spec" / "protocol.yaml")


@lru_cache(maxsize=1)
def openapi() -> dict:
    return json.loads((GENERATED / "openapi.json").read_text(encoding="utf-8"))


def test_openapi_document_is_valid_3_1():
    validate(openapi())
    assert openapi()["openapi"].startswith("3.1")


def test_openapi_has_every_endpoint_and_no_other():
    documented = {f"{method.upper()} {path}" for path, item in openapi()["paths"].items() for method in item}
    assert documented == {endpoint.name for endpoint in model().endpoints}


def test_openapi_has_every_error_status_of_an_endpoint():
    statuses = {error.name: str(error.status) for error in model().api_errors}
    for endpoint in model().endpoints:
        responses = openapi()["paths"][endpoint.route][endpoint.method.lower()]["responses"]
        missing = {statuses[name] for name in (*endpoint.errors, *model().http.errors)} - set(responses)
        assert not missing, endpoint.name


def _request_bodies():
    for endpoint in model().endpoints:
        for example in endpoint.examples:
            yield pytest.param(endpoint, example, id=f"{endpoint.name} {example.title}")


def _resolved(schema: dict) -> dict:
    return {**schema, "components": openapi()["components"]}


@pytest.mark.parametrize(("endpoint", "example"), list(_request_bodies()))
def test_openapi_examples_fit_their_schema(endpoint, example):
    operation = openapi()["paths"][endpoint.route][endpoint.method.lower()]
    content = operation["requestBody"]["content"]["application/json"]
    body = content["examples"][example.title]["value"]
    jsonschema.Draft202012Validator(_resolved(content["schema"])).validate(body)
    broken = {key: value for key, value in body.items() if key != "model"}
    assert not jsonschema.Draft202012Validator(_resolved(content["schema"])).is_valid(broken)


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"logprobs": 32}, True),
        ({"logprobs": 33}, False),
        ({"logprobs": False}, True),
        ({"logprobs": True}, False),
        ({"echo": None}, False),
        ({"temperature": 2}, True),
        ({"temperature": 2.1}, False),
        ({"top_p": 0}, False),
        ({"stop": ["a", "b", "c", "d"]}, True),
        ({"stop": ["a", "b", "c", "d", "e"]}, False),
        ({"stop": ""}, False),
        ({"n": 2}, False),
        ({"n": None}, True),
        ({"group_score": True}, False),
        ({"frequency_penalty": 0}, True),
        ({"frequency_penalty": 0.5}, False),
        ({"seed": "anything"}, True),
        ({"prompt": [[1, 2], [3]]}, True),
        ({"prompt": {"a": 1}}, False),
    ],
)
def test_openapi_schema_takes_what_the_contract_takes(body, fits):
    schema = _resolved(openapi()["components"]["schemas"]["CompletionsRequest"])
    whole = {"model": "m", "prompt": "p", **body}
    assert jsonschema.Draft202012Validator(schema).is_valid(whole) is fits


@lru_cache(maxsize=1)
def editor_schema() -> dict:
    return json.loads((GENERATED / "protocol.schema.json").read_text(encoding="utf-8"))


def spec_as_an_editor_sees_it() -> dict:
    return yaml.safe_load((ROOT / "spec" / "protocol.yaml").read_text(encoding="utf-8"))


def test_editor_schema_takes_the_spec():
    jsonschema.Draft202012Validator.check_schema(editor_schema())
    jsonschema.Draft202012Validator(editor_schema()).validate(spec_as_an_editor_sees_it())


@pytest.mark.parametrize(
    "path", [("limits", "top_k"), ("frames", "DATA"), ("api_errors", "queue_full"), ("settings", "port")]
)
def test_editor_schema_refuses_a_misspelled_key(path):
    spec = copy.deepcopy(spec_as_an_editor_sees_it())
    section, name = path
    spec[section][name]["docc"] = spec[section][name].pop("doc")
    errors = list(jsonschema.Draft202012Validator(editor_schema()).iter_errors(spec))
    assert any(
        "docc" in error.message and list(error.absolute_path)[:2] == [section, name] for error in errors
    )


def test_the_spec_names_its_editor_schema():
    first = (ROOT / "spec" / "protocol.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../generated/protocol.schema.json"


def _svg_texts(name: str) -> list[str]:
    tree = ElementTree.fromstring((ROOT / "docs" / "diagrams" / name).read_text(encoding="utf-8"))
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    return [element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_every_message_has_a_railroad_with_all_its_fields():
    for message in (*model().commands, *model().frames):
        texts = _svg_texts(f"{message.name.lower()}.svg")
        assert message.name in texts
        assert {field.name for field in message.fields} <= set(texts), message.name


@pytest.mark.parametrize("name", ["request", "connection"])
def test_state_diagrams_show_every_state_and_every_event(name):
    table = getattr(model(), name)
    written = " ".join(_svg_texts(f"{name}.svg"))
    for state in table.states:
        assert state.name in written
        for event in state.transitions:
            assert event in written


@pytest.mark.parametrize(
    ("page", "groups"),
    [
        ("protocol.md", ("limits", "commands", "frames")),
        ("api.md", ("api_errors", "settings", "families", "endpoints")),
    ],
)
def test_reference_pages_name_every_item(page, groups):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for group in groups:
        for item in getattr(model(), group):
            shown = (item.flag or item.env) if group == "settings" else item.name
            assert shown is None or shown in text, f"{group}.{item.name}"


def test_reference_page_shows_layout_and_example_bytes_of_every_message():
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    for message in (*model().commands, *model().frames):
        section = text.split(f"### {message.name}\n")[1].split("\n### ")[0]
        assert message.layout.text in section
        assert section.count("\n| `" + message.name) + section.count("| `\\x01") >= len(message.examples)
