"""What the spec file may say: the shape of every section, as data for :mod:`codegen.shape`.

A key is added here first; the walk, the did-you-mean and the list of valid keys follow from it.
"""

from __future__ import annotations

from typing import Final

from .shape import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    RANGE,
    TEXT,
    VERSION,
    Anything,
    Either,
    Leaf,
    ListOf,
    Named,
    Record,
    Shape,
    choice,
    pattern,
)

LOWER: Final = pattern("a lower_snake name", r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UPPER: Final = pattern("an UPPER_SNAKE name", r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
PASCAL: Final = pattern("a PascalCase name", r"[A-Z][A-Za-z0-9]*")
RULE_ID: Final = pattern("a lint rule such as doc.missing", r"[a-z]+(\.[a-z-]+)+")
ENDPOINT: Final = pattern("a method and a path such as GET /v1/models", r"(GET|POST|PUT|PATCH|DELETE) /\S*")
FLAG: Final = pattern("a flag such as --max-queue", r"--[a-z][a-z0-9]*(-[a-z0-9]+)*")
VARIABLE: Final = pattern("a variable such as COLI_TEMP", r"[A-Z][A-Z0-9_]*")
PRINT: Final = pattern("a printf format such as %.6f", r"%\.[0-9]{1,2}[fg]")
STATUS: Final = pattern("an HTTP status", r"[1-5][0-9][0-9]")
STEP: Final = pattern("a field, an @hook or an $orders.run", r"[a-z][a-z0-9_]*|@[a-z_]+|\$orders\.[a-z_]+")
REAL: Final = Leaf(
    "any, finite or a range such as 0..2",
    lambda text: text in ("any", "finite") or RANGE.test(text),
    ("any", "finite"),
)
SETTING: Final = pattern("a reference such as $settings.max_tokens", r"\$settings\.[a-z0-9_]+")
TEXTS: Final = ListOf(TEXT)
TOLERANCE: Final = choice("error", "ignore")

COMMON: Final[dict[str, Shape]] = {
    "doc": TEXT,
    "since": VERSION,
    "stability": choice("stable", "experimental"),
    "deprecated": Record(
        optional={"replaced_by": TEXT, "since": VERSION, "remove_in": VERSION, "note": TEXT},
        label="deprecated",
    ),
    "allow": Named(TEXT, "rule", RULE_ID),
}
"""Keys every item may have."""


def item(
    required: dict[str, Shape] | None = None,
    optional: dict[str, Shape] | None = None,
    one_of: tuple[tuple[str, ...], ...] = (),
) -> Record:
    """An item of the spec: its own keys and the common ones."""
    return Record(required or {}, {**(optional or {}), **COMMON}, one_of)


TYPE: Final = item(
    optional={
        "uint": RANGE,
        "real": REAL,
        "word": choice("any"),
        "hex": choice("true"),
        "unit": TEXT,
        "above": NUMBER,
        "print": PRINT,
        "precision": choice("single", "double"),
        "unreadable": INTEGER,
    },
    one_of=(("uint", "real", "word", "hex"),),
)

FIELD: Final = Either(scalar=LOWER, mapping=item(optional={"type": LOWER}))

EXAMPLE: Final = Record(
    {"bytes": TEXT},
    {
        "gives": Named(Anything(), "value"),
        "fault": Record({"rule": LOWER}, {"field": LOWER, "code": UPPER}, label="fault"),
        "doc": TEXT,
    },
    (("gives", "fault"),),
)

PAYLOAD: Final = item(
    {"size": LOWER, "holds": TEXT},
    {"needs": LOWER, "drained": BOOLEAN},
)

FRAME: Final = item(
    {"layout": TEXT},
    {
        "payload": PAYLOAD,
        "fields": Named(FIELD, "field", LOWER),
        "advisory": BOOLEAN,
        "no_effect": BOOLEAN,
        "asked_by": LOWER,
        "examples": ListOf(EXAMPLE, "example"),
    },
)

COMMAND: Final = item(
    {"layout": TEXT},
    {
        "payloads": Named(PAYLOAD, "payload", LOWER),
        "fields": Named(FIELD, "field", LOWER),
        "keys": Named(item({"type": LOWER}, {"needs": LOWER}), "key", LOWER),
        "rules": ListOf(item({"field": LOWER, "value": INTEGER, "only_with": LOWER}), "rule"),
        "examples": ListOf(EXAMPLE, "example"),
    },
)

STATES: Final = item(
    {"initial": LOWER, "states": Named(Named(LOWER, "event"), "state", LOWER)},
    {"events": Named(item(), "event", LOWER), "about": Named(TEXT, "state", LOWER)},
)

WIRE_ERROR: Final = item(
    optional={
        "http": Either(
            scalar=LOWER, mapping=Named(LOWER, "condition", choice("ids", "to_cancel", "otherwise"))
        ),
        "details": TEXTS,
        "spelled": TEXTS,
        "on_wire": BOOLEAN,
        "fallback": BOOLEAN,
        "without_numbers": LOWER,
        "message": TEXT,
        "cause": TEXT,
        "remedy": TEXT,
    },
)

API_ERROR: Final = item(
    {"status": STATUS, "type": LOWER, "anthropic": LOWER, "param": TEXT, "message": TEXT},
    {
        "code": TEXT,
        "anthropic_message": TEXT,
        "retry": choice("never", "safe", "after"),
        "retry_after": INTEGER,
        "close": BOOLEAN,
    },
)

FAMILIES: Final = Record(
    {
        "capabilities": Named(item(), "capability", LOWER),
        "members": Named(
            item({"model_types": TEXTS, "can": ListOf(LOWER)}, {"stops": TEXTS, "template": LOWER}),
            "family",
            LOWER,
        ),
    },
    COMMON,
)

MARKUP: Final = item({"markers": Named(item({"text": TEXT}), "marker", LOWER)})

SETTING_ITEM: Final = item(
    {"type": choice("directory", "string", "secret", "integer", "number", "boolean", "choice", "family")},
    {
        "flag": FLAG,
        "env": VARIABLE,
        "default": Either(scalar=TEXT, sequence=TEXTS),
        "range": RANGE,
        "choices": TEXTS,
        "unit": TEXT,
        "multiple": BOOLEAN,
    },
)

BOOLEAN_CHECK: Final = choice("true")

FIELD_KINDS: Final[dict[str, Shape]] = {
    "accept": ListOf(Anything()),
    "integer": RANGE,
    "number": RANGE,
    "boolean": BOOLEAN_CHECK,
    "string": BOOLEAN_CHECK,
    "one_of": TEXTS,
    "object": BOOLEAN_CHECK,
    "strings": RANGE,
    "neutral": choice("zero", "one", "empty"),
    "any": BOOLEAN_CHECK,
    "shape": LOWER,
}
"""The kinds of check of a request field; a field has one of these keys, whose value says the details."""

REQUEST_FIELD: Final = item(
    optional={
        **FIELD_KINDS,
        "schema": TEXT,
        "above": NUMBER,
        "precision": choice("single"),
        "null": choice("refused"),
        "required": BOOLEAN,
        "off": ListOf(Anything()),
        "empty": choice("absent"),
        "default": TEXT,
        "clamp": SETTING,
        "else": LOWER,
        "otherwise": LOWER,
        "refuse": Named(LOWER, "value"),
        "needs": LOWER,
        "alternative": LOWER,
        "loses_to": LOWER,
        "zero_with": LOWER,
        "only_with": LOWER,
        "effect": choice("none"),
    },
    one_of=(tuple(FIELD_KINDS),),
)

ENDPOINT_ITEM: Final = item(
    {"answer": TEXT},
    {
        "dialect": choice("openai", "anthropic"),
        "uses": ListOf(LOWER),
        "fields": Named(REQUEST_FIELD, "field", LOWER),
        "order": Named(ListOf(STEP), "order", LOWER),
        "stream": ListOf(PASCAL),
        "errors": ListOf(LOWER),
        "examples": ListOf(Record({"title": TEXT, "body": Anything()}), "example"),
    },
)

HTTP: Final = item(
    optional={
        "order": TEXTS,
        "errors": ListOf(LOWER),
        "open_paths": TEXTS,
        "anthropic_paths": TEXTS,
        "headers": Named(item({"sent": TEXT}), "header"),
        "ids": Named(item({"prefix": TEXT, "digits": INTEGER}), "id", LOWER),
        "cors": Record(
            optional={
                "methods": TEXTS,
                "headers": TEXTS,
                "header_prefixes": TEXTS,
                "expose": TEXTS,
                "max_age": INTEGER,
            },
            label="cors",
        ),
        "loopback_hosts": TEXTS,
        "finish_reasons": Named(item({"openai": LOWER, "anthropic": LOWER}), "finish reason", LOWER),
        "health_statuses": Named(item({"status": STATUS}), "health status", LOWER),
    }
)

PROTOCOL: Final = item(
    {"name": LOWER, "version": VERSION},
    {
        "promise": choice("full", "backward", "forward", "lockstep"),
        "unknown_frames": TOLERANCE,
        "unknown_keys": TOLERANCE,
        "unknown_errors": TOLERANCE,
        "trailing_words": TOLERANCE,
        "unknown_fields": TOLERANCE,
        "sections": Named(TEXT, "section"),
    },
)

FRAMING: Final = item(
    optional={
        "encoding": choice("ascii", "utf-8"),
        "separators": TEXTS,
        "terminator": TEXT,
        "write_separator": TEXT,
        "skip_empty_lines": BOOLEAN,
        "payload_terminator": TEXT,
        "length_unit": choice("bytes", "characters"),
    }
)

LIMIT: Final = item(
    {"value": INTEGER, "unit": TEXT, "enforced": ListOf(choice("reader", "writer", "api", "http", "launch"))},
    {"error": LOWER},
)

LAUNCH: Final = item(
    optional={
        "argv": Named(FIELD, "argument", LOWER),
        "environment": Named(
            item({"type": TEXT}, {"value": TEXT, "range": RANGE, "passed_through": BOOLEAN}),
            "variable",
            UPPER,
        ),
        "sigpipe": choice("default"),
        "orderly_end": choice("eof"),
    }
)

HANDSHAKE: Final = item(
    {"sentinel": TEXT, "layout": TEXT},
    {"fields": Named(FIELD, "field", LOWER), "examples": ListOf(EXAMPLE, "example")},
)

OBJECT: Final = Named(Either(scalar=TEXT, sequence=TEXTS), "property", pattern("a JSON name", r"[a-z_]+\??"))

RESERVED: Final = Record(
    optional={"frames": ListOf(UPPER), "keys": ListOf(LOWER), "error_codes": ListOf(TEXT)}
)

SPEC: Final = Record(
    required={
        "protocol": PROTOCOL,
        "framing": FRAMING,
        "limits": Named(LIMIT, "limit", LOWER),
        "types": Named(TYPE, "type", LOWER),
        "launch": LAUNCH,
        "handshake": HANDSHAKE,
        "commands": Named(COMMAND, "command", UPPER),
        "frames": Named(FRAME, "frame", UPPER),
        "request": STATES,
        "connection": STATES,
        "wire_errors": Named(WIRE_ERROR, "wire error", UPPER),
        "api_errors": Named(API_ERROR, "api error", LOWER),
        "families": FAMILIES,
        "settings": Named(SETTING_ITEM, "setting", LOWER),
        "http": HTTP,
        "endpoints": Named(ENDPOINT_ITEM, "endpoint", ENDPOINT),
    },
    optional={
        "field_sets": Named(Named(REQUEST_FIELD, "field", LOWER), "field set", LOWER),
        "orders": Named(ListOf(STEP), "order", LOWER),
        "hooks": Named(item(), "hook", LOWER),
        "markup": Named(MARKUP, "markup", LOWER),
        "faults": Named(item(), "fault", LOWER),
        "objects": Named(OBJECT, "object", PASCAL),
        "reserved": RESERVED,
    },
)
