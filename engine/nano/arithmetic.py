"""Sums, differences, products and quotients in words, with the column-by-column reasoning that solves them.

Every exercise is exact: the answer is computed, the reasoning is the written method taught at school.
"""

from __future__ import annotations

from random import Random
from typing import Final

from engine.nano.corpus import load_corpus, phrase_table, phrases
from engine.nano.exercise import Exercise, pair_is_held_out, vary

TABLE_LIMIT: Final = 12
"""Products and quotients are known up to this factor."""
NUMBER_LIMIT: Final = 999
"""Sums and differences are known up to this operand."""

_COLUMNS: Final = ("ones", "tens", "hundreds")

_PLAIN: Final = phrases("arithmetic_plain")
_PHRASES: Final = phrase_table("arithmetic_phrases")
_EVEN_SHARE: Final = 0.72
"""Share of pairs drawn with the same number of digits in the examination."""
_TRAINED_EVEN_SHARE: Final = 0.5
"""The same in training: numbers of different lengths are what a model adds in the wrong column."""
_CLOSE_SHARE: Final = 0.12
"""Share of training pairs with the same leading digits, where a sign and a borrow are easily missed."""

_SYMBOLS: Final = {"+": ("+",), "-": ("-",), "*": ("*", "*", "x"), "/": ("/",)}
_WORDS: Final = {"+": ("plus",), "-": ("minus",), "*": ("times",), "/": ("divided by",)}


