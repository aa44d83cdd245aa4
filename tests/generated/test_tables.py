"""The small modules: settings, families, states, HTTP facts, and what may be imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

import generated
from generated import families, fields, fingerprint, http, launch, settings, states, words

# ---------------------------------------------------------------- settings


def parse(name: str, text: str) -> settings.Value:
    return settings.SETTINGS[name].parse(text)


def test_settings_are_parsed_by_kind() -> None:
    assert parse("port", "0") == 0
    assert parse("port", " 65535 ") == 65535
    assert parse("queue_timeout", "0.5") == 0.5
    assert parse("queue_timeout", "10") == 10.0
    assert parse("host", "::1") == "::1"
    assert parse("log_format", "json") == "json"
    assert parse("arch", "auto") == "auto"
    assert parse("arch", "glm") == "glm"
    assert parse("allowed_host", "a, b ,,c") == ("a", "b", "c")
    assert parse("allowed_host", "") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [(text, True) for text in ("1", "true", "YES", "on")]
    + [(text, False) for text in ("0", "", "Off", "no")],
)
def test_switches(text: str, expected: bool) -> None:
    assert parse("allow_insecure_bind", text) is expected


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("port", "65536", "--port: '65536' is out of range, 0 to 65535 port"),
        ("port", "8_000", "--port: '8_000' is not a whole number (port)"),
        ("port", "80.0", "--port: '80.0' is not a whole number (port)"),
        ("port", "", "--port: '' is not a whole number (port)"),
        ("kv_slots", "513", "--kv-slots: '513' is out of range, 1 to 512 slots"),
        ("ready_timeout", "nan", "--ready-timeout / COLI_READY_TIMEOUT: 'nan' is not a number (seconds)"),
        ("idle_timeout", "0", "COLI_IDLE_TIMEOUT: '0' is out of range, 0.01 to 86400 seconds"),
        ("log_format", "xml", "--log-format: 'xml' is not one of text, json"),
        ("no_restart", "maybe", "--no-restart: 'maybe' is neither 1 nor 0"),
        ("read_deadline", "9" * 500, f"COLI_READ_DEADLINE: '{'9' * 40}' is not a number (seconds)"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_one_line_that_names_it(name: str, text: str, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(name, text)
    assert str(caught.value) == says


def test_every_default_is_in_its_own_range() -> None:
    for setting in settings.SETTINGS.values():
        if isinstance(setting.default, int | float) and not isinstance(setting.default, bool):
            assert setting.low is not None
            assert setting.high is not None
            assert setting.low <= setting.default <= setting.high


# ---------------------------------------------------------------- families


@pytest.mark.parametrize(
    ("model_type", "family"),
    [
        ("glm", "glm"), ("glm4_moe", "glm"), ("chatglm", "glm"), ("llama", "llama"), ("qwen2", "qwen2"),
        ("qwen3", "qwen3"), ("qwen3_moe", "qwen3_moe"), ("olmoe", "olmoe"), ("kimi_k2", "kimi"),
        ("deepseek_v4", "deepseek_v4"), ("inkling", "inkling"),
    ],
)  # fmt: skip
def test_the_family_of_a_model_type(model_type: str, family: str) -> None:
    found = families.family_for_model_type(model_type)
    assert found is families.FAMILIES[family]


@pytest.mark.parametrize("model_type", ["", "GLM", "qwen", "gpt2", "llama4", "my_glm"])
def test_an_unknown_model_type_has_no_family(model_type: str) -> None:
    assert families.family_for_model_type(model_type) is None


def test_what_families_can_is_a_capability() -> None:
    for family in families.FAMILIES.values():
        assert family.can <= families.CAPABILITIES
    assert families.FAMILIES["glm"].can == families.CAPABILITIES


# ---------------------------------------------------------------- launch


def test_the_c_header_names_the_variables_of_the_launch_alike() -> None:
    header = (Path(generated.__file__).parent / "c/colibri_wire.h").read_text(encoding="utf-8")
    named = dict(re.findall(r'^#define COLIBRI_ENV_(\w+) "(\w+)"$', header, re.MULTILINE))
    assert named == {
        name: value for name, value in vars(launch).items() if isinstance(value, str) and name.isupper()
    }
    assert set(launch.FIXED) <= set(named.values())


# ---------------------------------------------------------------- words


def test_words_of_the_objects_are_the_words_the_document_has() -> None:
    """However the module names them: every const and enum of the OpenAPI document, and no other."""
    document = json.loads((Path(generated.__file__).parent / "openapi.json").read_text(encoding="utf-8"))
    shapes = {
        name: shape for name, shape in document["components"]["schemas"].items() if "Request" not in name
    }
    promised = sorted(literals(shapes))
    given = [(value,) for name, value in vars(words).items() if isinstance(value, str) and name.isupper()]
    enums = [kind for kind in vars(words).values() if isinstance(kind, type) and issubclass(kind, StrEnum)]
    given += [tuple(kind) for kind in [*enums, http.HealthStatus] if kind is not StrEnum]
    assert sorted(given) == promised


def literals(value: object) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        if isinstance(value.get("const"), str):
            yield (value["const"],)
        if isinstance(value.get("enum"), list):
            yield tuple(value["enum"])
        for part in value.values():
            yield from literals(part)
    elif isinstance(value, list):
        for part in value:
            yield from literals(part)


# ---------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("table", "event"),
    [(states.REQUEST, states.RequestEvent), (states.CONNECTION, states.ConnectionEvent)],
)
def test_the_events_of_a_table_are_those_of_its_enum(table: dict, event: type[StrEnum]) -> None:
    named = [found for transitions in table.values() for found in transitions]
    assert set(named) == set(event)
    assert all(type(found) is event for found in named)


@pytest.mark.parametrize(
    ("table", "initial", "terminal"),
    [
        (states.REQUEST, states.REQUEST_INITIAL, states.REQUEST_TERMINAL),
        (states.CONNECTION, states.CONNECTION_INITIAL, states.CONNECTION_TERMINAL),
    ],
)
def test_every_state_is_reachable_and_can_end(table: dict, initial: str, terminal: frozenset[str]) -> None:
    seen, todo = set(), [initial]
    while todo:
        state = todo.pop()
        if state not in seen:
            seen.add(state)
            todo += table[state].values()
    assert seen == set(table)
    assert terminal == {state for state, events in table.items() if not events}
    for state in set(table) - terminal:
        ends, todo = set(), [state]
        while todo:
            current = todo.pop()
            if current not in ends:
                ends.add(current)
                todo += table[current].values()
        assert ends & terminal


# ---------------------------------------------------------------- HTTP facts


def test_every_endpoint_is_a_route() -> None:
    assert [f"{route.method} {route.path}" for route in http.ROUTES] == list(fields.ENDPOINTS)
    assert len(set(http.ROUTES)) == len(http.ROUTES)


def test_fingerprints_are_digests() -> None:
    for digest in (fingerprint.BASE, fingerprint.FULL):
        assert len(digest) == 64
        assert set(digest) <= set("0123456789abcdef")
    assert fingerprint.BASE != fingerprint.FULL


# ---------------------------------------------------------------- imports

MODULES = [
    path.stem for path in sorted(Path(generated.__file__).parent.glob("*.py")) if path.stem != "__init__"
]


def test_the_package_imports_only_the_standard_library() -> None:
    """In an interpreter that has nothing else: -I -S leaves out site-packages."""
    root = Path(generated.__file__).parent.parent
    code = f"import sys; sys.path.insert(0, {str(root)!r})\n" + "\n".join(
        f"import generated.{module}" for module in MODULES
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
