"""Functions of expressions, rewritten as the elementary operations of a tape that is enclosed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from odefit.expressions.expressions import NON_SMOOTH
from odefit.expressions.grammar import named
from odefit.structure.series.tape import NotRationalError, Tape, Term

MAX_EXPONENT = 64
"""Largest fixed exponent of a power; larger ones, and those below one over it, take logarithms."""

VALUES_AT_ZERO: Mapping[str, int] = {
    "exp": 1, "sin": 0, "cos": 1, "tan": 0, "asin": 0, "atan": 0, "sinh": 0, "cosh": 1,
    "tanh": 0, "sqrt": 0,
}  # fmt: skip
"""Values of functions at zero, where they are known exactly."""


class FunctionRewriting:
    """Rewrites functions as :data:`odefit.structure.series.tape.ELEMENTARY` operations of a tape.

    :class:`odefit.structure.series.tape.Recording` lifts with it where values are enclosed, in
    continuous time and on meshes alike, so that functions are operations and no new states.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._rules: Mapping[str, Callable[[Term], Term]] = {
            "exp": self._exp,
            "log": self._log,
            "log10": lambda x: self._log(x) / self._log(tape.number(10)),
            "sqrt": self._root,
            "sin": lambda x: tape.apply("sin", x, x),
            "cos": lambda x: tape.apply("cos", x, x),
            "tan": lambda x: tape.apply("sin", x, x) / tape.apply("cos", x, x),
            "asin": self._asin,
            "acos": lambda x: self._atan(tape.number(1)) * tape.number(2) - self._asin(x),
            "atan": self._atan,
            "sinh": lambda x: (self._exp(x) - self._exp(-x)) * tape.number(Fraction(1, 2)),
            "cosh": lambda x: (self._exp(x) + self._exp(-x)) * tape.number(Fraction(1, 2)),
            "tanh": self._tanh,
        }

    def __call__(self, function: str, arguments: Sequence[Term]) -> Term:
        """Return the value of a function, or of ``"^"``; kinks raise NotRationalError."""
        if function in NON_SMOOTH:
            raise NotRationalError(f"{named(function)!r} has a kink and cannot be enclosed")
        if function == "^":
            return self._power(*arguments)
        x = arguments[0]
        if x.value == 0 and function in VALUES_AT_ZERO:
            return self._tape.number(VALUES_AT_ZERO[function])
        return self._rules[function](x)

    def _exp(self, x: Term) -> Term:
        return self._tape.apply("exp", x, x)

    def _log(self, x: Term) -> Term:
        return self._tape.number(0) if x.value == 1 else self._tape.apply("log", x, x)

    def _root(self, x: Term) -> Term:
        return self._power(x, self._tape.number(Fraction(1, 2)))

    def _power(self, base: Term, exponent: Term) -> Term:
        p, b = exponent.value, base.value
        if b == 1 or (b == 0 and p is not None and p > 0):
            return base
        if p is not None and Fraction(1, MAX_EXPONENT) <= abs(p) <= MAX_EXPONENT:
            return self._tape.apply("^", base, exponent)
        if p is not None or b is not None:
            return self._exp(exponent * self._log(base))
        # The second factor is nearly one, so that its remainder is small.
        middle = self._tape.apply("middle", exponent, exponent)
        near = self._exp((exponent - middle) * self._log(base))
        return self._tape.apply("^", base, middle) * near

    def _asin(self, x: Term) -> Term:
        return self._tape.apply("asin", x, self._root(self._tape.number(1) - x * x))

    def _atan(self, x: Term) -> Term:
        return self._tape.apply("atan", x, self._tape.number(1) + x * x)

    def _tanh(self, x: Term) -> Term:
        cosh = self._rules["cosh"](x)
        return self._tape.apply("tanh", x, cosh * cosh)
