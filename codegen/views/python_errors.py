"""View of ``generated/errors.py``: a constructor for each api error, and the join from wire errors.

Guarantees: every placeholder of a message is a keyword argument of its constructor; the patterns of
``details`` and ``spelled`` are regular expressions that match a whole text; a join calls constructors only
with what the words carry.
"""

from __future__ import annotations

import re
from typing import Any

from codegen import names
from codegen.model import ApiError, HttpJoin, Model, WireError
from codegen.render import python_literal
from codegen.views import python_text as text

View = dict[str, Any]

_NUMBER = re.compile(r"<([a-z_]+)>")


def errors_view(model: Model) -> View:
    """Everything ``errors.py.j2`` prints."""
    by_name = {error.name: error for error in model.api_errors}
    fallback = next(code for code in model.wire_errors if code.fallback)
    return {
        "errors": [_error(error) for error in model.api_errors],
        "given": [
            names.snake(error.name) for error in model.api_errors if error.message_given and error.param_given
        ],
        "spellings": [_spelling(code) for code in model.wire_errors if not code.fallback],
        "wire_words": [{"name": code.name, "doc": code.doc} for code in model.wire_errors if code.on_wire],
        "wire_codes": [{"name": code.name, "doc": code.doc} for code in model.wire_errors],
        "fallback": fallback.name,
        "fallback_error": fallback.http[0].error,
        "joins": [join for code in model.wire_errors if not code.fallback for join in _joins(code, by_name)],
    }


def _arguments(error: ApiError) -> list[str]:
    """Keyword arguments of the constructor with their types."""
    found = [f"{name}: int | float | str" for name in error.placeholders]
    if error.param_given:
        found.append("param: str | None")
    if error.message_given:
        found.append("message: str")
    return found


def _template(message: str) -> str:
    """A message template as a Python expression."""
    return ("f" if "{" in message else "") + python_literal(message)


def _error(error: ApiError) -> View:
    arguments = _arguments(error)
    values = [
        f"KINDS[{python_literal(error.name)}]",
        "param" if error.param_given else python_literal(error.param),
        "message" if error.message is None else _template(error.message),
    ]
    if error.anthropic_message is not None:
        values.append(_template(error.anthropic_message))
    function = names.snake(error.name)
    flat = ", ".join(["*", *arguments]) if arguments else ""
    fits = len(f"def {function}({flat}) -> ApiError:") <= text.WIDTH
    code = "null" if error.code is None else error.code
    return {
        "name": error.name,
        "function": function,
        "signature": flat if fits else text.exploded("", ["*", *arguments], "", indent=0),
        "arguments": text.listing("(", values, ")", indent=4, used=len("    return ApiError")),
        "docstring": f"{error.status} ``{code}``: {error.doc} (spec: {error.path})",
        "status": error.status,
        "type": error.type,
        "code": error.code,
        "anthropic_type": error.anthropic_type,
        "retry": error.retry,
        "retry_after": error.retry_after,
        "close": error.close,
        "doc": error.doc,
    }


def pattern(spelling: str) -> str:
    """Regular expression for a pattern of the spec: ``<name>`` is a number, a last ``...`` is anything that
    does not continue the last word.
    """
    open_ended = spelling.endswith("...")
    body = spelling.removesuffix("...").rstrip() if open_ended else spelling
    parts = _NUMBER.split(body)
    found = [
        f"(?P<{part}>[0-9]{{1,20}})" if place % 2 else re.escape(part).replace("\\ ", " ")
        for place, part in enumerate(parts)
    ]
    return "".join(found) + (r"(?:\W.*)?" if open_ended else "")


def _spelling(code: WireError) -> View:
    def patterns(spellings: tuple[str, ...]) -> str:
        regexes = [f'r"{pattern(spelling)}"' for spelling in spellings]
        items = [text.listing("re.compile(", [regex], ")", indent=12, used=12) for regex in regexes]
        return text.tuple_of(items, indent=8, used=16)

    return {
        "name": code.name,
        "on_wire": code.on_wire,
        "details": patterns(code.details),
        "spelled": patterns(code.spelled),
    }


_CONDITIONS = {"always": "", "ids": " and ids", "otherwise": ""}

ANSWER_TO_CANCEL = "to_cancel"
"""Condition of a join that the function has no case for: the request table ends a cancelled request."""


def _joins(code: WireError, by_name: dict[str, ApiError]) -> list[View]:
    """Conditions in order, each with the expression of its answer.

    Raises ValueError for an error of which nobody is told although its request was not cancelled.
    """
    found = []
    for join in code.http:
        if join.condition == ANSWER_TO_CANCEL:
            continue
        if join.error is None:
            raise ValueError(f"{code.path}: a request that was not cancelled must be told of its end")
        condition = f"code is WireCode.{code.name}{_CONDITIONS[join.condition]}"
        error = by_name[join.error]
        if error.placeholders:
            found += _measured(code, error, condition)
        found.append({"condition": condition, "answer": _answer(code, join, by_name)})
    return found


def _measured(code: WireError, error: ApiError, condition: str) -> list[View]:
    """Answers for words that carry the numbers of the message, one for each set of numbers a pattern gives.

    A number the message needs and a pattern lacks is the sum of the pattern's numbers that the message does
    not name.
    """
    found: dict[str, View] = {}
    for spelling in (*code.details, *code.spelled):
        given = _NUMBER.findall(spelling)
        lacking = [name for name in error.placeholders if name not in given]
        spare = [name for name in given if name not in error.placeholders]
        if not given or len(lacking) > 1 or (lacking and not spare):
            continue
        values = {name: f'numbers["{name}"]' for name in error.placeholders if name in given}
        if lacking:
            values[lacking[0]] = " + ".join(f'numbers["{name}"]' for name in spare)
        arguments = [f"{name}={values[name]}" for name in error.placeholders]
        if error.param_given:
            arguments.append("param=prompt_param")
        test = spare[0] if lacking else error.placeholders[-1]
        answer = text.listing(f"{error.name}(", arguments, ")", indent=8, used=15)
        found.setdefault(test, {"condition": f'{condition} and "{test}" in numbers', "answer": answer})
    return list(found.values())


def _answer(code: WireError, join: HttpJoin, by_name: dict[str, ApiError]) -> str:
    """The answer when the words carry no numbers, or none are needed."""
    error = by_name[str(join.error)]
    if error.placeholders:
        error = by_name[str(code.without_numbers)]
    arguments = ["param=prompt_param"] if error.param_given else []
    if error.message_given:
        arguments.append(f"message={python_literal(code.message)}")
    return text.listing(f"{error.name}(", arguments, ")", indent=8, used=15)
