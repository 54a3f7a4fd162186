"""Bounds of a node: a lower bound of the residual norm over its box, and a smaller box.

Lower bounds of ``|R(d)|`` over all d in [-1, 1]^n, where ``R_i(d) = sum c[i, m] d^m + r_i``:

1. For any weights y, ``|R| >= y R / |y|``. The polynomial y R has one coefficient for each
   monomial, so that terms that cancel between residuals are not counted. Good weights are the
   residuals of the bounded least squares problem in which each residual may move within its own
   nonlinear terms and remainder.
2. ``|R|^2`` itself is a polynomial, whose part of degree two is minimised over the box by its
   tangent plane (and its most negative curvature, if it is not convex); higher terms are bounded.
   Near an optimum this is exact to third order: boxes there need not shrink to nothing (the cluster
   effect; K. Du and R. B. Kearfott, The cluster problem in multivariate global optimization, 1994).
3. Where terms have kinks, the sum of their supporting lines (:mod:`.line_bounds`).

A half space ``y R <= |y| radius`` limits one direction if the weights cancel all others. This
contracts boxes to the ellipsoid of all unknowns that fit well enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.line_bounds import bound_by_lines

NEWTON_ITERATIONS = 12
"""Number of projected Newton iterations for a minimum over a box."""

SUM_MARGIN = 1e-12
"""Margin for the rounding of a sum, relative to the largest of its terms."""

MIN_DIAGONAL_RATIO = 1e-9
"""Smallest diagonal entry, relative to the largest, of a triangular factor that is inverted for
contraction."""


@dataclass(frozen=True, eq=False)
class NodeBounds:
    """Bounds of B nodes by their enclosed residuals.

    `norm` bounds the residual norm over each box from below, shape (B,). `lower` and `upper` are
    corners, shape (B, n), of the part of each box where the norm can be at most the radius. They
    are in units of the box, within [-1, 1], with lower above upper if there is no such part.
    `nonlinearity` holds the share of each direction in the nonlinear terms of all residuals, shape
    (B, n). A residual is `enclosed` if its remainder is finite, shape (B, R); the other remainders
    are zero.
    """

    norm: Array
    lower: Array
    upper: Array
    nonlinearity: Array
    enclosed: BoolArray
    remainder: Array


class NodeBounder:
    """The bounds of nodes from their residuals, enclosed by polynomials in `monomials`."""

    def __init__(self, monomials: Monomials) -> None:
        self._m = monomials
        self._n = monomials.variables
        self._linear = monomials.linear
        self._nonlinear = np.flatnonzero(monomials.degrees >= 2)
        self._cubic = _cubic_products(monomials)

    def __call__(self, residuals: Residuals, radius: float) -> NodeBounds:
        """Return the bounds of all nodes; norms above `radius` need not be accurate."""
        c = np.ascontiguousarray(np.moveaxis(residuals.c, 2, 0))
        remainder = np.ascontiguousarray(residuals.remainder.T)
        enclosed = np.isfinite(remainder) & np.isfinite(c).all(axis=2)
        # A residual that is not enclosed has zero weight in all of the following.
        c = np.where(enclosed[:, :, None], c, 0.0)
        remainder = np.where(enclosed, remainder, 0.0)
        nonlinear = np.abs(c[:, :, self._nonlinear]).sum(axis=2)
        tolerance = np.where(enclosed, nonlinear + remainder, np.inf)
        with np.errstate(all="ignore"):
            scaled = tolerance * np.sqrt(remainder.shape[1]) / radius
            discount = 1.0 / np.sqrt(1.0 + scaled**2)
            norm = np.sqrt(residuals.squares_bound()) * (1 - SUM_MARGIN)
            norm = np.fmax(norm, self._by_weighted_sums(c, remainder, tolerance, discount))
            complete: BoolArray = np.all(enclosed, axis=1)
            if complete.any():
                by_squares = self._by_sum_of_squares(c[complete], remainder[complete])
                norm[complete] = np.fmax(norm[complete], by_squares)
            if residuals.lines is not None:
                steps = self._linear, self._weighted_sum, _projected_newton_step
                by_lines = np.sqrt(np.maximum(bound_by_lines(residuals, *steps), 0.0))
                norm = np.fmax(norm, by_lines * (1 - SUM_MARGIN))
            lower, upper = self._contracted(c, remainder, tolerance, discount, radius)
        empty = (lower > upper).any(axis=1)
        norm = np.where(empty, np.maximum(norm, radius), norm)
        nonlinearity = np.einsum(
            "brm,mk->bk", np.abs(c[:, :, self._nonlinear]), self._m.powers[self._nonlinear]
        )
        # The root of an overflowing square is at least as large as this.
        norm = np.maximum(np.nan_to_num(norm, posinf=1e150), 0.0)
        return NodeBounds(norm, lower, upper, nonlinearity, enclosed, remainder)

    def _weighted_sum(
        self, y: Array, c: Array, remainder: Array, free: int | None = None
    ) -> tuple[Array, Array]:
        """Return a lower bound of y R without its linear term in direction `free`, shape (B,).

        The second array has the coefficients of y R, shape (B, M).
        """
        rounding = 4 * UNIT_ROUNDOFF * (y.shape[1] + c.shape[2])
        g = np.einsum("br,brm->bm", y, c)
        size = np.einsum("br,brm->b", np.abs(y), np.abs(c))
        fall = np.abs(g)
        fall[:, 0] = 0.0
        squares = self._m.squares
        fall[:, squares] = np.maximum(-g[:, squares], 0.0)
        if free is not None:
            fall[:, self._linear[free]] = 0.0
        total = fall.sum(axis=1) + np.einsum("br,br->b", np.abs(y), remainder)
        return g[:, 0] - total * (1 + SUM_MARGIN + rounding) - rounding * size, g

    def _by_weighted_sums(
        self, c: Array, remainder: Array, tolerance: Array, discount: Array
    ) -> Array:
        """Return a lower bound of the norm by weighted sums of the residuals, shape (B,).

        Residuals may differ from their linear parts by `tolerance`, shape (B, R); the weights
        `discount` are small where the tolerance is large.
        """
        n, boxes = self._n, len(c)
        constant, jacobian = c[:, :, 0], c[:, :, self._linear]
        d = np.zeros((boxes, n))
        damping = 1e-12 * np.einsum("brn,brn->b", jacobian, jacobian) + 1e-300
        for _ in range(NEWTON_ITERATIONS if n else 0):
            y = _soft_threshold(constant + np.einsum("brn,bn->br", jacobian, d), tolerance)
            weight = (y != 0) + 0.05 * discount**2
            gradient = np.einsum("brn,br->bn", jacobian, y)
            curvature = np.einsum("brn,br,brm->bnm", jacobian, weight, jacobian)
            curvature += damping[:, None, None] * np.eye(n)
            d = _projected_newton_step(d, gradient, curvature)
        linear = constant + np.einsum("brn,bn->br", jacobian, d)
        best = np.zeros(boxes)
        for weights in (_soft_threshold(linear, tolerance), linear * discount**2):
            y = _scaled(weights)
            length = np.linalg.norm(y, axis=1) * (1 + SUM_MARGIN)
            bound, _ = self._weighted_sum(y, c, remainder)
            best = np.fmax(best, bound / np.where(length > 0, length, 1))
        return best

    def _by_sum_of_squares(self, c: Array, remainder: Array) -> Array:
        """Return a lower bound of the norm by the polynomial |R|^2, shape (B,).

        That polynomial omits the remainders, which are subtracted from its root.
        """
        n, boxes = self._n, len(c)
        value_0, gradient_0, hessian = self._quadratic_part(c)
        higher = self._higher_part(c)
        d = np.zeros((boxes, n))
        scale = np.abs(hessian).sum(axis=(1, 2)) + 1e-300
        finite = np.isfinite(scale)
        usable = np.where(finite[:, None, None], hessian, 0.0)
        least = np.where(finite, np.linalg.eigvalsh(usable)[:, 0], np.nan) if n else np.zeros(boxes)
        rounding = SUM_MARGIN + 32 * UNIT_ROUNDOFF * (c.shape[1] + c.shape[2])
        curvature = least - rounding * scale
        shift = np.maximum(-curvature, 0.0) + rounding * scale
        convex = hessian + shift[:, None, None] * np.eye(n)
        for _ in range(NEWTON_ITERATIONS if n else 0):
            gradient = gradient_0 + 2 * np.einsum("bnm,bm->bn", convex, d)
            d = _projected_newton_step(d, gradient, 2 * convex)
        gradient = gradient_0 + 2 * np.einsum("bnm,bm->bn", hessian, d)
        value = value_0 + np.einsum("bn,bn->b", gradient_0, d)
        value += np.einsum("bn,bnm,bm->b", d, hessian, d)
        fall = np.minimum(gradient * (1 - d), gradient * (-1 - d)).sum(axis=1)
        bend = np.minimum(curvature, 0.0) * ((1 + np.abs(d)) ** 2).sum(axis=1)
        size = np.einsum("brm->br", np.abs(c))
        total = np.einsum("br,br->b", size, size)
        low = value + fall + bend - higher - rounding * total
        root = np.sqrt(np.maximum(low, 0.0)) * (1 - SUM_MARGIN)
        return np.asarray(root - np.linalg.norm(remainder, axis=1) * (1 + SUM_MARGIN))

    def _quadratic_part(self, c: Array) -> tuple[Array, Array, Array]:
        """Return constant, gradient and half the Hessian of |R|^2 in the middle of the boxes."""
        m = self._m
        constant, jacobian = c[:, :, 0], c[:, :, self._linear]
        value = np.einsum("br,br->b", constant, constant)
        gradient = 2 * np.einsum("br,brn->bn", constant, jacobian)
        hessian = np.einsum("brn,brm->bnm", jacobian, jacobian)
        if m.degree >= 2:
            mixed = np.einsum("br,brm->bm", constant, c)
            for i in range(m.parts[2].start, m.parts[2].stop):
                a, b = m.exponents[i]
                hessian[:, a, b] += mixed[:, i]
                hessian[:, b, a] += mixed[:, i]
        return value, gradient, hessian

    def _higher_part(self, c: Array) -> Array:
        """Return a bound of the decrease by the terms of |R|^2 above degree two, shape (B,)."""
        m, boxes = self._m, len(c)
        total_part = np.zeros(boxes)
        # Cubic terms are summed over all residuals first: they may cancel.
        for pairs in self._cubic:
            total = np.zeros(boxes)
            for i, j in pairs:
                total += np.einsum("br,br->b", c[:, :, i], c[:, :, j])
            total_part += np.abs(2 * total)
        sizes = [np.abs(c[:, :, part]).sum(axis=2) for part in m.parts]
        for a in range(m.degree + 1):
            for b in range(m.degree + 1):
                # The square of a term is not negative.
                if a + b >= 4 and a != b:
                    total_part += np.einsum("br,br->b", sizes[a], sizes[b])
        return total_part

    def _contracted(
        self, c: Array, remainder: Array, tolerance: Array, discount: Array, radius: float
    ) -> tuple[Array, Array]:
        """Return the corners of the part of each box where the norm can be at most `radius`."""
        n, boxes = self._n, len(c)
        lower, upper = -np.ones((boxes, n)), np.ones((boxes, n))
        constant = discount * c[:, :, 0]
        jacobian = discount[:, :, None] * c[:, :, self._linear]
        if not n or jacobian.shape[1] < n:
            return lower, upper
        q, r = np.linalg.qr(jacobian)
        diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
        usable = diagonal.min(axis=1) > MIN_DIAGONAL_RATIO * diagonal.max(axis=1)
        inverse = np.linalg.inv(np.where(usable[:, None, None], r, np.eye(n)))
        across = constant - np.einsum("brn,bn->br", q, np.einsum("brn,br->bn", q, constant))
        distance = np.linalg.norm(across, axis=1)
        allowed = radius + np.linalg.norm(np.where(discount > 0, discount * tolerance, 0.0), axis=1)
        # The half space that touches the ellipsoid at its extreme in one direction.
        cosine = np.minimum(distance / allowed, 1.0)
        sine = np.sqrt(1.0 - cosine**2)
        unit = across / np.where(distance > 0, distance, 1.0)[:, None] * cosine[:, None]
        for k in range(n):
            along = np.einsum("brn,bn->br", q, inverse[:, k])
            length = np.linalg.norm(along, axis=1)
            along = along / np.where(length > 0, length, 1.0)[:, None] * sine[:, None]
            for sign in (1.0, -1.0):
                y = _scaled(discount * (unit + sign * along))
                least, g = self._weighted_sum(y, c, remainder, free=k)
                largest = np.linalg.norm(y, axis=1) * (1 + SUM_MARGIN) * radius
                factor = g[:, self._linear[k]]
                limit = (largest - least) / factor
                limit = limit + SUM_MARGIN * (1 + np.abs(limit)) * np.sign(factor)
                valid = usable & np.isfinite(limit)
                above = valid & (factor > 0)
                below = valid & (factor < 0)
                upper[above, k] = np.minimum(upper[above, k], limit[above])
                lower[below, k] = np.maximum(lower[below, k], limit[below])
        return lower, upper


def _scaled(weights: Array) -> Array:
    """Return weights, shape (B, R), scaled so that the largest of each box is one.

    Then the square of a weight underflows only if it is negligible.
    """
    size = np.abs(weights).max(axis=1, initial=0.0)
    return np.asarray(weights / np.where(size > 0, size, 1.0)[:, None])


def _soft_threshold(values: Array, threshold: Array) -> Array:
    """Return values moved towards zero by `threshold`, or zero if they would pass it."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0))


