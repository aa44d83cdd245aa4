"""What the wire half of two models has changed: framing, promise, messages, keys, payloads, limits, states,
errors, launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .changes import Comparison, Data, by_name, matched
from .compat import Effect

TOLERANCES: Final = ("unknown_frames", "unknown_keys", "unknown_errors", "trailing_words", "unknown_fields")

_WIDTH_OF_PROMISE: Final = {"full": 3, "backward": 2, "forward": 2, "lockstep": 1}


def _framing(found: Comparison) -> None:
    old, new = found.old.data["framing"], found.new.data["framing"]
    keys = {
        "separators": "framing.delimiter-changed",
        "terminator": "framing.delimiter-changed",
        "write_separator": "framing.delimiter-changed",
        "skip_empty_lines": "framing.delimiter-changed",
        "encoding": "framing.encoding-changed",
        "length_unit": "framing.length-unit-changed",
        "payload_terminator": "payload.terminator-changed",
    }
    for key, rule in keys.items():
        if old[key] != new[key]:
            found.add(rule, "framing", f"{key}: {old[key]!r} → {new[key]!r}")
    if found.old.data["handshake"]["sentinel"] != found.new.data["handshake"]["sentinel"]:
        found.add("framing.sentinel-changed", "handshake", "the sentinel is another one")


def _promise(found: Comparison) -> None:
    old, new = found.old.data["protocol"], found.new.data["protocol"]
    for key in TOLERANCES:
        if old[key] != new[key]:
            rule = "compat.tolerance-relaxed" if new[key] == "ignore" else "compat.tolerance-tightened"
            found.add(rule, "protocol", f"{key}: {old[key]} → {new[key]}")
    if _WIDTH_OF_PROMISE[new["promise"]] < _WIDTH_OF_PROMISE[old["promise"]]:
        found.add("compat.promise-weakened", "protocol", f"{old['promise']} → {new['promise']}")
    for kind in ("frames", "keys", "error_codes"):
        for name in found.old.data["reserved"][kind]:
            if name not in found.new.data["reserved"][kind]:
                found.add(
                    "reserved.removed",
                    f"reserved.{kind}.{name}",
                    f"{name} is no longer reserved",
                    removed=True,
                )


def _messages(found: Comparison) -> None:
    reserved = found.old.data["reserved"]["frames"]
    for section, other in (("frames", "commands"), ("commands", "frames")):
        removed, added, pairs = matched(found.old.data[section], found.new.data[section])
        elsewhere = by_name(found.new.data[other])
        for message in removed:
            if message["name"] in elsewhere:
                found.add("frame.direction-changed", message["path"], f"now under {other}", removed=True)
                found.covered.add(elsewhere[message["name"]]["path"])
                continue
            found.add("frame.removed", message["path"], "the kind is gone", removed=True)
            if message["name"] not in found.new.data["reserved"]["frames"]:
                found.add(
                    "frame.removed-unreserved", message["path"], "the name is not reserved", removed=True
                )
        for message in added:
            if message["name"] in reserved:
                found.add("frame.reserved-reused", message["path"], "the name was reserved")
            if message["name"] not in by_name(found.old.data[other]):
                asked = message["asked_by"] is not None and message["asked_by"] not in _keys_of(
                    found.old.data
                )
                override = Effect.DANGEROUS if asked else None
                found.add("frame.added", message["path"], "a new kind", override=override)
        for old, new in pairs:
            _message(found, old, new)
    _message(found, found.old.data["handshake"]["message"], found.new.data["handshake"]["message"])


def _keys_of(data: Data) -> set[str]:
    """Names of all extension keys of a model."""
    return {key["name"] for command in data["commands"] for key in command["keys"]}


def _message(found: Comparison, old: Data, new: Data) -> None:
    _positions(found, old, new)
    _keys(found, old, new)
    _payloads(found, old, new)
    found.covered.update(rule["path"] for rule in (*old["rules"], *new["rules"]))
    if old["rules"] != new["rules"]:
        before = [(rule["field"], rule["value"], rule["only_with"]) for rule in old["rules"]]
        after = [(rule["field"], rule["value"], rule["only_with"]) for rule in new["rules"]]
        if before != after:
            found.add("field.rule-changed", new["path"], f"rules: {before} → {after}")


Slot = tuple[str, str, bool, str]
"""One place of a header: kind of part, name or text, whether it is in an optional tail, and the repeat
around it.
"""


def slots(parts: list[Data], optional: bool = False) -> list[Slot]:
    """The places of a layout, in order."""
    found: list[Slot] = []
    for part in parts:
        kind = part["part"]
        if kind == "optional":
            found += slots(part["parts"], True)
        elif kind == "counted":
            found += [("word", word["name"], optional, f"×{part['count']}") for word in part["words"]]
        elif kind == "literal":
            found.append(("literal", part["text"], optional, ""))
        elif kind == "rest":
            found.append(("rest", part["name"], optional, "+" if part["at_least"] else "*"))
        elif kind == "word":
            found.append(("word", part["name"], optional, ""))
    return found


def ends_open(parts: list[Data]) -> bool:
    """Whether readers of a layout drop further words."""
    if not parts:
        return False
    last = parts[-1]
    return bool(last["part"] == "ignored" or (last["part"] == "optional" and ends_open(last["parts"])))


def _positions(found: Comparison, old: Data, new: Data) -> None:
    before, after = slots(old["layout"]["parts"]), slots(new["layout"]["parts"])
    old_fields, new_fields = by_name(old["fields"]), by_name(new["fields"])
    open_end = ends_open(old["layout"]["parts"])
    if open_end != ends_open(new["layout"]["parts"]):
        rule = "compat.tolerance-tightened" if open_end else "compat.tolerance-relaxed"
        found.add(
            rule,
            new["path"],
            "further words are refused now" if open_end else "further words are ignored now",
        )
    places_before = {slot[1]: place for place, slot in enumerate(before)}
    places_after = {slot[1]: place for place, slot in enumerate(after)}
    renamed = _renamed(found, old, new, before, after)
    for name, place in places_before.items():
        slot = before[place]
        if slot[0] == "literal":
            if place >= len(after) or after[place][:2] != slot[:2]:
                found.add(
                    "field.constant-changed",
                    new["path"],
                    f"the word {name} is not at place {place + 1} any more",
                )
            continue
        target = renamed.get(name, name)
        path = old_fields[name]["path"]
        if target not in places_after:
            found.add("field.removed", path, f"word {place + 1} is gone", removed=True)
            continue
        if places_after[target] != place:
            found.add(
                "field.moved",
                new_fields[target]["path"],
                f"word {place + 1} → word {places_after[target] + 1}",
            )
        _place(found, slot, after[places_after[target]], old_fields[name], new_fields[target])
    for place, slot in enumerate(after):
        if slot[0] != "literal" and slot[1] not in places_before and slot[1] not in renamed.values():
            rule = "field.appended-optional" if slot[2] else "field.appended-required"
            message = f"a new word {place + 1}"
            found.add(rule, new_fields[slot[1]]["path"], message, tolerated=open_end or None)


def _renamed(
    found: Comparison, old: Data, new: Data, before: list[Slot], after: list[Slot]
) -> dict[str, str]:
    """Fields at the same place with the same type and another name."""
    old_fields, new_fields = by_name(old["fields"]), by_name(new["fields"])
    renamed = {}
    for left, right in zip(before, after, strict=False):
        fresh = right[1] not in old_fields and left[1] not in new_fields
        if left[0] != right[0] or left[0] == "literal" or left[1] == right[1] or not fresh:
            continue
        if _wire_form(old_fields[left[1]]["type"]) == _wire_form(new_fields[right[1]]["type"]):
            renamed[left[1]] = right[1]
            found.add("field.renamed", new_fields[right[1]]["path"], f"was called {left[1]}")
            found.covered.add(old_fields[left[1]]["path"])
    return renamed


def _wire_form(wire_type: Data) -> dict[str, Any]:
    keys = ("kind", "low", "high", "finite", "above", "unit", "single_precision")
    return {key: wire_type.get(key) for key in keys}


def _place(found: Comparison, before: Slot, after: Slot, old: Data, new: Data) -> None:
    path = new["path"]
    if before[3] != after[3]:
        narrowed = before[0] == after[0] == "rest"
        rule = (
            ("field.type-narrowed" if after[3] == "+" else "field.type-widened")
            if narrowed
            else "field.repeat-changed"
        )
        found.add(rule, path, f"repeat {before[3] or 'once'} → {after[3] or 'once'}")
    if before[2] != after[2]:
        rule = "field.required-to-optional" if after[2] else "field.optional-to-required"
        found.add(rule, path, "optional now" if after[2] else "required now")
    compare_types(found, path, old["type"], new["type"], "field.type")


def compare_types(found: Comparison, path: str, old: Data, new: Data, prefix: str) -> None:
    """Changes of a wire type; ``prefix`` is ``field.type`` or ``key.range``."""
    family = prefix.partition(".")[0]
    if old["kind"] != new["kind"]:
        found.add(f"{family}.type-changed", path, f"{old['kind']} → {new['kind']}")
        return
    if old.get("unit") != new.get("unit"):
        found.add(
            "field.unit-changed", path, f"{old.get('unit') or 'no unit'} → {new.get('unit') or 'no unit'}"
        )
    limit = old.get("high_limit")
    by_limit = limit is not None and limit == new.get("high_limit")
    high_before, high_after = (None, None) if by_limit else (old.get("high"), new.get("high"))
    bounds = [
        (old.get("low"), new.get("low"), -1),
        (high_before, high_after, 1),
        (old.get("above"), new.get("above"), -1),
    ]
    narrowed = any(_tighter(before, after, side) for before, after, side in bounds)
    widened = any(_tighter(after, before, side) for before, after, side in bounds)
    narrowed = narrowed or (old.get("finite") is False and new.get("finite") is True)
    widened = widened or (old.get("finite") is True and new.get("finite") is False)
    tolerant_before, tolerant_now = (kind.get("unreadable") is not None for kind in (old, new))
    narrowed = narrowed or (tolerant_before and not tolerant_now)
    widened = widened or (tolerant_now and not tolerant_before)
    if tolerant_before and tolerant_now and old["unreadable"] != new["unreadable"]:
        found.add("field.format-changed", path, f"unreadable: {old['unreadable']} → {new['unreadable']}")
    told = f"{_range(old)} → {_range(new)}"
    if narrowed:
        found.add(f"{prefix}-narrowed", path, told)
    if widened:
        found.add(f"{prefix}-widened", path, told)
    for key in ("print", "single_precision"):
        if old.get(key) != new.get(key):
            found.add("field.format-changed", path, f"{key}: {old.get(key)} → {new.get(key)}")


def _tighter(before: float | None, after: float | None, side: int) -> bool:
    """Whether a bound (side 1 upper, -1 lower) became tighter; None is no bound."""
    if before == after or after is None:
        return False
    return before is None or (after < before if side > 0 else after > before)


def _range(wire_type: Data) -> str:
    if wire_type.get("finite") is False:
        return "any"
    low, high = wire_type.get("low"), wire_type.get("high")
    return f"{'' if low is None else low}..{'' if high is None else high}"


def _keys(found: Comparison, old: Data, new: Data) -> None:
    removed, added, pairs = matched(old["keys"], new["keys"])
    for key in removed:
        found.add("key.removed", key["path"], "the key is gone", removed=True)
    for key in added:
        if key["name"] in found.old.data["reserved"]["keys"]:
            found.add("key.reserved-reused", key["path"], "the name was reserved")
        capable = key["needs"] is not None and key["needs"] not in by_name(found.old.data["capabilities"])
        override = Effect.DANGEROUS if capable else None
        found.add("key.added-optional", key["path"], "a new key", override=override)
    kept_before = [key["name"] for key, _ in pairs]
    kept_after = [key["name"] for key in new["keys"] if key["name"] in kept_before]
    if kept_before != kept_after:
        found.add("framing.header-order-changed", new["path"], f"keys: {kept_before} → {kept_after}")
    for before, after in pairs:
        compare_types(found, after["path"], before["type"], after["type"], "key.range")
        if before["needs"] != after["needs"]:
            found.add("key.capability-changed", after["path"], f"{before['needs']} → {after['needs']}")


def _payloads(found: Comparison, old: Data, new: Data) -> None:
    removed, added, pairs = matched(old["payloads"], new["payloads"])
    for payload in removed:
        found.add("payload.removed", payload["path"], "the payload is gone", removed=True)
    for payload in added:
        rule = "payload.segment-added" if old["payloads"] else "payload.added"
        found.add(rule, payload["path"], "a new payload")
    old_fields, new_fields = by_name(old["fields"]), by_name(new["fields"])
    for before, after in pairs:
        if before["size"] != after["size"]:
            found.add("payload.length-field-changed", after["path"], f"{before['size']} → {after['size']}")
        was, now = old_fields[before["size"]]["optional"], new_fields[after["size"]]["optional"]
        if was != now:
            found.add(
                "payload.made-optional" if now else "payload.made-required", after["path"], "its size moved"
            )


def _limits(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["limits"], found.new.data["limits"])
    for limit in removed:
        found.add("limit.removed", limit["path"], f"the limit of {limit['value']} is gone", removed=True)
    for limit in added:
        override = Effect.SAFE if _bounds_only_new_items(found, limit["name"]) else None
        found.add("limit.added", limit["path"], f"a new limit of {limit['value']}", override=override)
    for old, new in pairs:
        if old["value"] != new["value"]:
            rule = "limit.lowered" if new["value"] < old["value"] else "limit.raised"
            found.add(rule, new["path"], f"{old['value']} → {new['value']} {new['unit']}")
        if old["error"] != new["error"]:
            found.add("limit.error-changed", new["path"], f"{old['error']} → {new['error']}")


def _bounds_only_new_items(found: Comparison, name: str) -> bool:
    """Whether a new limit is the bound of something, and of nothing that existed before."""
    bounded = [path for path, item in found.new_items.items() if name in _limits_behind(item)]
    return bool(bounded) and not any(path in found.old_items for path in bounded)


def _limits_behind(item: Data) -> tuple[str | None, ...]:
    wire_type = item.get("type")
    inner = wire_type.get("high_limit") if isinstance(wire_type, dict) else None
    return (item.get("high_limit"), inner)


def _states(found: Comparison) -> None:
    old_frames = by_name(found.old.data["frames"])
    for section in ("request", "connection"):
        old, new = found.old.data[section], found.new.data[section]
        if old["initial"] != new["initial"]:
            found.add("state.initial-changed", section, f"{old['initial']} → {new['initial']}")
        before, after = by_name(old["states"]), by_name(new["states"])
        ends_before = {name for name, state in before.items() if not state["transitions"]}
        ends_after = {name for name, state in after.items() if not state["transitions"]}
        if ends_before != ends_after:
            found.add("state.terminal-changed", section, f"{sorted(ends_before)} → {sorted(ends_after)}")
        for name, state in before.items():
            now = after.get(name, {"transitions": {}})["transitions"]
            for event, target in state["transitions"].items():
                if now.get(event) != target:
                    message = f"on {event} to {target}"
                    found.add("state.transition-removed", f"{state['path']}.{event}", message, removed=True)
        for name, state in after.items():
            was = before.get(name, {"transitions": {}})["transitions"]
            for event, target in state["transitions"].items():
                if was.get(event) != target:
                    new_frame = (
                        event.isupper()
                        and event not in old_frames
                        and event in by_name(found.new.data["frames"])
                    )
                    override = Effect.SAFE if new_frame else None
                    found.add(
                        "state.transition-added",
                        f"{state['path']}.{event}",
                        f"on {event} to {target}",
                        override=override,
                    )


def _wire_errors(found: Comparison) -> None:
    removed, added, pairs = matched(found.old.data["wire_errors"], found.new.data["wire_errors"])
    for error in added:
        if error["name"] in found.old.data["reserved"]["error_codes"]:
            found.add("error.reserved-reused", error["path"], "the code was reserved")
        twin = next((gone for gone in removed if gone["cause"] and gone["cause"] == error["cause"]), None)
        if twin is not None:
            removed.remove(twin)
            found.add("error.renamed", error["path"], f"was called {twin['name']}")
            found.covered.add(twin["path"])
        elif not (error["on_wire"] and error["fallback"]):
            found.add("error.added", error["path"], "a new code")
    for error in removed:
        found.add("error.removed", error["path"], "the code is gone", removed=True)
    spelled = {text: error["name"] for error in found.new.data["wire_errors"] for text in error["spelled"]}
    for old, new in pairs:
        _wire_error(found, old, new, spelled)


def _wire_error(found: Comparison, old: Data, new: Data, spelled: dict[str, str]) -> None:
    path = new["path"]
    for text in old["spelled"]:
        owner = spelled.get(text)
        if owner != new["name"]:
            found.add("error.condition-moved", path, f"{text!r} is {owner or 'no error of its own'} now")
    for text in new["spelled"]:
        if text not in old["spelled"]:
            found.add("error.added", path, f"also spelled {text!r}")
    for details, other, rule in ((old, new, "error.field-removed"), (new, old, "error.field-added")):
        for text in details["details"]:
            if text not in other["details"]:
                found.add(rule, path, f"details {text!r}")
    if (old["on_wire"], old["fallback"]) != (new["on_wire"], new["fallback"]):
        found.add("error.renamed", path, "its place on the wire changed")
    if old["message"] != new["message"]:
        found.add("error.message-changed", path, f"{old['message']!r} → {new['message']!r}")


def _launch(found: Comparison) -> None:
    old, new = found.old.data["launch"], found.new.data["launch"]
    removed, added, pairs = matched(old["environment"], new["environment"])
    for variable in removed:
        found.add("launch.variable-removed", variable["path"], "not set any more", removed=True)
    for variable in added:
        found.add("launch.variable-added", variable["path"], "a new variable")
    for before, after in pairs:
        for key in ("type", "value", "passed_through", "low", "high"):
            if before[key] != after[key]:
                found.add("launch.variable-changed", after["path"], f"{key}: {before[key]} → {after[key]}")
    if [argument["name"] for argument in old["argv"]] != [argument["name"] for argument in new["argv"]]:
        found.add("launch.argument-changed", "launch", "the arguments are others, or in another order")
        found.covered.update(argument["path"] for argument in (*old["argv"], *new["argv"]))
    for before, after in matched(old["argv"], new["argv"])[2]:
        compare_types(found, after["path"], before["type"], after["type"], "field.type")
    for key in ("sigpipe", "orderly_end"):
        if old[key] != new[key]:
            found.add("launch.variable-changed", "launch", f"{key}: {old[key]} → {new[key]}")


HANDLERS: Final[tuple[Callable[[Comparison], None], ...]] = (
    _framing,
    _promise,
    _messages,
    _limits,
    _states,
    _wire_errors,
    _launch,
)
"""What compares the wire half, each function one section."""
