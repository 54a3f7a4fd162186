"""Smoothing spline of high degree, the amount of smoothing chosen by the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.amount import Criterion, check_criterion, resolved
from odefit.methods.smoothing.banded import Series
from odefit.methods.smoothing.banded_curve import BandedCurve
from odefit.methods.smoothing.basis import Splines
from odefit.methods.smoothing.evidence import RATIOS, Reduced
from odefit.methods.smoothing.expansion import Expansion, members, mixture
from odefit.methods.smoothing.smoother import EPS, Interpolant, fit_normalised, relative_weights
from odefit.problem.arrays import Array
from odefit.problem.option_checks import whole

FINENESS = 4
"""Candidates for the smoothing between two of `evidence.RATIOS`."""


@dataclass(frozen=True)
class SmoothingSpline:
    """Least squares with a penalty on the integral of the squared derivative of an `order`.

    Local, unlike the other smoothers: what happens at one time hardly disturbs another. Splines
    of degree 2 order - 1; as a mixed model, polynomials of degree below `order` are free, and
    what deviates from them is a priori Gaussian.

    Attributes
    ----------
    order
        Of the derivative that is penalised: Taylor coefficients exist up to 2 order - 1, and are
        of use to about order.
    size
        Splines at most, on equal intervals, never more than points: for curves that do little,
        to the last digit. None for as many as the data ask for, up to one for each: for long
        series, oscillations and noise, with an order of 2 or 3, at a cost proportional to n.
    criterion
        What chooses the smoothing: "reml" (restricted maximum likelihood, averaged over what is
        likely) or "gcv" (generalised cross-validation), which smooths far too little at times with
        a size, but not without, where its minimum next to the likeliest amount is taken.
    """

    order: int = 5
    size: int | None = 60
    criterion: Criterion = "reml"

    def __post_init__(self) -> None:
        whole(self.order, "SmoothingSpline, order")
        if self.size is not None:
            whole(self.size, "SmoothingSpline, size", 2 * self.order)
        check_criterion(self.criterion, "SmoothingSpline")

    @property
    def name(self) -> str:
        """Smoothing spline."""
        return "smoothing spline"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least order + 2 points."""
        weights = relative_weights(times, sds, self.name)

        def normalised(x: Array, y: Array) -> Interpolant:
            if self.size is None:
                return BandedCurve(resolved(Series(x, y, weights), self.order, self.criterion))
            return self._few(x, y, np.sqrt(weights), self.size)

        return fit_normalised(times, values, self.name, self.order + 2, normalised)

    def _few(self, x: Array, y: Array, roots: Array, size: int) -> Interpolant:
        n, p = len(x), self.order
        basis = equal_splines(2 * p - 1, max(min(size, n), 2 * p))
        free, penalised = _split(basis, p)
        design, y = roots[:, None] * basis.values(x), roots * y
        # Only a small triangle of a long series matters from here on.
        q, triangle = np.linalg.qr(np.hstack([design @ free, design @ penalised]))
        right = q.T @ y
        left = float(np.sum((y - q @ right) ** 2)) if n > len(right) else 0.0
        # The first p rows are what the free polynomials explain; the others are a ridge
        # regression.
        u, s, vt = np.linalg.svd(triangle[p:, p:], full_matrices=False)
        b = u.T @ right[p:]
        model = Reduced(s, b, left + float(np.sum((right[p:] - u @ b) ** 2)), n - p)
        logs = np.arange(FINENESS * (len(RATIOS) - 1) + 1) / FINENESS
        ratios = np.exp(np.interp(logs, np.arange(len(RATIOS)), np.log(RATIOS)))
        if self.criterion == "reml":
            scores, variances = model.likelihood(ratios)
            chosen, weights = members(scores, np.ones(len(scores)))
        else:
            scores, variances = model.cross_validation(ratios)
            chosen, weights = np.array([np.argmin(scores)]), np.ones(1)
        # What the smooth deviations take from the polynomials goes back to these.
        directions = penalised - free @ np.linalg.solve(triangle[:p, :p], triangle[:p, p:])
        directions = directions @ vt.T
        polynomial = free @ np.linalg.solve(triangle[:p, :p], right[:p])
        uncertain = free @ np.linalg.inv(triangle[:p, :p])
        parts = []
        for i in chosen:
            r, v = float(ratios[i]), float(variances[i])
            sd = max(float(np.sqrt(r * v)), EPS)
            spread = np.sqrt(v * r / (s**2 + r))
            root = np.hstack([directions * spread, sd * uncertain])
            mean = polynomial + directions @ (s / (s**2 + r) * b)
            parts.append(Expansion(basis, mean, root, sd))
        return mixture(parts, weights)


def equal_splines(degree: int, size: int) -> Splines:
    """B-splines on equal intervals of [-1, 1]."""
    ends = np.ones(degree)
    return Splines(np.concatenate([-ends, np.linspace(-1, 1, size - degree + 1), ends]), degree)


def _split(basis: Splines, p: int) -> tuple[Array, Array]:
    """Combinations without p-th derivative, and the others, scaled to a penalty of 1."""
    breaks = np.unique(basis.knots)
    # Gauss points that integrate the square of the derivative, a polynomial, exactly.
    nodes, weights = np.polynomial.legendre.leggauss(basis.degree - p + 1)
    half = np.diff(breaks)[:, None] / 2
    points = (breaks[:-1, None] + half * (1 + nodes)).ravel()
    root = np.sqrt(half * weights).ravel()
    roughness = root[:, None] * basis.derivative(points, p)
    _, s, vt = np.linalg.svd(roughness)
    rank = vt.shape[0] - p
    return vt[rank:].T, vt[:rank].T / s[:rank]
