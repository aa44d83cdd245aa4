"""The Jinja environment that chat templates of a model directory run in (http.md §14).

Guarantees: a template reaches no attribute that is not data (Jinja's immutable sandbox), changes none of
the values it is given, uses the processor no longer than `limits.TEMPLATE_SECONDS` and gives no more than
the largest prompt. Loops, calls and macros check the time; operators, filters and methods that could make
something huge in one step are bounded or absent (`template_operations`).

A template comes from the operator's own model directory: the bounds are against mistakes and against models
taken from strangers, and do not replace the memory limit of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.environment import Template
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from server.chat.template_bounds import (
    TemplateFailure,
    TemplateOverflow,
    TemplateRefusal,
    bounded,
    check_time,
    joined,
    limited_time,
    text_of,
    timed,
)
from server.chat.template_operations import (
    REMOVED_FILTERS,
    REMOVED_METHODS,
    bounded_filters,
    bounded_method,
    bounded_tests,
    check_call,
    check_growth,
    comparable,
    concatenated,
)

__all__ = ["ChatSandbox", "TemplateFailure", "TemplateOverflow", "TemplateRefusal", "render"]

_REMOVED_GLOBALS = ("lipsum",)
_LONGEST_DATE_FORMAT = 256
_LONGEST_REFUSAL = 1000


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRefusal(text_of(message)[:_LONGEST_REFUSAL])


def _strftime_now(form: str) -> str:
    if len(form) > _LONGEST_DATE_FORMAT:
        raise TemplateFailure(f"strftime_now takes a format of at most {_LONGEST_DATE_FORMAT} characters")
    return datetime.now().strftime(form)


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's text for training; it renders as its
    body."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatSandbox(ImmutableSandboxedEnvironment):
    """The environment: Hugging Face's conventions inside bounds."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _GenerationTag],
            finalize=text_of,
        )
        for name in _REMOVED_GLOBALS:
            del self.globals[name]
        for name in REMOVED_FILTERS:
            del self.filters[name]
        self.filters |= bounded_filters()
        self.filters |= {"__timed": timed, "__concatenated": concatenated, "__comparable": comparable}
        self.tests |= bounded_tests()
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """The text of a macro or block from its pieces."""
        return joined(pieces)

    def template(self, source: str) -> Template:
        """Compile `source`. Raises TemplateFailure."""
        try:
            tree = self.parse(source)
            _bound_expressions(tree)
            return Template.from_code(self, self.compile(tree), dict(self.globals))
        except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
            raise TemplateFailure(f"the chat template cannot be compiled: {error}") from error

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Every call in a template, macros included."""
        check_time()
        check_call(obj, args)
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operators that can grow a value without a loop."""
        check_time()
        check_growth(operator, left, right)
        return bounded(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`, for a key that is soon hashed."""
        return super().getitem(obj, comparable(argument))

    def wrap_str_format(self, value: Any) -> Callable[..., Any] | None:
        """Jinja's hook for `str.format`, called with every attribute that a template reaches; here also for
        other methods of strings that make something larger."""
        return bounded_method(self, value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Jinja's rule, and no method that makes a string of any length."""
        if attr in REMOVED_METHODS and isinstance(obj, (str, bytes, int)):
            return False
        return super().is_safe_attribute(obj, attr, value)


def _bound_expressions(tree: nodes.Template) -> None:
    """Let every loop check the time, every `~` the size of what it makes, and every comparison and key what
    it compares. Raises TemplateFailure for what marks text as HTML."""
    if any(tree.find_all(nodes.EvalContextModifier)):
        raise TemplateFailure("the chat template uses autoescape")
    for loop in tree.find_all(nodes.For):
        if isinstance(loop.iter, nodes.Expr):
            loop.iter = _filtered(loop.iter, "__timed")
    for comparison in tree.find_all(nodes.Compare):
        comparison.expr = _filtered(comparison.expr, "__comparable")
        for operand in comparison.ops:
            operand.expr = _filtered(operand.expr, "__comparable")
    for pair in tree.find_all(nodes.Pair):
        pair.key = _filtered(pair.key, "__comparable")
    for parent in list(tree.find_all(nodes.Node)):
        for name, value in list(parent.iter_fields()):
            if isinstance(value, list):
                value[:] = map(_bounded_concat, value)
            else:
                setattr(parent, name, _bounded_concat(value))


def _bounded_concat(node: Any) -> Any:
    if not isinstance(node, nodes.Concat):
        return node
    return _filtered(nodes.List(node.nodes, lineno=node.lineno), "__concatenated")


def _filtered(expression: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(expression, name, [], [], None, None, lineno=expression.lineno)


def render(template: Template, variables: dict[str, Any]) -> str:
    """Render within the bounds. Raises TemplateRefusal or TemplateFailure; TemplateOverflow when the text is
    larger than the largest prompt."""
    try:
        with limited_time():
            return joined(timed(template.generate(variables)))
    except (TemplateRefusal, TemplateFailure):
        raise
    except Exception as error:  # whatever a template's expression can raise
        raise TemplateFailure(f"the chat template failed: {type(error).__name__}: {error}") from error
