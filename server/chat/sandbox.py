"""The Jinja environment that chat templates of a model directory run in (http.md §14).

Guarantees: a template reaches no attribute that is not data (Jinja's immutable sandbox), changes none of
the values it is given, runs no longer than `limits.TEMPLATE_SECONDS` and gives no more than the largest
prompt. Loops, calls and macros check the time; operators and filters that could make something huge in one
step are bounded or absent.

A template comes from the operator's own model directory: the bounds are against mistakes and against models
taken from strangers, and do not replace the memory limit of the process.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.environment import Template
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import do_indent
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from generated import limits

_LARGEST_NUMBER_BITS = 4096
_LARGEST_INDENT = 16
_deadline: ContextVar[float] = ContextVar("deadline")
_find_wide_format = re.compile(r"[0-9]{4}|\{[^{}]*\{|%[^%a-zA-Z]*\*").search
_REMOVED_GLOBALS = ("lipsum",)
_REMOVED_FILTERS = ("center", "format", "wordwrap", "pprint", "urlize", "xmlattr")
_REMOVED_METHODS = frozenset({"center", "expandtabs", "ljust", "rjust", "zfill", "encode", "to_bytes"})


class TemplateRefusal(Exception):
    """The template called `raise_exception`: it does not take this conversation. The text is the
    template's."""


class TemplateFailure(Exception):
    """The template cannot be compiled, failed, or went beyond a bound. The text is for the log."""


def check_time() -> None:
    """Raises TemplateFailure when the rendering under way has used up its time."""
    if time.monotonic() > _deadline.get():
        raise TemplateFailure(f"the chat template ran longer than {limits.TEMPLATE_SECONDS:g} s")


def _timed(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        check_time()
        yield item


def _bounded(value: Any) -> Any:
    if isinstance(value, Sized) and len(value) > limits.PROMPT_BYTES:
        raise TemplateFailure("the chat template made a value larger than the largest prompt")
    return value


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRefusal(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(value: Any, indent: int | None = None, ensure_ascii: bool = False, **style: Any) -> str:
    """JSON as the models were trained on: nothing escaped for HTML, non-ASCII as it is."""
    if indent is not None and not 0 <= indent <= _LARGEST_INDENT:
        raise TemplateFailure(f"tojson takes an indent of 0 to {_LARGEST_INDENT}")
    separators = style.get("separators")
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=tuple(separators) if separators else None,
        sort_keys=bool(style.get("sort_keys", False)),
    )


def _indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    if not 0 <= width <= _LARGEST_INDENT:
        raise TemplateFailure(f"indent takes a width of 0 to {_LARGEST_INDENT}")
    return do_indent(text, width, first, blank)


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's text for training; it renders as its
    body."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatSandbox(ImmutableSandboxedEnvironment):
    """The environment: Hugging Face's conventions inside bounds."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag])
        for name in _REMOVED_GLOBALS:
            del self.globals[name]
        for name in _REMOVED_FILTERS:
            del self.filters[name]
        self.filters["tojson"] = _tojson
        self.filters["indent"] = _indent
        self.filters["__timed"] = _timed
        self.filters["__bounded"] = _bounded
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    def template(self, source: str) -> Template:
        """Compile `source`. Raises TemplateFailure."""
        try:
            tree = self.parse(source)
            _bound_loops_and_joins(tree)
            return Template.from_code(self, self.compile(tree), dict(self.globals))
        except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
            raise TemplateFailure(f"the chat template cannot be compiled: {error}") from error

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Every call in a template, macros included."""
        check_time()
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operators that can grow a value without a loop."""
        check_time()
        if operator == "%" and isinstance(left, str) and _find_wide_format(left) is not None:
            raise TemplateFailure("the chat template formats to a large or computed width")
        if operator in ("*", "**"):
            _check_growth(operator, left, right)
        return _bounded(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` inside Jinja's own sandbox, for formats that name no large or computed width."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None and _find_wide_format(value.__self__) is not None:
            raise TemplateFailure("the chat template formats to a large or computed width")
        return wrapped

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Jinja's rule, and no method that pads a string to any length."""
        if attr in _REMOVED_METHODS and isinstance(obj, (str, bytes, int)):
            return False
        return super().is_safe_attribute(obj, attr, value)


def _check_growth(operator: str, left: Any, right: Any) -> None:
    for one, other in ((left, right), (right, left)):
        if operator == "*" and isinstance(one, Sized) and isinstance(other, int):
            if len(one) * other > limits.PROMPT_BYTES:
                raise TemplateFailure("the chat template made a value larger than the largest prompt")
            return
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if bits > _LARGEST_NUMBER_BITS:
            raise TemplateFailure("the chat template made a number that is too large")


def _bound_loops_and_joins(tree: nodes.Template) -> None:
    """Let every loop check the time and every `~` the size of what it makes."""
    for loop in tree.find_all(nodes.For):
        if isinstance(loop.iter, nodes.Expr):
            loop.iter = _filtered(loop.iter, "__timed")
    for parent in list(tree.find_all(nodes.Node)):
        for name, value in list(parent.iter_fields()):
            if isinstance(value, nodes.Concat):
                setattr(parent, name, _filtered(value, "__bounded"))
            elif isinstance(value, list):
                value[:] = [
                    _filtered(item, "__bounded") if isinstance(item, nodes.Concat) else item for item in value
                ]


def _filtered(expression: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(expression, name, [], [], None, None, lineno=expression.lineno)


def render(template: Template, variables: dict[str, Any]) -> str:
    """Render within the bounds. Raises TemplateRefusal or TemplateFailure."""
    token = _deadline.set(time.monotonic() + limits.TEMPLATE_SECONDS)
    try:
        pieces: list[str] = []
        size = 0
        for piece in template.generate(variables):
            check_time()
            size += len(piece)
            if size > limits.PROMPT_BYTES:
                raise TemplateFailure("the chat template gave more than the largest prompt")
            pieces.append(piece)
        return "".join(pieces)
    except (TemplateRefusal, TemplateFailure):
        raise
    except Exception as error:  # whatever a template's expression can raise
        raise TemplateFailure(f"the chat template failed: {type(error).__name__}: {error}") from error
    finally:
        _deadline.reset(token)
