"""GET endpoints (http.md §5; bugs B75, B112, B113, B123, B126, B128) and what is served at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from generated import fingerprint, http
from generated.fields import ENDPOINTS
from generated.frames import Prof
from server.api.telemetry import frame_values
from server.app import create_application, create_handlers
from server.http.routes import contract_routes

TELEMETRY = [
    "ACCEPT <id> 7", "HWINFO 16 64.0 32.0 1 24.0 Some CPU|Some GPU", "TIERS 1 2 3 4.0 5.0", "EMAP 1 2 0a0b",
    "HITS 1 2 03", "PROF 2.5 7 12 0.4 0.1 0.9 0.6 -0.000 15", "DATA <id> <n> => x",
    "DONE <id> STAT 1 2.5 0 1.0 7 0",
]  # fmt: skip


def test_b126_models_lists_the_one_model_with_its_context_length(gateway: Any) -> None:
    (model,) = gateway.get("/v1/models").json["data"]
    assert list(model) == ["id", "object", "created", "owned_by", "context_length", "max_output_tokens"]
    assert model["context_length"] == 4096
    assert model["max_output_tokens"] == 16
    assert isinstance(model["created"], int)
    assert gateway.get("/v1/models/test-model").json == model
    assert gateway.get("/v1/models/%74est-model?x=1").json == model


@pytest.mark.parametrize(
    "path", ["/v1/models/nope", "/v1/models/test-model/", "/v1/models/a/b", "/v1/models//test-model"]
)
def test_section_5_another_id_is_not_found_and_the_real_one_is_named(gateway: Any, path: str) -> None:
    answer = gateway.get(path)
    assert answer.error == (404, None, "not_found")
    assert "/v1/models/test-model" in answer.message


@pytest.mark.parametrize("model_id", ["org/model", "/rooted//twice/", "é x%"])
def test_b126_ids_may_hold_anything(open_gateway: Callable[..., Any], model_id: str) -> None:
    gateway = open_gateway(model_id=model_id)
    for path in {quote(model_id), quote(model_id, safe="")}:
        answer = gateway.get(f"/v1/models/{path}")
        assert (answer.status, answer.json["id"]) == (200, model_id)


def test_b113_with_an_anthropic_version_header_the_list_has_that_shape(gateway: Any) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    body = gateway.get("/v1/models", headers).json
    assert list(body) == ["data", "has_more", "first_id", "last_id"]
    assert (body["data"][0]["type"], body["data"][0]["id"], body["has_more"]) == (
        "model",
        "test-model",
        False,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", body["data"][0]["created_at"])
    assert gateway.get("/v1/models/test-model", headers).json == body["data"][0]


def test_section_5_health_tells_scheduler_engine_and_telemetry(gateway: Any) -> None:
    gateway.plan(TELEMETRY)
    assert gateway.complete().status == 200
    answer = gateway.get("/health")
    body = answer.json
    assert (answer.status, body["status"], body["kv_slots"]) == (200, "ok", 1)
    assert list(body["scheduler"]) == [
        "active", "queued", "capacity", "max_queue", "queue_timeout_seconds", "admitted", "completed",
        "rejected", "timed_out", "cancelled",
    ]  # fmt: skip
    engine = body["engine"]
    assert list(engine) == ["pid", "restarts", "uptime_s", "wire_version", "family"]
    assert (engine["wire_version"], engine["family"]) == (fingerprint.VERSION, "glm")
    assert engine["pid"] > 1
    assert body["tiers"] == {"vram": 1.0, "ram": 2.0, "disk": 3.0, "vram_gb": 4.0, "ram_gb": 5.0}
    assert (body["hwinfo"]["cpu"], body["hwinfo"]["gpu"], body["hwinfo"]["cores"]) == (
        "Some CPU",
        "Some GPU",
        16.0,
    )


def test_section_5_profile_and_experts_show_what_the_engine_said(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(fresh=True)
    assert gateway.get("/profile").json == {"seq": 0, "turns": []}
    assert gateway.get("/experts").json == {"rows": 0, "cols": 0, "map": "", "hits": "", "seq": 0}
    gateway.plan(TELEMETRY)
    for _ in range(122):
        assert gateway.complete().status == 200
    profile = gateway.get("/profile").json
    assert (profile["seq"], len(profile["turns"])) == (122, 120)
    assert profile["turns"][0] == {
        "wall_s": 2.5, "prompt_tokens": 7, "completion_tokens": 12, "disk_s": 0.4, "wait_s": 0.1,
        "matmul_s": 0.9, "attention_s": 0.6, "head_s": 0, "forwards": 15,
    }  # fmt: skip
    experts = gateway.get("/experts").json
    assert experts == {"rows": 1, "cols": 2, "map": "0a0b", "hits": "03", "seq": 244}


def test_section_5_turns_that_end_while_the_profile_is_written_are_in_the_next_one(
    open_gateway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where as many are kept as can be, and each new one takes the place of the oldest."""
    gateway = open_gateway(fresh=True)
    take = gateway.parts.engine.telemetry.update

    def turn(number: int) -> Prof:
        return Prof(1.0, number, 1, 0.0, 0.0, 0.1, 0.1, 0.1, 1)

    for number in range(122):
        take(turn(number))

    def values_after_another_turn(frame: Prof) -> dict[str, Any]:
        take(turn(1000))
        return frame_values(frame)

    monkeypatch.setattr("server.api.telemetry.frame_values", values_after_another_turn)
    profile = gateway.get("/profile").json
    assert profile["seq"] == 122
    assert [shown["prompt_tokens"] for shown in profile["turns"]] == list(range(2, 122))


