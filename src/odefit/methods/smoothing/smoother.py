"""Smoothers, the functions that they fit to a series, and code shared by nearly all smoothers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError

EPS = float(np.finfo(float).eps)  # relative rounding error of floating-point numbers

MIN_WEIGHT = 1e-8
"""The smallest weight of a measurement relative to the largest: smaller weights would change
little, and make the equations ill-conditioned."""


class Interpolant(Protocol):
    """A fitted function with its values, and with its Taylor coefficients at any point."""

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise; 0 if the data were interpolated."""

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`, in the shape of `times`."""

    def taylor(self, at: float, order: int) -> Array:
        """Return f^(j)(at) / j! for j = 0 ... order, shape (order + 1,)."""

    def errors(self, at: float, order: int) -> Array:
        """Return estimated absolute errors of ``taylor(at, order)``, shape (order + 1,)."""


class Smoother(Protocol):
    """The options of a way to smooth or interpolate a series."""

    @property
    def name(self) -> str:
        """The smoother's name in messages and reports."""

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Return the function behind a series.

        Parameters
        ----------
        times
            Strictly increasing times, shape (n,); they need not be equidistant.
        values
            Finite values, shape (n,); omit missing measurements.
        sds
            Standard deviations of the values, shape (n,), of which only the ratios matter. None if
            all are equal.

        Raises
        ------
        InputError
            The series has too few points or is not as described above, or the standard deviations
            differ and the smoother cannot weight measurements.
        """


def check_series(times: Array, values: Array, name: str, min_points: int) -> None:
    """Refuse a series that the smoother `name`, which needs `min_points` points, cannot use."""
    if times.ndim != 1 or times.shape != values.shape:
        raise InputError(
            f"{name}: expected as many times as values in one row each, got shapes "
            f"{times.shape} and {values.shape}"
        )
    if not (np.isfinite(times).all() and np.isfinite(values).all()):
        raise InputError(f"{name}: some times or values are not finite; leave those points out")
    if (np.diff(times) <= 0).any():
        raise InputError(
            f"{name}: times must increase strictly; sort them, and average repeated measurements"
        )
    if len(times) < min_points:
        raise InputError(
            f"{name}: needs at least {min_points} points, got {len(times)}; measure more, or take "
            f"another smoother"
        )


def average_replicates(times: Array, values: Array) -> tuple[Array, Array]:
    """Return the distinct times in order, and the mean of the values measured at each of them."""
    distinct, index, counts = np.unique(times, return_inverse=True, return_counts=True)
    return distinct, np.bincount(index, weights=values, minlength=len(distinct)) / counts


def relative_weights(times: Array, sds: Array | None, name: str) -> Array:
    """Return the inverse variances relative to their mean, in the shape of `times`.

    Raises InputError unless there is a standard deviation above 0 for each time.
    """
    if sds is None:
        return np.ones(np.shape(times))
    deviations = np.asarray(sds, dtype=float)
    if deviations.shape != np.shape(times):
        raise InputError(
            f"{name}: expected a standard deviation for each time, got shapes "
            f"{deviations.shape} and {np.shape(times)}"
        )
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        raise InputError(
            f"{name}: standard deviations must be finite and above 0; leave out what is unknown"
        )
    weights = np.maximum((deviations.min(initial=np.inf) / deviations) ** 2, MIN_WEIGHT)
    return np.asarray(weights / weights.mean(), dtype=float) if len(deviations) else deviations


@dataclass(frozen=True, eq=False)
class NormalisedSeries:
    """A series with its times mapped to [-1, 1] and its values to at most 1 in magnitude.

    Powers of time then neither overflow nor vanish, and tolerances are relative.
    """

    # normalised times and values, shape (n,)
    x: Array
    y: Array
    weights: Array  # inverse variances relative to their mean, shape (n,)
    # middle and half of the length of the time interval, in the units of the data
    middle: float = 0.0
    half: float = 1.0
    scale: float = 1.0  # largest magnitude of the values, in the units of the data

    @classmethod
    def of(cls, times: Array, values: Array, weights: Array) -> NormalisedSeries:
        """Return the normalised form of a series that has been checked."""
        middle, half = float(times[0] + times[-1]) / 2, float(times[-1] - times[0]) / 2
        scale = float(np.abs(values).max())
        # A series of zeros remains one.
        y = values / scale if scale > 0 else values
        return cls((times - middle) / half, y, weights, middle, half, scale)


@dataclass(frozen=True)
class InUnits:
    """A function of normalised time and value, in the units of the data."""

    curve: Interpolant  # function that was fitted to the normalised series
    series: NormalisedSeries  # normalised series, which knows the units

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise, in the units of the values."""
        return self.series.scale * self.curve.sd

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        x = (np.asarray(times, dtype=float) - self.series.middle) / self.series.half
        return self.series.scale * self.curve(x)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients at a time, shape (order + 1,)."""
        x = (at - self.series.middle) / self.series.half
        return self._units(order) * self.curve.taylor(x, order)

    def errors(self, at: float, order: int) -> Array:
        """Return their estimated absolute errors, shape (order + 1,), never below rounding."""
        x = (at - self.series.middle) / self.series.half
        estimated = self.curve.errors(x, order)
        return self._units(order) * np.maximum(estimated, EPS * np.abs(self.curve.taylor(x, order)))

    def _units(self, order: int) -> Array:
        units: Array = self.series.scale / self.series.half ** np.arange(order + 1.0)
        return units


class SeriesSmoother(ABC):
    """A smoother that checks a series, normalises it, and fits the normalised series."""

    weights_measurements: ClassVar[bool] = False
    """True if measurements may have different standard deviations; otherwise these are refused."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The smoother's name in messages and reports."""

    @property
    @abstractmethod
    def min_points(self) -> int:
        """The smallest number of points that the smoother can use."""

    @abstractmethod
    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the function behind a normalised series of at least `min_points` points."""

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Return the function behind a series of at least `min_points` points.

        Raises InputError as :meth:`Smoother.fit` does.
        """
        weights = relative_weights(times, sds, self.name)
        if not self.weights_measurements and len(weights) and np.ptp(weights) > 1e-9:
            raise InputError(
                f"{self.name}: gives all measurements the same weight; leave their standard "
                f"deviations out, or take SmoothingSpline or LocalPolynomial"
            )
        t, v = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        check_series(t, v, self.name, self.min_points)
        series = NormalisedSeries.of(t, v, weights)
        return InUnits(self.fit_normalised(series), series)


ROUNDING_VARIANCE = (0.5 * EPS) ** 2  # mean square of rounding errors of normalised data


def aicc(rss: float, n: int, parameters: int) -> float:
    """Return Akaike's criterion with its small-sample correction.

    `rss` is the sum of squared residuals of `n` normalised data. Without remaining degrees of
    freedom, the criterion is infinite.
    """
    if n - parameters - 1 < 1:
        return math.inf
    deviance = n * math.log(rss / n + ROUNDING_VARIANCE)
    return deviance + 2 * parameters * n / (n - parameters - 1)


def bic(rss: float, n: int, parameters: int) -> float:
    """Return Schwarz's Bayesian criterion, with the penalty log(n) for each parameter.

    Its arguments are those of `aicc`; it chooses smoother fits.
    """
    if n - parameters - 1 < 1:
        return math.inf
    return n * math.log(rss / n + ROUNDING_VARIANCE) + parameters * math.log(n)
