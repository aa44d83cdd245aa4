"""Grammar-constrained decoding: which tokens may come next, through `llguidance`.

A grammar text is a JSON Schema (a JSON object or a boolean), a GBNF grammar, or a Lark grammar. A constraint
that was built allows only tokens that keep the text a prefix of the language; the model may end its turn
exactly where the text is complete. Where only one text may follow, the model still chooses how it is cut into
tokens, as in any engine that masks tokens. After a prompt that ends with the tag that opens a reasoning, with
or without blanks behind it, the text is what follows the reasoning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import thread_time
from typing import Any, Protocol

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from engine.reference import schema_numbers
from engine.reference.gbnf import to_lark
from engine.reference.kernels import Floats
from engine.reference.schema_width import widest_row
from generated import markup

_MOST_ITEMS = 20_000
_LIMITS = LLParserLimits(
    max_items_in_row=_MOST_ITEMS + 1000,
    step_max_items=100_000,
    step_lexer_fuel=2_000_000,
    verbose_errors=False,
)
"""They bound the time of a mask to about a tenth of a second: a row of 20,000 items, an object of some 5,000
optional properties, takes that. What can be foreseen meets no limit when a text has begun: a schema with a
larger row is refused (`schema_width`), and of the 40,000 tokens of a GBNF text no more than every other one
begins an item. The library does not count what an ambiguous grammar costs, which grows with the text.
"""
MOST_SECONDS = 1.0
"""Of the processor for one mask, or one token: all other requests wait, so one that needs more is ended."""
_GBNF_RULE = re.compile(r"^[ \t]*[A-Za-z0-9_-]+[ \t]*::=", re.MULTILINE)
_LARK_SCHEMA = re.compile(r"%json\s*")
_FREE_TOKENS = '%llguidance {"no_forcing": true}\n'
OPENS_REASONING = markup.GLM_REASONING_OPEN
CLOSES_REASONING = markup.GLM_REASONING_CLOSE


class GrammarError(ValueError):
    """The grammar text cannot be compiled, or the model left the language (an engine fault)."""


class _Vocabulary:
    """What llguidance wants to know about a tokenizer."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        special: frozenset[int],
        end_token: int,
        encode: Callable[[str], list[int]],
    ) -> None:
        self.tokens = list(pieces)
        self.special_token_ids = sorted(special)
        self.eos_token_id = end_token
        self.bos_token_id = None
        self._encode = encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


