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


REQUEST: Final[Mapping[RequestState, Mapping[str, RequestState]]] = {
    RequestState.SUBMITTED: {
        "ACCEPT": RequestState.ACCEPTED,
        "ECHO": RequestState.SUBMITTED,
        "DATA": RequestState.STREAMING,
        "TOOL": RequestState.STREAMING,
        "DONE": RequestState.FINISHED,
        "ERROR": RequestState.FAILED,
        "sent_stop": RequestState.STOPPING,
        "sent_cancel": RequestState.CANCELLING,
        "accept_timeout": RequestState.UNSUPPORTED,
        "refused_old": RequestState.UNSUPPORTED,
        "stall_timeout": RequestState.FAILED,
        "write_failed": RequestState.FAILED,
        "connection_lost": RequestState.FAILED,
    },
    RequestState.ACCEPTED: {
        "ACCEPT": RequestState.FAULTED,
        "ECHO": RequestState.ACCEPTED,
        "DATA": RequestState.STREAMING,
        "TOOL": RequestState.STREAMING,
        "DONE": RequestState.FINISHED,
        "ERROR": RequestState.FAILED,
        "sent_stop": RequestState.STOPPING,
        "sent_cancel": RequestState.CANCELLING,
        "stall_timeout": RequestState.FAILED,
        "write_failed": RequestState.FAILED,
        "connection_lost": RequestState.FAILED,
    },
    RequestState.STREAMING: {
        "ACCEPT": RequestState.FAULTED,
        "ECHO": RequestState.STREAMING,
        "DATA": RequestState.STREAMING,
        "TOOL": RequestState.STREAMING,
        "DONE": RequestState.FINISHED,
        "ERROR": RequestState.FAILED,
        "sent_stop": RequestState.STOPPING,
        "sent_cancel": RequestState.CANCELLING,
        "stall_timeout": RequestState.FAILED,
        "write_failed": RequestState.FAILED,
        "connection_lost": RequestState.FAILED,
    },
    RequestState.STOPPING: {
        "ACCEPT": RequestState.FAULTED,
        "ECHO": RequestState.STOPPING,
        "DATA": RequestState.STOPPING,
        "TOOL": RequestState.STOPPING,
        "DONE": RequestState.FINISHED,
        "ERROR": RequestState.FAILED,
        "sent_cancel": RequestState.CANCELLING,
        "stall_timeout": RequestState.FAILED,
        "write_failed": RequestState.FAILED,
        "connection_lost": RequestState.FAILED,
    },
    RequestState.FAULTED: {
        "ACCEPT": RequestState.FAULTED,
        "ECHO": RequestState.FAULTED,
        "DATA": RequestState.FAULTED,
        "TOOL": RequestState.FAULTED,
        "DONE": RequestState.FAILED,
        "ERROR": RequestState.FAILED,
        "sent_cancel": RequestState.CANCELLING,
        "stall_timeout": RequestState.FAILED,
        "write_failed": RequestState.FAILED,
        "connection_lost": RequestState.FAILED,
    },
    RequestState.CANCELLING: {
        "ACCEPT": RequestState.CANCELLING,
        "ECHO": RequestState.CANCELLING,
        "DATA": RequestState.CANCELLING,
        "TOOL": RequestState.CANCELLING,
        "DONE": RequestState.CANCELLED,
        "ERROR": RequestState.CANCELLED,
        "stall_timeout": RequestState.CANCELLED,
        "write_failed": RequestState.CANCELLED,
        "connection_lost": RequestState.CANCELLED,
    },
    RequestState.FINISHED: {},
    RequestState.FAILED: {},
    RequestState.UNSUPPORTED: {},
    RequestState.CANCELLED: {},
}
"""State → event → next state. Events that are not frames: ``sent_stop``: A stop sequence matched and STOP was
written. ``sent_cancel``: The client is gone and CANCEL was written. ``accept_timeout``: An extension request
was not accepted in time. ``stall_timeout``: No frame came for the request for too long. ``refused_old``: The
engine proved too old for the extension this request used. ``write_failed``: A command of this request could
not be written. ``connection_lost``: The engine is gone or broke the protocol.
"""

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


CONNECTION: Final[Mapping[ConnectionState, Mapping[str, ConnectionState]]] = {
    ConnectionState.STARTING: {
        "READY": ConnectionState.OPEN,
        "fault": ConnectionState.BROKEN,
        "eof": ConnectionState.BROKEN,
        "ready_timeout": ConnectionState.BROKEN,
        "shutdown": ConnectionState.CLOSED,
    },
    ConnectionState.OPEN: {
        "FRAME": ConnectionState.OPEN,
        "fault": ConnectionState.BROKEN,
        "eof": ConnectionState.BROKEN,
        "shutdown": ConnectionState.DRAINING,
    },
    ConnectionState.DRAINING: {
        "FRAME": ConnectionState.DRAINING,
        "fault": ConnectionState.BROKEN,
        "eof": ConnectionState.CLOSED,
        "shutdown": ConnectionState.DRAINING,
    },
    ConnectionState.BROKEN: {},
    ConnectionState.CLOSED: {},
}
"""State → event → next state. Events that are not frames: ``ready_timeout``: No READY within the time the
operator set. ``fault``: The engine broke the wire contract. ``eof``: The engine closed its stdout.
``shutdown``: The gateway is ending; stdin gets closed.
"""

CONNECTION_INITIAL: Final = ConnectionState.STARTING
"""The state everything starts in."""

CONNECTION_TERMINAL: Final[frozenset[ConnectionState]] = frozenset(
    {
        ConnectionState.BROKEN,
        ConnectionState.CLOSED,
    }
)
"""The states nothing leads out of."""
