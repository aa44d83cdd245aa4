# Generated from spec/protocol.yaml (target python, template python/states.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""The state tables of the protocol: where each event leads from each state.

A state that nothing leads out of is terminal. An event a state does not list must not happen there: the walker
treats it as a fault. Upper-case events are frames (by their kind), lower-case ones are the gateway's own doings.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RequestState(StrEnum):
    """Upper-case events are frames received for the id; lower-case ones are the gateway's own doings and
    deadlines. (spec: request)
    """

    SUBMITTED = "submitted"
    """SUBMIT is written; nothing is promised to the client yet. (spec: request.states.submitted)"""
    ACCEPTED = "accepted"
    """The engine took the prompt; a stream may be committed. (spec: request.states.accepted)"""
    STREAMING = "streaming"
    """Text or sideband has come; an engine without ACCEPT gets here straight from submitted. (spec:
    request.states.streaming)
    """
    STOPPING = "stopping"
    """STOP is written; text that still comes is discarded. (spec: request.states.stopping)"""
    FAULTED = "faulted"
    """The engine broke this request's order; its client has the error, its frames are discarded until it
    ends. (spec: request.states.faulted)
    """
    CANCELLING = "cancelling"
    """CANCEL is written; the slot stays taken until the engine confirms. (spec: request.states.cancelling)"""
    FINISHED = "finished"
    """DONE came. (spec: request.states.finished)"""
    FAILED = "failed"
    """The client got a named failure. (spec: request.states.failed)"""
    UNSUPPORTED = "unsupported"
    """The engine never acknowledged the extension. (spec: request.states.unsupported)"""
    CANCELLED = "cancelled"
    """The engine confirmed, or nothing more can come. (spec: request.states.cancelled)"""


class RequestEvent(StrEnum):
    """What happens to what is in one of these states."""

    ACCEPT = "ACCEPT"
    """ACCEPT came for the request."""
    ECHO = "ECHO"
    """ECHO came for the request."""
    DATA = "DATA"
    """DATA came for the request."""
    TOOL = "TOOL"
    """TOOL came for the request."""
    DONE = "DONE"
    """DONE came for the request."""
    ERROR = "ERROR"
    """ERROR came for the request."""
    SENT_STOP = "sent_stop"
    """A stop sequence matched and STOP was written. (spec: request.events.sent_stop)"""
    SENT_CANCEL = "sent_cancel"
    """The client is gone and CANCEL was written. (spec: request.events.sent_cancel)"""
    ACCEPT_TIMEOUT = "accept_timeout"
    """An extension request was not accepted in time. (spec: request.events.accept_timeout)"""
    STALL_TIMEOUT = "stall_timeout"
    """No frame came for the request for too long. (spec: request.events.stall_timeout)"""
    REFUSED_OLD = "refused_old"
    """The engine proved too old for the extension this request used. (spec: request.events.refused_old)"""
    WRITE_FAILED = "write_failed"
    """A command of this request could not be written. (spec: request.events.write_failed)"""
    CONNECTION_LOST = "connection_lost"
    """The engine is gone or broke the protocol. (spec: request.events.connection_lost)"""


REQUEST: Final[Mapping[RequestState, Mapping[RequestEvent, RequestState]]] = {
    RequestState.SUBMITTED: {
        RequestEvent.ACCEPT: RequestState.ACCEPTED,
        RequestEvent.ECHO: RequestState.SUBMITTED,
        RequestEvent.DATA: RequestState.STREAMING,
        RequestEvent.TOOL: RequestState.STREAMING,
        RequestEvent.DONE: RequestState.FINISHED,
        RequestEvent.ERROR: RequestState.FAILED,
        RequestEvent.SENT_STOP: RequestState.STOPPING,
        RequestEvent.SENT_CANCEL: RequestState.CANCELLING,
        RequestEvent.ACCEPT_TIMEOUT: RequestState.UNSUPPORTED,
        RequestEvent.REFUSED_OLD: RequestState.UNSUPPORTED,
        RequestEvent.STALL_TIMEOUT: RequestState.FAILED,
        RequestEvent.WRITE_FAILED: RequestState.FAILED,
        RequestEvent.CONNECTION_LOST: RequestState.FAILED,
    },
    RequestState.ACCEPTED: {
        RequestEvent.ACCEPT: RequestState.FAULTED,
        RequestEvent.ECHO: RequestState.ACCEPTED,
        RequestEvent.DATA: RequestState.STREAMING,
        RequestEvent.TOOL: RequestState.STREAMING,
        RequestEvent.DONE: RequestState.FINISHED,
        RequestEvent.ERROR: RequestState.FAILED,
        RequestEvent.SENT_STOP: RequestState.STOPPING,
        RequestEvent.SENT_CANCEL: RequestState.CANCELLING,
        RequestEvent.STALL_TIMEOUT: RequestState.FAILED,
        RequestEvent.WRITE_FAILED: RequestState.FAILED,
        RequestEvent.CONNECTION_LOST: RequestState.FAILED,
    },
    RequestState.STREAMING: {
        RequestEvent.ACCEPT: RequestState.FAULTED,
        RequestEvent.ECHO: RequestState.STREAMING,
        RequestEvent.DATA: RequestState.STREAMING,
        RequestEvent.TOOL: RequestState.STREAMING,
        RequestEvent.DONE: RequestState.FINISHED,
        RequestEvent.ERROR: RequestState.FAILED,
        RequestEvent.SENT_STOP: RequestState.STOPPING,
        RequestEvent.SENT_CANCEL: RequestState.CANCELLING,
        RequestEvent.STALL_TIMEOUT: RequestState.FAILED,
        RequestEvent.WRITE_FAILED: RequestState.FAILED,
        RequestEvent.CONNECTION_LOST: RequestState.FAILED,
    },
    RequestState.STOPPING: {
        RequestEvent.ACCEPT: RequestState.FAULTED,
        RequestEvent.ECHO: RequestState.STOPPING,
        RequestEvent.DATA: RequestState.STOPPING,
        RequestEvent.TOOL: RequestState.STOPPING,
        RequestEvent.DONE: RequestState.FINISHED,
        RequestEvent.ERROR: RequestState.FAILED,
        RequestEvent.SENT_CANCEL: RequestState.CANCELLING,
        RequestEvent.STALL_TIMEOUT: RequestState.FAILED,
        RequestEvent.WRITE_FAILED: RequestState.FAILED,
        RequestEvent.CONNECTION_LOST: RequestState.FAILED,
    },
    RequestState.FAULTED: {
        RequestEvent.ACCEPT: RequestState.FAULTED,
        RequestEvent.ECHO: RequestState.FAULTED,
        RequestEvent.DATA: RequestState.FAULTED,
        RequestEvent.TOOL: RequestState.FAULTED,
        RequestEvent.DONE: RequestState.FAILED,
        RequestEvent.ERROR: RequestState.FAILED,
        RequestEvent.SENT_CANCEL: RequestState.CANCELLING,
        RequestEvent.STALL_TIMEOUT: RequestState.FAILED,
        RequestEvent.WRITE_FAILED: RequestState.FAILED,
        RequestEvent.CONNECTION_LOST: RequestState.FAILED,
    },
    RequestState.CANCELLING: {
        RequestEvent.ACCEPT: RequestState.CANCELLING,
        RequestEvent.ECHO: RequestState.CANCELLING,
        RequestEvent.DATA: RequestState.CANCELLING,
        RequestEvent.TOOL: RequestState.CANCELLING,
        RequestEvent.DONE: RequestState.CANCELLED,
        RequestEvent.ERROR: RequestState.CANCELLED,
        RequestEvent.STALL_TIMEOUT: RequestState.CANCELLED,
        RequestEvent.WRITE_FAILED: RequestState.CANCELLED,
        RequestEvent.CONNECTION_LOST: RequestState.CANCELLED,
    },
    RequestState.FINISHED: {},
    RequestState.FAILED: {},
    RequestState.UNSUPPORTED: {},
    RequestState.CANCELLED: {},
}
"""State → event → next state."""

