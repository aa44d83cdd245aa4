"""POST /v1/chat/completions (http.md §8): the conversation in, one message out, as JSON or as events."""

from __future__ import annotations

import time
from functools import partial

from generated import http
from generated.frames import Done
from generated.words import CHAT_COMPLETION_OBJECT
from server.api.admission import holding_slot, launch_when_admitted, wait_ms, when_rendered
from server.api.answers import Usage, usage_of
from server.api.chat_scores import content_texts
from server.api.checks import (
    Order,
    Values,
    field_environment,
    require_model,
    require_scores,
    require_unstreamed,
    wanted_slot,
)
from server.api.gateway import Gateway
from server.api.generation import Awaited, Gathered, Parked, Streamed
from server.api.options import OptionHooks, Options
from server.api.prompts import within_limit
from server.api.views import JSON_HEADERS, Body
from server.chat import (
    Answer,
    ChatEvents,
    Message,
    StopPolicy,
    answer_outcome,
    chat_message,
    chat_pipeline,
    chat_stop_policy,
    new_id,
    read_messages,
    resolve_thinking,
)
from server.http.exchange import Exchange
from server.http.shared import Work
from server.logprobs import chat_content
from server.scheduler import Admission
from server.sse import EventFrame, compact_json
from server.text import Piece, Pipeline
from server.wire.events import Submission

ENDPOINT = "POST /v1/chat/completions"
PARAM = "messages"


