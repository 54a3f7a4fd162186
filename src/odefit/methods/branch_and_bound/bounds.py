"""What enclosed residuals say about a box: a lower bound of their norm, and a smaller box.

Lower bounds of ``|R(d)|`` over all d in [-1, 1]^n, where ``R_i(d) = sum c[i, m] d^m + r_i``:

1. For any weights y, ``|R| >= y R / |y|``. The polynomial y R has one coefficient for each
   monomial, so that what cancels between residuals is not counted. Good weights are the residuals
   of the bounded least squares problem in which each residual may move within its own nonlinear
   terms and remainder.
2. ``|R|^2`` itself is a polynomial, whose part of degree two is minimised over the box by its
   tangent plane (and its most negative curvature, if it is not convex); higher terms are bounded.
   Near an optimum this is exact to third order: boxes there need not shrink to nothing (the cluster
   effect; K. Du and R. B. Kearfott, The cluster problem in multivariate global optimization, 1994).

A half space ``y R <= |y| radius`` with weights that make all but one direction cancel limits that
direction: this shrinks boxes to the ellipsoid of what fits well enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from odefit.enclosure.monomials import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.enclosure.rounding import UNIT_ROUNDOFF
from odefit.problem.arrays import Array, BoolArray

TURNS = 12
"""Of projected Gauss-Newton iterations for weights."""

DOUBT = 1e-12
"""Relative to the largest of what is added up: room for rounding."""

REGULAR = 1e-9
"""Least relative diagonal of a triangular factor that is inverted for contraction."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """About B boxes.

    Attributes
    ----------
    norm
        Lower bound of the norm of the residuals, shape (B,).
    lower, upper
        Where the norm can be at most the radius, in units of the box: within [-1, 1], shape
        (B, n); lower above upper where nowhere.
    spread
        How much each direction contributes to what is not linear, shape (B, n).
    known
        Of which residuals something is known, shape (B, R).
    loose
        Remainders of these; zero for others, shape (B, R).
    """

    norm: Array
    lower: Array
    upper: Array
    spread: Array
    known: BoolArray
    loose: Array


class Judge:
    """Bounds for one problem.

    Parameters
    ----------
    monomials
        Of its enclosed residuals.
    """

    def __init__(self, monomials: Monomials) -> None:
        self._m = monomials
        self._n = monomials.variables
        self._linear = monomials.linear
        self._higher = np.flatnonzero(monomials.degrees >= 2)
        self._cubic = _cubic_products(monomials)

    def __call__(self, residuals: Residuals, radius: float) -> Verdict:
        """Bounds, and the part of each box in which the norm can be at most `radius`."""
        c = np.ascontiguousarray(np.moveaxis(residuals.c, 2, 0))
        e = np.ascontiguousarray(residuals.remainder.T)
        finite = np.isfinite(e) & np.isfinite(c).all(axis=2)
        c = np.where(finite[:, :, None], c, 0.0)
        # A residual of which nothing is known has no weight in anything below.
        e = np.where(finite, e, 0.0)
        nonlinear = np.abs(c[:, :, self._higher]).sum(axis=2)
        loose = np.where(finite, nonlinear + e, np.inf)
        with np.errstate(all="ignore"):
            share = 1.0 / np.sqrt(1.0 + (loose * np.sqrt(e.shape[1]) / radius) ** 2)
            norm = np.sqrt(residuals.least_squares()) * (1 - DOUBT)
            norm = np.fmax(norm, self._by_weights(c, e, loose, share))
            known: BoolArray = np.all(finite, axis=1)
            if known.any():
                norm[known] = np.fmax(norm[known], self._by_square(c[known], e[known]))
            lower, upper = self._contracted(c, e, loose, share, radius)
        empty = (lower > upper).any(axis=1)
        norm = np.where(empty, np.maximum(norm, radius), norm)
        spread = np.einsum(
            "brm,mk->bk", np.abs(c[:, :, self._higher]), self._m.contains[self._higher]
        )
        # Squares that overflow are at least so large.
        norm = np.maximum(np.nan_to_num(norm, posinf=1e150), 0.0)
        return Verdict(norm, lower, upper, spread, finite, e)

    def _least(self, y: Array, c: Array, e: Array, free: int | None = None) -> tuple[Array, Array]:
        """Lower bound of y R over the box without direction `free`, and its coefficients."""
        terms = 4 * UNIT_ROUNDOFF * (y.shape[1] + c.shape[2])
        g = np.einsum("br,brm->bm", y, c)
        size = np.einsum("br,brm->b", np.abs(y), np.abs(c))
        drop = np.abs(g)
        drop[:, 0] = 0.0
        squares = self._m.squares
        drop[:, squares] = np.maximum(-g[:, squares], 0.0)
        if free is not None:
            drop[:, self._linear[free]] = 0.0
        rest = drop.sum(axis=1) + np.einsum("br,br->b", np.abs(y), e)
        return g[:, 0] - rest * (1 + DOUBT + terms) - terms * size, g

    def _by_weights(self, c: Array, e: Array, loose: Array, share: Array) -> Array:
        n, boxes = self._n, len(c)
        first, slope = c[:, :, 0], c[:, :, self._linear]
        d = np.zeros((boxes, n))
        floor = 1e-12 * np.einsum("brn,brn->b", slope, slope) + 1e-300
        for _ in range(TURNS if n else 0):
            y = _beyond(first + np.einsum("brn,bn->br", slope, d), loose)
            weight = (y != 0) + 0.05 * share**2
            gradient = np.einsum("brn,br->bn", slope, y)
            curvature = np.einsum("brn,br,brm->bnm", slope, weight, slope)
            curvature += floor[:, None, None] * np.eye(n)
            d = _projected_step(d, gradient, curvature)
        inner = first + np.einsum("brn,bn->br", slope, d)
        best = np.zeros(boxes)
        for weights in (_beyond(inner, loose), inner * share**2):
            y = _scaled(weights)
            length = np.linalg.norm(y, axis=1) * (1 + DOUBT)
            bound, _ = self._least(y, c, e)
            best = np.maximum(
                best, np.where(length > 0, bound / np.where(length > 0, length, 1), 0)
            )
        return best

    def _by_square(self, c: Array, e: Array) -> Array:
        """From the polynomial |R|^2, without the remainders, which are taken off its root."""
        m, n, boxes = self._m, self._n, len(c)
        first, slope = c[:, :, 0], c[:, :, self._linear]
        constant = np.einsum("br,br->b", first, first)
        linear = 2 * np.einsum("br,brn->bn", first, slope)
        square = np.einsum("brn,brm->bnm", slope, slope)
        if m.degree >= 2:
            mixed = np.einsum("br,brm->bm", first, c)
            part = m.parts[2]
            for i in range(part.start, part.stop):
                a, b = m.exponents[i]
                square[:, a, b] += mixed[:, i]
                square[:, b, a] += mixed[:, i]
        # Cubic terms with what cancels between residuals; beyond, magnitudes.
        rest = np.zeros(boxes)
        for pairs in self._cubic:
            total = np.zeros(boxes)
            for i, j in pairs:
                total += np.einsum("br,br->b", c[:, :, i], c[:, :, j])
            rest += np.abs(2 * total)
        sizes = [np.abs(c[:, :, part]).sum(axis=2) for part in m.parts]
        for a in range(m.degree + 1):
            for b in range(m.degree + 1):
                # A square of a term is not negative.
                if a + b >= 4 and a != b:
                    rest += np.einsum("br,br->b", sizes[a], sizes[b])
        d = np.zeros((boxes, n))
        scale = np.abs(square).sum(axis=(1, 2)) + 1e-300
        fine = np.isfinite(scale)
        usable = np.where(fine[:, None, None], square, 0.0)
        least = np.where(fine, np.linalg.eigvalsh(usable)[:, 0], np.nan) if n else np.zeros(boxes)
        doubt = DOUBT + 32 * UNIT_ROUNDOFF * (c.shape[1] + c.shape[2])
        curved = least - doubt * scale
        convex = square + (np.maximum(-curved, 0.0) + doubt * scale)[:, None, None] * np.eye(n)
        for _ in range(TURNS if n else 0):
            gradient = linear + 2 * np.einsum("bnm,bm->bn", convex, d)
            d = _projected_step(d, gradient, 2 * convex)
        gradient = linear + 2 * np.einsum("bnm,bm->bn", square, d)
        value = constant + np.einsum("bn,bn->b", linear, d)
        value += np.einsum("bn,bnm,bm->b", d, square, d)
        reach = np.minimum(gradient * (1 - d), gradient * (-1 - d)).sum(axis=1)
        bend = np.minimum(curved, 0.0) * ((1 + np.abs(d)) ** 2).sum(axis=1)
        size = np.einsum("brm->br", np.abs(c))
        total = np.einsum("br,br->b", size, size)
        low = value + reach + bend - rest - doubt * total
        root = np.sqrt(np.maximum(low, 0.0)) * (1 - DOUBT)
        return np.asarray(root - np.linalg.norm(e, axis=1) * (1 + DOUBT))

    def _contracted(
        self, c: Array, e: Array, loose: Array, share: Array, radius: float
    ) -> tuple[Array, Array]:
        n, boxes = self._n, len(c)
        lower, upper = -np.ones((boxes, n)), np.ones((boxes, n))
        first, slope = share * c[:, :, 0], share[:, :, None] * c[:, :, self._linear]
        if not n or slope.shape[1] < n:
            return lower, upper
        q, r = np.linalg.qr(slope)
        diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
        usable = diagonal.min(axis=1) > REGULAR * diagonal.max(axis=1)
        inverse = np.linalg.inv(np.where(usable[:, None, None], r, np.eye(n)))
        across = first - np.einsum("brn,bn->br", q, np.einsum("brn,br->bn", q, first))
        distance = np.linalg.norm(across, axis=1)
        reach = radius + np.linalg.norm(np.where(share > 0, share * loose, 0.0), axis=1)
        # The half space that touches the ellipsoid where a direction is largest.
        cosine = np.minimum(distance / reach, 1.0)
        sine = np.sqrt(1.0 - cosine**2)
        unit = across / np.where(distance > 0, distance, 1.0)[:, None] * cosine[:, None]
        for k in range(n):
            along = np.einsum("brn,bn->br", q, inverse[:, k])
            length = np.linalg.norm(along, axis=1)
            along = along / np.where(length > 0, length, 1.0)[:, None] * sine[:, None]
            for sign in (1.0, -1.0):
                y = _scaled(share * (unit + sign * along))
                least, g = self._least(y, c, e, free=k)
                most = np.linalg.norm(y, axis=1) * (1 + DOUBT) * radius
                factor = g[:, self._linear[k]]
                limit = (most - least) / factor
                limit = limit + DOUBT * (1 + np.abs(limit)) * np.sign(factor)
                fine = usable & np.isfinite(limit)
                up = fine & (factor > 0)
                down = fine & (factor < 0)
                upper[up, k] = np.minimum(upper[up, k], limit[up])
                lower[down, k] = np.maximum(lower[down, k], limit[down])
        return lower, upper


def _scaled(weights: Array) -> Array:
    """With one as the largest in each box: no square of it underflows unless it is negligible."""
    size = np.abs(weights).max(axis=1, initial=0.0)
    return np.asarray(weights / np.where(size > 0, size, 1.0)[:, None])


def _beyond(values: Array, loose: Array) -> Array:
    """What is left of values that may move by `loose` towards zero."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - loose, 0.0))


def _projected_step(d: Array, gradient: Array, curvature: Array) -> Array:
    """One Newton step within [-1, 1]^n; components that push at a bound are held."""
    held = ((d <= -1) & (gradient > 0)) | ((d >= 1) & (gradient < 0))
    n = d.shape[1]
    matrix = np.where(held[:, :, None] | held[:, None, :], 0.0, curvature)
    matrix = matrix + held[:, :, None] * np.eye(n)
    fine: BoolArray = np.all(np.isfinite(matrix), axis=(1, 2))
    matrix = np.where(fine[:, None, None], matrix, np.eye(n))
    right = np.where(held | ~fine[:, None], 0.0, gradient)
    try:
        step = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return d
    return np.clip(d - np.nan_to_num(step), -1.0, 1.0)


@lru_cache
def _cubic_products(monomials: Monomials) -> list[list[tuple[int, int]]]:
    """Pairs of monomials of degrees 0 and 3, or 1 and 2, by their product."""
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for i, left in enumerate(monomials.exponents):
        if len(left) > 1:
            break
        for j, right in enumerate(monomials.exponents):
            if len(left) + len(right) == 3:
                found.setdefault(tuple(sorted(left + right)), []).append((i, j))
    return list(found.values())
