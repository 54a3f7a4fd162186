"""Rational functions in barycentric form: values, Taylor series, poles, and the AAA iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvals

from odefit.common.arrays import Array, BoolArray
from odefit.methods.smoothing.smoother import EPS, aicc


def quotient(numerator: Array, denominator: Array) -> Array:
    """Return the truncated power series of a quotient of power series.

    Both have shape (order + 1, ...), the constant term first.
    """
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    result = np.empty(shape)
    for k in range(shape[0]):
        known = (denominator[1 : k + 1] * result[:k][::-1]).sum(axis=0)
        result[k] = (numerator[k] - known) / denominator[0]
    return result


@dataclass(frozen=True, eq=False)
class Rational:
    """r(x) = sum_j w_j f_j / (x - z_j)  over  sum_j w_j / (x - z_j)."""

    support: Array  # support points z, distinct, shape (m,)
    values: Array  # values f = r(z), shape (m,)
    weights: Array  # barycentric weights w, shape (m,)

    def __call__(self, x: Array) -> Array:
        """Return the values at `x`, in the shape of `x`."""
        flat = np.asarray(x, dtype=float).ravel()
        distance = flat[:, None] - self.support
        hit = distance == 0
        cauchy = 1.0 / np.where(hit, 1.0, distance)
        result = (cauchy @ (self.weights * self.values)) / (cauchy @ self.weights)
        rows, columns = np.nonzero(hit)
        result[rows] = self.values[columns]
        return result.reshape(np.shape(x))

    def influence(self, at: float, order: int) -> tuple[Array, Array]:
        """Return the series of the numerator by support point, and that of the denominator.

        Their shapes are (order + 1, m) and (order + 1, 1): the Taylor coefficients of r at `at` are
        ``quotient(first @ values, second)``. Both are multiplied by x - z for the support point z
        nearest to `at`, so that `at` may be a support point or arbitrarily close to one.
        """
        distance = at - self.support
        nearest = int(np.argmin(np.abs(distance)))
        others = np.arange(len(distance)) != nearest
        inverse = np.zeros_like(distance)
        inverse[others] = 1.0 / distance[others]
        # 1 / (at + h - z) is a geometric series in h.
        series = self.weights * inverse * np.vander(-inverse, order + 1, increasing=True).T
        terms = distance[nearest] * series
        terms[1:] += series[:-1]
        terms[0, nearest] = self.weights[nearest]
        return terms, terms.sum(axis=1, keepdims=True)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients at `at`, shape (order + 1,)."""
        terms, denominator = self.influence(at, order)
        # The value at the nearest support point is subtracted first: its rounding errors would be
        # multiplied by 1 / distance^order.
        base = self.values[int(np.argmin(np.abs(at - self.support)))]
        result = quotient(terms @ (self.values - base), denominator[:, 0])
        result[0] += base
        return result

    def poles(self) -> tuple[Array, Array, Array]:
        """Return real parts, imaginary parts and magnitudes of the residues of the finite poles."""
        m = len(self.support)
        left, right = np.zeros((m + 1, m + 1)), np.eye(m + 1)
        left[0, 1:], left[1:, 0] = self.weights, 1.0
        left[range(1, m + 1), range(1, m + 1)] = self.support
        right[0, 0] = 0.0
        # Infinite poles, with beta = 0 in the homogeneous pairs (alpha, beta), are omitted.
        alpha, beta = eigvals(left, right, homogeneous_eigvals=True)
        finite = np.abs(beta) > 1e-8 * np.abs(alpha)
        poles = alpha[finite] / beta[finite]
        distance = poles[:, None] - self.support
        distance = np.where(distance == 0, np.finfo(float).tiny ** 0.5, distance)
        numerator = (self.weights * self.values / distance).sum(axis=1)
        slope = (self.weights / distance**2).sum(axis=1)
        return poles.real, poles.imag, np.abs(numerator) / np.maximum(np.abs(slope), 1e-300)


MAX_SUPPORT_POINTS = 40
"""The largest number of support points: with m of them, an iteration costs a singular value
decomposition of shape (n, m)."""

PATIENCE = 6  # iterations without a better criterion after which the search ends


def iterate(
    x: Array, y: Array, max_support_points: int = MAX_SUPPORT_POINTS
) -> Iterator[tuple[Rational, float, float]]:
    """Yield approximations of normalised data with 1, 2, ... support points.

    Y. Nakatsukasa, O. Sete and L. N. Trefethen, The AAA algorithm for rational approximation, SIAM
    J. Sci. Comput. 40 (2018), section 4. SciPy's AAA returns only the last iterate and cleans it
    up, whereas here the smoother chooses among all of them. So each is yielded with its sum of
    squared residuals and its largest residual. The iteration ends when residuals are zero, when
    there are as many parameters as data, or when the corrected Akaike criterion has not improved
    for some iterations.
    """
    n = len(x)
    remaining = np.ones(n, dtype=bool)
    chosen: list[int] = []
    residual = np.abs(y - y.mean())
    best, since_best = np.inf, 0
    for m in range(1, min(max_support_points, n // 2) + 1):
        worst = int(np.argmax(np.where(remaining, residual, -1.0)))
        chosen.append(worst)
        remaining[worst] = False
        if m == 1:
            # The constant is the mean, not the value farthest from it.
            residual = np.abs(y - y.mean())
            rational = Rational(x[chosen], np.array([y.mean()]), np.ones(1))
        else:
            rational, residual = _approximate(x, y, chosen, remaining)
        rss = float(np.sum(residual**2))
        yield rational, rss, float(residual.max())
        score = aicc(rss, n, 2 * m - 1) if np.isfinite(rss) else np.inf
        best, since_best = (score, 0) if score < best else (best, since_best + 1)
        if since_best >= PATIENCE or residual.max() <= EPS / 4:
            return


def _approximate(
    x: Array, y: Array, chosen: list[int], remaining: BoolArray
) -> tuple[Rational, Array]:
    """Interpolate the chosen data and approximate the rest; also return magnitudes of residuals."""
    support, values = x[chosen], y[chosen]
    cauchy = 1.0 / (x[remaining][:, None] - support)
    loewner = (y[remaining][:, None] - values) * cauchy
    # The full right factor is needed if fewer data remain than support points.
    weights = np.linalg.svd(loewner, full_matrices=len(loewner) < len(chosen))[2][-1]
    denominator = cauchy @ weights
    safe = denominator != 0
    residual: Array = np.where(remaining, np.inf, 0.0)
    fitted = (cauchy @ (weights * values))[safe] / denominator[safe]
    residual[np.flatnonzero(remaining)[safe]] = np.abs(y[remaining][safe] - fitted)
    return Rational(support, values, weights), residual