class Chat:
    """The endpoint."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._order = Order(ENDPOINT, "default", field_environment(gateway))

    def create(self, exchange: Exchange, body: Body) -> Work | None:
        """Check the request and answer it. Raises the ApiError of a refusal, or ClientGone."""
        require_model(body, self._gateway.model.id)
        request = _ChatRequest(self._gateway, body, self._order)
        slot = wanted_slot(self._gateway, request.values, body[PARAM])
        return when_rendered(self._gateway, lambda: self._answer(exchange, request, slot))

    def _answer(self, exchange: Exchange, request: _ChatRequest, slot: int | None) -> Work | None:
        request.render()
        if not request.options.stream and request.options.logprobs:
            return lambda: self._answer_scored(exchange, request, slot)
        run = partial(self._run, exchange, request)
        return launch_when_admitted(self._gateway, exchange, slot, run, request.submission)

    def _run(self, exchange: Exchange, request: _ChatRequest, admission: Admission) -> Streamed | Parked:
        gateway = self._gateway
        if request.options.stream:
            visible = gateway.settings.visible_keepalive
            dialect = _ChatStream(request, gateway.model.id, visible_keepalive=visible)
            return Streamed(exchange, admission, request.pipeline(), dialect, gateway.keepalive)

        def answer(run: Gathered, done: Done) -> None:
            self._respond(exchange, request, run, done, wait_ms(admission))

        return Parked(exchange, admission, request.pipeline, answer)

    def _answer_scored(self, exchange: Exchange, request: _ChatRequest, slot: int | None) -> None:
        gateway = self._gateway
        with holding_slot(gateway.scheduler, exchange, slot) as (admission, granted):
            run = Awaited(exchange.request_id, request.pipeline, scored=True)
            exchange.client.on_gone(run.cancel)
            run.start(gateway.engine, request.submission(granted))
            done = run.wait()
        self._respond(exchange, request, run, done, wait_ms(admission))

    def _respond(
        self, exchange: Exchange, request: _ChatRequest, run: Gathered, done: Done, queue_wait: int
    ) -> None:
        usage = usage_of(done)
        exchange.note(prompt_tokens=usage.prompt, completion_tokens=usage.completion)
        head = {
            "id": new_id(http.CHAT_COMPLETION_ID),
            "object": CHAT_COMPLETION_OBJECT,
            "created": int(time.time()),
            "model": self._gateway.model.id,
        }
        written = [compact_json(head)[:-1], b',"choices":[', *request.choice(run), b'],"usage":']
        written += [compact_json(usage.openai()), b"}"]
        headers = [*JSON_HEADERS, (http.X_COLIBRI_QUEUE_WAIT_MS_HEADER, str(queue_wait))]
        exchange.respond(200, headers, written)


class _ChatRequest:
    """A checked request: what goes to the engine, and how its text is read."""

    def __init__(self, gateway: Gateway, body: Body, order: Order) -> None:
        self._family = gateway.model.family
        self._salvage = gateway.settings.tool_salvage
        self._hooks = OptionHooks(gateway, body)
        self._body = body
        self._messages: tuple[Message, ...] = ()
        hooks = self._hooks.table() | {
            "messages": self._read_messages,
            "logprobs_capability": lambda values: require_scores(values, self._family),
            "scores_with_stream": require_unstreamed,
        }
        values = order.run(body, hooks)
        self.values = values
        self.top = values["top_logprobs"] or 0
        scores = max(self.top, 1) if values["logprobs"] else 0
        self.options = Options.of(values, grammar=self._hooks.grammar, logprobs=scores)
        self._thinking = resolve_thinking(values["reasoning_effort"], values["enable_thinking"], self._family)
        self.stop: StopPolicy = chat_stop_policy(
            values["stop"] or (), values["x_colibri_ignore_leading_stop"], self._family
        )
        self._renderer = gateway.renderer
        self._prompt = b""

    def render(self) -> None:
        """Make the prompt. Raises the ApiErrors of a conversation the template does not take."""
        prompt = self._renderer.prompt(self._messages, self._hooks.tool_use, self._thinking)
        self._prompt = within_limit(prompt.encode("utf-8"), PARAM)

    def submission(self, slot: int) -> Submission:
        """The SUBMIT on one slot."""
        return self.options.submission(self._prompt, slot, prompt_param=PARAM)

    def pipeline(self, pending: bytes = b"") -> Pipeline:
        """A new pipeline for one generation; chat has no echo, so nothing is ever pending."""
        return chat_pipeline(self.stop, self._thinking, self._hooks.tool_use, self._salvage)

    def choice(self, run: Gathered) -> list[bytes]:
        """The one choice of a JSON answer, in pieces."""
        answer = Answer(tools=self._hooks.tool_use.active, call_id=http.TOOL_CALL_ID)
        for piece in run.pieces():
            answer.add(piece)
        reason = http.FINISH_REASONS[answer_outcome(run.pipeline, self.stop.from_client)].openai
        scores = [b"null"]
        if self.options.logprobs:
            texts = content_texts(run.records, run.pipeline.removed, self._thinking.split)
            scores = chat_content(run.records, texts, self.top)
        head = b'{"index":0,"message":%b,"logprobs":' % compact_json(chat_message(answer))
        return [head, *scores, b',"finish_reason":%b}' % compact_json(reason)]

    def _read_messages(self, values: Values) -> None:
        self._messages = read_messages(self._body.get(PARAM))


class _ChatStream:
    """The events of a streamed chat answer."""

    def __init__(self, request: _ChatRequest, model: str, *, visible_keepalive: bool) -> None:
        self._events = ChatEvents(
            identifier=new_id(http.CHAT_COMPLETION_ID),
            created=int(time.time()),
            model=model,
            include_usage=request.options.include_usage,
        )
        self.content: EventFrame | None = self._events.content_frame
        self._stops_from_client = request.stop.from_client
        self._visible_keepalive = visible_keepalive

    def opening(self, prompt_tokens: int | None) -> bytes:
        """The role."""
        return self._events.opening()

    def piece(self, piece: Piece) -> bytes:
        """One delta."""
        return self._events.piece(piece)

    def keepalive(self) -> bytes:
        """A delta that adds nothing, or a dot where the operator wants one."""
        return self._events.keepalive(self._visible_keepalive)

    def closing(self, usage: Usage, pipeline: Pipeline) -> bytes:
        """The reason, the totals if they were asked for, and the end mark."""
        outcome = answer_outcome(pipeline, self._stops_from_client)
        return self._events.closing(outcome, usage.openai())
