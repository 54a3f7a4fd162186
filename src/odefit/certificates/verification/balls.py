"""Balls: real numbers with bounds of their errors, by FLINT, and functions of them as series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

BITS = 80
"""Precision of all balls in bits."""

try:
    from flint import arb, arb_mat, arb_poly, arb_series, ctx, fmpq

    ctx.prec = BITS
    ZERO, UNIT = arb(0), arb("0.5", "0.5")  # the latter is the interval [0, 1]
except ImportError:  # commands require the package first, see odefit.common.packages
    ZERO = UNIT = arb = arb_mat = arb_poly = arb_series = ctx = fmpq = None

__all__ = (
    "UNIT",
    "ZERO",
    "Dual",
    "Duals",
    "arb",
    "arb_poly",
    "around",
    "ball",
    "finite",
    "growth",
    "positive_semidefinite",
    "series",
)


def ball(value: Fraction) -> arb:
    """Return a rational number as a ball."""
    return arb(fmpq(value.numerator, value.denominator))


def around(middle: arb, radius: arb) -> arb:
    """Return a ball that contains all within `radius` of all of `middle`."""
    return middle + arb(0, radius.abs_upper())


def finite(value: arb) -> bool:
    """Return whether a ball is bounded."""
    return bool(value.is_finite())


def series(function: str, x: arb, terms: int) -> list[arb]:
    """Return Taylor coefficients of a function, or of 1/x ("inv"), with its derivatives on `x`."""
    ctx.cap = terms
    argument = arb_series([x, 1], prec=terms)
    coefficients = argument.inv() if function == "inv" else getattr(argument, function)()
    return [coefficients[k] for k in range(terms)]


def positive_semidefinite(matrix: Sequence[Sequence[arb]]) -> bool:
    """Return whether Cholesky's factors prove a symmetric matrix positive definite."""
    n = len(matrix)
    rows: list[list[arb]] = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j]
            for k in range(j):
                rest -= rows[i][k] * rows[j][k]
            if i == j:
                if not rest > 0:
                    return False
                rows[i][i] = rest.sqrt()
            else:
                rows[i][j] = rest / rows[j][j]
    return True


def growth(matrix: Sequence[Sequence[arb]], start: Sequence[arb], rate: Sequence[arb]) -> list[arb]:
    """Return the solution at time 1 of z' = A z + b from z(0), for constant A and b."""
    n = len(start)
    whole = arb_mat(n + 1, n + 1)
    for i in range(n):
        for j in range(n):
            whole[i, j] = matrix[i][j]
        whole[i, n] = rate[i]
    power = whole.exp()
    return [sum((power[i, j] * start[j] for j in range(n)), power[i, n]) for i in range(n)]


@dataclass(frozen=True)
class Dual:
    """A ball with its derivatives by the states."""

    value: arb
    slopes: tuple[arb, ...]

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-s for s in self.slopes))

    def __add__(self, other: Dual) -> Dual:
        slopes = tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Dual(self.value + other.value, slopes)

    def __mul__(self, other: Dual) -> Dual:
        x, y = self.value, other.value
        slopes = tuple(a * y + x * b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Dual(x * y, slopes)


class Duals:
    """The number type of :class:`Dual`, with derivatives by a number of states."""

    def __init__(self, states: int) -> None:
        self._flat = (ZERO,) * states

    def number(self, value: Fraction) -> Dual:
        """Return a constant."""
        return Dual(ball(value), self._flat)

    def constant(self, value: arb) -> Dual:
        """Return a value that does not depend on the states."""
        return Dual(value, self._flat)

    def state(self, place: int, value: arb) -> Dual:
        """Return a state."""
        slopes: list[Any] = list(self._flat)
        slopes[place] = arb(1)
        return Dual(value, tuple(slopes))

    def apply(self, function: str, x: Dual) -> Dual:
        """Return a function of a dual number."""
        value, slope = series(function, x.value, 2)
        return Dual(value, tuple(slope * s for s in x.slopes))
