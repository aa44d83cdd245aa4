"""POST /v1/messages and POST /v1/messages/count_tokens: the Anthropic dialect (http.md §16)."""

from __future__ import annotations

from functools import partial
from typing import Any

from generated import http
from generated.frames import Done
from generated.words import ANTHROPIC_ANSWER_ROLE, ANTHROPIC_ANSWER_TYPE
from server.api.admission import launch_when_admitted, wait_ms, when_rendered
from server.api.answers import Usage, usage_of
from server.api.checks import Order, Values, field_environment, require_model, wanted_slot
from server.api.gateway import Gateway
from server.api.generation import Gathered, Parked, Streamed
from server.api.options import Options
from server.api.prompts import within_limit
from server.api.token_count import TokenCounter
from server.api.views import JSON_HEADERS, Body
from server.chat import (
    Answer,
    MessageEvents,
    answer_outcome,
    anthropic_content,
    chat_pipeline,
    chat_stop_policy,
    choose_anthropic_tools,
    new_id,
    plain_messages,
    read_anthropic_messages,
    read_anthropic_tools,
    read_stop_sequences,
    read_system,
    read_thinking,
    with_system,
)
from server.http.exchange import Exchange
from server.http.shared import Work
from server.scheduler import Admission
from server.sse import EventFrame, compact_json
from server.text import Piece, Pipeline
from server.wire.events import Submission

ENDPOINT = "POST /v1/messages"
COUNT_ENDPOINT = "POST /v1/messages/count_tokens"
PARAM = "messages"


