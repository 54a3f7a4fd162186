"""Floater-Hormann interpolation: blended polynomials, never a pole in the interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from odefit.methods.smoothing.barycentric import Rational, quotient
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import Interpolant, fit_normalised, refuse_weights
from odefit.problem.arrays import Array
from odefit.problem.option_checks import whole


@dataclass(frozen=True)
class FloaterHormann:
    """Interpolate by a blend of the polynomials through each `degree` + 1 neighbouring points.

    M. S. Floater and K. Hormann, Barycentric rational interpolation with no poles and high rates
    of approximation, Numer. Math. 107 (2007).

    Attributes
    ----------
    degree
        Of the polynomials; with fewer points than it needs, the polynomial through all. A higher
        one gives better derivatives of smooth data, and magnifies rounding and noise more.
    """

    degree: int = 10

    def __post_init__(self) -> None:
        whole(self.degree, "FloaterHormann, degree", 0)

    @property
    def name(self) -> str:
        """With its degree."""
        return f"Floater-Hormann {self.degree}"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Interpolate a series of at least 2 points."""
        refuse_weights(times, sds, self.name)
        return fit_normalised(times, values, self.name, 2, self._fit)

    def _fit(self, x: Array, y: Array) -> Interpolant:
        return interpolant(x, y, self.degree)


@dataclass(frozen=True, eq=False)
class Blend:
    """A Floater-Hormann interpolant with one of another degree to compare with.

    Attributes
    ----------
    rational
        The interpolant.
    other
        Of a lower degree.
    noise
        Estimated noise of the data, which the interpolant follows.
    """

    rational: Rational
    other: Rational
    noise: float
    sd: float = 0.0

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        return self.rational(times)

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,)."""
        return self.rational.taylor(at, order)

    def errors(self, at: float, order: int) -> Array:
        """Truncation, by comparison with the other degree, and propagated noise."""
        truncation = np.abs(self.taylor(at, order) - self.other.taylor(at, order))
        # The interpolant is linear in the data: its coefficients' standard deviation is exact.
        propagated = np.linalg.norm(quotient(*self.rational.influence(at, order)), axis=1)
        total: Array = truncation + self.noise * propagated
        # Of n points nothing follows for the n-th derivative.
        total[len(self.rational.support) :] = np.inf
        return total


def interpolant(x: Array, y: Array, degree: int) -> Blend:
    """Interpolate normalised data; `degree` is lowered to what the points allow."""
    n = len(x)
    d = min(degree, n - 1)
    own = Rational(x, y, weights(x, d))
    if n == 2:  # the mean: nothing else is left to compare a straight line with
        other = Rational(x[:1], np.array([y.mean()]), np.ones(1))
    elif d == 0:
        other = Rational(x, y, weights(x, 1))
    else:
        # In equidistant points degree n - 2 is degree n - 1 over again.
        other = Rational(x, y, weights(x, min(d - 1, n - 3)))
    return Blend(own, other, noise_level(x, y))


def weights(x: Array, degree: int) -> Array:
    """Barycentric weights (equation 18 of the paper), the largest scaled to 1."""
    n, width = len(x), degree + 1
    windows = sliding_window_view(x, width)
    distance = np.abs(windows[:, :, None] - windows[:, None, :])
    distance[:, range(width), range(width)] = 1.0
    # Products of many small distances: as logarithms they cannot overflow.
    logs = -np.log(distance).sum(axis=2)
    terms = np.exp(logs - logs.max())
    result = np.zeros(n)
    for k in range(width):
        result[k : k + n - degree] += terms[:, k]
    result[(np.arange(n) - degree) % 2 == 1] *= -1
    scaled: Array = result / np.abs(result).max()
    return scaled
