"""Local polynomial regression, with the bandwidth by leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import number, whole
from odefit.methods.smoothing.smoother import EPS, Interpolant, NormalisedSeries, SeriesSmoother

CHUNK = 100  # times at which polynomials are fitted together, which limits the memory
MAX_LEFT_OUT = 200  # measurements left out, one at a time, to choose the bandwidth
BANDWIDTHS = 10  # number tried first, from that of a few points to that of all
HALVINGS = 3  # how often the distance between bandwidths is halved around the best one
WINDOW_MARGIN = 1.2  # smallest window over the distance of the last point that is needed


@dataclass(frozen=True)
class LocalPolynomial(SeriesSmoother):
    """Fit a polynomial of low degree at each time, by least squares with decreasing weights.

    Weights are tricube, `(1 - |u|^3)^3` of the distance u in bandwidths; if a bandwidth contains
    too few points, the window is wider. J. Fan and I. Gijbels, Local Polynomial Modelling and Its
    Applications (Chapman & Hall, 1996).

    Attributes
    ----------
    degree
        Degree of the polynomials, 1 or 2, up to which derivatives exist.
    bandwidth
        Half width of the windows in units of time; None for the one that best predicts omitted
        measurements.
    """

    degree: int = 2
    bandwidth: float | None = None

    name: ClassVar[str] = "local polynomial"
    weights_measurements: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.degree, "LocalPolynomial, degree")
        if self.degree > 2:
            raise InputError(f"LocalPolynomial, degree: expected 1 or 2, got {self.degree}")
        if self.bandwidth is not None:
            number(self.bandwidth, "LocalPolynomial, bandwidth", least=1e-300)

    @property
    def min_points(self) -> int:
        """The smallest number of points: three more than the degree."""
        return self.degree + 3

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the local polynomials of a normalised series with the best bandwidth."""
        data = LocalRegression(series, self.degree)
        bandwidth = self.bandwidth
        return data.curve(_best_bandwidth(data) if bandwidth is None else bandwidth / series.half)


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """Local polynomial regression of one series with any bandwidth."""

    series: NormalisedSeries  # normalised data, n of them
    degree: int  # degree of the polynomials

    def min_windows(self, at: Array) -> Array:
        """Return the half widths of the smallest sufficient windows around sorted times."""
        x, needed = self.series.x, self.degree + 2
        count = min(2 * needed, len(x))
        low = np.clip(np.searchsorted(x, at) - needed, 0, len(x) - count)
        near = low[:, None] + np.arange(count)
        distance = np.sort(np.abs(x[near] - at[:, None]), axis=1)
        return np.asarray(WINDOW_MARGIN * distance[:, needed - 1], dtype=float)

    @cached_property
    def left_out(self) -> tuple[slice, Array]:
        """The measurements that are left out in turn, and their smallest windows."""
        x = self.series.x
        chosen = slice(None, None, -(-len(x) // MAX_LEFT_OUT))
        return chosen, self.min_windows(x[chosen])

    def polynomials(self, at: Array, width: Array) -> tuple[Array, Array]:
        """Return Taylor coefficients at sorted times, and the leverage of measurements there.

        For m times and half widths of windows, the shapes are (m, degree + 1) and (m,). Leverages
        are those of measurements of weight 1.
        """
        coefficients = np.empty((len(at), self.degree + 1))
        leverage = np.empty(len(at))
        powers = np.arange(self.degree + 1)
        for first in range(0, len(at), CHUNK):
            rows = slice(first, first + CHUNK)
            u, kernel, near = self._kernel(at[rows], width[rows])
            moments = _moments(u, kernel, 2 * self.degree)
            right = _moments(u, kernel * self.series.y[near], self.degree)
            inverse = np.linalg.inv(moments[:, powers[:, None] + powers])
            solution = np.einsum("mij,mj->mi", inverse, right)
            coefficients[rows] = solution / width[rows, None] ** powers
            leverage[rows] = inverse[:, 0, 0]
        return coefficients, leverage

    def spread(self, at: float, width: float) -> Array:
        """Return standard deviations of the coefficients for noise of 1, shape (degree + 1,)."""
        u, kernel, near = self._kernel(np.array([at]), np.array([width]))
        inside = kernel[0] > 0
        powers = np.arange(self.degree + 1)
        rows = u[0, inside] ** powers[:, None]
        weighted = rows * kernel[0, inside]
        operator = np.linalg.solve(weighted @ rows.T, weighted)
        noise = np.sqrt((operator**2 / self.series.weights[near][inside]).sum(axis=1))
        return np.asarray(noise / width**powers, dtype=float)

    def residuals(self, bandwidth: float) -> tuple[Array, Array, Array]:
        """Return residuals, leverages and weights of the measurements that are left out in turn."""
        chosen, least = self.left_out
        coefficients, leverage = self.polynomials(
            self.series.x[chosen], np.maximum(bandwidth, least)
        )
        weights = self.series.weights[chosen]
        return self.series.y[chosen] - coefficients[:, 0], leverage * weights, weights

    def prediction_error(self, bandwidth: float) -> float:
        """Return the mean squared error of the prediction of measurements from the others."""
        residuals, leverage, weights = self.residuals(bandwidth)
        return float(np.mean(weights * (residuals / np.maximum(1 - leverage, 1e-6)) ** 2))

    def curve(self, bandwidth: float) -> LocalCurve:
        """Return the fit with a bandwidth."""
        residuals, leverage, weights = self.residuals(bandwidth)
        freedom = max(float((1 - leverage).sum()), EPS)
        return LocalCurve(self, bandwidth, float(np.sqrt(weights @ residuals**2 / freedom)))

    def _kernel(self, at: Array, width: Array) -> tuple[Array, Array, slice]:
        """Return distances in half widths, weights, and the data in any of the windows."""
        ends = [float((at - width).min()), float((at + width).max())]
        low, high = np.searchsorted(self.series.x, ends)
        near = slice(int(low), int(high))
        u = (self.series.x[near] - at[:, None]) / width[:, None]
        size = np.minimum(np.abs(u), 1.0)
        inside = 1 - size * size * size
        return u, inside * inside * inside * self.series.weights[near], near


def _moments(u: Array, kernel: Array, order: int) -> Array:
    """Return the sums of kernel * u^k for k = 0 ... order, shape (m, order + 1)."""
    sums = np.empty((len(u), order + 1))
    terms = kernel
    for k in range(order + 1):
        sums[:, k] = terms.sum(axis=1)
        if k < order:
            terms = terms * u
    return sums


def _best_bandwidth(data: LocalRegression) -> float:
    """Return the bandwidth that predicts best, by a logarithmic search with decreasing steps."""
    low = float(np.log(np.median(data.left_out[1])))
    high = float(np.log(4.0))
    known: dict[float, float] = {}

    def score(log: float) -> float:
        if log not in known:
            known[log] = data.prediction_error(float(np.exp(log)))
        return known[log]

    logs = [float(log) for log in np.linspace(low, max(high, low), BANDWIDTHS)]
    best = min(logs, key=score)
    step = (logs[-1] - logs[0]) / (BANDWIDTHS - 1)
    for _ in range(HALVINGS):
        step /= 2
        best = min((best, best - step, best + step), key=score)
    return float(np.exp(best))


@dataclass(frozen=True, eq=False)
class LocalCurve:
    """Local polynomials with one bandwidth."""

    data: LocalRegression = field(repr=False)  # regression, which knows the data
    bandwidth: float  # half width of the windows in normalised time
    sd: float  # estimated standard deviation of the noise of a measurement of weight 1

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        flat = np.asarray(times, dtype=float).ravel()
        order = np.argsort(flat)
        values = np.empty(len(flat))
        values[order] = self._polynomials(flat[order])[:, 0]
        return values.reshape(np.shape(times))

    def taylor(self, at: float, order: int) -> Array:
        """Return the coefficients of the polynomial at a time; they are zero above its degree."""
        coefficients = np.zeros(order + 1)
        count = min(order, self.data.degree) + 1
        coefficients[:count] = self._polynomials(np.array([at]))[0, :count]
        return coefficients

    def errors(self, at: float, order: int) -> Array:
        """Return noise plus the change with half the bandwidth; infinite above the degree."""
        data, time = self.data, np.array([at])
        width = float(np.maximum(self.bandwidth, data.min_windows(time))[0])
        coefficients = data.polynomials(time, np.array([width]))[0][0]
        narrow = np.maximum(width / 2, data.min_windows(time))
        bias = coefficients - data.polynomials(time, narrow)[0][0]
        errors_of = np.full(order + 1, np.inf)
        count = min(order, data.degree) + 1
        errors_of[:count] = np.hypot(self.sd * data.spread(at, width), bias)[:count]
        return errors_of

    def _polynomials(self, at: Array) -> Array:
        width = np.maximum(self.bandwidth, self.data.min_windows(at))
        return self.data.polynomials(at, width)[0]
