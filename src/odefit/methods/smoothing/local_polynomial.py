"""Local polynomial regression, the bandwidth by leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odefit.methods.smoothing.smoother import EPS, Interpolant, fit_normalised, relative_weights
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.option_checks import number, whole

CHUNK = 100
"""Places at which polynomials are fitted together, with those data that one of them sees."""

JUDGES = 200
"""Measurements at most that are left out, one at a time, to choose the bandwidth."""

CANDIDATES = 10
"""Bandwidths to begin with, from that of a few points to all of them."""

HALVINGS = 3
"""Of the distance between them around the best."""

WIDER = 1.2
"""Times the distance of the last point that a polynomial needs: the window at least."""


@dataclass(frozen=True)
class LocalPolynomial:
    """At each time a polynomial of low degree, by least squares with weights that fall off.

    Weights are tricube, (1 - |u|^3)^3 of the distance u in bandwidths; where too few points are
    within one, the window is wider. J. Fan and I. Gijbels, Local Polynomial Modelling and Its
    Applications (Chapman & Hall, 1996).

    Attributes
    ----------
    degree
        Of the polynomials, 1 or 2, so derivatives exist up to that.
    bandwidth
        In units of time; None for the one that predicts measurements left out best.
    """

    degree: int = 2
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        whole(self.degree, "LocalPolynomial, degree")
        if self.degree > 2:
            raise InputError(f"LocalPolynomial, degree: expected 1 or 2, got {self.degree}")
        if self.bandwidth is not None:
            number(self.bandwidth, "LocalPolynomial, bandwidth", least=1e-300)

    @property
    def name(self) -> str:
        """Local polynomial."""
        return "local polynomial"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least degree + 3 points."""
        weights = relative_weights(times, sds, self.name)

        def normalised(x: Array, y: Array) -> Interpolant:
            data = Neighbours(x, y, weights, self.degree)
            if self.bandwidth is not None:
                return data.curve(2 * self.bandwidth / float(np.ptp(times)))
            return data.curve(_best(data))

        return fit_normalised(times, values, self.name, self.degree + 3, normalised)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Normalised data for polynomials of a degree.

    Attributes
    ----------
    x, y
        Times and values, shape (n,).
    weights
        Inverse variances relative to their mean, shape (n,).
    degree
        Of the polynomials.
    """

    x: Array
    y: Array
    weights: Array
    degree: int

    def least_windows(self, at: Array) -> Array:
        """Half widths of windows around sorted places that have enough points."""
        need = self.degree + 2
        count = min(2 * need, len(self.x))
        low = np.clip(np.searchsorted(self.x, at) - need, 0, len(self.x) - count)
        seen = low[:, None] + np.arange(count)
        distance = np.sort(np.abs(self.x[seen] - at[:, None]), axis=1)
        return np.asarray(WIDER * distance[:, need - 1], dtype=float)

    @cached_property
    def judges(self) -> tuple[slice, Array]:
        """Those measurements that are left out in turn, and their least windows."""
        chosen = slice(None, None, -(-len(self.x) // JUDGES))
        return chosen, self.least_windows(self.x[chosen])

    def polynomials(self, at: Array, width: Array) -> tuple[Array, Array]:
        """Taylor coefficients at sorted places, and the leverage of a measurement made there.

        Parameters
        ----------
        at
            Places, shape (m,).
        width
            Half widths of the windows around them, shape (m,).

        Returns
        -------
        tuple
            Shapes (m, degree + 1) and (m,), the latter for a measurement of weight 1.
        """
        coefficients = np.empty((len(at), self.degree + 1))
        leverage = np.empty(len(at))
        powers = np.arange(self.degree + 1)
        for first in range(0, len(at), CHUNK):
            rows = slice(first, first + CHUNK)
            u, kernel, seen = self._kernel(at[rows], width[rows])
            moments = _moments(u, kernel, 2 * self.degree)
            right = _moments(u, kernel * self.y[seen], self.degree)
            inverse = np.linalg.inv(moments[:, powers[:, None] + powers])
            found = np.einsum("mij,mj->mi", inverse, right)
            coefficients[rows] = found / width[rows, None] ** powers
            leverage[rows] = inverse[:, 0, 0]
        return coefficients, leverage

    def spread(self, at: float, width: float) -> Array:
        """Standard deviations of the coefficients where the noise is 1, shape (degree + 1,)."""
        u, kernel, seen = self._kernel(np.array([at]), np.array([width]))
        inside = kernel[0] > 0
        powers = np.arange(self.degree + 1)
        rows = u[0, inside] ** powers[:, None]
        weighted = rows * kernel[0, inside]
        operator = np.linalg.solve(weighted @ rows.T, weighted)
        noise = np.sqrt((operator**2 / self.weights[seen][inside]).sum(axis=1))
        return np.asarray(noise / width**powers, dtype=float)

    def judged(self, bandwidth: float) -> tuple[Array, Array, Array]:
        """Residuals of the judges, their leverages and weights."""
        chosen, least = self.judges
        found, leverage = self.polynomials(self.x[chosen], np.maximum(bandwidth, least))
        weights = self.weights[chosen]
        return self.y[chosen] - found[:, 0], leverage * weights, weights

    def left_out(self, bandwidth: float) -> float:
        """Mean squared error of the prediction of measurements from the others."""
        residuals, leverage, weights = self.judged(bandwidth)
        return float(np.mean(weights * (residuals / np.maximum(1 - leverage, 1e-6)) ** 2))

    def curve(self, bandwidth: float) -> LocalCurve:
        """The fit with a bandwidth."""
        residuals, leverage, weights = self.judged(bandwidth)
        freedom = max(float((1 - leverage).sum()), EPS)
        return LocalCurve(self, bandwidth, float(np.sqrt(weights @ residuals**2 / freedom)))

    def _kernel(self, at: Array, width: Array) -> tuple[Array, Array, slice]:
        """Distances in half widths, weights, and which data are seen."""
        ends = [float((at - width).min()), float((at + width).max())]
        low, high = np.searchsorted(self.x, ends)
        seen = slice(int(low), int(high))
        u = (self.x[seen] - at[:, None]) / width[:, None]
        size = np.minimum(np.abs(u), 1.0)
        inside = 1 - size * size * size
        return u, inside * inside * inside * self.weights[seen], seen


def _moments(u: Array, kernel: Array, order: int) -> Array:
    """Sums of kernel * u^k, shape (m, order + 1)."""
    found = np.empty((len(u), order + 1))
    terms = kernel
    for k in range(order + 1):
        found[:, k] = terms.sum(axis=1)
        if k < order:
            terms = terms * u
    return found


def _best(data: Neighbours) -> float:
    """Logarithmic search, coarse and then finer around the best."""
    low = float(np.log(np.median(data.judges[1])))
    high = float(np.log(4.0))
    known: dict[float, float] = {}

    def score(log: float) -> float:
        if log not in known:
            known[log] = data.left_out(float(np.exp(log)))
        return known[log]

    logs = [float(log) for log in np.linspace(low, max(high, low), CANDIDATES)]
    best = min(logs, key=score)
    step = (logs[-1] - logs[0]) / (CANDIDATES - 1)
    for _ in range(HALVINGS):
        step /= 2
        best = min((best, best - step, best + step), key=score)
    return float(np.exp(best))


@dataclass(frozen=True, eq=False)
class LocalCurve:
    """Local polynomials with one bandwidth.

    Attributes
    ----------
    data
        What they are fitted to.
    bandwidth
        Half width of the windows, of normalised time.
    sd
        Estimated noise, that of a measurement of weight 1.
    """

    data: Neighbours = field(repr=False)
    bandwidth: float
    sd: float

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        flat = np.asarray(times, dtype=float).ravel()
        order = np.argsort(flat)
        found = np.empty(len(flat))
        found[order] = self._polynomials(flat[order])[:, 0]
        return found.reshape(np.shape(times))

    def taylor(self, at: float, order: int) -> Array:
        """Coefficients of the polynomial at a time, zero beyond its degree."""
        found = np.zeros(order + 1)
        count = min(order, self.data.degree) + 1
        found[:count] = self._polynomials(np.array([at]))[0, :count]
        return found

    def errors(self, at: float, order: int) -> Array:
        """By noise, and by what half the bandwidth changes; inf beyond the degree."""
        data, place = self.data, np.array([at])
        width = float(np.maximum(self.bandwidth, data.least_windows(place))[0])
        own = data.polynomials(place, np.array([width]))[0][0]
        narrow = np.maximum(width / 2, data.least_windows(place))
        blur = own - data.polynomials(place, narrow)[0][0]
        found = np.full(order + 1, np.inf)
        count = min(order, data.degree) + 1
        found[:count] = np.hypot(self.sd * data.spread(at, width), blur)[:count]
        return found

    def _polynomials(self, at: Array) -> Array:
        width = np.maximum(self.bandwidth, self.data.least_windows(at))
        return self.data.polynomials(at, width)[0]
