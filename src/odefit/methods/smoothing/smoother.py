"""What a smoother is, and what it makes of a measured series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.errors import InputError

EPS = float(np.finfo(float).eps)


class Interpolant(Protocol):
    """A fitted function: values, and Taylor coefficients at any point."""

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise; 0 where the data were interpolated."""

    def __call__(self, times: Array) -> Array:
        """Values at `times`, shape of `times`."""

    def taylor(self, at: float, order: int) -> Array:
        """f^(j)(at) / j! for j = 0 ... order, shape (order + 1,)."""

    def errors(self, at: float, order: int) -> Array:
        """Estimated absolute errors of ``taylor(at, order)``, shape (order + 1,)."""


class Smoother(Protocol):
    """Options of a way to smooth or interpolate."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """The function behind a series.

        Parameters
        ----------
        times
            Strictly increasing, shape (n,); they need not be equidistant.
        values
            Finite, shape (n,); leave out what was not measured.
        sds
            Standard deviations of the values, shape (n,); only their ratios matter. None if all
            are alike.

        Raises
        ------
        InputError
            The series cannot be used: too few points, or not as said above; or the smoother
            takes all measurements for equally good, and they are not.
        """


def check_series(times: Array, values: Array, name: str, least: int) -> None:
    """Refuse a series that smoother `name`, which needs `least` points, cannot use.

    Raises
    ------
    InputError
        One sentence: what is wrong, and the remedy.
    """
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
    if len(times) < least:
        raise InputError(
            f"{name}: needs at least {least} points, got {len(times)}; measure more, or take "
            f"another smoother"
        )


def relative_weights(times: Array, sds: Array | None, name: str) -> Array:
    """Inverse variances relative to their mean, shape of `times`.

    The least is not taken for less than 1e-8 of the largest: it hardly counts as it is, and
    rounding asks for it.

    Raises
    ------
    InputError
        Not as many standard deviations as times, or one that is not above 0.
    """
    if sds is None:
        return np.ones(np.shape(times))
    given = np.asarray(sds, dtype=float)
    if given.shape != np.shape(times):
        raise InputError(
            f"{name}: expected a standard deviation for each time, got shapes {given.shape} and "
            f"{np.shape(times)}"
        )
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise InputError(
            f"{name}: standard deviations must be finite and above 0; leave out what is unknown"
        )
    weights = np.maximum((given.min(initial=np.inf) / given) ** 2, 1e-8)
    return np.asarray(weights / weights.mean(), dtype=float) if len(given) else given


def refuse_weights(times: Array, sds: Array | None, name: str) -> None:
    """Refuse standard deviations that differ, for a smoother that has no use for them.

    Raises
    ------
    InputError
        Naming smoothers that have.
    """
    weights = relative_weights(times, sds, name)
    if len(weights) and np.ptp(weights) > 1e-9:
        raise InputError(
            f"{name}: takes all measurements for equally good; leave their standard deviations "
            f"out, or take SmoothingSpline, AdaptiveSpline or LocalPolynomial"
        )


@dataclass(frozen=True)
class InUnits:
    """A function of normalised time and value, read in the units of the data.

    Time is mapped to [-1, 1] and values to at most 1 in magnitude before anything is fitted:
    powers of time neither overflow nor vanish, and tolerances are relative.

    Attributes
    ----------
    curve
        The normalised function.
    middle, half
        Of the time interval.
    scale
        Largest magnitude of the values.
    """

    curve: Interpolant
    middle: float
    half: float
    scale: float

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise, in the units of the values."""
        return self.scale * self.curve.sd

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        return self.scale * self.curve((np.asarray(times, dtype=float) - self.middle) / self.half)

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,)."""
        return self._units(order) * self.curve.taylor((at - self.middle) / self.half, order)

    def errors(self, at: float, order: int) -> Array:
        """Their estimated absolute errors, shape (order + 1,); never below rounding."""
        x = (at - self.middle) / self.half
        found = self.curve.errors(x, order)
        return self._units(order) * np.maximum(found, EPS * np.abs(self.curve.taylor(x, order)))

    def _units(self, order: int) -> Array:
        units: Array = self.scale / self.half ** np.arange(order + 1.0)
        return units


def fit_normalised(
    times: Array,
    values: Array,
    name: str,
    least: int,
    fit: Callable[[Array, Array], Interpolant],
) -> InUnits:
    """Check a series, normalise it, and fit it by ``fit(x, y)`` with x and y in [-1, 1].

    Raises
    ------
    InputError
        See `check_series`.
    """
    t, v = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    check_series(t, v, name, least)
    middle, half = float(t[0] + t[-1]) / 2, float(t[-1] - t[0]) / 2
    scale = float(np.abs(v).max())
    # A series of zeros stays one.
    curve = fit((t - middle) / half, v / scale if scale > 0 else v)
    return InUnits(curve, middle, half, scale)
