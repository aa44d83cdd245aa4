"""Located tree → resolved :class:`~codegen.model.Model`.

The second floor of validation: references, defaults and derived facts. Guarantees: a model is returned only
if the whole file is free of errors; otherwise :class:`~codegen.findings.SpecRejected` carries every finding
of every floor at once.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from . import fingerprint, resolve_families, resolve_http, resolve_states, resolve_wire, values
from .findings import Findings
from .model import Limit, Model, Protocol, Reserved
from .notation import SPEC
from .scope import Frozen, Scope, as_scalar, as_tree, item_keys, optional_text, text_of, texts_of
from .shape import check_spec
from .source import Entry, load_file


def load_model(path: Path, *, name: str | None = None, findings: Findings | None = None) -> Model:
    """Read, check and resolve the spec at ``path``; locations call the file ``name`` (default: the path).

    Warnings are added to ``findings``. Raises :class:`SpecRejected` with all findings if any is an error.
    """
    found = Findings() if findings is None else findings
    shown = path.as_posix() if name is None else name
    tree = load_file(path, found, shown)
    if tree is None:
        found.raise_if_errors()
        raise AssertionError("no tree without a finding")
    shaped = check_spec(tree, SPEC, found)
    model = _resolve(Scope(found, shaped.tree, shaped.dropped), shown)
    found.raise_if_errors()
    if model is None:
        raise AssertionError("no model without a finding")
    return model


def _resolve(scope: Scope, source: str) -> Model | None:
    scope.numbers["limits"] = _numbers(scope, "limits", "value")
    scope.numbers["settings"] = _numbers(scope, "settings", "default")
    limits = tuple(_limit(scope, entry) for entry in scope.section("limits"))
    types = resolve_wire.resolve_types(scope)
    capabilities = resolve_families.resolve_capabilities(scope)
    handshake = resolve_wire.resolve_handshake(scope, types)
    protocol = _protocol(scope)
    commands = resolve_wire.resolve_messages(scope, "commands", "command", types)
    frames = resolve_wire.resolve_messages(scope, "frames", "frame", types)
    launch = resolve_wire.resolve_launch(scope, types)
    request, connection = (resolve_states.resolve_states(scope, name) for name in ("request", "connection"))
    wire_errors = resolve_wire.resolve_wire_errors(scope)
    markup = resolve_families.resolve_markup(scope)
    families = resolve_families.resolve_families(scope, capabilities, markup)
    settings = resolve_http.resolve_settings(scope)
    endpoints = resolve_http.resolve_endpoints(scope)
    objects = resolve_http.resolve_objects(scope)
    http = resolve_http.resolve_http(scope)
    if handshake is None or protocol is None or scope.findings.has_errors:
        return None
    model = Model(
        protocol=protocol,
        framing=resolve_wire.resolve_framing(scope),
        limits=limits,
        types=tuple(types.values()),
        launch=launch,
        handshake=handshake,
        commands=commands,
        frames=frames,
        request=request,
        connection=connection,
        wire_errors=wire_errors,
        api_errors=resolve_http.resolve_api_errors(scope),
        capabilities=capabilities,
        families=families,
        markup=markup,
        settings=settings,
        http=http,
        faults=resolve_wire.resolve_faults(scope),
        hooks=resolve_http.resolve_hooks(scope),
        endpoints=endpoints,
        objects=objects,
        reserved=_reserved(scope),
        source=source,
        fingerprint_base="",
        fingerprint_full="",
    )
    return dataclasses.replace(
        model,
        fingerprint_base=fingerprint.base_digest(model),
        fingerprint_full=fingerprint.full_digest(model),
    )


def _numbers(scope: Scope, section: str, key: str) -> dict[str, int | float]:
    """The items of a section that are numbers, for ``$section.name``."""
    found: dict[str, int | float] = {}
    for entry in scope.section(section):
        number = values.parse_number(text_of(as_tree(entry.value), key))
        if number is not None:
            found[entry.key.text] = number
    return found


def _limit(scope: Scope, entry: Entry) -> Limit:
    tree, name = as_tree(entry.value), entry.key.text
    error = as_scalar(tree.get("error"))
    if error is not None:
        scope.expect(error, scope.names("api_errors"), "api errors", f"limit {name}")
    return Limit(
        **item_keys(entry, f"limits.{name}"),
        value=int(scope.numbers["limits"][name]),
        unit=text_of(tree, "unit"),
        enforced=texts_of(tree, "enforced"),
        error=optional_text(tree, "error"),
    )


def _protocol(scope: Scope) -> Protocol | None:
    entry = scope.tree.entry("protocol")
    if entry is None:
        return None
    tree = as_tree(entry.value)
    keys = item_keys(entry, "protocol")
    keys["name"] = text_of(tree, "name")
    sections = {
        part.key.text: text_of(as_tree(tree.get("sections")), part.key.text)
        for part in as_tree(tree.get("sections"))
    }
    return Protocol(
        **keys,
        version=text_of(tree, "version"),
        promise=text_of(tree, "promise", "full"),
        unknown_frames=text_of(tree, "unknown_frames", "error"),
        unknown_keys=text_of(tree, "unknown_keys", "error"),
        unknown_errors=text_of(tree, "unknown_errors", "ignore"),
        trailing_words=text_of(tree, "trailing_words", "error"),
        unknown_fields=text_of(tree, "unknown_fields", "ignore"),
        sections=Frozen(sections),
    )


def _reserved(scope: Scope) -> Reserved:
    tree = scope.section("reserved")
    return Reserved(texts_of(tree, "frames"), texts_of(tree, "keys"), texts_of(tree, "error_codes"))
