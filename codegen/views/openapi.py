"""View of ``generated/openapi.json``: an OpenAPI 3.1 document of every endpoint, error and header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..model import ApiError, Endpoint, Header, Model
from .json_types import field_schema, object_schema, plain

OPENAPI = "generated/openapi.json"

MEDIA_TYPES = {"text": "text/plain", "html": "text/html"}


def build(model: Model) -> Mapping[str, object]:
    """Outputs of the OpenAPI target."""
    return {OPENAPI: json.dumps(document(model), indent=2, ensure_ascii=False) + "\n"}


def document(model: Model) -> dict[str, Any]:
    """The whole document as plain values, keys in spec order."""
    schemas = {item.name: object_schema(item) for item in model.objects}
    for endpoint in model.endpoints:
        if endpoint.fields:
            schemas[request_name(endpoint)] = request_schema(endpoint)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in model.endpoints:
        paths.setdefault(endpoint.route, {})[endpoint.method.lower()] = _operation(endpoint, model)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"colibri {model.protocol.name} API",
            "version": model.protocol.version,
            "description": model.protocol.doc,
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


def request_schema(endpoint: Endpoint) -> dict[str, Any]:
    """JSON Schema of a request body; fields it does not list are ignored by the server."""
    return {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in endpoint.fields},
        "required": [field.name for field in endpoint.fields if field.required],
    }


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
    answers: dict[str, Any] = {"200": _answer(endpoint, model)}
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


def _answer(endpoint: Endpoint, model: Model) -> dict[str, Any]:
    media = MEDIA_TYPES.get(endpoint.answer)
    if media is not None:
        content: dict[str, Any] = {media: {"schema": {"type": "string"}}}
    elif endpoint.answer == "object":
        content = {"application/json": {"schema": {"type": "object"}}}
    else:
        content = _json(endpoint.answer)
    if endpoint.stream:
        events = " or ".join(endpoint.stream)
        description = f"Server-sent events; the data of each is one {events} as JSON."
        content["text/event-stream"] = {"schema": {"type": "string", "description": description}}
    names = ["x-request-id"] + (["x-colibri-queue-wait-ms"] if endpoint.stream else [])
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {"description": endpoint.doc, "headers": headers, "content": content}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _errors(endpoint: Endpoint, model: Model) -> dict[int, list[ApiError]]:
    names = {*endpoint.errors, *model.http.errors}
    found: dict[int, list[ApiError]] = {}
    for error in model.api_errors:
        if error.name in names:
            found.setdefault(error.status, []).append(error)
    return found
