"""SVG drawings: a railroad diagram of each layout, and each state table as boxes and arrows.

Deterministic: the same model gives the same bytes. Railroads come from the railroad-diagrams library; state
tables are laid out here, one lane per arrow so that no two labels can meet, because a general graph drawer
would be a program to install.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from ..layout import Counted, Extensions, Ignored, Literal, Optional, Part, Rest, Word
from ..model import Message, State, StateTable

MARGIN, BOX_WIDTH, BOX_HEIGHT = 20, 230, 44
PORT, GAP, LANE = 17, 16, 14

STYLE = """
svg { background: #ffffff; }
path { stroke: #3f51b5; stroke-width: 1.6; fill: none; }
rect { stroke: #3f51b5; stroke-width: 1.6; fill: #e8eaf6; }
g.terminal rect { fill: #fff8e1; stroke: #b26a00; }
text { font: 13px monospace; text-anchor: middle; fill: #1a1a1a; }
text.comment { font: italic 12px monospace; }
text.edge { font: 11px sans-serif; text-anchor: start; fill: #37474f; }
text.stays { font: 11px sans-serif; fill: #546e7a; }
rect.final { fill: #eceff1; stroke: #546e7a; }
rect.first { fill: #c8e6c9; stroke: #2e7d32; }
"""

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'

ARROW_HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L10 5L0 10z" style="fill:#3f51b5;stroke:none"/></marker></defs>'
)


def railroad(message: Message) -> str:
    """The layout of a message as a railroad diagram with its payloads, a stand-alone SVG text."""
    import railroad as lines

    def part(item: Part) -> lines.DiagramItem:
        match item:
            case Literal(text=text):
                return lines.Terminal(text)
            case Word(name=name):
                return lines.NonTerminal(name)
            case Rest(name=name, at_least=least):
                return (
                    lines.OneOrMore(lines.NonTerminal(name))
                    if least
                    else lines.ZeroOrMore(lines.NonTerminal(name))
                )
            case Optional(parts=parts):
                return lines.Optional(lines.Sequence(*map(part, parts)))
            case Counted(words=words, count=count):
                pair = lines.Sequence(*(lines.NonTerminal(word.name) for word in words))
                return lines.ZeroOrMore(pair, lines.Comment(f"{count} times"))
            case Extensions():
                keys = [
                    lines.Sequence(lines.Terminal(f"{key.name}="), lines.NonTerminal(key.name))
                    for key in message.keys
                ]
                return lines.Sequence(*(lines.Optional(key) for key in keys))
            case Ignored():
                return lines.ZeroOrMore(lines.Comment("ignored"))

    header = lines.Sequence(
        lines.Terminal(message.layout.kind), *map(part, message.layout.parts), lines.Terminal("LF")
    )
    items: list[lines.DiagramItem] = [header]
    if message.payloads:
        bodies = (f"{payload.size} bytes of {payload.attribute}" for payload in message.payloads)
        body = lines.Sequence(*map(lines.NonTerminal, bodies), lines.Terminal("LF"))
        items = [lines.Stack(header, body)]
    written: list[str] = []
    lines.Diagram(*items).writeStandalone(written.append, css=STYLE)
    return "".join(written).rstrip() + "\n"


@dataclass(slots=True)
class _Arrow:
    """All events that lead from one state to another, drawn as one line on a lane of its own."""

    source: str
    target: str
    events: list[str]
    leaves_at: int = 0
    enters_at: int = 0


def states(table: StateTable) -> str:
    """A state table as an SVG: states from top to bottom, one lane per arrow, its events where it leaves."""
    arrows, stays = _arrows(table)
    boxes: dict[str, tuple[int, int]] = {}
    top = MARGIN
    for state in table.states:
        leaving = [arrow for arrow in arrows if arrow.source == state.name]
        entering = [arrow for arrow in arrows if arrow.target == state.name]
        height = max(BOX_HEIGHT, PORT * (len(leaving) + len(entering)) + 12)
        boxes[state.name] = (top, height)
        for place, arrow in enumerate(leaving):
            arrow.leaves_at = top + 14 + PORT * place
        for place, arrow in enumerate(entering):
            arrow.enters_at = top + 14 + PORT * (len(leaving) + place)
        top += height + GAP
    words = max((len(", ".join(arrow.events)) for arrow in arrows), default=0)
    lane = MARGIN + BOX_WIDTH + 20 + 7 * words
    arrows.sort(key=lambda arrow: (abs(arrow.enters_at - arrow.leaves_at), arrow.leaves_at))
    width, height = lane + LANE * len(arrows) + MARGIN, top
    parts = [
        f'<svg {NAMESPACE} viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        ARROW_HEAD,
    ]
    parts += [_line(arrow, lane + LANE * place) for place, arrow in enumerate(arrows)]
    parts += [_box(table, state, boxes[state.name], stays.get(state.name, [])) for state in table.states]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrows(table: StateTable) -> tuple[list[_Arrow], dict[str, list[str]]]:
    """Arrows in table order, and the events that leave a state as it is."""
    arrows: list[_Arrow] = []
    stays: dict[str, list[str]] = {}
    for state in table.states:
        targets: dict[str, list[str]] = {}
        for event, target in state.transitions.items():
            targets.setdefault(target, []).append(event)
        if state.name in targets:
            stays[state.name] = targets.pop(state.name)
        arrows += [_Arrow(state.name, target, events) for target, events in targets.items()]
    return arrows, stays


def _line(arrow: _Arrow, lane: int) -> str:
    edge = MARGIN + BOX_WIDTH
    path = f"M{edge} {arrow.leaves_at}H{lane}V{arrow.enters_at}H{edge + 1}"
    text = html.escape(", ".join(arrow.events))
    label = f'<text class="edge" x="{edge + 8}" y="{arrow.leaves_at - 3}">{text}</text>'
    return f'<path d="{path}" marker-end="url(#arrow)"/>{label}'


def _box(table: StateTable, state: State, box: tuple[int, int], stays: list[str]) -> str:
    top, height = box
    kind = "first" if state.name == table.initial else "final" if not state.transitions else "middle"
    middle = MARGIN + BOX_WIDTH // 2
    rectangle = f'<rect class="{kind}" x="{MARGIN}" y="{top}" width="{BOX_WIDTH}" height="{height}" rx="8"/>'
    line = top + height // 2
    name = f'<text x="{middle}" y="{line - 2 if stays else line + 4}">{html.escape(state.name)}</text>'
    if not stays:
        return rectangle + name
    note = html.escape("stays on " + ", ".join(stays))
    return rectangle + name + f'<text class="stays" x="{middle}" y="{line + 14}">{note}</text>'