def _digits(number: int, width: int) -> list[int]:
    return [number // 10**place % 10 for place in range(width)]


def _padded(number: int, width: int) -> str:
    """The number as wide as its partner, so that every column is found at the same distance."""
    return f"{number:0{width}}"


def reason_sum(first: int, second: int) -> str:
    """Column addition, ones first, with every carry written down."""
    width = len(str(max(first, second)))
    if width == 1:
        return f"{first} plus {second} is {first + second}."
    steps, carry = [f"{_padded(first, width)}+{_padded(second, width)}."], 0
    for name, upper, lower in zip(_COLUMNS, _digits(first, width), _digits(second, width), strict=False):
        total = upper + lower + carry
        shown = f"{carry}+{upper}+{lower}" if carry else f"{upper}+{lower}"
        carry = total // 10
        steps.append(f"{name}: {shown}={total}, write {total % 10}, carry {carry}.")
    return " ".join(steps) + f" So {first + second}."


def reason_order(first: int, second: int) -> str:
    """Digit by digit from the left, up to the first difference: ``3=3, 5<8``."""
    width = len(str(max(first, second)))
    steps = []
    for upper, lower in zip(_padded(first, width), _padded(second, width), strict=True):
        steps.append(f"{upper}{'=' if upper == lower else '<' if upper < lower else '>'}{lower}")
        if upper != lower:
            break
    return ", ".join(steps)


def reason_difference(first: int, second: int) -> str:
    """Column subtraction of the smaller from the larger, the sign decided before."""
    if max(first, second) < 10 and first >= second:
        return f"{first} minus {second} is {first - second}."
    high, low = max(first, second), min(first, second)
    width = len(str(high))
    opening = f"{_padded(first, width)}-{_padded(second, width)}: {reason_order(first, second)}."
    if first < second:
        opening += f" minus {_padded(high, width)}-{_padded(low, width)}."
    steps, borrow = [opening], 0
    for name, upper, lower in zip(_COLUMNS, _digits(high, width), _digits(low, width), strict=False):
        lent = 10 if upper - borrow - lower < 0 else 0
        shown = f"{upper + lent}-{borrow}-{lower}" if borrow else f"{upper + lent}-{lower}"
        steps.append(f"{name}: {shown}={upper + lent - borrow - lower}, borrow {lent // 10}.")
        borrow = lent // 10
    return " ".join(steps) + f" So {first - second}."


def solve(operation: str, first: int, second: int) -> tuple[str, str]:
    """(reasoning, answer) of one problem; operation is one of ``+ - * /``."""
    if operation == "+":
        return reason_sum(first, second), f"{first} + {second} = {first + second}."
    if operation == "-":
        return reason_difference(first, second), f"{first} - {second} = {first - second}."
    if operation == "*":
        return f"{first} times {second} is {first * second}.", f"{first} * {second} = {first * second}."
    quotient = first // second
    return f"{quotient} times {second} is {first}.", f"{first} / {second} = {quotient}."


def _number(random: Random, digits: int) -> int:
    if digits == 1:
        return random.randint(0, 9)
    limit: int = 10**digits
    # Round and carry-heavy numbers are rare in a uniform draw and are where models fail.
    if random.random() < 0.08:
        return random.choice((limit - 1, limit // 10, limit - random.randint(1, 9)))
    return random.randint(limit // 10, limit - 1)


def _partner(random: Random, first: int, digits: int, training: bool) -> int:
    """The other operand of a sum or difference."""
    if training and digits > 1 and random.random() < _CLOSE_SHARE:
        place: int = 10 ** random.randint(1, digits - 1)
        return first // place * place + random.randrange(place)
    even_share = _TRAINED_EVEN_SHARE if training else _EVEN_SHARE
    return _number(random, digits if random.random() < even_share else random.randint(1, digits))


def draw_operands(random: Random, operation: str, digits: int, held_out: bool) -> tuple[int, int]:
    """Two operands whose larger one has ``digits`` digits, inside or outside the held-out part."""
    while True:
        if operation == "*":
            first, second = random.randint(0, TABLE_LIMIT), random.randint(0, TABLE_LIMIT)
            return first, second
        if operation == "/":
            divisor = random.randint(1, TABLE_LIMIT)
            return divisor * random.randint(0, TABLE_LIMIT), divisor
        first = _number(random, digits)
        second = _partner(random, first, digits, training=not held_out)
        if random.random() < 0.5:
            first, second = second, first
        if operation == "-" and first < second and random.random() < 0.6:
            first, second = second, first
        if pair_is_held_out(first, second) == held_out or (digits == 1 and held_out):
            return first, second


def ask(random: Random, operation: str, first: int, second: int) -> str:
    """One way to ask for the result in words or signs."""
    if random.random() < 0.22:
        return vary(random, random.choice(_PHRASES[operation]).format(a=first, b=second))
    words = load_corpus().facts["number_words"]
    sign = random.choice(_SYMBOLS[operation])
    if max(first, second) < len(words) and random.random() < 0.12:
        expression = f"{words[first]} {random.choice(_WORDS[operation])} {words[second]}"
    elif random.random() < 0.2:
        expression = f"{first} {random.choice(_WORDS[operation])} {second}"
    elif random.random() < 0.25:
        expression = f"{first}{sign}{second}"
    else:
        expression = f"{first} {sign} {second}"
    return vary(random, random.choice(_PLAIN).format(e=expression))


def arithmetic_exercise(random: Random, operation: str, digits: int, held_out: bool = False) -> Exercise:
    """One exercise of the given operation and size; task names look like ``add 3-digit``."""
    first, second = draw_operands(random, operation, digits, held_out)
    reasoning, answer = solve(operation, first, second)
    if operation in "+-":
        name = f"{'add' if operation == '+' else 'subtract'} {digits}-digit"
    else:
        name = "multiply" if operation == "*" else "divide"
    return Exercise(name, ask(random, operation, first, second), reasoning, answer)


def mixed_arithmetic(random: Random) -> Exercise:
    """One training exercise of the usual mix of operations and sizes."""
    operation = random.choices("+-*/", (44, 40, 9, 7))[0]
    return arithmetic_exercise(random, operation, random.choices((1, 2, 3), (16, 44, 40))[0])


def too_large(random: Random) -> Exercise:
    """A problem beyond what the model has learned; it says so instead of guessing."""
    if random.random() < 0.6:
        operation = random.choice("+-")
        first, second = (
            random.randint(1000, 10 ** random.randint(4, 7)),
            random.randint(1, 10 ** random.randint(2, 6)),
        )
        if random.random() < 0.5:
            first, second = second, first
    else:
        operation, first, second = (
            "*",
            random.randint(TABLE_LIMIT + 1, 999),
            random.randint(TABLE_LIMIT + 1, 999),
        )
    answer = load_corpus().text("too_large")
    return Exercise(
        "too large", ask(random, operation, first, second), "These numbers are too large.", answer
    )
