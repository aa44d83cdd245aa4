"""The catalogue of compatibility rules, and how a change is judged.

Two questions per change: *back* = old writers with new readers, *fwd* = new writers with old readers. The
catalogue gives a level for each; the promise of the baseline says which of the two count (``full`` both,
``backward`` the first, ``forward`` the second, ``lockstep`` neither). Where the level is "by tolerance",
the tolerance of the **baseline** decides, because its readers are the ones in the field. Guarantees: the
catalogue is data; every rule states its class of promise, both directions, purpose and advice; items marked
experimental are judged one level lower, except by rules of framing and reservation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


class Effect(enum.IntEnum):
    """What a change does to one direction, worst last."""

    SAFE = 0
    DANGEROUS = 1
    BREAKING = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class CompatRule:
    """One rule.

    ``classes``: W wire, S source, H HTTP, O operator, V version.
    ``tolerance`` names the key of ``protocol`` that decides ``fwd``.
    ``addition`` marks what needs at least a minor version; ``hard`` rules can never be acknowledged;
    ``rigid`` ones are not softened for experimental items; ``dormant`` says why the notation cannot express
    the change yet.
    """

    id: str
    classes: str
    back: Effect
    fwd: Effect
    purpose: str
    advice: str
    tolerance: str = ""
    addition: bool = False
    hard: bool = False
    rigid: bool = False
    dormant: str = ""


_LETTERS: Final = {"s": Effect.SAFE, "D": Effect.DANGEROUS, "B": Effect.BREAKING, "-": Effect.SAFE}


def load_catalogue(text: str) -> dict[str, CompatRule]:
    """The rules written in ``text`` (the format is in its head) by id. Raises ValueError for a line that is
    none.
    """
    rules: dict[str, CompatRule] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        rule_id, levels, purpose, advice, *dormant = (part.strip() for part in line.split(" | "))
        classes, back, fwd, *marks = levels.split()
        tolerance = next((mark.partition("=")[2] for mark in marks if mark.startswith("tolerance=")), "")
        if rule_id in rules or not set(marks) <= {"addition", "hard", "rigid", f"tolerance={tolerance}"}:
            raise ValueError(f"a rule twice or an unknown mark: {line}")
        rules[rule_id] = CompatRule(
            rule_id,
            classes,
            _LETTERS[back],
            _LETTERS[fwd],
            purpose,
            advice,
            tolerance=tolerance,
            addition="addition" in marks,
            hard="hard" in marks,
            rigid="rigid" in marks,
            dormant=dormant[0] if dormant else "",
        )
    return rules


CATALOGUE: Final = Path(__file__).with_name("compat.rules")

COMPAT_RULES: Final[Mapping[str, CompatRule]] = load_catalogue(CATALOGUE.read_text(encoding="utf-8"))
"""The catalogue by id, in the order of the table."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How bad a change is, by direction and altogether (the worse of the promised directions)."""

    back: Effect
    fwd: Effect
    level: Effect


def judge(
    rule: CompatRule,
    baseline: Mapping[str, Any],
    *,
    experimental: bool = False,
    tolerated: bool | None = None,
    override: Effect | None = None,
) -> Verdict:
    """The verdict on a change under ``rule``.

    ``baseline`` is the old model's ``protocol``. ``tolerated`` overrides its general tolerance for one
    message (a layout that ends in ``...``); ``override`` is the level where the rule depends on the values
    changed.
    """
    back, fwd = rule.back, rule.fwd
    if override is not None:
        back, fwd = (Effect.SAFE if effect is Effect.SAFE else override for effect in (back, fwd))
    if rule.tolerance:
        ignored = baseline.get(rule.tolerance) == "ignore" if tolerated is None else tolerated
        fwd = Effect.SAFE if ignored else fwd
    if experimental and not rule.rigid:
        back, fwd = (Effect(max(0, effect - 1)) for effect in (back, fwd))
    promise = baseline.get("promise", "full")
    counted = {"full": (back, fwd), "backward": (back,), "forward": (fwd,), "lockstep": ()}[str(promise)]
    if set(rule.classes) & set("HOSV-"):
        counted = (back, fwd)  # clients, operators and programmers are promised both, whatever the wire is
    return Verdict(back, fwd, max(counted, default=Effect.SAFE))
