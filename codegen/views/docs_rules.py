"""Tables of docs/compatibility.md: the compatibility catalogue and the lint rules."""

from __future__ import annotations

from ..compat import COMPAT_RULES
from ..lint import lint_rules
from .markdown import code, table

LEVELS = ("safe", "dangerous", "breaking")
CLASSES = {"W": "wire", "S": "source", "H": "HTTP", "O": "operator", "V": "version", "-": "none"}


def tables() -> dict[str, str]:
    """Both catalogues by marker name."""
    rules = [
        (
            code(rule.id),
            ", ".join(CLASSES[letter] for letter in rule.classes),
            LEVELS[rule.back],
            LEVELS[rule.fwd] + (f", or as `{rule.tolerance}` says" if rule.tolerance else ""),
            rule.purpose + (" Cannot be acknowledged." if rule.hard else ""),
            rule.advice,
        )
        for rule in COMPAT_RULES.values()
    ]
    head = ("rule", "promise", "old writer, new reader", "new writer, old reader", "why", "what to do")
    lint = [(code(rule.id), rule.purpose, rule.advice) for rule in lint_rules()]
    return {
        "compat-rules": table(head, rules),
        "lint-rules": table(("rule", "holds when", "what to do"), lint),
    }
