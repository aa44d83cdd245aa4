"""How an API error becomes the body and the headers of an answer (http.md §1)."""

from __future__ import annotations

import json

from generated.errors import ApiError
from generated.http import ANTHROPIC_PATHS, RETRY_AFTER_HEADER


def speaks_anthropic(method: str, path: str) -> bool:
    """True for a POST to ``/v1/messages`` and below: its errors take the Anthropic envelope."""
    return method == "POST" and any(path == root or path.startswith(f"{root}/") for root in ANTHROPIC_PATHS)


def envelope(error: ApiError, *, anthropic: bool, request_id: str) -> bytes:
    """The JSON body of ``error``: compact UTF-8, non-ASCII unescaped."""
    body = error.anthropic(request_id) if anthropic else error.openai()
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def refusal_headers(error: ApiError) -> list[tuple[str, str]]:
    """Content type and, where the error says so, ``Retry-After``."""
    headers = [("Content-Type", "application/json")]
    if error.retry_after is not None:
        headers.append((RETRY_AFTER_HEADER, str(error.retry_after)))
    return headers
