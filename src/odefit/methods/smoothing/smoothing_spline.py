"""Smoothing splines of any degree, the smoothing parameter chosen by the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.methods.smoothing.bayesian_regression import VARIANCE_RATIOS, RidgeModel
from odefit.methods.smoothing.bsplines import BSplines
from odefit.methods.smoothing.expansion import Expansion, average, posterior_weights
from odefit.methods.smoothing.smoother import EPS, Interpolant, NormalisedSeries, SeriesSmoother
from odefit.methods.smoothing.smoothing_parameter import Criterion, check_criterion, fit_penalised
from odefit.problem.arrays import Array
from odefit.problem.option_checks import whole

CANDIDATES_PER_RATIO = 4
"""Candidates for the smoothing parameter from one of `VARIANCE_RATIOS` to the next."""

NEARLY_EXACT = 1e-2
"""Noise over the standard deviation of the values below which a high degree pays."""


@dataclass(frozen=True)
class SmoothingSpline(SeriesSmoother):
    """Least squares with a penalty on the integral of the squared derivative of an `order`.

    The fit is local, unlike that of other smoothers: what happens at one time hardly disturbs
    another. Splines have the degree 2 order - 1; as a mixed model, polynomials of degree below
    `order` are free, and deviations from them are a priori Gaussian.

    Attributes
    ----------
    order
        Order of the derivative that is penalised: Taylor coefficients exist up to 2 order - 1, and
        are of use to about order.
    size
        Largest number of B-splines, on equal intervals and never more than points: for curves
        without sudden changes, to the last digit. None for as many as the data ask for, up to one
        for each point: for long series, oscillations and noise, with an order of 2 or 3, at a cost
        proportional to n.
    criterion
        How the smoothing parameter is chosen: "reml" (restricted maximum likelihood, averaged over
        likely values) or "gcv" (generalised cross-validation), which smooths far too little at
        times with a `size`, but not without, where its minimum next to the likeliest value is
        taken.
    """

    order: int = 5
    size: int | None = 60
    criterion: Criterion = "reml"

    name: ClassVar[str] = "smoothing spline"
    weights_measurements: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.order, "SmoothingSpline, order")
        if self.size is not None:
            whole(self.size, "SmoothingSpline, size", 2 * self.order)
        check_criterion(self.criterion, "SmoothingSpline")

    @property
    def min_points(self) -> int:
        """The smallest number of points: two more than the order."""
        return self.order + 2

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the spline, averaged over likely smoothing parameters."""
        if self.size is None:
            return fit_penalised(series, self.order, self.criterion)
        return self._few_splines(series, self.size)

    def _few_splines(self, series: NormalisedSeries, size: int) -> Interpolant:
        """Fit at most `size` B-splines by dense orthogonal factorisations, to the last digit."""
        n, p = len(series.x), self.order
        basis = equal_bsplines(2 * p - 1, max(min(size, n), 2 * p))
        free, penalised = _split(basis, p)
        roots = np.sqrt(series.weights)
        design, y = roots[:, None] * basis.values(series.x), roots * series.y
        # Only a small triangle of a long series matters from here on.
        q, triangle = np.linalg.qr(np.hstack([design @ free, design @ penalised]))
        right = q.T @ y
        unexplained = float(np.sum((y - q @ right) ** 2)) if n > len(right) else 0.0
        # The first p rows are what the free polynomials explain; the others are a ridge
        # regression.
        u, s, vt = np.linalg.svd(triangle[p:, p:], full_matrices=False)
        b = u.T @ right[p:]
        unexplained += float(np.sum((right[p:] - u @ b) ** 2))
        model = RidgeModel(s, b, unexplained, n - p)
        grid = np.arange(CANDIDATES_PER_RATIO * (len(VARIANCE_RATIOS) - 1) + 1)
        known = CANDIDATES_PER_RATIO * np.arange(len(VARIANCE_RATIOS))
        ratios = np.exp(np.interp(grid, known, np.log(VARIANCE_RATIOS)))
        if self.criterion == "reml":
            scores, variances = model.likelihood(ratios)
            chosen, weights = posterior_weights(scores, np.ones(len(scores)))
        else:
            scores, variances = model.cross_validation(ratios)
            chosen, weights = np.array([np.argmin(scores)]), np.ones(1)
        # What the smooth deviations take from the polynomials is given back to these.
        directions = penalised - free @ np.linalg.solve(triangle[:p, :p], triangle[:p, p:])
        directions = directions @ vt.T
        polynomial = free @ np.linalg.solve(triangle[:p, :p], right[:p])
        polynomial_root = free @ np.linalg.inv(triangle[:p, :p])
        members = []
        for i in chosen:
            r, v = float(ratios[i]), float(variances[i])
            sd = max(float(np.sqrt(r * v)), EPS)
            root = np.hstack([directions * np.sqrt(v * r / (s**2 + r)), sd * polynomial_root])
            mean = polynomial + directions @ (s / (s**2 + r) * b)
            members.append(Expansion(basis, mean, root, sd))
        return average(members, weights)


def equal_bsplines(degree: int, size: int) -> BSplines:
    """Return `size` B-splines on equal intervals of [-1, 1]."""
    return BSplines(np.linspace(-1, 1, size - degree + 1), degree)


def _split(basis: BSplines, p: int) -> tuple[Array, Array]:
    """Return combinations without p-th derivative, and the others scaled to a penalty of 1."""
    # These Gauss points integrate the square of the derivative, a polynomial, exactly.
    points, weights = basis.gauss_points(basis.degree - p + 1)
    roughness = np.sqrt(weights)[:, None] * basis.rows(points, p).dense()
    _, s, vt = np.linalg.svd(roughness)
    rank = vt.shape[0] - p
    return vt[rank:].T, vt[:rank].T / s[:rank]


@dataclass(frozen=True)
class SplineByNoise:
    """A cubic spline by generalised cross-validation, or one of degree 9 for nearly exact data.

    Noise hides what a high degree could show, and fast changes make a high degree oscillate;
    without noise it is more accurate by orders of magnitude. The noise that both splines estimate
    decides: a cubic spline that interpolates is replaced only if the other sees little noise too.
    """

    name: ClassVar[str] = "smoothing spline"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Return the spline of a series of at least four points."""
        cubic = SmoothingSpline(order=2, size=None, criterion="gcv").fit(times, values, sds)
        # The size is relative to the largest value, as squares of large values overflow.
        size = float(np.abs(values).max()) or 1.0
        small = NEARLY_EXACT * size * float(np.std(np.asarray(values) / size))
        if cubic.sd > small:
            return cubic
        order = min(5, max(len(times) - 2, 2))
        smooth = SmoothingSpline(order).fit(times, values, sds)
        return smooth if smooth.sd <= small else cubic
