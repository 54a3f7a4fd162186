"""Bases of functions on [-1, 1]: their values and Taylor coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import gammaln

from odefit.problem.arrays import Array


class Basis(Protocol):
    """Functions phi_1 ... phi_m."""

    def values(self, x: Array) -> Array:
        """phi_j(x_i), shape (n, m)."""

    def taylor(self, at: float, order: int) -> Array:
        """phi_j^(k)(at) / k!, shape (order + 1, m)."""


@dataclass(frozen=True)
class Polynomials:
    """Chebyshev polynomials T_0 ... T_(m-1)."""

    size: int

    def values(self, x: Array) -> Array:
        """Shape (n, m)."""
        return np.asarray(np.polynomial.chebyshev.chebvander(x, self.size - 1), dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Shape (order + 1, m): the three-term recurrence, in power series."""
        result = np.zeros((order + 1, self.size))
        result[0, 0] = 1.0
        for j in range(1, self.size):
            before = result[:, j - 1]
            result[:, j] = at * before
            result[1:, j] += before[:-1]
            if j > 1:
                result[:, j] *= 2
                result[:, j] -= result[:, j - 2]
        return result


@dataclass(frozen=True)
class Waves:
    """1, cos(k pi x / length), sin(k pi x / length): periodic on [-length, length]."""

    terms: int
    length: float

    def values(self, x: Array) -> Array:
        """Shape (n, 2 terms + 1)."""
        angle = np.asarray(x)[:, None] * self.frequencies()
        return np.hstack([np.ones((len(angle), 1)), np.cos(angle), np.sin(angle)])

    def taylor(self, at: float, order: int) -> Array:
        """Shape (order + 1, 2 terms + 1)."""
        k, w = np.arange(order + 1)[:, None], self.frequencies()
        size: Array = np.exp(k * np.log(w) - gammaln(k + 1.0))
        constant: Array = np.where(k == 0, 1.0, 0.0)
        turn = w * at + k * np.pi / 2
        parts = [constant, size * np.cos(turn), size * np.sin(turn)]
        return np.asarray(np.hstack(parts), dtype=float)

    def frequencies(self) -> Array:
        """Angular frequencies, shape (terms,)."""
        frequencies: Array = np.arange(1.0, self.terms + 1) * np.pi / self.length
        return frequencies


@dataclass(frozen=True, eq=False)
class Splines:
    """B-splines on given knots."""

    knots: Array
    degree: int

    def values(self, x: Array) -> Array:
        """Shape (n, m); beyond the ends the last polynomials continue."""
        return self.derivative(x, 0)

    def derivative(self, x: Array, order: int) -> Array:
        """Derivatives of the given order, shape (n, m)."""
        size = len(self.knots) - self.degree - 1
        found: Array = BSpline(self.knots, np.eye(size), self.degree)(x, nu=order)
        return found

    def taylor(self, at: float, order: int) -> Array:
        """Shape (order + 1, m); zero beyond the degree."""
        rows = np.array([self.derivative(np.array([at]), k)[0] for k in range(order + 1)])
        scaled: Array = rows * np.exp(-gammaln(np.arange(order + 1) + 1.0))[:, None]
        return scaled