class Messages:
    """Both endpoints."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        environment = field_environment(gateway)
        self._order = Order(ENDPOINT, "default", environment)
        self._count_order = Order(COUNT_ENDPOINT, "default", environment)
        self._counter = TokenCounter(gateway.model.tokenizer_path)

    def create(self, exchange: Exchange, body: Body) -> Work | None:
        """Check the request and answer it. Raises the ApiError of a refusal, or ClientGone."""
        require_model(body, self._gateway.model.id)
        request = _MessageRequest(self._gateway, body, self._order)
        slot = wanted_slot(self._gateway, request.values, request.plain_messages())
        return when_rendered(self._gateway, lambda: self._answer(exchange, request, slot))

    def count(self, exchange: Exchange, body: Body) -> Work | None:
        """Count the prompt tokens the same request would report; takes no slot."""
        return lambda: self._count(exchange, body)  # the first one loads the tokenizer

    def _count(self, exchange: Exchange, body: Body) -> None:
        require_model(body, self._gateway.model.id)
        conversation = _Conversation(self._gateway, body)
        self._count_order.run(body, conversation.hooks())
        tokens = self._counter.count(conversation.prompt())
        exchange.note(prompt_tokens=tokens)
        exchange.respond(200, JSON_HEADERS, compact_json({"input_tokens": tokens}))

    def _answer(self, exchange: Exchange, request: _MessageRequest, slot: int | None) -> Work | None:
        request.render()
        run = partial(self._run, exchange, request)
        return launch_when_admitted(self._gateway, exchange, slot, run, request.submission)

    def _run(self, exchange: Exchange, request: _MessageRequest, admission: Admission) -> Streamed | Parked:
        gateway = self._gateway
        if request.options.stream:
            dialect = _MessageStream(request, gateway.model.id)
            return Streamed(exchange, admission, request.pipeline(), dialect, gateway.keepalive)

        def answer(run: Gathered, done: Done) -> None:
            usage = usage_of(done, run.accepted)
            exchange.note(prompt_tokens=usage.prompt, completion_tokens=usage.completion)
            headers = [*JSON_HEADERS, (http.X_COLIBRI_QUEUE_WAIT_MS_HEADER, str(wait_ms(admission)))]
            exchange.respond(200, headers, request.message(run, usage, gateway.model.id))

        return Parked(exchange, admission, request.pipeline, answer)


class _Conversation:
    """What both endpoints read: system, messages, tools and the thinking switch."""

    def __init__(self, gateway: Gateway, body: Body) -> None:
        self._family = gateway.model.family
        self._renderer = gateway.renderer
        self._body = body

    def hooks(self) -> dict[str, Any]:
        """Handlers by hook name."""
        return {
            "system": self._read_system,
            "messages": self._read_messages,
            "anthropic_tools": self._read_tools,
            "anthropic_tool_choice": self._choose_tools,
            "thinking": self._read_thinking,
        }

    def prompt(self) -> str:
        """The rendered prompt; after the checks."""
        return self._renderer.prompt(self.messages, self.tool_use, self.thinking)

    def _read_system(self, values: Values) -> None:
        self._system = read_system(self._body.get("system"))

    def _read_messages(self, values: Values) -> None:
        self.messages = with_system(self._system, read_anthropic_messages(self._body.get(PARAM)))

    def _read_tools(self, values: Values) -> None:
        self._tools = read_anthropic_tools(self._body.get("tools"))

    def _choose_tools(self, values: Values) -> None:
        self.tool_use = choose_anthropic_tools(self._tools, self._body.get("tool_choice"), self._family)

    def _read_thinking(self, values: Values) -> None:
        self.thinking = read_thinking(self._body.get("thinking"), self._family)


class _MessageRequest:
    """A checked request: what goes to the engine, and how its text is read."""

    def __init__(self, gateway: Gateway, body: Body, order: Order) -> None:
        self._conversation = _Conversation(gateway, body)
        self._salvage = gateway.settings.tool_salvage
        self._body = body
        self._stops: tuple[str, ...] = ()
        hooks = self._conversation.hooks() | {
            "stop_sequences": self._read_stops,
            "translate": _nothing,
            "grammar_capability": _nothing,
            "admission": _nothing,
        }
        self.values = order.run(body, hooks)
        self.options = Options.of(self.values)
        self.stop = chat_stop_policy(
            self._stops, self.values["x_colibri_ignore_leading_stop"], gateway.model.family
        )
        self._prompt = b""
        self.thinks = self._conversation.thinking.on
        self.offers_tools = self._conversation.tool_use.active

    def render(self) -> None:
        """Make the prompt. Raises the ApiErrors of a conversation the template does not take."""
        self._prompt = within_limit(self._conversation.prompt().encode("utf-8"), PARAM)

    def plain_messages(self) -> list[dict[str, str]]:
        """The messages as the choice of a slot wants them."""
        return plain_messages(self._conversation.messages)

    def submission(self, slot: int) -> Submission:
        """The SUBMIT on one slot."""
        return self.options.submission(self._prompt, slot, prompt_param=PARAM)

    def pipeline(self, pending: bytes = b"") -> Pipeline:
        """A new pipeline for one generation; there is no echo, so nothing is ever pending."""
        conversation = self._conversation
        return chat_pipeline(self.stop, conversation.thinking, conversation.tool_use, self._salvage)

    def stop_sequence(self, pipeline: Pipeline) -> str | None:
        """Which of the client's own sequences ended the answer."""
        outcome = answer_outcome(pipeline, self.stop.from_client)
        return pipeline.stop_sequence if outcome is http.Outcome.SEQUENCE else None

    def message(self, run: Gathered, usage: Usage, model: str) -> list[bytes]:
        """The JSON answer, in pieces."""
        answer = Answer(tools=self.offers_tools, call_id=http.ANTHROPIC_TOOL_CALL_ID)
        for piece in run.pieces():
            answer.add(piece)
        outcome = answer_outcome(run.pipeline, self.stop.from_client)
        head = {
            "id": new_id(http.ANTHROPIC_MESSAGE_ID),
            "type": ANTHROPIC_ANSWER_TYPE,
            "role": ANTHROPIC_ANSWER_ROLE,
            "model": model,
        }
        end = {
            "stop_reason": http.FINISH_REASONS[outcome].anthropic,
            "stop_sequence": self.stop_sequence(run.pipeline),
            "usage": {"input_tokens": usage.prompt, "output_tokens": usage.completion},
        }
        content = anthropic_content(answer, self.thinks)
        return [compact_json(head)[:-1], b',"content":', content, b",", compact_json(end)[1:]]

    def _read_stops(self, values: Values) -> None:
        self._stops = read_stop_sequences(self._body.get("stop_sequences"))


def _nothing(values: Values) -> None:
    """A step of the order that this dialect has nothing to do at."""


class _MessageStream:
    """The events of a streamed message."""

    content: EventFrame | None = None  # a piece may open or close a block

    def __init__(self, request: _MessageRequest, model: str) -> None:
        self._request = request
        self._events = MessageEvents(
            identifier=new_id(http.ANTHROPIC_MESSAGE_ID),
            model=model,
            thinking=request.thinks,
            tools=request.offers_tools,
        )
        self._says_prompt_tokens_last = False

    def opening(self, prompt_tokens: int | None) -> bytes:
        """message_start, with the prompt's tokens from ACCEPT; engines that send none say them with DONE."""
        self._says_prompt_tokens_last = prompt_tokens is None
        return self._events.opening(prompt_tokens or 0)

    def piece(self, piece: Piece) -> bytes:
        """Deltas, and the starts and stops of blocks around them."""
        return self._events.piece(piece)

    def keepalive(self) -> bytes:
        """ping."""
        return self._events.keepalive()

    def closing(self, usage: Usage, pipeline: Pipeline) -> bytes:
        """The end of the open block, message_delta and message_stop."""
        outcome = answer_outcome(pipeline, self._request.stop.from_client)
        late = usage.prompt if self._says_prompt_tokens_last else None
        return self._events.closing(outcome, pipeline.stop_sequence, usage.completion, late)
