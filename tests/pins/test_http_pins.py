"""Literal copies of every promised value. No generator touches this file.

When one of these tests fails, a promise has changed: decide whether that was meant, see `python -m codegen
diff`, and then change the copy here by hand.
"""

from __future__ import annotations

from generated import errors, families, fields, http, markup, settings

# ---------------------------------------------------------------- errors

BAD = "invalid_request_error"

ERRORS = {
    # name: status, type, code, Anthropic type, Retry-After, close
    "invalid_request": (400, BAD, None, BAD, None, False),
    "invalid_value": (400, BAD, "invalid_value", BAD, None, False),
    "unsupported_value": (400, BAD, "unsupported_value", BAD, None, False),
    "unsupported_parameter": (400, BAD, "unsupported_parameter", BAD, None, False),
    "unsupported_content_type": (400, BAD, "unsupported_content_type", BAD, None, False),
    "unsupported_role": (400, BAD, "unsupported_role", BAD, None, False),
    "malformed_body": (400, BAD, None, BAD, None, False),
    "malformed_http": (400, BAD, None, BAD, None, True),
    "context_length_exceeded": (400, BAD, "context_length_exceeded", BAD, None, False),
    "context_length_exceeded_unmeasured": (400, BAD, "context_length_exceeded", BAD, None, False),
    "prompt_batch_cap_exceeded": (400, BAD, "prompt_batch_cap_exceeded", BAD, None, False),
    "prompt_batch_token_budget_exceeded": (400, BAD, "prompt_batch_token_budget_exceeded", BAD, None, False),
    "batch_completion_budget_exceeded": (400, BAD, "batch_completion_budget_exceeded", BAD, None, False),
    "batch_completion_budget_unset": (400, BAD, "batch_completion_budget_exceeded", BAD, None, False),
    "tokenizer_unavailable": (400, BAD, "unsupported_parameter", BAD, None, False),
    "invalid_api_key": (401, "authentication_error", "invalid_api_key", "authentication_error", None, False),
    "forbidden": (403, BAD, "forbidden", "permission_error", None, False),
    "model_not_found": (404, BAD, "model_not_found", "not_found_error", None, False),
    "not_found": (404, BAD, "not_found", "not_found_error", None, False),
    "method_not_allowed": (405, BAD, "method_not_allowed", BAD, None, False),
    "request_timeout": (408, BAD, "request_timeout", BAD, None, True),
    "request_too_large": (413, BAD, "request_too_large", "request_too_large", None, True),
    "unsupported_encoding": (415, BAD, "unsupported_encoding", BAD, None, False),
    "queue_full": (429, "rate_limit_error", "queue_full", "rate_limit_error", 1, False),
    "queue_timeout": (429, "rate_limit_error", "queue_timeout", "rate_limit_error", 1, False),
    "engine_error": (500, "server_error", "engine_error", "api_error", None, False),
    "engine_logprobs_unsupported": (503, "server_error", "engine_logprobs_unsupported", "api_error", None,
     False),
    "engine_tok_ids_unsupported": (503, "server_error", "engine_tok_ids_unsupported", "api_error", None,
     False),
    "engine_unavailable": (503, "server_error", "engine_unavailable", "overloaded_error", 1, False),
    "shutting_down": (503, "server_error", "shutting_down", "overloaded_error", 1, False),
    "too_many_connections": (503, "server_error", "too_many_connections", "overloaded_error", 1, True),
}  # fmt: skip

FIXED_PARAMS = {
    "prompt_batch_cap_exceeded": "prompt",
    "prompt_batch_token_budget_exceeded": "prompt",
    "batch_completion_budget_exceeded": "max_tokens",
    "batch_completion_budget_unset": "max_tokens",
    "tokenizer_unavailable": "model",
    "model_not_found": "model",
    "engine_logprobs_unsupported": "logprobs",
    "engine_tok_ids_unsupported": "prompt",
}
"""Of the errors whose param is always the same; the others have null, or what the caller says."""


def test_errors() -> None:
    assert {
        kind.name: (kind.status, kind.type, kind.code, kind.anthropic_type, kind.retry_after, kind.close)
        for kind in errors.KINDS.values()
    } == ERRORS


def test_params_of_errors() -> None:
    found = {}
    for name in errors.KINDS:
        make = getattr(errors, name)
        arguments = make.__code__.co_varnames[: make.__code__.co_kwonlyargcount]
        if "param" not in arguments:
            found[name] = make(**dict.fromkeys(arguments, "x")).param
    assert {name: param for name, param in found.items() if param is not None} == FIXED_PARAMS


