"""Resolves the state tables: the life of a request and of a connection.

Guarantees: every state a table names exists, and every event is declared or is a frame.
"""

from __future__ import annotations

from typing import Final

from .findings import Rule, alternatives
from .model import State, StateEvent, StateTable
from .scope import Frozen, Scope, absent, as_scalar, as_tree, item_keys, text_of
from .source import Entry, Scalar
from .source import Mapping as Tree

RULES: Final = (
    Rule(
        "resolve.unknown-state",
        "A transition leads to a state that exists.",
        "Add the state or correct the name.",
    ),
    Rule("resolve.unknown-event", "An event is declared or is a frame.", "Declare it under events."),
)

CONNECTION_EVENTS: Final = ("READY", "FRAME")
"""Events of a connection that stand for the handshake and for any well-formed frame."""


def resolve_states(scope: Scope, section: str) -> StateTable:
    """One state table; upper-case events are frames (or the two general ones of a connection)."""
    entry = scope.tree.entry(section) or absent(section)
    tree = as_tree(entry.value)
    events = tuple(
        StateEvent(**item_keys(event, f"{section}.events.{event.key.text}"))
        for event in as_tree(tree.get("events"))
    )
    states = as_tree(tree.get("states"))
    about = as_tree(tree.get("about"))
    received = scope.names("frames") if section == "request" else set(CONNECTION_EVENTS)
    known_events = {event.name for event in events} | received
    initial = as_scalar(tree.get("initial"))
    if initial is not None and initial.text not in states.names():
        _unknown_state(scope, initial, states, section)
    for described in about:
        if described.key.text not in states.names():
            _unknown_state(scope, described.key, states, section)
    resolved = []
    for state in states:
        label = f"{section}, state {state.key.text}"
        transitions = {}
        for transition in as_tree(state.value):
            target = as_scalar(transition.value)
            if transition.key.text not in known_events:
                hint = alternatives(transition.key.text, known_events, "events")
                message = f"{transition.key.text!r} is no event"
                scope.error("resolve.unknown-event", transition.key.location, message, item=label, hint=hint)
            if target is not None and target.text not in states.names():
                _unknown_state(scope, target, states, label)
            elif target is not None:
                transitions[transition.key.text] = target.text
        plain = Entry(state.key, Tree(state.key.location, ()))
        keys = item_keys(plain, f"{section}.states.{state.key.text}", text_of(about, state.key.text))
        resolved.append(State(**keys, transitions=Frozen(transitions)))
    return StateTable(
        **item_keys(entry, section), initial=text_of(tree, "initial"), events=events, states=tuple(resolved)
    )


def _unknown_state(scope: Scope, node: Scalar, states: Tree, item: str) -> None:
    hint = alternatives(node.text, states.names(), "states")
    scope.error("resolve.unknown-state", node.location, f"{node.text!r} is no state", item=item, hint=hint)
