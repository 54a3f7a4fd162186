"""Balls: real numbers with bounds of their errors, by FLINT, and functions of them as series."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

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
    "Balls",
    "arb",
    "arb_mat",
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


class Balls:
    """The number type of balls themselves."""

    def number(self, value: Fraction) -> arb:
        """Return a constant."""
        return ball(value)

    def apply(self, function: str, x: arb) -> arb:
        """Return a function of a ball."""
        return series(function, x, 1)[0]
