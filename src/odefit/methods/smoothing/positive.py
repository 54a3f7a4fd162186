"""Curves that stay positive, for quantities that cannot be negative."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from odefit.methods.smoothing.barycentric import quotient
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.problem.arrays import Array
from odefit.problem.option_checks import number

NOISELESS_LEVEL = 1e-6
"""The level e relative to the largest value where there is no noise to take it from."""


@dataclass(frozen=True)
class Positive:
    """Another smoother's curve f, bent away from zero: (f + sqrt(f^2 + 4 e^2)) / 2.

    The noise is additive, so that values near zero are negative half of the time, and logarithms
    are of no use. A curve well above zero is not changed; elsewhere negative values become small
    positive ones, of size e where f is zero.

    Attributes
    ----------
    smoother
        The smoother whose curve is bent.
    level
        The level e, in estimated standard deviations of the noise.
    """

    smoother: Smoother
    level: float = 0.1

    def __post_init__(self) -> None:
        number(self.level, "Positive, level", least=1e-300)

    @property
    def name(self) -> str:
        """The name of the smoother whose curve is kept positive."""
        return f"{self.smoother.name}, positive"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Return the smoother's curve of a series, bent away from zero."""
        curve = self.smoother.fit(times, values, sds)
        scale = float(np.abs(values).max())
        floor = max(
            self.level * curve.sd, NOISELESS_LEVEL * scale, float(np.finfo(float).tiny) ** 0.5
        )
        return PositiveCurve(curve, floor)


@dataclass(frozen=True, eq=False)
class PositiveCurve:
    """A curve bent away from zero.

    Attributes
    ----------
    curve
        The curve before it is bent.
    floor
        The value where that curve is zero.
    """

    curve: Interpolant = field(repr=False)
    floor: float

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise."""
        return self.curve.sd

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        f = self.curve(times)
        root = np.hypot(f, 2 * self.floor)
        # The sum of the two cancels where f is negative.
        positive: Array = np.where(f > 0, (f + root) / 2, 2 * self.floor**2 / (root + np.abs(f)))
        return positive

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,)."""
        f = self.curve.taylor(at, order)
        series: Array = (f + self._root(f)) / 2
        series[0] = self(np.array([at]))[0]
        return series

    def errors(self, at: float, order: int) -> Array:
        """Return the errors of the curve times the derivative of the bend, shape (order + 1,)."""
        f, own = self.curve.taylor(at, order), self.curve.errors(at, order)
        derivative = np.abs(quotient(f, self._root(f))) / 2
        derivative[0] = (1 + f[0] / np.hypot(f[0], 2 * self.floor)) / 2
        known = int(np.isfinite(own).sum())
        errors = np.full(order + 1, np.inf)
        errors[:known] = np.convolve(derivative[:known], own[:known])[:known]
        return errors

    def _root(self, f: Array) -> Array:
        """Return the power series of sqrt(f^2 + 4 e^2)."""
        square = np.convolve(f, f)[: len(f)]
        root = np.empty_like(f)
        root[0] = np.hypot(f[0], 2 * self.floor)
        for k in range(1, len(f)):
            root[k] = (square[k] - root[1:k] @ root[1:k][::-1]) / (2 * root[0])
        return root
