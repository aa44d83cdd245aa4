"""POST /v1/completions: one prompt or a batch, JSON or a stream, with log probabilities and echo (http.md
§7, §9).

A batch is one admission on one KV slot; its members run one after the other, each exactly like a request of
its own, so that every choice equals its single-prompt twin. Nothing is written until all are done.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from generated import errors, families, http, limits
from generated.errors import ApiError
from generated.frames import Done
from generated.words import COMPLETION_OBJECT
from server.api import prompts
from server.api.admission import holding_slot, launch_when_admitted, wait_ms
from server.api.answers import Usage, usage_of
from server.api.checks import (
    Order,
    Values,
    field_environment,
    require_model,
    require_unstreamed,
    wanted_slot,
)
from server.api.gateway import Gateway
from server.api.generation import Awaited, Gathered, Parked, Streamed
from server.api.options import OptionHooks, Options
from server.api.prompts import Prompt
from server.api.views import JSON_HEADERS, Body
from server.http.exchange import ClientGone, Exchange
from server.http.shared import Work
from server.ids import new_id
from server.logprobs import CompletionScores, EchoOutOfPlace
from server.scheduler import Admission
from server.sse import DONE, EventFrame, compact_json, event, hole
from server.text.pieces import ContentDelta, Piece
from server.text.pipeline import Pipeline
from server.wire.events import Submission, WireFailure
from server.wire.refused import GRAMMAR_PARAM

ENDPOINT = "POST /v1/completions"


class Completions:
    """The endpoint."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        environment = field_environment(gateway)
        self._flat = Order(ENDPOINT, "flat", environment)
        self._batch = Order(ENDPOINT, "batch", environment)

    def create(self, exchange: Exchange, body: Body) -> Work | None:
        """Check the request and answer it. Raises the ApiError of a refusal, or ClientGone."""
        require_model(body, self._gateway.model.id)
        intake = _Intake(self._gateway, body)
        values = intake.check(self._batch if intake.batch else self._flat)
        run = _Run(self._gateway, exchange, intake.options(values), values)
        slot = wanted_slot(self._gateway, values)
        if intake.batch:
            return lambda: run.answer_batch(intake.prompts, slot)
        prompt = intake.prompts[0]
        if run.options.stream:
            return run.stream(prompt, slot)
        if run.options.logprobs:
            return lambda: run.answer_scored(prompt, slot)
        return run.answer(prompt, slot)


class _Intake:
    """The checks of the endpoint: the tables' and its own."""

    def __init__(self, gateway: Gateway, body: Body) -> None:
        self._body = body
        self._token_ids = families.TOKEN_IDS in gateway.model.family.can
        self._hooks = OptionHooks(gateway, body)
        self.batch = prompts.is_batch(body)
        self.prompts: list[Prompt] = []

    def check(self, order: Order) -> Values:
        """Every check, in the order of the flat path or of the batch."""
        hooks = self._hooks.table() | {
            "prompt": self._prompt,
            "prompts": self._prompts,
            "members": self._members,
            "completion_budget": self._completion_budget,
            "scores_with_stream": require_unstreamed,
            "batch_with_stream": self._batch_with_stream,
        }
        return order.run(self._body, hooks)

    def options(self, values: Values) -> Options:
        """What the engine is told."""
        return Options.of(values, grammar=self._hooks.grammar, logprobs=values["logprobs"] or 0)

    def _prompt(self, values: Values) -> None:
        self.prompts = [prompts.flat_prompt(self._body.get(prompts.PARAM), token_ids=self._token_ids)]

    def _prompts(self, values: Values) -> None:
        prompts.batch_prompts(self._body[prompts.PARAM], token_ids=self._token_ids)

    def _members(self, values: Values) -> None:
        self.prompts = prompts.batch_members(self._body[prompts.PARAM])

    def _completion_budget(self, values: Values) -> None:
        asked = len(self.prompts) * values["max_tokens"]
        if asked <= limits.BATCH_COMPLETION_TOKENS:
            return
        unset = all(self._body.get(name) is None for name in ("max_completion_tokens", "max_tokens"))
        refuse = errors.batch_completion_budget_unset if unset else errors.batch_completion_budget_exceeded
        raise refuse(limit=limits.BATCH_COMPLETION_TOKENS, got=asked)

    def _batch_with_stream(self, values: Values) -> None:
        if values["stream"]:
            raise errors.unsupported_parameter(
                param="stream", message="Several prompts cannot be streamed; send one prompt per request."
            )