REQUEST_INITIAL: Final = RequestState.SUBMITTED
"""The state everything starts in."""

REQUEST_TERMINAL: Final[frozenset[RequestState]] = frozenset(
    {
        RequestState.FINISHED,
        RequestState.FAILED,
        RequestState.UNSUPPORTED,
        RequestState.CANCELLED,
    }
)
"""The states nothing leads out of."""


class ConnectionState(StrEnum):
    """READY is the handshake, FRAME any well-formed frame; lower-case events are the gateway's. (spec:
    connection)
    """

    STARTING = "starting"
    """The process runs; its banner is discarded until READY. (spec: connection.states.starting)"""
    OPEN = "open"
    """Requests may be submitted. (spec: connection.states.open)"""
    DRAINING = "draining"
    """Requests in flight finish, none is started. (spec: connection.states.draining)"""
    BROKEN = "broken"
    """Every request in flight got its named failure; the process is replaced. (spec:
    connection.states.broken)
    """
    CLOSED = "closed"
    """The engine ended in order. (spec: connection.states.closed)"""


class ConnectionEvent(StrEnum):
    """What happens to what is in one of these states."""

    READY = "READY"
    """The handshake is complete."""
    FRAME = "FRAME"
    """A well-formed frame came."""
    READY_TIMEOUT = "ready_timeout"
    """No READY within the time the operator set. (spec: connection.events.ready_timeout)"""
    FAULT = "fault"
    """The engine broke the wire contract. (spec: connection.events.fault)"""
    EOF = "eof"
    """The engine closed its stdout. (spec: connection.events.eof)"""
    SHUTDOWN = "shutdown"
    """The gateway is ending; stdin gets closed. (spec: connection.events.shutdown)"""


CONNECTION: Final[Mapping[ConnectionState, Mapping[ConnectionEvent, ConnectionState]]] = {
    ConnectionState.STARTING: {
        ConnectionEvent.READY: ConnectionState.OPEN,
        ConnectionEvent.FAULT: ConnectionState.BROKEN,
        ConnectionEvent.EOF: ConnectionState.BROKEN,
        ConnectionEvent.READY_TIMEOUT: ConnectionState.BROKEN,
        ConnectionEvent.SHUTDOWN: ConnectionState.CLOSED,
    },
    ConnectionState.OPEN: {
        ConnectionEvent.FRAME: ConnectionState.OPEN,
        ConnectionEvent.FAULT: ConnectionState.BROKEN,
        ConnectionEvent.EOF: ConnectionState.BROKEN,
        ConnectionEvent.SHUTDOWN: ConnectionState.DRAINING,
    },
    ConnectionState.DRAINING: {
        ConnectionEvent.FRAME: ConnectionState.DRAINING,
        ConnectionEvent.FAULT: ConnectionState.BROKEN,
        ConnectionEvent.EOF: ConnectionState.CLOSED,
        ConnectionEvent.SHUTDOWN: ConnectionState.DRAINING,
    },
    ConnectionState.BROKEN: {},
    ConnectionState.CLOSED: {},
}
"""State → event → next state."""

CONNECTION_INITIAL: Final = ConnectionState.STARTING
"""The state everything starts in."""

CONNECTION_TERMINAL: Final[frozenset[ConnectionState]] = frozenset(
    {
        ConnectionState.BROKEN,
        ConnectionState.CLOSED,
    }
)
"""The states nothing leads out of."""
