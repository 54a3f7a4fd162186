"""Lower bounds of an objective over a box, from models of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.certificates.verification.balls import ZERO, arb, positive_semidefinite
from odefit.certificates.verification.likelihoods import Part, least_of
from odefit.certificates.verification.polynomials import Layout, Model

DESCENTS = 30
"""Number of steps towards the least value of a quadratic form over the box."""


@dataclass(frozen=True)
class Bounds:
    """Bounds from some of the parts: below over the box, and above at one of its points.

    The `point` has a small value, in units of the box, within [-1, 1]^n.
    `bends` has the sum of the nonlinear terms in each unknown, or of the linear ones if it has no
    others; None if remainders of terms are larger.
    """

    lower: arb
    upper: arb
    point: list[float]
    bends: list[float] | None


def bounds(parts: Sequence[Part], ring: Layout) -> Bounds:
    """Return bounds of the sum of these parts of an objective.

    Parts that no polynomial encloses count with their least value alone.
    """
    residuals = [p.residual for p in parts if p.residual is not None]
    terms = [p.term for p in parts if p.term is not None]
    c, t = _constant_in_time(residuals), _constant_in_time(terms)
    rest = [r.rest for r in residuals]
    apart, missing = least_of(parts), least_of([p for p in parts if not p.enclosed])
    lower, point = apart, [0.0] * ring.unknowns
    if ring.unknowns and (residuals or terms):
        length = sum((r * r for r in rest), ZERO).sqrt().upper()
        least, point = _quartic(c, t, ring)
        if terms:  # the remainders of residuals are multiplied by the largest ones
            size = sum((r.size * r.size for r in residuals), ZERO).sqrt().upper()
            least = least.lower() - 2 * length * size - sum((m.rest for m in terms), ZERO)
            lower = lower.max(least + missing)
        else:
            root = least.lower().max(ZERO).sqrt() - length
            if root > 0:
                lower = lower.max(root * root + missing)
    over = [m.rest for m in terms]
    points = (point, [0.0] * ring.unknowns)
    uppers = [(_sum_at(c, rest, t, over, at, ring), at) for at in points]
    upper, point = min(uppers, key=lambda pair: float(pair[0]))
    bends = _bends([*c, *t], ring)
    loose = terms and float(sum(over, ZERO)) > sum(bends)
    return Bounds(lower.lower(), upper, point, None if loose else bends)


def _constant_in_time(models: Sequence[Model]) -> list[list[arb]]:
    """Return the coefficients of models at one time, shape (models, monomials)."""
    return [[p[0] if p.length() else ZERO for p in model.c] for model in models]


def _sum_at(
    c: Sequence[Sequence[arb]],
    rest: Sequence[arb],
    terms: Sequence[Sequence[arb]],
    over: Sequence[arb],
    point: Sequence[float],
    ring: Layout,
) -> arb:
    """Return an upper bound of the squares of residuals and of further terms at a point."""
    known = [arb(a) for a in point]
    monomials = [math.prod((known[k] for k in m), start=arb(1)) for m in ring.monomials]
    values = []
    for row, r in zip([*c, *terms], [*rest, *over], strict=True):
        value = sum((a * m for a, m in zip(row, monomials, strict=True) if a != 0), ZERO)
        values.append((value, r))
    total = sum((value + r for value, r in values[len(c) :]), ZERO)
    for value, r in values[: len(c)]:
        total += (value.abs_upper() + r) ** 2
    return total.upper()


def _bends(c: Sequence[Sequence[arb]], ring: Layout) -> list[float]:
    """Return the sums of the sizes of nonlinear terms, or of linear ones, by unknown."""
    linear, nonlinear = [0.0] * ring.unknowns, [0.0] * ring.unknowns
    for row in c:
        for monomial, a in zip(ring.monomials, row, strict=True):
            totals = linear if len(monomial) == 1 else nonlinear
            for k in monomial:
                totals[k] += abs(float(a.mid()))
    return nonlinear if any(nonlinear) else linear


def _quartic(
    c: Sequence[Sequence[arb]], terms: Sequence[Sequence[arb]], ring: Layout
) -> tuple[arb, list[float]]:
    """Return a lower bound of the squares of polynomials, shape (R, monomials), and of others.

    With it comes a point at which the quadratic part is small.
    """
    total: dict[tuple[int, ...], arb] = {}
    higher = ZERO
    for row in c:
        nonzero = [(m, a) for m, a in zip(ring.monomials, row, strict=True) if a != 0]
        for i, (m, a) in enumerate(nonzero):
            for k, (other, b) in enumerate(nonzero[i:]):
                degree = len(m) + len(other)
                term = a * b if k == 0 else 2 * a * b
                if degree < 4:
                    key = tuple(sorted(m + other))
                    total[key] = total.get(key, ZERO) + term
                elif k > 0:  # squares of single terms are not negative
                    higher += term.abs_upper()
    for row in terms:
        for m, a in zip(ring.monomials, row, strict=True):
            if a != 0 and len(m) < 4:
                total[m] = total.get(m, ZERO) + a
            elif a != 0:
                higher += a.abs_upper()
    n = ring.unknowns
    higher += sum((v.abs_upper() for key, v in total.items() if len(key) == 3), ZERO)
    slope = [total.get((k,), ZERO) for k in range(n)]
    bend = [[_half(total, i, j) for j in range(n)] for i in range(n)]
    least, point = _quadratic(slope, bend)
    return total.get((), ZERO) + least - higher, point


def _half(total: dict[tuple[int, ...], arb], i: int, j: int) -> arb:
    """Return an entry of half the Hessian."""
    value = total.get((min(i, j), max(i, j)), ZERO)
    return value if i == j else value / 2


def _quadratic(slope: Sequence[arb], bend: Sequence[Sequence[arb]]) -> tuple[arb, list[float]]:
    """Return a lower bound of ``g d + d H d`` over [-1, 1]^n, and a point with a small value."""
    n = len(slope)
    g = np.array([float(a.mid()) for a in slope])
    h = np.array([[float(a.mid()) for a in row] for row in bend])
    if not (np.isfinite(g).all() and np.isfinite(h).all()):
        return arb(0, "inf"), [0.0] * n
    least = float(np.linalg.eigvalsh(h)[0])
    size = float(np.abs(h).sum()) + 1e-300
    shift = max(-least, 0.0) * (1 + 1e-9) + 1e-12 * size
    d = _least_point(g, h + shift * np.eye(n))
    point = [arb(float(a)) for a in d]
    if not positive_semidefinite(
        [[a + arb(shift) if i == j else a for j, a in enumerate(row)] for i, row in enumerate(bend)]
    ):
        return arb(0, "inf"), d.tolist()
    product = [sum((a * p for a, p in zip(row, point, strict=True)), ZERO) for row in bend]
    value = ZERO
    for k in range(n):
        value += (slope[k] + product[k]) * point[k]
        tangent = slope[k] + 2 * product[k]
        value += (tangent * (1 - point[k])).min(tangent * (-1 - point[k])).lower()
        far = 1 + point[k].abs_upper()
        value -= arb(shift) * far * far
    return value, d.tolist()


def _least_point(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return the approximate minimiser of a convex quadratic within [-1, 1]^n."""
    d = np.zeros(len(g))
    with np.errstate(over="ignore"):  # a nearly flat direction
        for _ in range(DESCENTS):
            for k in range(len(g)):
                if h[k, k] > 0:
                    rest = g[k] / 2 + h[k] @ d - h[k, k] * d[k]
                    d[k] = np.clip(-rest / h[k, k], -1.0, 1.0)
    return d
