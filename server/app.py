"""Putting the gateway together: the parts of one process, and the handlers and pages in front of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from functools import partial

from flask import Flask, Request
from werkzeug.routing import BaseConverter, MapAdapter

from generated import http
from server.api.chat import Chat
from server.api.completions import Completions
from server.api.documents import Documents
from server.api.gateway import Gateway
from server.api.health import Health
from server.api.keepalive import KeepaliveTimer
from server.api.messages import Messages
from server.api.models import Models
from server.api.telemetry import TelemetryPages
from server.api.views import View, body_handler, get_view, install_error_handlers
from server.chat.renderer import ChatRenderer
from server.chat.sandbox import TemplateFailure
from server.engines import engine_launch
from server.http.config import HttpConfig
from server.http.routes import contract_routes
from server.http.server import HttpServer
from server.http.shared import Handler
from server.metrics import Metrics
from server.model import ModelError, ServedModel
from server.scheduler import Scheduler
from server.settings import Settings
from server.wire.requests import EngineClient
from server.wire.supervisor import EngineTimeouts

logger = logging.getLogger("colibri.server")


def build_gateway(settings: Settings, model: ServedModel, environ: Mapping[str, str]) -> Gateway:
    """The parts, nothing started yet. Raises EngineError when there is no engine to
    start, ModelError when the model's chat template is broken.
    """
    scheduler = Scheduler(
        capacity=settings.kv_slots, max_queue=settings.max_queue, queue_timeout=settings.queue_timeout
    )
    timeouts = EngineTimeouts(
        ready=settings.ready_timeout,
        accept=settings.logprobs_accept_timeout,
        stall=settings.engine_stall_timeout,
        write=settings.engine_write_timeout,
        kill=settings.engine_kill_timeout,
        backoff_first=settings.restart_backoff_first,
        backoff_last=settings.restart_backoff_last,
    )
    engine = EngineClient(
        engine_launch(settings, model, environ),
        timeouts,
        family=model.family,
        restart=not settings.no_restart,
        on_availability=scheduler.set_availability,
    )
    metrics = Metrics(sorted({route.path for route in http.ROUTES}))
    metrics.watch(scheduler.counters, engine.health)
    return Gateway(
        settings=settings,
        model=model,
        scheduler=scheduler,
        engine=engine,
        keepalive=KeepaliveTimer(settings.keepalive),
        metrics=metrics,
        renderer=_renderer(model),
    )


def _renderer(model: ServedModel) -> ChatRenderer:
    try:
        return ChatRenderer.load(model.directory, model.family)
    except TemplateFailure as failure:
        raise ModelError(f"the chat template of {model.directory} cannot be used: {failure}") from failure


class _Rest(BaseConverter):
    """Everything that is left of the path, slashes at any place included."""

    regex = ".+"
    part_isolating = False


class _Application(Flask):
    """Flask without a second look at the Host header, which the HTTP layer has judged; no rule depends on
    it.
    """

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """See Flask; where there is no request, nothing here builds URLs."""
        if request is None:
            return None
        return MapAdapter(self.url_map, "localhost", "/", "", "http", request.path, request.method)


def create_application(gateway: Gateway) -> Flask:
    """The WSGI application: every page. It runs behind the HTTP layer, which has checked Host, key, path and
    method already.
    """
    application = _Application("server", static_folder=None)
    application.url_map.merge_slashes = False
    application.url_map.converters["rest"] = _Rest
    install_error_handlers(application)
    for (method, path), view in _views(gateway).items():
        rule = path.replace("{id}", "<rest:id>")
        application.add_url_rule(
            rule, f"{method} {path}", view, methods=[method], provide_automatic_options=False
        )
    return application


def _views(gateway: Gateway) -> dict[tuple[str, str], View]:
    models, telemetry, documents = Models(gateway), TelemetryPages(gateway), Documents()
    return {
        ("GET", "/v1/models"): get_view(models.listing),
        ("GET", "/v1/models/{id}"): get_view(models.single),
        ("GET", "/health"): get_view(Health(gateway).show),
        ("GET", "/profile"): get_view(telemetry.profile),
        ("GET", "/experts"): get_view(telemetry.experts),
        ("GET", "/metrics"): get_view(telemetry.metrics),
        ("GET", "/openapi.json"): get_view(documents.openapi),
        ("GET", "/docs"): get_view(documents.page),
    }


def create_handlers(gateway: Gateway) -> dict[tuple[str, str], Handler]:
    """Who answers the requests with a body, by method and path: the hot path, which Flask has no part in."""
    messages = Messages(gateway)
    return {
        ("POST", "/v1/completions"): body_handler(Completions(gateway).create),
        ("POST", "/v1/chat/completions"): body_handler(Chat(gateway).create),
        ("POST", "/v1/messages"): body_handler(messages.create),
        ("POST", "/v1/messages/count_tokens"): body_handler(messages.count),
    }


def create_server(gateway: Gateway) -> HttpServer:
    """The listening HTTP server. Raises BindError when the address is taken."""
    settings = gateway.settings
    config = HttpConfig(
        host=settings.host,
        port=settings.port,
        routes=contract_routes(),
        key=settings.api_key or None,
        allowed_hosts=settings.allowed_host,
        cors_origins=settings.cors_origin,
        max_body_bytes=settings.max_body_bytes,
        read_deadline=settings.read_deadline,
        idle_timeout=settings.idle_timeout,
        write_stall=settings.write_stall_timeout,
        max_connections=settings.max_connections,
        max_connections_per_peer=settings.max_connections_per_ip,
        json_log=settings.log_format == "json",
        observer=gateway.metrics,
        on_shut_down=gateway.scheduler.shut_down,
        on_time_over=partial(_end_engine, gateway),
    )
    return HttpServer(create_application(gateway), config, create_handlers(gateway))


def _end_engine(gateway: Gateway) -> None:
    """What is in flight fails by name; the loop goes on meanwhile, to write it."""
    threading.Thread(target=gateway.engine.shut_down, name="engine-end", daemon=True).start()