# ---------------------------------------------------------------- families

EVERYTHING = {"logprobs", "token_ids", "grammar", "tools", "thinking", "pin", "stop", "accept", "slots"}

FAMILIES = {
    "glm": (("glm*", "chatglm*"), EVERYTHING, ("<|user|>", "<|observation|>"), "glm"),
    "llama": (("llama",), {"stop", "accept", "slots"}, (), "chatml"),
    "qwen2": (("qwen2",), {"accept"}, (), "chatml"),
    "qwen3": (("qwen3",), {"accept"}, (), "chatml"),
    "qwen3_moe": (("qwen3_moe",), {"accept"}, (), "chatml"),
    "olmoe": (("olmoe",), set(), (), "chatml"),
    "inkling": (("inkling*",), set(), (), "chatml"),
    "kimi": (("kimi*",), {"stop", "accept", "slots"}, (), "chatml"),
    "deepseek_v4": (("deepseek_v4",), {"stop", "accept", "slots"}, (), "chatml"),
}


def test_families() -> None:
    assert {
        family.name: (family.model_types, family.can, family.stops, family.template)
        for family in families.FAMILIES.values()
    } == FAMILIES


# ---------------------------------------------------------------- markup

MARKUP = {
    "glm": {
        "generation_mask": "[gMASK]", "start_of_piece": "<sop>",
        "system": "<|system|>", "user": "<|user|>", "assistant": "<|assistant|>",
        "observation": "<|observation|>", "end_of_text": "<|endoftext|>",
        "declarations_open": "<tools>", "declarations_close": "</tools>",
        "response_open": "<tool_response>", "response_close": "</tool_response>",
        "reasoning_open": "<think>", "reasoning_close": "</think>",
        "call_open": "<tool_call>", "call_close": "</tool_call>",
        "argument_key_open": "<arg_key>", "argument_key_close": "</arg_key>",
        "argument_value_open": "<arg_value>", "argument_value_close": "</arg_value>",
    },
    "chatml": {"turn_open": "<|im_start|>", "turn_close": "<|im_end|>", "end_of_text": "<|endoftext|>"},
}  # fmt: skip


def test_markup() -> None:
    assert markup.MARKUP == MARKUP
    found = {name: text for name, text in vars(markup).items() if name.isupper() and isinstance(text, str)}
    assert found == {
        f"{template}_{marker}".upper(): text
        for template, markers in MARKUP.items()
        for marker, text in markers.items()
    }


def test_no_marker_of_glm_begins_inside_itself() -> None:
    """What looks for markers in answers leaves text without the first character of one alone."""
    assert {text[0] for text in MARKUP["glm"].values()} == {"<", "["}
    assert all(text[0] not in text[1:] for text in MARKUP["glm"].values())


# ---------------------------------------------------------------- settings

