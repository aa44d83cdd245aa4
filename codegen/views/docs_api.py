"""Tables of docs/api.md: endpoints with their fields in checking order, errors, settings, families,
markup.
"""

from __future__ import annotations

from ..model import ApiError, Endpoint, Markup, Model, RequestField, Setting
from .markdown import anchor, meaning, table


def tables(model: Model) -> dict[str, str]:
    """Everything generated on docs/api.md, by marker name."""
    return {
        "endpoints": "\n".join(_endpoint(endpoint) for endpoint in model.endpoints),
        "api-errors": _errors(model),
        "settings": _settings(model),
        "families": _families(model),
        "markup": "\n".join(_markup(kind) for kind in model.markup),
        "headers": table(
            ("header", "sent", "meaning"), [(f"`{h.name}`", h.sent, h.doc) for h in model.http.headers]
        ),
        "ids": table(
            ("id", "form", "names"),
            [
                (item.name, f"`{item.prefix}` + {item.digits} hexadecimal digits", item.doc)
                for item in model.http.ids
            ],
        ),
        "finish-reasons": table(
            ("outcome", "OpenAI", "Anthropic", "meaning"),
            [(r.name, f"`{r.openai}`", f"`{r.anthropic}`", r.doc) for r in model.http.finish_reasons],
        ),
    }


def _endpoint(endpoint: Endpoint) -> str:
    lines = [f"### {endpoint.method} {endpoint.route}", "", anchor(endpoint.path) + meaning(endpoint), ""]
    if endpoint.fields:
        rows = [
            (
                f"{anchor(field_path(endpoint, f))}`{f.name}`",
                *(field_values(f), _default(f), _refusals(f), f.needs or "", meaning(f)),
            )
            for f in endpoint.fields
        ]
        lines.append(table(("field", "takes", "default", "refused with", "capability", "meaning"), rows))
    for name, steps in endpoint.orders.items():
        shown = " → ".join(
            f"*{step.name.replace('_', ' ')}*" if step.is_hook else f"`{step.name}`" for step in steps
        )
        lines += [f"Checked in this order{'' if name == 'default' else f' ({name})'}: {shown}", ""]
    if endpoint.errors:
        codes = ", ".join(f"[`{name}`](#{name})" for name in endpoint.errors)
        lines += [f"Errors beside those of every request: {codes}", ""]
    return "\n".join(lines)


def field_path(endpoint: Endpoint, field: RequestField) -> str:
    """Path of a field as seen from an endpoint; a shared one names the endpoint first."""
    own = field.path.startswith(endpoint.path + ".")
    return field.path if own else f"{endpoint.path}.{field.path}"


def field_values(field: RequestField) -> str:
    """What a field takes, in words."""
    low = f"> {field.above:g}" if field.above is not None else field.low
    match field.kind:
        case "accept":
            return (
                "only " + ", ".join(f"`{_json(value)}`" for value in field.accepted)
                if field.accepted
                else "only null"
            )
        case "integer" | "number":
            high = (
                "any"
                if field.high is None and field.high_limit is None
                else field.high
                if field.high is not None
                else field.high_limit
            )
            return f"{field.kind} {low} … {high}"
        case "one_of":
            return ", ".join(f"`{_json(value)}`" for value in field.accepted)
        case "strings":
            return f"a string, or {field.low} to {field.high} non-empty strings"
        case "neutral":
            return {"zero": "only 0", "one": "only 1", "empty": "only empty"}[field.neutral or "empty"]
        case "any":
            return "anything"
        case _:
            return field.schema or field.kind


def _json(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}.get(value, str(value))
        if isinstance(value, bool | None)
        else str(value)
    )


def _default(field: RequestField) -> str:
    if field.default_setting:
        return f"setting `{field.default_setting}`"
    if field.default is not None:
        return f"`{_json(field.default)}`"
    return "required" if field.required else ""


def _refusals(field: RequestField) -> str:
    found = [name for name in (field.error, field.otherwise, *field.refuse.values()) if name]
    return ", ".join(f"[`{name}`](#{name})" for name in dict.fromkeys(found)) + (
        " (null too)" if field.null_refused else ""
    )


def _errors(model: Model) -> str:
    parts = [
        table(
            ("error", "status", "OpenAI type", "code", "param", "Anthropic type", "when"),
            [_error_row(error) for error in model.api_errors],
        )
    ]
    for error in model.api_errors:
        about = f"{anchor(error.path)}{meaning(error)} HTTP {error.status}. {_advice(error)}"
        parts.append(f"#### {error.name} {{#{error.name}}}\n\n{about}\n")
        if error.message:
            parts.append(f"> {error.message}\n")
    return "\n".join(parts)


def _error_row(error: ApiError) -> tuple[object, ...]:
    code = "null" if error.code is None else f"`{error.code}`"
    param = "the field" if error.param_given else "null" if error.param is None else f"`{error.param}`"
    return (
        f"[`{error.name}`](#{error.name})",
        error.status,
        error.type,
        code,
        param,
        error.anthropic_type,
        error.doc,
    )


def _advice(error: ApiError) -> str:
    if error.retry == "after":
        return f"Retry after the seconds in `Retry-After` ({error.retry_after})."
    advice = (
        "The same request may be tried again."
        if error.retry == "safe"
        else "Trying the same request again does not help."
    )
    return advice + (" The connection closes." if error.close else "")


def _settings(model: Model) -> str:
    return table(
        ("flag", "variable", "default", "unit", "range", "meaning"),
        [_setting_row(item) for item in model.settings],
    )


def _setting_row(item: Setting) -> tuple[object, ...]:
    bounds = f"{item.low} … {item.high}" if item.low is not None else ", ".join(item.choices)
    default = (
        ", ".join(str(part) for part in item.default) if isinstance(item.default, tuple) else item.default
    )
    shown = "" if default is None or default == "" else f"`{default}`"
    return (
        f"`{item.flag}`" if item.flag else "",
        f"`{item.env}`" if item.env else "",
        shown,
        item.unit,
        bounds,
        anchor(item.path) + meaning(item),
    )


def _markup(kind: Markup) -> str:
    """A template: its name and prose, and the table of its markers."""
    rows = [
        (f"{anchor(marker.path)}`{marker.name}`", f"`{marker.text}`", meaning(marker))
        for marker in kind.markers
    ]
    head = f"{anchor(kind.path)}**`{kind.name}`** — {meaning(kind)}"
    return f"{head}\n\n" + table(("marker", "text", "meaning"), rows)


def _families(model: Model) -> str:
    rows = [
        (
            f"{anchor(family.path)}`{family.name}`",
            ", ".join(f"`{pattern}`" for pattern in family.model_types),
            ", ".join(family.can) or "plain text",
            ", ".join(f"`{stop}`" for stop in family.stops),
            family.doc,
        )
        for family in model.families
    ]
    capabilities = table(
        ("capability", "meaning"),
        [(f"{anchor(item.path)}`{item.name}`", meaning(item)) for item in model.capabilities],
    )
    return table(("family", "model types", "can", "default stops", "notes"), rows) + "\n" + capabilities
