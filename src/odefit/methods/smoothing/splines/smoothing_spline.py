"""Smoothing splines of any degree, with a smoothing parameter chosen by the data.

Restricted maximum likelihood (REML) averages over likely values; generalised cross-validation (GCV)
takes the minimum next to the most likely value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg.lapack import dpbtrs

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import whole
from odefit.methods.smoothing.expansion import posterior_weights
from odefit.methods.smoothing.smoother import EPS, Interpolant, NormalisedSeries, SeriesSmoother
from odefit.methods.smoothing.splines.few_splines import few_splines
from odefit.methods.smoothing.splines.penalised_spline import PenalisedProblem, Solution

Criterion = Literal["reml", "gcv"]

LOG_RANGE = (-18.0, 27.0)
"""Range of the smoothing parameter's logarithm, from interpolation to the limit of rounding, for
evenly spread data."""

COARSE_STEP = 3.0  # distance between the first candidates for that logarithm
HALVINGS = 3  # how often this distance is halved around the best candidate
MIN_POSTERIOR_WEIGHT = 0.01  # posterior weight below which a candidate is left out of the average
MIN_PIECES = 8  # smallest number of polynomial pieces in the search for a smoother curve
COARSENING = 3  # factor of fewer pieces if the strongest possible smoothing is too weak


@dataclass(frozen=True, eq=False)
class PenalisedSpline:
    """A penalised spline, averaged over likely values of its smoothing parameter."""

    problem: PenalisedProblem = field(repr=False)  # penalised least squares problem
    # solution for each value of the smoothing parameter, the best first
    solutions: list[Solution] = field(repr=False)
    weights: Array  # posterior weights of the solutions, with the sum 1
    sds: Array  # standard deviation of the noise with each of them
    # whether the smoothing is the strongest that rounding allows with so many B-splines
    saturated: bool

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise of a measurement of weight 1."""
        return float(np.sqrt(self.weights @ self.sds**2))

    @cached_property
    def coefficients(self) -> Array:
        """The averaged coefficients of the B-splines, shape (m,)."""
        each = np.array([solution.coefficients for solution in self.solutions])
        return np.asarray(self.weights @ each, dtype=float)

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        at = np.asarray(times, dtype=float)
        return (self.problem.basis.rows(at.ravel()) @ self.coefficients).reshape(at.shape)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,); they are zero above the degree."""
        return self.problem.basis.taylor(at, order) @ self.coefficients

    def errors(self, at: float, order: int) -> Array:
        """Return standard deviations, shape (order + 1,); they are infinite above the degree.

        They follow from the posterior of the few coefficients that affect a point: banded systems
        are solved, as the whole covariance would be a full matrix.
        """
        count = min(order, self.problem.basis.degree) + 1
        rows = np.asfortranarray(self.problem.basis.taylor(at, count - 1).T)
        mean = rows.T @ self.coefficients
        variance = np.zeros(count)
        for solution, weight, sd in zip(self.solutions, self.weights, self.sds, strict=True):
            solved, _ = dpbtrs(solution.factor, rows, lower=1)
            variances = sd**2 * np.einsum("mk,mk->k", rows, solved)
            variance += weight * (variances + (rows.T @ solution.coefficients - mean) ** 2)
        sds = np.full(order + 1, np.inf)
        sds[:count] = np.sqrt(np.maximum(variance, 0.0))
        return sds


def choose(
    problem: PenalisedProblem, criterion: Criterion, near: float | None = None
) -> PenalisedSpline:
    """Choose the smoothing parameter by a criterion, downhill from the ratio `near` if given.

    Raises InputError if rounding prevents a solution for every value.
    """
    measure = problem.likelihood if criterion == "reml" else problem.cross_validation
    low, high = LOG_RANGE[0], LOG_RANGE[1] + float(np.log(problem.design.unevenness))
    known: dict[float, tuple[float, float, Solution]] = {}

    def score(log: float) -> float:
        if log not in known:
            solution = problem.solve(float(np.exp(log))) if low <= log <= high else None
            if solution is None:
                return np.inf
            known[log] = (*measure(solution), solution)
        return known[log][0]

    candidates = [float(log) for log in np.arange(low, high + COARSE_STEP, COARSE_STEP)]
    best = min(candidates, key=score) if near is None else float(np.log(near))
    if score(best) == np.inf:
        best = min(candidates, key=score)
    step = COARSE_STEP
    for _ in range(HALVINGS + 1):
        while score(beside := min(best - step, best + step, key=score)) < score(best):
            best = beside
        step /= 2
    if not known:
        raise InputError(
            f"spline of order {problem.order}: times or standard deviations are too uneven; take "
            f"a lower order, or leave out points that hardly count"
        )
    ordered = sorted(known)
    scores = np.array([known[log][0] for log in ordered])
    if criterion == "reml" and len(ordered) > 1:
        chosen, weights = posterior_weights(scores, np.gradient(np.array(ordered)))
        likely = weights > MIN_POSTERIOR_WEIGHT
        chosen, weights = chosen[likely], weights[likely]
    else:
        chosen, weights = np.array([int(np.argmin(scores))]), np.ones(1)
    tried = [known[ordered[i]] for i in chosen]
    return PenalisedSpline(
        problem,
        [solution for _, _, solution in tried],
        weights / weights.sum(),
        np.array([max(sd, EPS) for _, sd, _ in tried]),
        best > ordered[-1] - COARSE_STEP,
    )


def fit_penalised(series: NormalisedSeries, order: int, criterion: Criterion) -> PenalisedSpline:
    """Fit a spline with a piece between any two points, or fewer if that smooths too little.

    Starting with few pieces would not be cheaper, and would mistake fast oscillations for noise.
    """
    pieces = len(series.x) - 1
    while True:
        spline = choose(PenalisedProblem.in_pieces(series, order, pieces), "reml")
        if not spline.saturated or pieces <= MIN_PIECES:
            break
        pieces = max(pieces // COARSENING, MIN_PIECES)
    return spline if criterion == "reml" else cross_validated(spline)


def cross_validated(spline: PenalisedSpline) -> PenalisedSpline:
    """Return the minimum of generalised cross-validation downhill from the most likely value.

    The criterion has several minima, and the lowest one sometimes interpolates.
    """
    return choose(spline.problem, "gcv", spline.solutions[0].ratio)


def check_criterion(criterion: str, name: str) -> None:
    """Refuse an option of the smoother `name` that is not a criterion."""
    if criterion not in ("reml", "gcv"):
        raise InputError(f"{name}, criterion: expected 'reml' or 'gcv', got {criterion!r}")


NEARLY_EXACT = 1e-2  # ratio of noise to the values' spread below which high degrees are better


@dataclass(frozen=True)
class SmoothingSpline(SeriesSmoother):
    """Least squares with a penalty on the integral of the squared derivative of an `order`.

    The fit is local, unlike that of other smoothers: changes at one time hardly affect another.
    Splines have the degree 2 order - 1; as a mixed model, polynomials of degree below `order` are
    free, and deviations from them are a priori Gaussian.

    Attributes
    ----------
    order
        Order of the penalised derivative: Taylor coefficients exist up to 2 order - 1, and are
        useful up to about order.
    size
        Largest number of B-splines, on equal intervals and never more than points: for curves
        without sudden changes, to the last digit. With None there are as many as the data require,
        up to one for each point. This suits long series, oscillations and noise, with an order of 2
        or 3, at a cost proportional to n.
    criterion
        The choice of the smoothing parameter: "reml" (restricted maximum likelihood, averaged over
        likely values) or "gcv" (generalised cross-validation). With a `size`, "gcv" sometimes
        smooths far too little; without one it takes the minimum next to the most likely value and
        does not.
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
        size = max(min(self.size, len(series.x)), 2 * self.order)
        return few_splines(series, self.order, size).fit(series.y, self.criterion)


@dataclass(frozen=True)
class SplineByNoise:
    """A cubic spline by generalised cross-validation, or one of degree 9 for nearly exact data.

    Noise hides the details of a high degree, and fast changes make a high degree oscillate; without
    noise it is more accurate by orders of magnitude. The noise estimates of both splines decide: an
    interpolating cubic spline is replaced only if the other one estimates little noise, too.
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
