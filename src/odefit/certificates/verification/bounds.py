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

REWEIGHTINGS = 30
"""Number of least squares problems for slopes at kinks, each half as rounded as the last."""


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
    kinked = [(p.line, p.loss) for p in parts if p.line is not None]
    c, t = _constant_in_time(residuals), _constant_in_time(terms)
    v = _constant_in_time([line for line, _ in kinked])
    rest, far = [r.rest for r in residuals], [line.rest for line, _ in kinked]
    over = [m.rest for m in terms]
    slopes, bottom = _slopes(c, t, v, ring)
    supports = [_support(row, z, loss) for row, z, (_, loss) in zip(v, slopes, kinked, strict=True)]
    below = [*over, *(abs(z) * r for z, r in zip(slopes, far, strict=True))]
    apart, missing = least_of(parts), least_of([p for p in parts if not p.enclosed])
    lower, point = apart, [0.0] * ring.unknowns
    if ring.unknowns and (residuals or terms or kinked):
        length = sum((r * r for r in rest), ZERO).sqrt().upper()
        least, point = _quartic(c, [*t, *supports], ring)
        if terms or kinked:  # the remainders of residuals are multiplied by the largest ones
            size = sum((r.size * r.size for r in residuals), ZERO).sqrt().upper()
            least = least.lower() - 2 * length * size - sum(below, ZERO)
            lower = lower.max(least + missing)
        else:
            root = least.lower().max(ZERO).sqrt() - length
            if root > 0:
                lower = lower.max(root * root + missing)
    points = (point, bottom, [0.0] * ring.unknowns)
    uppers = [(_sum_at(c, rest, t, over, v, far, at, ring), at) for at in points]
    upper, point = min(uppers, key=lambda pair: float(pair[0]))
    bends = _bends([*c, *t, *v], ring)
    loose = below and float(sum(below, ZERO)) > sum(bends)
    return Bounds(lower.lower(), upper, point, None if loose else bends)


def _constant_in_time(models: Sequence[Model]) -> list[list[arb]]:
    """Return the coefficients of models at one time, shape (models, monomials)."""
    return [[p[0] if p.length() else ZERO for p in model.c] for model in models]


def _sum_at(
    c: Sequence[Sequence[arb]],
    rest: Sequence[arb],
    terms: Sequence[Sequence[arb]],
    over: Sequence[arb],
    lines: Sequence[Sequence[arb]],
    far: Sequence[arb],
    point: Sequence[float],
    ring: Layout,
) -> arb:
    """Return an upper bound of squares, of terms and of magnitudes of lines at a point."""
    known = [arb(a) for a in point]
    monomials = [math.prod((known[k] for k in m), start=arb(1)) for m in ring.monomials]
    values = []
    for row, r in zip([*c, *lines, *terms], [*rest, *far, *over], strict=True):
        value = sum((a * m for a, m in zip(row, monomials, strict=True) if a != 0), ZERO)
        values.append((value, r))
    total = sum((value + r for value, r in values[len(c) + len(lines) :]), ZERO)
    for k, (value, r) in enumerate(values[: len(c) + len(lines)]):
        size = value.abs_upper() + r
        total += size**2 if k < len(c) else size
    return total.upper()


def _support(row: Sequence[arb], slope: float, loss: arb) -> list[arb]:
    """Return the polynomial of the line below ``root(v^2 + loss^2) - loss`` with that slope."""
    z = arb(slope)
    first, *others = (z * a for a in row)
    return [first - loss * (1 - (1 - z * z).sqrt()), *others]


def _slopes(
    c: Sequence[Sequence[arb]],
    terms: Sequence[Sequence[arb]],
    lines: Sequence[Sequence[arb]],
    ring: Layout,
) -> tuple[list[float], list[float]]:
    """Return slopes of lines near the least value of linear parts, and a point near to that.

    It is found by least squares whose weights are renewed. At a kink any slope within [-1, 1] is
    that of a supporting line.
    """
    n = ring.unknowns
    if not lines or not n:
        return [0.0] * len(lines), [0.0] * n
    both = np.array([[float(row[k].mid()) for k in (0, *ring.linear)] for row in [*c, *lines]])
    further = [sum(float(row[k].mid()) for row in terms) for k in ring.linear]
    if not (np.isfinite(both).all() and np.isfinite(further).all()):
        return [0.0] * len(lines), [0.0] * n
    constant, jacobian, d = both[:, 0], both[:, 1:], np.zeros(n)
    values, weights = constant, np.ones(len(both))
    for k in range(REWEIGHTINGS):
        values = constant + jacobian @ d
        rounded = np.hypot(values, max(0.5**k * np.abs(both).sum(axis=1).max(), 1e-300))
        weights[len(c) :] = 0.5 / rounded[len(c) :]
        slope = 2 * (weights * constant) @ jacobian + further
        d = _least_point(slope, (jacobian.T * weights) @ jacobian)
    values = constant + jacobian @ d
    slopes = np.clip(2 * weights * values, -1.0, 1.0)[len(c) :]
    return slopes.tolist(), d.tolist()


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
