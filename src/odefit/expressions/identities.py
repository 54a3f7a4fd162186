"""Exact tests of whether an expression has one value wherever another one is zero.

Names get random rational values for which the other expression is zero, and the arithmetic is that
of fractions. Values of functions are random fractions as well, the same for the same arguments. A
polynomial that is not constant has the same value at all of them with a negligible chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

from odefit.expressions.formulas import Part

TRIALS = 3
"""Number of points, each of which has an exact zero of the second expression."""

RANGE = 10**6
"""Largest numerator and denominator of random fractions."""

LARGEST_POWER = 20
"""Largest power that is multiplied out; others count as functions."""


@lru_cache(maxsize=4096)
def value_on(part: Part, quantity: Part) -> Fraction | None:
    """Return the value of `part` if it is certainly the same wherever `quantity` is zero.

    That needs a name in which the quantity is linear. It is not certain if only properties of
    functions make it so.
    """
    if part.number is not None:
        return Fraction(part.number)
    certain = (_value(part, quantity, solved) for solved in sorted(quantity.names))
    return next((value for value in certain if value is not None), None)


def _value(part: Part, quantity: Part, solved: str) -> Fraction | None:
    """Return the value of a part at all zeros of a quantity that is linear in one name."""
    names = sorted(part.names | quantity.names)
    distinct = set()
    for trial in range(TRIALS):
        algebra = _Fractions(Random(trial))
        values = {n: algebra.random() for n in names}
        try:
            at = [algebra.value(quantity, {**values, solved: Fraction(x)}) for x in (0, 1)]
            values[solved] = at[0] / (at[0] - at[1])
            if algebra.value(quantity, values):
                return None
            distinct.add(algebra.value(part, values))
        except ZeroDivisionError:
            return None
        if len(distinct) > 1:
            return None
    return distinct.pop()


class _Fractions:
    """The algebra of fractions in which functions are unknown."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._known: dict[tuple[Any, ...], Fraction] = {}

    def random(self) -> Fraction:
        return Fraction(self._random.randint(1, RANGE), self._random.randint(1, RANGE))

    def value(self, part: Part, values: dict[str, Fraction]) -> Fraction:
        value: Fraction = part.expression().evaluate(values, self)
        return value

    def number(self, text: str) -> Fraction:
        return Fraction(text)

    def power(self, base: Fraction, exponent: Fraction) -> Fraction:
        if exponent.denominator == 1 and abs(exponent) <= LARGEST_POWER:
            return Fraction(base**exponent.numerator)
        return self.call("^", [base, exponent])

    def call(self, function: str, arguments: Sequence[Fraction]) -> Fraction:
        key = (function, *arguments)
        if key not in self._known:
            self._known[key] = self.random()
        return self._known[key]