KEY = {"Authorization": "Bearer secret"}


@pytest.fixture
def guarded(open_gateway: Callable[..., Any]) -> Any:
    return open_gateway(api_key="secret")


def test_section_5_without_the_key_health_profile_and_experts_tell_nothing(guarded: Any) -> None:
    guarded.plan(TELEMETRY)
    body = {"model": "test-model", "prompt": "hi"}
    assert guarded.post("/v1/completions", body, KEY).status == 200
    assert guarded.get("/health").json == {"status": "ok"}
    assert guarded.get("/profile").json == {"seq": 0, "turns": []}
    assert guarded.get("/experts").json == {"rows": 0, "cols": 0, "map": "", "hits": "", "seq": 0}
    assert guarded.get("/health", KEY).json["kv_slots"] == 1
    assert guarded.get("/profile", KEY).json["seq"] == 1
    assert guarded.get("/experts", KEY).json["map"] == "0a0b"


def test_b123_every_other_route_needs_the_key(guarded: Any) -> None:
    open_paths = {"/health", "/profile", "/experts"}
    for route in http.ROUTES:
        path = route.path.replace("{id}", "test-model")
        if route.method == "GET":
            answers = [
                guarded.get(path),
                guarded.get(path, {"Authorization": "Bearer wrong"}),
                guarded.get(path, KEY),
            ]
        else:
            answers = [
                guarded.post(path, {}),
                guarded.post(path, {}, {"x-api-key": "wrong"}),
                guarded.post(path, {}, KEY),
            ]
        refused = [answer.status == 401 for answer in answers]
        assert refused == ([False] * 3 if path in open_paths else [True, True, False]), path


