"""Bases of functions on [-1, 1]: their values and Taylor coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from odefit.common.arrays import Array


class Basis(Protocol):
    """Functions phi_1 ... phi_m."""

    def values(self, x: Array) -> Array:
        """Return phi_j(x_i), shape (n, m)."""

    def taylor(self, at: float, order: int) -> Array:
        """Return phi_j^(k)(at) / k!, shape (order + 1, m)."""


@dataclass(frozen=True)
class ChebyshevBasis:
    """Chebyshev polynomials T_0 ... T_(m-1)."""

    size: int  # number of polynomials, m

    def values(self, x: Array) -> Array:
        """Return the values at `x`, shape (n, m)."""
        return np.asarray(np.polynomial.chebyshev.chebvander(x, self.size - 1), dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1, m), by the three-term recurrence."""
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
class FourierBasis:
    """1, cos(k pi x / length) and sin(k pi x / length), which are periodic on [-length, length]."""

    terms: int  # number of frequencies
    length: float  # half the period of the slowest wave

    def values(self, x: Array) -> Array:
        """Return the values at `x`, shape (n, 2 terms + 1)."""
        angle = np.asarray(x)[:, None] * self.frequencies()
        return np.hstack([np.ones((len(angle), 1)), np.cos(angle), np.sin(angle)])

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1, 2 terms + 1)."""
        k, omega = np.arange(order + 1)[:, None], self.frequencies()
        size: Array = np.exp(k * np.log(omega) - gammaln(k + 1.0))
        constant: Array = np.where(k == 0, 1.0, 0.0)
        phase = omega * at + k * np.pi / 2
        parts = [constant, size * np.cos(phase), size * np.sin(phase)]
        return np.asarray(np.hstack(parts), dtype=float)

    def frequencies(self) -> Array:
        """Return the angular frequencies, shape (terms,)."""
        frequencies: Array = np.arange(1.0, self.terms + 1) * np.pi / self.length
        return frequencies