@dataclass(frozen=True, slots=True)
class _Choice:
    """One finished prompt: its choice object as JSON, in pieces."""

    data: list[bytes]
    usage: Usage


class _Run:
    """A checked request on its way through the engine."""

    def __init__(self, gateway: Gateway, exchange: Exchange, options: Options, values: Values) -> None:
        self._gateway = gateway
        self._exchange = exchange
        self.options = options
        self._stops: tuple[str, ...] = values["stop"] or ()  # raw completions get no default stops
        self._ignore_leading_stop: bool = values["x_colibri_ignore_leading_stop"]
        self._echo: bool = bool(options.logprobs) and values["echo"]
        self._head: dict[str, Any] = {
            "id": new_id(http.COMPLETION_ID),
            "object": COMPLETION_OBJECT,
            "created": int(time.time()),
            "model": gateway.model.id,
        }

    def answer_scored(self, prompt: Prompt, slot: int | None) -> None:
        """One prompt with log probabilities, as JSON."""
        with holding_slot(self._gateway.scheduler, self._exchange, slot) as (admission, granted):
            choice = self._generate(prompt, granted, 0)
        self._respond([choice], wait_ms(admission))

    def answer(self, prompt: Prompt, slot: int | None) -> Work | None:
        """One prompt, as JSON. The engine's reader thread writes it; this returns when the prompt is
        submitted.
        """

        def run(admission: Admission) -> Parked:
            def answer(run: Gathered, done: Done) -> None:
                self._respond([self._choice(run, done, 0)], wait_ms(admission))

            return Parked(self._exchange, admission, self._pipeline, answer)

        submission = partial(self._submission, prompt)
        return launch_when_admitted(self._gateway, self._exchange, slot, run, submission)

    def answer_batch(self, members: Sequence[Prompt], slot: int | None) -> None:
        """Several prompts on one slot, as JSON."""
        choices: list[_Choice] = []
        with holding_slot(self._gateway.scheduler, self._exchange, slot) as (admission, granted):
            for index, prompt in enumerate(members):
                try:
                    choices.append(self._generate(prompt, granted, index))
                except ApiError as error:
                    raise attributed(error, index) from error
        self._respond(choices, wait_ms(admission))

    def stream(self, prompt: Prompt, slot: int | None) -> Work | None:
        """One prompt, as events, written by the engine's reader thread as well."""

        def run(admission: Admission) -> Streamed:
            dialect = CompletionEvents(self._head, include_usage=self.options.include_usage)
            pipeline = self._pipeline(b"")
            return Streamed(self._exchange, admission, pipeline, dialect, self._gateway.keepalive)

        submission = partial(self._submission, prompt)
        return launch_when_admitted(self._gateway, self._exchange, slot, run, submission)

    def _pipeline(self, pending: bytes) -> Pipeline:
        return Pipeline(stops=self._stops, ignore_leading_stop=self._ignore_leading_stop, pending=pending)

    def _submission(self, prompt: Prompt, slot: int) -> Submission:
        return self.options.submission(prompt.data, slot, ids=prompt.ids, prompt_param=prompt.param)

    def _generate(self, prompt: Prompt, slot: int, index: int) -> _Choice:
        if self._exchange.client.is_gone:
            raise ClientGone
        run = Awaited(
            self._exchange.request_id,
            self._pipeline,
            scored=bool(self.options.logprobs),
            echo=self._echo,
        )
        self._exchange.client.on_gone(run.cancel)
        run.start(self._gateway.engine, self._submission(prompt, slot))
        return self._choice(run, run.wait(), index)

    def _choice(self, run: Gathered, done: Done, index: int) -> _Choice:
        text = "".join(piece.text for piece in run.pieces() if isinstance(piece, ContentDelta))
        outcome = run.pipeline.finish_reason if self.options.max_tokens else http.Outcome.LENGTH
        reason = http.FINISH_REASONS[outcome].openai
        if not self.options.logprobs:
            choice = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
            return _Choice([compact_json(choice)], usage_of(done))
        return _Choice(self._scored_choice(run, index, text, reason), usage_of(done))

    def _scored_choice(self, run: Gathered, index: int, text: str, reason: str) -> list[bytes]:
        scores = CompletionScores(self.options.logprobs)
        nothing_generated = not len(run.records)
        if run.echo is not None:
            try:
                prompt = run.echo.placed()
            except EchoOutOfPlace as fault:
                raise errors.engine_error() from WireFailure(str(fault))
            run.echo = None
            scores.add_prompt(prompt, complete=nothing_generated)
        scores.add_generated(run.records, run.pending, run.pipeline.removed)
        text = scores.prompt_text if nothing_generated else scores.prompt_text + text
        if nothing_generated and self.options.max_tokens:
            scores.add_unreported(len(text))  # sampled, swallowed, and not even an empty DATA for it
        head = b'{"index":%d,"text":%b,"logprobs":' % (index, compact_json(text))
        return [head, *scores.chunks(), b',"finish_reason":%b}' % compact_json(reason)]

    def _respond(self, choices: Sequence[_Choice], queue_wait: int) -> None:
        usage = sum((choice.usage for choice in choices), Usage(0, 0))
        self._exchange.note(prompt_tokens=usage.prompt, completion_tokens=usage.completion)
        written = [compact_json(self._head)[:-1], b',"choices":[']
        for index, choice in enumerate(choices):
            written += [b",", *choice.data] if index else choice.data
        written += [b'],"usage":', compact_json(usage.openai()), b"}"]
        headers = [*JSON_HEADERS, (http.X_COLIBRI_QUEUE_WAIT_MS_HEADER, str(queue_wait))]
        self._exchange.respond(200, headers, written)


