"""The filters, methods and operators of chat templates whose result can be far larger than what they are
given (http.md §14): each measures what it would make before it makes it.

Guarantees: where the result fits, it is Jinja's own. Text is never marked as HTML, since prompts are none:
the filters that escape give plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import wraps
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from jinja2.environment import Environment
from jinja2.filters import (
    FILTERS,
    do_batch,
    do_indent,
    do_int,
    do_round,
    make_attrgetter,
    sync_do_slice,
)
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter
from jinja2.tests import TESTS
from jinja2.utils import pass_environment
from markupsafe import escape

from generated import limits
from server.chat.template_bounds import (
    LARGEST_LIST,
    LARGEST_NUMBER_BITS,
    TemplateFailure,
    bounded,
    check_time,
    joined,
    require_items,
    require_number,
    require_size,
    require_text,
    text_of,
    timed,
)

_LARGEST_INDENT = 16
_LARGEST_GROUP = 1000
_LARGEST_PRECISION = 100
_LARGEST_DIGITS = 1000
_WIDEST_CONVERSION = 2048
_find_wide_format = re.compile(r"[0-9]{4}|\{[^{}]*\{|%[^%a-zA-Z]*\*").search
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_ESCAPED = {"&": 4, "<": 3, ">": 3, '"': 4, "'": 4}

REMOVED_FILTERS = (
    "center",
    "format",
    "wordwrap",
    "pprint",
    "urlize",
    "xmlattr",
    "striptags",
    "urlencode",
    "wordcount",
)
REMOVED_METHODS = frozenset(
    {"center", "expandtabs", "ljust", "rjust", "zfill", "encode", "translate", "maketrans"}
    | {"to_bytes", "from_bytes"}
)
"""Of strings and numbers."""


def _tojson(value: Any, indent: int | None = None, ensure_ascii: bool = False, **style: Any) -> str:
    """JSON as the models were trained on: nothing escaped for HTML, non-ASCII as it is."""
    if indent is not None and not 0 <= indent <= _LARGEST_INDENT:
        raise TemplateFailure(f"tojson takes an indent of 0 to {_LARGEST_INDENT}")
    separators = tuple(style.get("separators") or ())
    punctuation = sum(map(len, separators)) or 4
    written = encode_basestring_ascii if ensure_ascii else encode_basestring
    require_size(value, written, punctuation, indent or 0)
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators or None,
        sort_keys=bool(style.get("sort_keys", False)),
    )


def _lines(text: str) -> int:
    """At least as many as `str.splitlines` gives."""
    return 1 + sum(map(text.count, _LINE_ENDS))


def _indent(value: Any, width: int = 4, first: bool = False, blank: bool = False) -> str:
    if not 0 <= width <= _LARGEST_INDENT:
        raise TemplateFailure(f"indent takes a width of 0 to {_LARGEST_INDENT}")
    text = text_of(value)
    lines = _lines(text)
    require_items(lines)
    require_text(len(text) + lines * width)
    return do_indent(text, width, first, blank)


def _escape(value: Any) -> str:
    text = text_of(value)
    require_text(len(text) + sum(more * text.count(character) for character, more in _ESCAPED.items()))
    return str(escape(text))


def _replaced(text: str, old: str, new: str, count: int = -1) -> str:
    places = text.count(old)
    if count >= 0:
        places = min(places, count)
    require_text(len(text) + places * (len(new) - len(old)))
    return text.replace(old, new, count)


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    return _replaced(text_of(value), text_of(old), text_of(new), -1 if count is None else count)


@pass_environment
def _join(environment: Environment, value: Any, d: Any = "", attribute: str | int | None = None) -> str:
    """The parameters are named as in Jinja."""
    items = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    return joined(map(text_of, items), text_of(d))


@pass_environment
def _sum(environment: Environment, value: Any, attribute: str | int | None = None, start: Any = 0) -> Any:
    items = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    if isinstance(start, str):
        raise TemplateFailure("the chat template sums texts")
    total = start
    for item in timed(items):
        total = bounded(total + item)
    return total


def _list(value: Iterable[Any]) -> list[Any]:
    if isinstance(value, Sized):
        require_items(len(value))
        return list(value)
    items: list[Any] = []
    for item in timed(value):
        items.append(item)
        require_items(len(items))
    return items


def _grouped(name: str, original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """`batch` or `slice`, for groups or a number of them that a person would write down."""

    def grouped(value: Any, number: int, fill_with: Any = None) -> Iterator[Any]:
        if not 1 <= number <= _LARGEST_GROUP:
            raise TemplateFailure(f"{name} takes a number of 1 to {_LARGEST_GROUP}")
        return timed(original(_list(value), number, fill_with))

    return grouped


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > _LARGEST_PRECISION:
        raise TemplateFailure(f"round takes a precision of at most {_LARGEST_PRECISION}")
    return do_round(value, precision, method)


def _require_digits(value: Any) -> None:
    if isinstance(value, str) and len(value) > _LARGEST_DIGITS:
        raise TemplateFailure(f"a number in a chat template has at most {_LARGEST_DIGITS} digits")


def _int(value: Any, default: int = 0, base: int = 10) -> int:
    _require_digits(value)
    return do_int(value, default, base)


def _float(value: Any, default: float = 0.0) -> Any:
    _require_digits(value)
    return FILTERS["float"](value, default)


def _cased(name: str) -> Callable[[Any], str]:
    """A filter on a text that works on it whole."""
    original = FILTERS[name]

    def cased(value: Any) -> str:
        text = text_of(value)
        require_text(len(text))
        if name == "title":  # makes a list of the words
            require_items(len(text))
        return str(bounded(original(text)))

    return cased


def _with_time(original: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
    """A filter that gives its items one by one."""

    @wraps(original)
    def filtered(*args: Any, **options: Any) -> Iterator[Any]:
        return timed(original(*args, **options))

    return filtered


def comparable(value: Any) -> Any:
    """`value`, unless comparing it could take as long as the many texts it holds are long in all."""
    if not isinstance(value, (str, int, float, type(None))):
        require_size(value, None, 1)
    return value


def check_call(function: Any, arguments: tuple[Any, ...]) -> None:
    """Raises TemplateFailure when a list, tuple or object is asked for a value that takes long to find."""
    owner = getattr(function, "__self__", None)
    if function is dict or isinstance(owner, (dict, list, tuple)):
        for argument in arguments:
            comparable(argument)
        if isinstance(owner, (list, tuple)) and arguments:
            comparable(owner)


def _comparing(original: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """A filter or test that compares its first `operands` operands or what is in them. A filter that Jinja
    passes its environment first has it counted among them."""

    @wraps(original)
    def compared(*args: Any, **options: Any) -> Any:
        checked = [_list(arg) if isinstance(arg, Iterator) else arg for arg in args[:operands]]
        for operand in checked:
            if not isinstance(operand, Environment):
                comparable(operand)
        return original(*checked, *args[operands:], **options)

    return compared


def _plain(value: Any) -> str:
    return bounded(text_of(value))  # type: ignore[no-any-return]


def concatenated(parts: Iterable[Any]) -> str:
    """What `~` makes of its operands."""
    return joined(map(text_of, parts))


def bounded_filters() -> dict[str, Callable[..., Any]]:
    """Filters to be used in place of Jinja's, by name."""
    filters: dict[str, Callable[..., Any]] = {
        "tojson": _tojson,
        "indent": _indent,
        "replace": _replace,
        "join": _join,
        "sum": _sum,
        "list": _list,
        "batch": _grouped("batch", do_batch),
        "slice": _grouped("slice", sync_do_slice),
        "round": _round,
        "int": _int,
        "float": _float,
    }
    filters |= dict.fromkeys(("e", "escape", "forceescape"), _escape)
    filters |= dict.fromkeys(("string", "safe"), _plain)
    filters |= {name: _cased(name) for name in ("capitalize", "lower", "title", "upper")}
    iterated = ("map", "select", "selectattr", "reject", "rejectattr")
    filters |= {name: _with_time(FILTERS[name]) for name in iterated}
    compared = ("sort", "unique", "min", "max", "groupby", "dictsort")
    filters |= {name: _comparing(FILTERS[name], 2) for name in compared}
    return filters