def _projected_newton_step(d: Array, gradient: Array, curvature: Array) -> Array:
    """Return points after one Newton step within [-1, 1]^n, shape (B, n).

    Components at a bound whose gradient points outwards are held.
    """
    held = ((d <= -1) & (gradient > 0)) | ((d >= 1) & (gradient < 0))
    n = d.shape[1]
    matrix = np.where(held[:, :, None] | held[:, None, :], 0.0, curvature)
    matrix = matrix + held[:, :, None] * np.eye(n)
    finite: BoolArray = np.all(np.isfinite(matrix), axis=(1, 2))
    matrix = np.where(finite[:, None, None], matrix, np.eye(n))
    right = np.where(held | ~finite[:, None], 0.0, gradient)
    try:
        step = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return d
    return np.clip(d - np.nan_to_num(step), -1.0, 1.0)


@lru_cache
def _cubic_products(monomials: Monomials) -> list[list[tuple[int, int]]]:
    """Return pairs of monomials of degrees 0 and 3, or 1 and 2, grouped by their product."""
    pairs: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for i, left in enumerate(monomials.exponents):
        if len(left) > 1:
            break
        for j, right in enumerate(monomials.exponents):
            if len(left) + len(right) == 3:
                pairs.setdefault(tuple(sorted(left + right)), []).append((i, j))
    return list(pairs.values())
