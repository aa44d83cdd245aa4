"""View of ``generated/openapi.json``: an OpenAPI 3.1 document of every endpoint, error and header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from codegen.facts import least_real

from ..model import ApiError, Endpoint, Header, Model, RealType, RequestField
from .json_types import field_schema, object_schema, plain
from .python_fields import zero_conditions

OPENAPI = "generated/openapi.json"

MEDIA_TYPES = {"text": "text/plain", "html": "text/html"}

ABOUT = (
    "A gateway in front of one inference engine, in the OpenAI and the Anthropic dialect. "
    "Fields an endpoint does not list are ignored."
)

END_OF_STREAM = "[DONE]"  # data of the last event of a complete stream in the OpenAI dialect


def build(model: Model) -> Mapping[str, object]:
    """Outputs of the OpenAPI target."""
    return {OPENAPI: json.dumps(document(model), indent=2, ensure_ascii=False) + "\n"}


def document(model: Model) -> dict[str, Any]:
    """The whole document as plain values, keys in spec order."""
    schemas = {item.name: object_schema(item) for item in model.objects}
    for endpoint in model.endpoints:
        if endpoint.fields:
            schemas[request_name(endpoint)] = request_schema(endpoint, model)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in model.endpoints:
        paths.setdefault(endpoint.route, {})[endpoint.method.lower()] = _operation(endpoint, model)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"colibri {model.protocol.name} API",
            "version": model.protocol.version,
            "description": ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "http://127.0.0.1:8000"}],
        "security": [{}, {"bearer": []}, {"apiKey": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": {header.name: _header(header) for header in model.http.headers},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def request_name(endpoint: Endpoint) -> str:
    """Schema name of a request body: ``ChatCompletionsRequest``."""
    words = [word for word in re.split(r"[^a-z0-9]+", endpoint.route.removeprefix("/v1/")) if word]
    return "".join(word.capitalize() for word in words) + "Request"


def request_schema(endpoint: Endpoint, model: Model) -> dict[str, Any]:
    """JSON Schema of a request body; fields it does not list are ignored by the server."""
    types = {kind.name: kind for kind in model.types if isinstance(kind, RealType)}
    return {
        "type": "object",
        "properties": {
            field.name: _here(field_schema(field), field, endpoint, types.get(field.name))
            for field in endpoint.fields
        },
        "required": [field.name for field in endpoint.fields if field.required],
    }


def _here(
    schema: dict[str, Any], field: RequestField, endpoint: Endpoint, kind: RealType | None
) -> dict[str, Any]:
    """A field's schema with the lower bound that holds at this endpoint.

    A 0 that passes only together with other fields is out of range where these are not served, and an open
    bound excludes what single precision rounds to it.
    """
    if field.zero_with and not zero_conditions(endpoint, field):
        return {**schema, "minimum": field.low}
    if kind is not None and field.single_precision and schema.pop("exclusiveMinimum", None) is not None:
        return {**schema, "minimum": least_real(kind, printed=True)}
    return schema


def _header(header: Header) -> dict[str, Any]:
    return {"description": f"{header.doc} Sent {header.sent}.", "schema": {"type": "string"}}


def _operation(endpoint: Endpoint, model: Model) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": "_".join(re.findall(r"[a-z0-9]+", f"{endpoint.method.lower()} {endpoint.route}")),
        "summary": endpoint.doc.split(".")[0] + ".",
        "description": endpoint.doc,
    }
    parameters = re.findall(r"\{(\w+)\}", endpoint.route)
    if parameters:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in parameters
        ]
    if endpoint.fields:
        operation["requestBody"] = {"required": True, "content": {"application/json": _body(endpoint)}}
    operation["responses"] = _responses(endpoint, model)
    if endpoint.deprecated is not None:
        operation["deprecated"] = True
    if endpoint.route in model.http.open_paths:
        operation["security"] = [{}]
    return operation


def _body(endpoint: Endpoint) -> dict[str, Any]:
    examples = {example.title: {"value": plain(dict(example.body))} for example in endpoint.examples}
    schema = {"$ref": f"#/components/schemas/{request_name(endpoint)}"}
    return {"schema": schema, "examples": examples} if examples else {"schema": schema}


def _responses(endpoint: Endpoint, model: Model) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _answer(endpoint)}
    if endpoint.route == "/health":
        for status in sorted({item.status for item in model.http.health_statuses} - {200}):
            answers[str(status)] = {"description": "Not ready.", "content": _json(endpoint.answer)}
    shape = "AnthropicError" if endpoint.dialect == "anthropic" else "Error"
    for status, errors in sorted(_errors(endpoint, model).items()):
        lines = "\n".join(f"* `{error.code or error.name}`: {error.doc}" for error in errors)
        answer: dict[str, Any] = {"description": lines, "content": _json(shape)}
        headers = ["x-request-id"] + (["Retry-After"] if any(error.retry_after for error in errors) else [])
        answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
        answers.setdefault(str(status), answer)
    return answers


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    media = MEDIA_TYPES.get(endpoint.answer)
    if media is not None:
        content: dict[str, Any] = {media: {"schema": {"type": "string"}}}
    elif endpoint.answer == "object":
        content = {"application/json": {"schema": {"type": "object"}}}
    else:
        content = _json(endpoint.answer)
    if endpoint.stream:
        content["text/event-stream"] = {"schema": _event(endpoint)}
    names = ["x-request-id"] + (["x-colibri-queue-wait-ms"] if endpoint.stream else [])
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {"description": endpoint.doc, "headers": headers, "content": content}


def _event(endpoint: Endpoint) -> dict[str, Any]:
    """Schema of one event: OpenAPI 3.1 has no other place for it than ``schema`` of the stream."""
    shapes = [{"$ref": f"#/components/schemas/{name}"} for name in endpoint.stream]
    data: dict[str, Any] = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": shapes[0] if len(shapes) == 1 else {"anyOf": shapes},
    }
    if endpoint.dialect != "anthropic":
        data = {"anyOf": [{"const": END_OF_STREAM}, data]}
    names = " or ".join(endpoint.stream)
    return {
        "type": "object",
        "description": f"One server-sent event; its data is one {names} as JSON.",
        "properties": {"event": {"type": "string"}, "data": data},
        "required": ["data"],
    }


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _errors(endpoint: Endpoint, model: Model) -> dict[int, list[ApiError]]:
    names = {*endpoint.errors, *model.http.errors}
    found: dict[int, list[ApiError]] = {}
    for error in model.api_errors:
        if error.name in names:
            found.setdefault(error.status, []).append(error)
    return found
