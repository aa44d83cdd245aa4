"""The connection under any sequence of events hypothesis finds, against a model that walks the spec's tables.

Two connections live through the same history, one fed whole buffers and one byte by byte: what their sinks
hear, frame by frame, and what they write must be the same. Every payload names the request it belongs to, so
a frame that reached the wrong sink would show.
"""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from generated import frames
from generated.states import (
    CONNECTION,
    REQUEST,
    REQUEST_INITIAL,
    REQUEST_TERMINAL,
    ConnectionState,
    RequestState,
)
from server.wire.connection import Connection, Deadlines
from server.wire.events import ConnectionLost, EngineReady, Submission, TelemetryFrame
from server.wire.inflight import Request

READY = frames.write_ready(0, 0.0, 0.0, 1.0)
ACCEPT, STALL = 30.0, 600.0
TERMINAL_CALL = {
    RequestState.FINISHED: "done",
    RequestState.CANCELLED: "cancelled",
    RequestState.FAILED: "failure",
    RequestState.UNSUPPORTED: "failure",
}


class Listener:
    """What one sink heard, one entry per frame."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heard: list[tuple[str, Any]] = []

    def on_accept(self, prompt_tokens: int | None) -> None:
        self.heard.append(("accept", prompt_tokens))

    def _frames(self, name: str, received: list[Any]) -> None:
        assert received, "an event without frames"
        for frame in received:
            assert frame.payload == b"for %d" % self.number, "delivered to the wrong sink"
            self.heard.append((name, frame))

    def on_echo(self, received: list[Any]) -> None:
        self._frames("echo", received)

    def on_data(self, received: list[Any]) -> None:
        self._frames("data", received)

    def on_tool(self, received: list[Any]) -> None:
        self._frames("tool", received)

    def on_done(self, done: Any) -> None:
        self.heard.append(("done", done))

    def on_cancelled(self) -> None:
        self.heard.append(("cancelled", None))

    def on_failure(self, error: Any) -> None:
        self.heard.append(("failure", (error.name, str(error.__cause__))))


class Side:
    """One of the two connections with all that came out of it."""

    def __init__(self, bytewise: bool) -> None:
        self.bytewise = bytewise
        self.connection = Connection(itertools.count(1), Deadlines(ACCEPT, STALL), honours_stop=True)
        self.listeners: list[Listener] = []
        self.requests: list[Request] = []
        self.written = b""
        self.engine: list[tuple[Any, ...]] = []

    def settle(self) -> None:
        self.written += b"".join(message.data for message in self.connection.take_outgoing())
        for event in self.connection.take_events():
            if isinstance(event, (ConnectionLost, EngineReady, TelemetryFrame)):
                self.engine.append((type(event).__name__, *event))
            else:
                event.deliver()

    def feed(self, data: bytes, now: float) -> None:
        for piece in [data[i : i + 1] for i in range(len(data))] if self.bytewise else [data]:
            self.connection.receive_data(piece, now)
            self.settle()


class ConnectionMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.now = 0.0
        self.sides = [Side(bytewise=False), Side(bytewise=True)]
        self.connection_state = CONNECTION[ConnectionState.STARTING]["READY"]
        self.states: list[RequestState] = []  # the model: one state per request, in order of submission
        self.extended: list[bool] = []
        self.accepted: list[bool] = []
        self.prefilled: list[bool] = []  # the engine has sent text or sideband for it
        self.pending = b""
        self.faulted: set[int] = set()
        self.proved_old = False
        for side in self.sides:
            side.feed(READY, self.now)

    def flush(self) -> None:
        """Hand over what the engine has written so far, all in one buffer on the one side."""
        data, self.pending = self.pending, b""
        for side in self.sides:
            side.feed(data, self.now)

    def is_open(self) -> bool:
        return self.connection_state is ConnectionState.OPEN

    def live(self) -> list[int]:
        return [index for index, state in enumerate(self.states) if state not in REQUEST_TERMINAL]

    def lose(self, event: str) -> None:
        self.connection_state = CONNECTION[self.connection_state][event]
        for index in self.live():
            self.states[index] = REQUEST[self.states[index]]["connection_lost"]

    @rule(extended=st.booleans())
    def submit(self, extended: bool) -> None:
        self.flush()
        number = len(self.states) + 1
        submission = Submission(b"hi", 0, 16, 0.7, 0.9, logprobs=2 if extended else 0)
        for side in self.sides:
            listener = Listener(number)
            side.listeners.append(listener)
            side.requests.append(side.connection.submit(submission, listener, self.now))
            side.settle()
        state = REQUEST_INITIAL
        if not self.is_open():
            state = REQUEST[state]["connection_lost"]
        elif extended and self.proved_old:
            state = REQUEST[state]["refused_old"]
        self.states.append(state)
        self.extended.append(extended)
        self.accepted.append(False)
        self.prefilled.append(False)

    @precondition(lambda self: self.states)
    @rule(data=st.data(), kind=st.sampled_from(["ACCEPT", "DATA", "ECHO", "TOOL", "DONE", "ERROR"]))
    def frame(self, data: st.DataObject, kind: str) -> None:
        """The engine says something about a request.

        One in flight, one that is over, or one that never was.
        """
        number = data.draw(st.integers(1, len(self.wire_numbers()) + 1), label="id")
        numbers = self.wire_numbers()
        index = numbers[number - 1] if number <= len(numbers) else None
        payload = b"for %d" % (index + 1 if index is not None else 0)
        self.pending += {
            "ACCEPT": lambda: frames.write_accept(number, 7),
            "DATA": lambda: frames.write_data(number, payload),
            "ECHO": lambda: frames.write_echo(number, payload, 0, -1.0),
            "TOOL": lambda: frames.write_tool(number, payload),
            "DONE": lambda: frames.write_done(number, 1, 1.0, 0.0, 1.0),
            "ERROR": lambda: frames.write_error(number, "SLOT_BUSY"),
        }[kind]()
        if index is None or not self.is_open() or self.states[index] in REQUEST_TERMINAL:
            return
        before = self.states[index]
        after = self.states[index] = REQUEST[before][kind]
        if kind != "ECHO" and before is RequestState.SUBMITTED and after is not RequestState.FAILED:
            self.accepted[index] = True
        self.prefilled[index] |= kind in ("DATA", "TOOL")
        if after is RequestState.FAULTED and kind == "ACCEPT" and before is not RequestState.FAULTED:
            self.states[index] = REQUEST[after]["sent_cancel"]
            self.faulted.add(index)

    def wire_numbers(self) -> list[int]:
        """Index of the request behind each id on the wire; a request that was never sent has none."""
        return [i for i, request in enumerate(self.sides[0].requests) if request.id]

    @rule()
    def hand_over(self) -> None:
        self.flush()

    @precondition(lambda self: self.states)
    @rule(data=st.data(), what=st.sampled_from(["stop", "cancel"]))
    def command(self, data: st.DataObject, what: str) -> None:
        self.flush()
        index = data.draw(st.integers(0, len(self.states) - 1), label="request")
        for side in self.sides:
            getattr(side.connection, what)(side.requests[index], self.now)
            side.settle()
        self.states[index] = REQUEST[self.states[index]].get(f"sent_{what}", self.states[index])

    @rule()
    def refusal_without_id(self) -> None:
        self.flush()
        unacknowledged = [index for index in self.live() if not self.accepted[index]]
        if self.is_open() and len(unacknowledged) == 1 and self.extended[unacknowledged[0]]:
            (index,) = unacknowledged
            self.proved_old = True
            self.states[index] = REQUEST[self.states[index]].get("refused_old", self.states[index])
        self.pending += frames.write_error(0, "BAD_REQUEST")
        self.flush()

    @precondition(lambda self: self.is_open())
    @rule(garbage=st.sampled_from([b"NOISE 1\n", b"DATA 1 70000\n", b"DATA 1 1\nxx", b"DONE 1\n"]))
    def break_the_stream(self, garbage: bytes) -> None:
        self.pending += garbage
        self.lose("fault")

    @precondition(lambda self: self.is_open())
    @rule()
    def end_of_stdout(self) -> None:
        self.flush()
        for side in self.sides:
            side.connection.receive_eof(self.now)
            side.settle()
        self.lose("eof")

    @rule()
    def stall(self) -> None:
        """Long enough for everything in flight to have stalled, and the engine with it."""
        self.flush()
        self.now += STALL
        for side in self.sides:
            side.connection.check(self.now)
            side.settle()
        for index in [index for index in self.live() if not self.prefilled[index]][:1]:
            if self.extended[index]:  # only the first in line has its acceptance clock running
                self.states[index] = REQUEST[self.states[index]].get("accept_timeout", self.states[index])
        stalled = self.live()
        for index in stalled:
            self.states[index] = REQUEST[self.states[index]]["stall_timeout"]
        if stalled:
            self.lose("fault")

    @rule()
    def gateway_ends(self) -> None:
        self.flush()
        for side in self.sides:
            side.connection.shut_down(self.now)
            side.settle()
        for index in self.live():
            self.states[index] = REQUEST[self.states[index]]["connection_lost"]
        self.connection_state = CONNECTION[self.connection_state].get("shutdown", self.connection_state)

    @invariant()
    def both_sides_agree(self) -> None:
        if self.pending:
            return
        whole, bytewise = self.sides
        assert [a.heard for a in whole.listeners] == [b.heard for b in bytewise.listeners]
        assert whole.engine == bytewise.engine
        assert sorted(whole.written.splitlines()) == sorted(bytewise.written.splitlines())

    @invariant()
    def every_request_hears_its_end_once_and_last(self) -> None:
        if self.pending:
            return
        for index, (listener, state) in enumerate(zip(self.sides[0].listeners, self.states, strict=True)):
            names = [name for name, _ in listener.heard]
            ends = [name for name in names if name in TERMINAL_CALL.values()]
            if state not in REQUEST_TERMINAL:
                assert ends == []
            else:
                expected = "failure" if index in self.faulted else TERMINAL_CALL[state]
                assert ends == [expected]
                assert names[-1] == expected
            content = [name for name in names if name not in TERMINAL_CALL.values()]
            assert content[:1] in ([], ["accept"])
            assert content.count("accept") == (1 if content else 0)

    @invariant()
    def nothing_leaks(self) -> None:
        if not self.pending:
            for side in self.sides:
                assert side.connection.in_flight == len(self.live())


TestConnectionMachine = ConnectionMachine.TestCase
TestConnectionMachine.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
