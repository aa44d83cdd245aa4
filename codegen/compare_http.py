"""What the HTTP half of two models has changed, judged for old clients against a new server; families and
settings too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from .changes import Comparison, Data, by_name, matched
from .compat import Effect

STATUSES_CLIENTS_BRANCH_ON: Final = frozenset({401, 403, 404, 409, 413, 429})


def _endpoints(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["endpoints"], found.new.data["endpoints"])
    routes = {endpoint["route"] for endpoint in found.new.data["endpoints"]}
    for endpoint in removed:
        gone = endpoint["route"] not in routes
        rule = "http.route-removed" if gone else "http.method-removed"
        found.add(rule, endpoint["path"], "gone", removed=True)
    for endpoint in added:
        found.add("http.route-added", endpoint["path"], "new")
    for old, new in pairs:
        _endpoint(found, old, new)


def _endpoint(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    _request(found, old, new)
    if old["orders"] != new["orders"]:
        _orders(found, old, new)
    plain = {"text", "html"}
    if old["answer"] != new["answer"]:
        media = bool({old["answer"], new["answer"]} & plain)
        rule = "http.media-type-removed" if media else "http.response-type-changed"
        found.add(rule, path, f"answer: {old['answer']} → {new['answer']}")
    if old["dialect"] != new["dialect"]:
        found.add("http.error-shape-changed", path, f"errors in the envelope of {new['dialect']}")
    for event in old["stream"]:
        if event not in new["stream"]:
            found.add("http.stream-event-removed", path, f"{event} is not streamed any more")
    for event in new["stream"]:
        if event not in old["stream"]:
            found.add("http.stream-event-added", path, f"{event} is streamed")
    for error in old["errors"]:
        if error not in new["errors"]:
            found.add("http.error-code-removed", path, f"{error} is not answered any more")
    for error in new["errors"]:
        if error not in old["errors"]:
            found.add("http.error-code-added", path, f"{error} may be answered")


def _orders(found: Comparison, old: Data, new: Data) -> None:
    """Report checks of the baseline that changed places, and steps of the flow that came or went."""
    for name, steps in old["orders"].items():
        now = [_step(step) for step in new["orders"].get(name, [])]
        kept = [_step(step) for step in steps if _step(step) in now]
        if kept != [step for step in now if step in kept]:
            found.add("http.request-order-changed", new["path"], f"order {name}: checks changed places")
        gone = [_step(step) for step in steps if step["is_hook"] and _step(step) not in now]
        come = [
            step for step in now if step.startswith("@") and step not in [_step(known) for known in steps]
        ]
        if gone or come:
            found.add("http.request-order-changed", new["path"], f"order {name}: steps {gone} → {come}")


def _step(step: Data) -> str:
    return ("@" if step["is_hook"] else "") + str(step["name"])


def _request(found: Comparison, old: Data, new: Data) -> None:
    removed, added, pairs = matched(old["fields"], new["fields"])
    refused = found.old.data["protocol"]["unknown_fields"] == "error"
    for field in removed:
        override = Effect.BREAKING if refused else Effect.DANGEROUS
        override = Effect.SAFE if field["no_effect"] else override
        found.add(
            "http.request-field-removed", field["path"], "the field is gone", removed=True, override=override
        )
    for field in added:
        rule = "http.request-required-added" if field["required"] else "http.request-optional-added"
        found.add(rule, field["path"], "a new field")
    for before, after in pairs:
        _field(found, before, after)


def _field(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    if old["required"] != new["required"]:
        rule = "http.request-optional-to-required" if new["required"] else "http.request-required-to-optional"
        found.add(rule, path, "required now" if new["required"] else "optional now")
    if old["kind"] != new["kind"] or old["shape"] != new["shape"]:
        rule = (
            "http.request-constraint-relaxed" if new["kind"] == "any" else "http.request-constraint-tightened"
        )
        found.add(rule, path, f"{old['kind']} → {new['kind']}")
    else:
        _values(found, old, new)
        _bounds(found, old, new)
    if (old["default"], old["default_setting"]) != (new["default"], new["default_setting"]):
        before, after = old["default_setting"] or old["default"], new["default_setting"] or new["default"]
        found.add("http.request-default-changed", path, f"{before} → {after}")
    if old["clamp_setting"] is None and new["clamp_setting"] is not None:
        found.add("limit.reject-to-truncate", path, f"lowered to {new['clamp_setting']} instead of refused")
    elif old["clamp_setting"] != new["clamp_setting"]:
        found.add(
            "http.request-constraint-tightened",
            path,
            f"clamp: {old['clamp_setting']} → {new['clamp_setting']}",
        )
    for key in ("error", "otherwise", "refuse"):
        if old[key] != new[key]:
            found.add("http.error-mapping-changed", path, f"{key}: {old[key]} → {new[key]}")


def _values(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    for key in ("accepted", "off"):
        for value in old[key]:
            if not _holds(new[key], value):
                found.add("http.request-value-removed", path, f"{value!r} is not taken any more")
        for value in new[key]:
            if not _holds(old[key], value):
                found.add("http.request-value-added", path, f"{value!r} is taken")


def _holds(values: list[Any], value: Any) -> bool:
    """Whether a list holds a JSON value; false is not 0."""
    return any(type(known) is type(value) and known == value for known in values)


def _bounds(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    limit = old["high_limit"]
    by_limit = limit is not None and limit == new["high_limit"]
    sides = [("low", -1), ("above", -1)] if by_limit else [("low", -1), ("above", -1), ("high", 1)]
    for key, side in sides:
        before, after = old[key], new[key]
        if before == after:
            continue
        relaxed = after is None or (before is not None and (after > before if side > 0 else after < before))
        rule = "http.request-constraint-relaxed" if relaxed else "http.request-constraint-tightened"
        found.add(rule, path, f"{key}: {before} → {after}")
    stricter = {"null_refused": True, "single_precision": True, "empty_is_absent": False, "no_effect": False}
    for key, tight in stricter.items():
        if old[key] != new[key]:
            rule = (
                "http.request-constraint-tightened"
                if new[key] == tight
                else "http.request-constraint-relaxed"
            )
            found.add(rule, path, f"{key}: {old[key]} → {new[key]}")
    for key in ("needs", "only_with", "loses_to"):
        if old[key] != new[key]:
            rule = (
                "http.request-constraint-relaxed" if new[key] is None else "http.request-constraint-tightened"
            )
            found.add(rule, path, f"{key}: {old[key]} → {new[key]}")
    for key in ("zero_with", "alternative", "neutral"):
        if old[key] != new[key]:
            rule = (
                "http.request-constraint-relaxed" if old[key] is None else "http.request-constraint-tightened"
            )
            found.add(rule, path, f"{key}: {old[key]} → {new[key]}")


def _objects(found: Comparison) -> None:
    answers, requests = _sides(found.old.data)
    for old, new in matched(found.old.data["objects"], found.new.data["objects"])[2]:
        envelope = old["name"] in ("Error", "ErrorBody", "AnthropicError", "AnthropicErrorBody")
        if envelope and (old["properties"], old["any_of"]) != (new["properties"], new["any_of"]):
            found.add("http.error-shape-changed", new["path"], "the envelope is another one")
            continue
        for side in ("response", "request"):
            if old["name"] in (answers if side == "response" else requests):
                _properties(found, old, new, side)


def _sides(data: Data) -> tuple[set[str], set[str]]:
    """Names of the objects that answers lead to, and of those that requests lead to."""
    objects = by_name(data["objects"])
    answers = [name for endpoint in data["endpoints"] for name in (endpoint["answer"], *endpoint["stream"])]
    schemas = [str(field["schema"] or "") for endpoint in data["endpoints"] for field in endpoint["fields"]]
    requests = [name for name in objects for schema in schemas if name in schema.strip("[]?").split()]
    return _closure(objects, answers), _closure(objects, requests)


def _closure(objects: dict[str, Data], start: list[str]) -> set[str]:
    reached: set[str] = set()
    frontier = list(start)
    while frontier:
        name = frontier.pop()
        if name in objects and name not in reached:
            reached.add(name)
            types = [entry["type"] for entry in objects[name]["properties"]] + objects[name]["any_of"]
            frontier += [reference for parsed in types for reference in _references(parsed)]
    return reached


def _references(parsed: Data) -> Iterator[str]:
    if parsed["reference"] is not None:
        yield parsed["reference"]
    for part in parsed["of"]:
        yield from _references(part)


def _properties(found: Comparison, old: Data, new: Data, side: str) -> None:
    removed, added, pairs = matched(old["properties"], new["properties"])
    for entry in removed:
        item = f"{new['path']}.{entry['name']}"
        if side == "response":
            override = Effect.DANGEROUS if entry["optional"] else None
            found.add(
                "http.response-field-removed", item, "the property is gone", removed=True, override=override
            )
        else:
            found.add("http.request-field-removed", item, "the property is gone", removed=True)
    for entry in added:
        item = f"{new['path']}.{entry['name']}"
        if side == "response":
            found.add("http.response-field-added", item, "a new property")
        else:
            rule = "http.request-optional-added" if entry["optional"] else "http.request-required-added"
            found.add(rule, item, "a new property")
    for before, after in pairs:
        _property(found, f"{new['path']}.{after['name']}", before, after, side)
    if old["any_of"] != new["any_of"]:
        _choices(found, new["path"], old["any_of"], new["any_of"], side)


def _property(found: Comparison, item: str, old: Data, new: Data, side: str) -> None:
    if old["optional"] != new["optional"]:
        if side == "response":
            rule = (
                "http.response-required-to-optional"
                if new["optional"]
                else "http.response-constraint-tightened"
            )
        else:
            rule = (
                "http.request-required-to-optional"
                if new["optional"]
                else "http.request-optional-to-required"
            )
        found.add(rule, item, "optional now" if new["optional"] else "required now")
    before, after = old["type"], new["type"]
    if before["nullable"] != after["nullable"]:
        if side == "response":
            rule = (
                "http.response-made-nullable" if after["nullable"] else "http.response-constraint-tightened"
            )
        else:
            rule = (
                "http.request-constraint-relaxed"
                if after["nullable"]
                else "http.request-constraint-tightened"
            )
        found.add(rule, item, "may be null" if after["nullable"] else "is never null")
    if before["kind"] == after["kind"] == "literal":
        _literals(found, item, before["literals"], after["literals"], side)
    elif {**before, "nullable": False} != {**after, "nullable": False}:
        if side == "response":
            widened = before["kind"] == "literal" and after["kind"] == "string"
            found.add(
                "http.response-constraint-relaxed" if widened else "http.response-type-changed",
                item,
                _told(before, after),
            )
        else:
            found.add("http.request-constraint-tightened", item, _told(before, after))


def _told(before: Data, after: Data) -> str:
    return f"{before['reference'] or before['kind']} → {after['reference'] or after['kind']}"


def _literals(found: Comparison, item: str, before: list[str], after: list[str], side: str) -> None:
    for word in before:
        if word not in after:
            found.add(f"http.{side}-value-removed", item, f"{word!r} is gone")
    for word in after:
        if word not in before:
            found.add(f"http.{side}-value-added", item, f"{word!r} is new")


def _choices(found: Comparison, path: str, before: list[Data], after: list[Data], side: str) -> None:
    for parsed in before:
        if parsed not in after:
            found.add(f"http.{side}-value-removed", path, f"the form {_form(parsed)} is gone")
    for parsed in after:
        if parsed not in before:
            found.add(f"http.{side}-value-added", path, f"the form {_form(parsed)} is new")


def _form(parsed: Data) -> str:
    inner = ", ".join(_form(part) for part in parsed["of"])
    return f"[{inner}]" if parsed["kind"] == "list" else str(parsed["reference"] or parsed["kind"])


def _api_errors(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["api_errors"], found.new.data["api_errors"])
    reserved = found.old.data["reserved"]["error_codes"]
    for error in removed:
        found.add("http.error-code-removed", error["path"], "the error is gone", removed=True)
    for error in added:
        if error["name"] in reserved or error["code"] in reserved:
            found.add("http.error-code-reused", error["path"], "the code was reserved")
        found.add("http.error-code-added", error["path"], "a new error")
    for old, new in pairs:
        _api_error(found, old, new)


def _api_error(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    if old["status"] != new["status"]:
        told = f"{old['status']} → {new['status']}"
        if old["status"] // 100 != new["status"] // 100:
            found.add("http.error-status-class-changed", path, told)
        else:
            watched = {old["status"], new["status"]} & STATUSES_CLIENTS_BRANCH_ON
            found.add("http.error-status-changed", path, told, override=Effect.BREAKING if watched else None)
    if old["code"] != new["code"]:
        found.add("http.error-code-renamed", path, f"{old['code']} → {new['code']}")
    for key in ("type", "anthropic_type"):
        if old[key] != new[key]:
            found.add("http.error-type-changed", path, f"{key}: {old[key]} → {new[key]}")
    if (old["param"], old["param_given"]) != (new["param"], new["param_given"]):
        found.add("http.error-field-changed", path, f"param: {old['param']} → {new['param']}")
    for key in ("retry", "retry_after", "close"):
        if old[key] != new[key]:
            found.add("http.error-retry-changed", path, f"{key}: {old[key]} → {new[key]}")
    for key in ("message", "anthropic_message", "message_given"):
        if old[key] != new[key]:
            found.add("http.error-message-changed", path, f"{key}: {old[key]!r} → {new[key]!r}")


def _mapping(found: Comparison) -> None:
    """The join of wire errors and api errors."""
    for old, new in matched(found.old.data["wire_errors"], found.new.data["wire_errors"])[2]:
        before = {join["condition"]: join["error"] for join in old["http"]}
        after = {join["condition"]: join["error"] for join in new["http"]}
        if before != after or old["without_numbers"] != new["without_numbers"]:
            told = f"{before or old['without_numbers']} → {after or new['without_numbers']}"
            found.add("http.error-mapping-changed", new["path"], told)


def _general(found: Comparison) -> None:
    old, new = found.old.data["http"], found.new.data["http"]
    for path in old["open_paths"]:
        if path not in new["open_paths"]:
            found.add("http.auth-added", "http", f"{path} needs the key now")
    for path in new["open_paths"]:
        if path not in old["open_paths"]:
            found.add("http.auth-removed", "http", f"{path} needs no key any more")
    if old["anthropic_paths"] != new["anthropic_paths"]:
        found.add("http.error-shape-changed", "http", "other paths answer errors in the Anthropic envelope")
    if old["order"] != new["order"]:
        found.add("http.request-order-changed", "http", f"{old['order']} → {new['order']}")
    for error in new["errors"]:
        if error not in old["errors"]:
            found.add("http.error-code-added", "http", f"{error} may be answered to any request")
    for error in old["errors"]:
        if error not in new["errors"]:
            found.add("http.error-code-removed", "http", f"{error} is not answered to any request any more")
    for key in ("cors_methods", "cors_headers", "cors_header_prefixes", "cors_expose", "loopback_hosts"):
        for entry in old[key]:
            if entry not in new[key]:
                found.add("http.cors-narrowed", "http", f"{key}: {entry} is gone")
    removed, added, _ = matched(old["headers"], new["headers"])
    for header in removed:
        found.add("http.header-removed", header["path"], "not sent any more", removed=True)
    for header in added:
        found.add("http.header-added", header["path"], "sent now")
    facts = (
        ("ids", ("prefix", "digits"), "http.id-form-changed"),
        ("finish_reasons", ("openai", "anthropic"), "http.finish-reason-changed"),
        ("health_statuses", ("status",), "http.health-status-changed"),
    )
    for section, keys, rule in facts:
        removed, added, pairs = matched(old[section], new[section])
        for item in removed:
            found.add(rule, item["path"], "gone", removed=True)
        for item in added if section != "ids" else []:
            found.add("http.response-value-added", item["path"], "a new word")
        for before, after in pairs:
            for key in keys:
                if before[key] != after[key]:
                    found.add(rule, after["path"], f"{key}: {before[key]} → {after[key]}")


def _families(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["families"], found.new.data["families"])
    for family in removed:
        found.add("family.removed", family["path"], "the family is gone", removed=True)
    for family in added:
        found.add("family.added", family["path"], "a new family")
    for old, new in pairs:
        for name in old["can"]:
            if name not in new["can"]:
                found.add("family.capability-removed", new["path"], f"{name} is gone")
        for name in new["can"]:
            if name not in old["can"]:
                found.add("family.capability-added", new["path"], f"{name} is new")
        for pattern in old["model_types"]:
            if pattern not in new["model_types"]:
                found.add("family.model-type-removed", new["path"], f"{pattern} is gone")
        if old["stops"] != new["stops"]:
            found.add("family.stops-changed", new["path"], f"{old['stops']} → {new['stops']}")
        if old["template"] != new["template"]:
            found.add("family.template-changed", new["path"], f"{old['template']} → {new['template']}")


def _markup(found: Comparison) -> None:
    # releases before 1.1.0 say nothing about markup
    removed, added, pairs = matched(found.old.data.get("markup", []), found.new.data["markup"])
    for kind in removed:
        found.add("markup.removed", kind["path"], "the template is gone", removed=True)
    for kind in added:
        found.add("markup.added", kind["path"], "a new template")
    for old, new in pairs:
        removed, added, markers = matched(old["markers"], new["markers"])
        for marker in removed:
            found.add("markup.marker-removed", marker["path"], f"{marker['text']} is gone", removed=True)
        for marker in added:
            found.add("markup.marker-added", marker["path"], f"{marker['text']} is new")
        for before, after in markers:
            if before["text"] != after["text"]:
                found.add("markup.text-changed", after["path"], f"{before['text']} → {after['text']}")


def _settings(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["settings"], found.new.data["settings"])
    for setting in removed:
        found.add("setting.removed", setting["path"], "the setting is gone", removed=True)
    for setting in added:
        found.add("setting.added", setting["path"], "a new setting")
    for old, new in pairs:
        _setting(found, old, new)


def _setting(found: Comparison, old: Data, new: Data) -> None:
    path = new["path"]
    for key in ("flag", "env"):
        if old[key] is not None and old[key] != new[key]:
            found.add("setting.spelling-removed", path, f"{old[key]} → {new[key] or 'nothing'}")
    if (old["type"], old["multiple"], old["unit"]) != (new["type"], new["multiple"], new["unit"]):
        found.add(
            "setting.type-changed", path, f"{old['type']} in {old['unit']} → {new['type']} in {new['unit']}"
        )
    if old["default"] != new["default"]:
        told = f"{old['default']} → {new['default']}"
        numbers = isinstance(old["default"], int | float) and isinstance(new["default"], int | float)
        if old["unit"] == "seconds" and numbers:
            shorter = new["default"] < old["default"]
            found.add("limit.timeout-shortened" if shorter else "limit.timeout-lengthened", path, told)
        else:
            found.add("setting.default-changed", path, told)
    for key, side in (("low", -1), ("high", 1)):
        before, after = old[key], new[key]
        if before != after:
            relaxed = after is None or (
                before is not None and (after > before if side > 0 else after < before)
            )
            found.add(
                "setting.range-widened" if relaxed else "setting.range-narrowed",
                path,
                f"{key}: {before} → {after}",
            )
    for word in old["choices"]:
        if word not in new["choices"]:
            found.add("setting.range-narrowed", path, f"{word} is gone")
    for word in new["choices"]:
        if word not in old["choices"]:
            found.add("setting.range-widened", path, f"{word} is new")


HANDLERS: Final[tuple[Callable[[Comparison], None], ...]] = (
    _endpoints,
    _objects,
    _api_errors,
    _mapping,
    _general,
    _families,
    _markup,
    _settings,
)
"""What compares the HTTP half, each function one section."""