class GrammarCompiler:
    """Builds constraints for one tokenizer. Its own set-up (a trie of the vocabulary) is done on first
    use.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        special: frozenset[int],
        end_tokens: frozenset[int],
        encode: Callable[[str], list[int]],
    ) -> None:
        self._vocabulary = (pieces, special | end_tokens, encode)
        self._end_tokens = sorted(end_tokens)
        self._size = len(pieces)
        self._tokenizer: Any = None

    def compile(self, text: bytes) -> GrammarConstraint:
        """The constraint of a grammar text; raises GrammarError when it is not a valid grammar."""
        if not self._end_tokens:
            raise GrammarError("the model has no end token")
        grammar = grammar_source(text)
        if self._tokenizer is None:
            pieces, special, encode = self._vocabulary
            wrapper = TokenizerWrapper(_Vocabulary(pieces, special, self._end_tokens[0], encode))
            self._tokenizer = LLTokenizer(wrapper, n_vocab=self._size, eos_token=self._end_tokens)
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_LIMITS)
        constraint = GrammarConstraint(matcher, self._size)
        beginnings = constraint.allowed()  # some faults show only here
        text_follows = np.delete(beginnings, self._end_tokens).any()
        if matcher.is_error() or not (text_follows or matcher.is_accepting()):
            raise GrammarError(_fault(matcher) or "the grammar allows no text")
        return constraint


def _fault(matcher: Any) -> str:
    """What llguidance found wrong; "" when no more than that nothing may follow."""
    words: str = matcher.get_error()
    if words.startswith("panic"):  # its words are about the library's code
        return "the grammar is too large for the library"
    return "" if words.startswith("NoExtension") else words.replace("<non-verbose/>", "").strip()


def _schema(source: str, place: int | None = None) -> Any:
    """The JSON value of a text, or at a place in one, fit for the library if it is a schema; raises
    GrammarError, and JSONDecodeError when it is no JSON. Whatever else the checks raise is a refusal too: a
    grammar must not end the process.
    """
    try:
        schema = schema_numbers.load(source, place)
        items = 0
        if isinstance(schema, dict):
            schema_numbers.check(schema)
            items = widest_row(schema)
    except json.JSONDecodeError:
        raise
    except schema_numbers.SchemaError as error:
        raise GrammarError(str(error)) from None
    except RecursionError:
        raise GrammarError("the JSON Schema is nested too deeply") from None
    except Exception as error:
        raise GrammarError(f"the JSON Schema cannot be checked: {type(error).__name__}: {error}") from None
    if items > _MOST_ITEMS:
        raise GrammarError(
            f"the schema has too many optional properties or choices in one place: over {_MOST_ITEMS} items"
        )
    return schema


def _check_lark(source: str) -> None:
    """Raises GrammarError when a schema within a Lark grammar is not fit for the library. A `%json` without a
    JSON value behind it is a part of a literal or comment, or refused by the library.
    """
    for found in _LARK_SCHEMA.finditer(source):
        with suppress(json.JSONDecodeError):
            _schema(source, found.end())


def grammar_source(text: bytes) -> str:
    """The grammar in llguidance's own form; raises GrammarError."""
    try:
        source = text.decode("utf-8")
    except UnicodeDecodeError:
        raise GrammarError("the grammar is not UTF-8 text") from None
    try:
        schema = _schema(source)
    except json.JSONDecodeError:
        schema = None
    is_gbnf = _GBNF_RULE.search(source) is not None
    if not isinstance(schema, dict | bool) and not is_gbnf:
        _check_lark(source)
    try:
        if isinstance(schema, dict | bool):
            text_form = source if isinstance(schema, dict) else json.dumps({} if schema else {"not": {}})
            whole = LLMatcher.grammar_from_json_schema(text_form, overrides={"whitespace_flexible": False})
            lark = "start: %json " + json.dumps(json.loads(whole)["grammars"][0]["json_schema"])
        else:
            lark = to_lark(source) if is_gbnf else source
        return LLMatcher.grammar_from_lark(_FREE_TOKENS + lark)
    except Exception as error:  # the converters raise bare Exceptions of several kinds
        raise GrammarError(str(error)) from None


def _check_time(began: float) -> None:
    if thread_time() - began > MOST_SECONDS:
        raise GrammarError("the grammar takes too long")


class Constraint(Protocol):
    """What may be chosen next in one request."""

    def restrict(self, logits: Floats) -> Floats:
        """A copy of logits (vocabulary,) with every token that may not come next at -inf."""
        ...

    def accept(self, token: int) -> bool:
        """Move on by a chosen token; True when nothing but the end of the turn may follow."""
        ...


class GrammarConstraint:
    """The state of one request's grammar."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def allowed(self) -> NDArray[np.bool_]:
        """Which tokens (vocabulary,) may come next; after a fault the end tokens, as after a whole text."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        return np.unpackbits(bits, bitorder="little")[: self._vocabulary].view(np.bool_)

    def restrict(self, logits: Floats) -> Floats:
        """Raises GrammarError when no token may come next, or finding out took too long."""
        began = thread_time()
        allowed = self.allowed()
        if self._matcher.is_error() or not allowed.any():
            raise GrammarError(_fault(self._matcher) or "no token may follow")
        _check_time(began)
        return np.where(allowed, logits, np.float32(-np.inf))

    def accept(self, token: int) -> bool:
        """Raises GrammarError when the token was not allowed, or following it took too long."""
        began = thread_time()
        if not self._matcher.consume_token(token) or self._matcher.is_error():
            raise GrammarError(_fault(self._matcher) or "a token that may not follow")
        _check_time(began)
        return bool(self._matcher.is_stopped())


class AfterReasoning:
    """A constraint that holds from the token after `close` on. Until then any token may come but those that
    end the turn: an answer without its constrained part would be none.
    """

    def __init__(self, constraint: Constraint, close: int, end_tokens: frozenset[int]) -> None:
        self._constraint = constraint
        self._close = close
        self._end_tokens = sorted(end_tokens)
        self._reasoning = True

    def restrict(self, logits: Floats) -> Floats:
        """The end tokens are masked during the reasoning."""
        if not self._reasoning:
            return self._constraint.restrict(logits)
        masked = logits.copy()
        masked[self._end_tokens] = -np.inf
        return masked

    def accept(self, token: int) -> bool:
        """The reasoning's own tokens, its close included, complete nothing."""
        if not self._reasoning:
            return self._constraint.accept(token)
        self._reasoning = token != self._close
        return False