def test_section_5_openapi_is_the_generated_document_and_docs_needs_nothing_from_outside(
    gateway: Any,
) -> None:
    document = gateway.get("/openapi.json")
    assert document.headers["content-type"] == "application/json"
    assert set(document.json["paths"]) == {route.path for route in http.ROUTES}
    page = gateway.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode("utf-8")
    assert 'fetch("openapi.json"' in text
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|\burl\(""", text)


@pytest.mark.parametrize(
    "path", ["/health", "/v1/models", "/profile", "/experts", "/openapi.json", "/nowhere"]
)
def test_section_1_json_is_compact(gateway: Any, path: str) -> None:
    body = gateway.get(path).body.decode("utf-8")
    assert body == json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/tokenizer_info"), ("POST", "/tokenize"), ("POST", "/detokenize")]
)
def test_b75_tokenizer_endpoints_are_a_clean_404(gateway: Any, method: str, path: str) -> None:
    answer = gateway.post(path, {"prompt": "x"}) if method == "POST" else gateway.get(path)
    assert answer.error == (404, None, "not_found")


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/docs", "/openapi.json", "/metrics"])
def test_b112_head_is_get_without_its_body(gateway: Any, path: str) -> None:
    head, get = gateway.get(path, method="HEAD"), gateway.get(path)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    if path not in ("/health", "/metrics"):
        assert head.headers["content-length"] == get.headers["content-length"]


def samples(gateway: Any) -> dict[str, float]:
    found = {}
    for line in gateway.get("/metrics").body.decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def test_b128_started_is_ok_plus_error_plus_cancelled_plus_refused(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(fresh=True)
    gateway.plan(["ACCEPT <id> 7", "DATA <id> <n> => x", "DONE <id> STAT 3 2.5 0 1.0 7 0"],
                 ["ERROR <id> SLOT_BUSY"],
                 ["ACCEPT <id> 7", "@wait CANCEL", "ERROR <id> CANCELLED"])  # fmt: skip
    assert gateway.complete().status == 200
    assert gateway.complete().status == 500
    assert gateway.complete("").status == 400
    assert gateway.get("/nope?secret=1").status == 404
    connection = gateway.connect()
    gateway.send(connection, "/v1/completions", {"model": "test-model", "prompt": "hi", "stream": True})
    gateway.eventually(lambda: len(gateway.submits()) == 3, "submitted")
    connection.close()
    gateway.eventually(lambda: gateway.records("CANCEL"), "cancelled")
    gateway.eventually(lambda: gateway.counters()["active"] == 0, "the slot is free")
    found = samples(gateway)
    ended = 'colibri_requests_ended_total{outcome="%s",route="%s"}'
    completions = {
        outcome: found[ended % (outcome, "/v1/completions")]
        for outcome in ("ok", "error", "cancelled", "refused")
    }
    assert completions == {"ok": 1, "error": 1, "cancelled": 1, "refused": 1}
    assert found[ended % ("refused", "other")] == 1
    total = sum(value for name, value in found.items() if name.startswith("colibri_requests_ended_total"))
    assert found["colibri_requests_started_total"] == total + found["colibri_requests_open"]
    assert found["colibri_requests_open"] == 1  # the scrape itself
    assert found['colibri_tokens_total{kind="completion"}'] == 3
    assert found["colibri_slots_active"] == 0
    routes_shown = {match[1] for name in found if (match := re.search(r'route="([^"]*)"', name))}
    assert routes_shown <= {route.path for route in http.ROUTES} | {"other"}


def test_the_spec_the_routes_and_the_application_agree(gateway: Any) -> None:
    promised = {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS.values()}
    assert {(method, route.path) for route in contract_routes() for method in route.methods} == promised
    rules = create_application(gateway.parts).url_map.iter_rules()
    served = {
        (method, rule.rule.replace("<rest:id>", "{id}"))
        for rule in rules
        for method in rule.methods - {"HEAD"}
    }
    assert served | set(create_handlers(gateway.parts)) == promised
    assert served.isdisjoint(create_handlers(gateway.parts))


def test_section_13_health_says_restarting_and_requests_wait_for_the_new_engine(
    open_gateway: Callable[..., Any],
) -> None:
    gateway = open_gateway(fresh=True)
    gateway.plan(["@exit 3"])
    assert gateway.complete().error == (500, None, "engine_error")
    answer = gateway.get("/health")
    assert (answer.status, answer.json["status"]) == (503, "restarting")
    gateway.plan()
    assert gateway.complete().status == 200  # waited in the queue
    assert gateway.get("/health").json["engine"]["restarts"] == 1


def test_section_13_without_restart_the_engine_stays_down(open_gateway: Callable[..., Any]) -> None:
    gateway = open_gateway(no_restart=True)
    gateway.plan(["@exit 3"])
    assert gateway.complete().error == (500, None, "engine_error")
    gateway.eventually(lambda: gateway.get("/health").json["status"] == "down", "down")
    assert gateway.get("/health").status == 503
    answer = gateway.complete()
    assert answer.error == (503, None, "engine_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert json.loads(gateway.message().body)["error"]["type"] == "overloaded_error"