def attributed(error: ApiError, index: int) -> ApiError:
    """The error of a batch whose member ``index`` failed with ``error`` (http.md §7).

    A client's fault names the member; a typed fault of the server says it in its message; an unnamed
    failure stays as it is, and so does the fault of a grammar, which is no member's: all have the same.
    """
    if error.name == errors.engine_error().name or error.param == GRAMMAR_PARAM:
        return error
    member = prompts.member_param(index)
    param = member if error.status < 500 else error.param
    return error.relabelled(param=param, prefix=f"{member}: ")


class CompletionEvents:
    """The events of a streamed completion (http.md §7)."""

    def __init__(self, head: dict[str, Any], *, include_usage: bool) -> None:
        self._head = head
        self._include_usage = include_usage
        self.content: EventFrame | None = EventFrame.around(self._chunk(hole(), None))
        self._fill = self.content.fill

    def opening(self, prompt_tokens: int | None) -> bytes:
        """Nothing: the text is the first event."""
        return b""

    def piece(self, piece: Piece) -> bytes:
        """One event with the text."""
        return self._fill(piece.text) if type(piece) is ContentDelta else b""

    def keepalive(self) -> bytes:
        """An event without text."""
        return self._fill("")

    def closing(self, usage: Usage, pipeline: Pipeline) -> bytes:
        """The reason, the totals if they were asked for, and the end mark."""
        last = event(self._chunk("", http.FINISH_REASONS[pipeline.finish_reason].openai))
        if self._include_usage:
            last += event({**self._head, "choices": [], "usage": usage.openai()})
        return last + DONE

    def _chunk(self, text: str, reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._include_usage else {}
        return {**self._head, "choices": [choice], **usage}