SETTINGS = {
    # name: flag, variable, default
    "model": ("--model", None, None),
    "engine": ("--engine", "COLI_ENGINE", None),
    "arch": ("--arch", None, "auto"),
    "host": ("--host", None, "127.0.0.1"),
    "port": ("--port", None, 8000),
    "model_id": ("--model-id", None, None),
    "api_key": ("--api-key", "COLI_API_KEY", None),
    "max_tokens": ("--max-tokens", None, 1024),
    "kv_slots": ("--kv-slots", None, 1),
    "max_queue": ("--max-queue", None, 8),
    "queue_timeout": ("--queue-timeout", None, 240),
    "cap": ("--cap", None, 0),
    "allowed_host": ("--allowed-host", "COLI_ALLOWED_HOSTS", ()),
    "cors_origin": (
        "--cors-origin",
        None,
        (
            "http://127.0.0.1:8000", "http://localhost:8000", "http://127.0.0.1:5173",
             "http://localhost:5173",
            "http://tauri.localhost", "tauri://localhost",
        ),
    ),
    "no_restart": ("--no-restart", None, False),
    "log_format": ("--log-format", None, "text"),
    "ready_timeout": ("--ready-timeout", "COLI_READY_TIMEOUT", 600),
    "temperature": (None, "COLI_TEMP", 0.7),
    "top_p": (None, None, 0.9),
    "max_body_bytes": (None, "COLI_MAX_BODY_BYTES", 33554432),
    "read_deadline": (None, "COLI_READ_DEADLINE", 30),
    "idle_timeout": (None, "COLI_IDLE_TIMEOUT", 75),
    "write_stall_timeout": (None, "COLI_WRITE_STALL_TIMEOUT", 30),
    "max_connections": (None, "COLI_MAX_CONNECTIONS", 256),
    "max_connections_per_ip": (None, "COLI_MAX_CONNECTIONS_PER_IP", 64),
    "allow_insecure_bind": (None, "COLI_ALLOW_INSECURE_BIND", False),
    "logprobs_accept_timeout": (None, "COLI_LOGPROBS_ACCEPT_TIMEOUT", 30),
    "engine_stall_timeout": (None, "COLI_ENGINE_STALL_TIMEOUT", 600),
    "keepalive": (None, "COLI_KEEPALIVE_SECONDS", 10),
    "visible_keepalive": (None, "COLI_VISIBLE_KEEPALIVE", False),
    "tool_salvage": (None, "COLI_TOOL_SALVAGE", False),
    "shutdown_timeout": (None, "COLI_SHUTDOWN_TIMEOUT", 30),
    "engine_kill_timeout": (None, None, 5),
    "engine_write_timeout": (None, "COLI_ENGINE_WRITE_TIMEOUT", 30),
    "restart_backoff_first": (None, None, 1),
    "restart_backoff_last": (None, None, 30),
}  # fmt: skip


def test_settings() -> None:
    assert {
        setting.name: (setting.flag, setting.env, setting.default) for setting in settings.SETTINGS.values()
    } == SETTINGS


# ---------------------------------------------------------------- HTTP

ENDPOINTS = [
    "POST /v1/completions", "POST /v1/chat/completions", "POST /v1/messages",
     "POST /v1/messages/count_tokens",
    "GET /v1/models", "GET /v1/models/{id}", "GET /health", "GET /profile", "GET /experts", "GET /metrics",
    "GET /openapi.json", "GET /docs",
]  # fmt: skip


def test_http_facts() -> None:
    assert list(fields.ENDPOINTS) == ENDPOINTS
    assert http.CHECK_ORDER == ("host", "key", "route", "body", "json", "model", "endpoint")
    assert http.OPEN_PATHS == ("/health", "/profile", "/experts")
    assert http.ANTHROPIC_PATHS == ("/v1/messages",)
    assert {"127.0.0.1", "localhost", "::1"} == http.LOOPBACK_HOSTS
    assert http.CORS_METHODS == ("GET", "POST", "OPTIONS")
    assert http.CORS_HEADERS == (
        "Authorization", "Content-Type", "x-api-key", "anthropic-version", "anthropic-beta"
    )  # fmt: skip
    assert http.CORS_HEADER_PREFIXES == ("x-stainless-",)
    assert http.CORS_EXPOSE == ("x-request-id", "x-colibri-queue-wait-ms", "Retry-After")
    assert http.CORS_MAX_AGE == 600
    assert http.HEALTH_STATUSES == {"ok": 200, "starting": 503, "restarting": 503, "down": 503}
    assert {name: tuple(words) for name, words in http.FINISH_REASONS.items()} == {
        "stop": ("stop", "end_turn"),
        "sequence": ("stop", "stop_sequence"),
        "length": ("length", "max_tokens"),
        "tool_calls": ("tool_calls", "tool_use"),
    }


def test_ids_and_headers() -> None:
    assert {name: tuple(form) for name, form in vars(http).items() if isinstance(form, http.IdForm)} == {
        "REQUEST_ID": ("req_", 32),
        "CHAT_COMPLETION_ID": ("chatcmpl-", 32),
        "COMPLETION_ID": ("cmpl-", 32),
        "TOOL_CALL_ID": ("call_", 24),
        "ANTHROPIC_TOOL_CALL_ID": ("toolu_", 24),
        "ANTHROPIC_MESSAGE_ID": ("msg_", 24),
    }
    assert {name: text for name, text in vars(http).items() if name.endswith("_HEADER")} == {
        "X_REQUEST_ID_HEADER": "x-request-id",
        "X_CLIENT_REQUEST_ID_HEADER": "x-client-request-id",
        "X_COLIBRI_QUEUE_WAIT_MS_HEADER": "x-colibri-queue-wait-ms",
        "RETRY_AFTER_HEADER": "Retry-After",
    }