def bounded_tests() -> dict[str, Callable[..., Any]]:
    """Tests to be used in place of Jinja's, by name."""
    names = ("in", "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt")
    jinja: Mapping[str, Any] = TESTS
    return {name: _comparing(jinja[name], 2) for name in (*names, "lessthan", "<=", "le")}


# ---- methods of strings


class _BoundedFormatter(SandboxedFormatter):
    """Jinja's sandboxed `str.format`, that counts what it has written."""

    def __init__(self, environment: SandboxedEnvironment, size: int) -> None:
        """`size`: what the format itself takes, in characters."""
        super().__init__(environment)
        self._size = size

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion is not None:
            require_size(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(format(value, format_spec)) if format_spec else text_of(value)
        self._size += len(text)
        require_text(self._size)
        check_time()
        return text


def bounded_method(environment: SandboxedEnvironment, value: Any) -> Callable[..., Any] | None:
    """What a template is given for the method `value` of a string; None when that is harmless."""
    text, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if not isinstance(text, str) or not callable(value):
        return None
    if name in ("format", "format_map"):
        if _find_wide_format(text) is not None:
            raise TemplateFailure("the chat template formats to a large or computed width")
        return _formatting(environment, text, name == "format_map")
    methods: Mapping[str, Callable[..., Any]] = {
        "join": lambda items: joined(items, text),
        "replace": lambda old, new, count=-1: _replaced(text, old, new, count),
        "split": lambda sep=None, maxsplit=-1: _split(text.split, sep, maxsplit),
        "rsplit": lambda sep=None, maxsplit=-1: _split(text.rsplit, sep, maxsplit),
        "splitlines": lambda keepends=False: _split_lines(text, keepends),
    }
    return methods.get(name)


def _formatting(environment: SandboxedEnvironment, text: str, mapped: bool) -> Callable[..., str]:
    def formatted(*args: Any, **fields: Any) -> str:
        return _BoundedFormatter(environment, len(text)).vformat(text, args, fields)

    def formatted_map(fields: Mapping[str, Any]) -> str:
        return _BoundedFormatter(environment, len(text)).vformat(text, (), fields)

    return formatted_map if mapped else formatted


def _split(split: Callable[[str | None, int], list[str]], sep: str | None, maxsplit: int) -> list[str]:
    parts = split(sep, LARGEST_LIST if maxsplit < 0 else min(maxsplit, LARGEST_LIST))
    require_items(len(parts))
    return parts


def _split_lines(text: str, keepends: bool) -> list[str]:
    require_items(_lines(text))
    return text.splitlines(keepends)


# ---- operators


def check_growth(operator: str, left: Any, right: Any) -> None:
    """Raises TemplateFailure when the operation could make something too large."""
    if operator == "%" and isinstance(left, str):
        _check_conversions(left, right)
    if operator == "*":
        _check_repetition(left, right)
        _check_repetition(right, left)
    if isinstance(left, int) and isinstance(right, int):
        require_number(left)
        require_number(right)
        if operator == "**" and left.bit_length() * right > LARGEST_NUMBER_BITS:
            raise TemplateFailure("the chat template made a number that is too large")


def _check_repetition(value: Any, times: Any) -> None:
    if isinstance(value, str) and isinstance(times, int) and len(value) * times > limits.PROMPT_BYTES:
        raise TemplateFailure("the chat template made a value larger than the largest prompt")
    if isinstance(value, (list, tuple)) and isinstance(times, int):
        require_items(len(value) * times)


def _check_conversions(text: str, values: Any) -> None:
    """A conversion is at most as wide as a width of three digits and the largest number make it."""
    if _find_wide_format(text) is not None:
        raise TemplateFailure("the chat template formats to a large or computed width")
    require_size(values)
    conversions = text.count("%")
    size = len(text) + conversions * _WIDEST_CONVERSION
    if isinstance(values, Mapping):
        size += conversions * max((len(text_of(value)) for value in values.values()), default=0)
    require_text(size)
