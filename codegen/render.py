"""Templates → text.

One Jinja environment for every target: an undefined name is an error, block tags leave no blank lines
behind, and every file starts with a header that names the spec, the target and the command that makes it
again. Templates receive a view (plain values) and never the model. Rendering is deterministic: no clock, no
host, no hash order.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from . import names

TEMPLATES: Final = Path(__file__).with_name("templates")

SPEC_PATH: Final = "spec/protocol.yaml"
COMMAND: Final = "python -m codegen generate"

COMMENT_STYLES: Final = {
    ".py": "#",
    ".pyi": "#",
    ".toml": "#",
    ".yaml": "#",
    ".h": "//",
    ".c": "//",
}
"""Line comment by file suffix; other formats say where they come from in a way of their own, or in the
manifest.
"""


def header_lines(target: str, template: str) -> list[str]:
    """What a generated file says about itself: origin, target, template and the command that remakes it."""
    return [
        f"Generated from {SPEC_PATH} (target {target}, template {template}). Do not edit.",
        f"Regenerate with: {COMMAND}",
    ]


def header(path: str, target: str, template: str) -> str:
    """The header as comment lines for the file type of ``path``; empty when the type has no line comment."""
    prefix = COMMENT_STYLES.get(Path(path).suffix)
    if prefix is None:
        return ""
    return "".join(f"{prefix} {line}\n" for line in header_lines(target, template))


def python_literal(value: object) -> str:
    """A Python literal in the formatter's style: double quotes wherever that needs no escapes."""
    text = repr(value)
    if isinstance(value, str | bytes) and text[-1] == "'" and '"' not in text:
        lead = "b" if isinstance(value, bytes) else ""
        return lead + '"' + text[len(lead) + 1 : -1] + '"'
    if isinstance(value, tuple):
        inner = ", ".join(python_literal(part) for part in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return "[" + ", ".join(python_literal(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python_literal(k)}: {python_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, frozenset | set):
        if not value:
            return "frozenset()"
        return "frozenset({" + ", ".join(python_literal(part) for part in sorted(value)) + "})"
    return text


def c_string(value: str | bytes) -> str:
    """A C string literal with the same bytes; octal escapes, which cannot swallow the next character."""
    raw = value.encode("utf-8") if isinstance(value, str) else value
    simple = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    parts = []
    for byte in raw:
        plain = 0x20 <= byte < 0x7F and byte != 0x3F  # '?' escaped: no trigraphs in any mode
        parts.append(simple.get(byte) or (chr(byte) if plain else f"\\{byte:03o}"))
    return '"' + "".join(parts) + '"'


def comment(text: str, prefix: str = "#", width: int = 110, indent: int = 0) -> str:
    """``text`` wrapped as line comments of at most ``width`` columns, each indented by ``indent`` spaces."""
    lead = " " * indent + prefix + " "
    paragraphs = [paragraph.strip() for paragraph in text.strip().split("\n\n")]
    wrapped = [
        textwrap.fill(" ".join(part.split()), width, initial_indent=lead, subsequent_indent=lead)
        for part in paragraphs
    ]
    return f"\n{lead.rstrip()}\n".join(wrapped)


def wrap(text: str, width: int = 110, indent: int = 0) -> str:
    """``text`` as one filled paragraph; lines after the first are indented by ``indent`` spaces."""
    lead = " " * indent
    filled = textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=lead,
        subsequent_indent=lead,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled[len(lead) :]


def docstring(text: str, width: int = 110, indent: int = 4) -> str:
    """A Python docstring statement: one line when it fits, else filled, with the quotes on a line of their
    own.
    """
    lead = " " * indent
    flat = " ".join(text.split()).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if flat.endswith('"'):
        flat += " "
    one_line = f'{lead}"""{flat}"""'
    if len(one_line) <= width:
        return one_line
    filled = textwrap.fill(
        flat,
        width,
        initial_indent=f'{lead}"""',
        subsequent_indent=lead,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f'{filled}\n{lead}"""'


def markdown_cell(text: object) -> str:
    """Text that is safe inside a table cell: one line, pipes escaped."""
    return " ".join(str(text).split()).replace("|", "\\|")


def json_text(value: object) -> str:
    """Pretty JSON, non-ASCII kept, keys in the given order, one newline at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


BYTECODE: Final = Path(__file__).resolve().parent.parent / "build" / "templates"
"""Compiled templates are kept here, in a folder no one commits; Jinja checks each against its source."""


def _bytecode_cache() -> FileSystemBytecodeCache | None:
    try:
        BYTECODE.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # a read-only checkout compiles its templates every time
    return FileSystemBytecodeCache(str(BYTECODE))


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The environment all templates share."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        auto_reload=False,
        bytecode_cache=_bytecode_cache(),
    )
    env.filters.update(
        python_literal=python_literal,
        c_string=c_string,
        comment=comment,
        wrap_text=wrap,
        docstring=docstring,
        cell=markdown_cell,
        json_text=json_text,
        snake=names.snake,
        macro=names.macro,
        pascal=names.pascal,
        kebab=names.kebab,
    )
    return env


def render(template: str, context: Mapping[str, Any]) -> str:
    """Render ``template`` (a path under ``codegen/templates``); the text ends with exactly one newline.

    Raises ``jinja2.UndefinedError`` for a name the view does not have, ``jinja2.TemplateError`` otherwise.
    """
    return environment().get_template(template).render(context).rstrip("\n") + "\n"
