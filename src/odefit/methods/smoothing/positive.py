"""Curves that stay positive where the quantity is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from odefit.methods.smoothing.barycentric import quotient
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.problem.arrays import Array
from odefit.problem.option_checks import number

SMALL = 1e-6
"""Of the largest value: the level where there is no noise to take it from."""


@dataclass(frozen=True)
class Positive:
    """Another smoother's curve f, bent away from zero: (f + sqrt(f^2 + 4 e^2)) / 2.

    The noise is additive, so what is measured near zero is negative half of the time and its
    logarithm says nothing; a curve well above zero needs no help, and is not changed. In between
    negative values become small positive ones, of size e where f is zero.

    Attributes
    ----------
    smoother
        What makes the curve.
    level
        e, in estimated standard deviations of the noise.
    """

    smoother: Smoother
    level: float = 0.1

    def __post_init__(self) -> None:
        number(self.level, "Positive, level", least=1e-300)

    @property
    def name(self) -> str:
        """That of the smoother, and that it is kept positive."""
        return f"{self.smoother.name}, positive"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series as the smoother does."""
        curve = self.smoother.fit(times, values, sds)
        scale = float(np.abs(values).max())
        floor = max(self.level * curve.sd, SMALL * scale, float(np.finfo(float).tiny) ** 0.5)
        return PositiveCurve(curve, floor)


@dataclass(frozen=True, eq=False)
class PositiveCurve:
    """A curve bent away from zero.

    Attributes
    ----------
    curve
        As it was.
    floor
        Its value where that was zero.
    """

    curve: Interpolant = field(repr=False)
    floor: float

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise."""
        return self.curve.sd

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        f = self.curve(times)
        root = np.hypot(f, 2 * self.floor)
        # The sum of the two cancels where f is negative.
        positive: Array = np.where(f > 0, (f + root) / 2, 2 * self.floor**2 / (root + np.abs(f)))
        return positive

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,)."""
        f = self.curve.taylor(at, order)
        found: Array = (f + self._root(f)) / 2
        found[0] = self(np.array([at]))[0]
        return found

    def errors(self, at: float, order: int) -> Array:
        """Those of the curve, times the slope of the bend."""
        f, own = self.curve.taylor(at, order), self.curve.errors(at, order)
        slope = np.abs(quotient(f, self._root(f))) / 2
        slope[0] = (1 + f[0] / np.hypot(f[0], 2 * self.floor)) / 2
        known = int(np.isfinite(own).sum())
        found = np.full(order + 1, np.inf)
        found[:known] = np.convolve(slope[:known], own[:known])[:known]
        return found

    def _root(self, f: Array) -> Array:
        """Power series of sqrt(f^2 + 4 e^2)."""
        square = np.convolve(f, f)[: len(f)]
        root = np.empty_like(f)
        root[0] = np.hypot(f[0], 2 * self.floor)
        for k in range(1, len(f)):
            root[k] = (square[k] - root[1:k] @ root[1:k][::-1]) / (2 * root[0])
        return root
