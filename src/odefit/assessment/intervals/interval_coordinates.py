"""Unbounded coordinates for bounded unknowns, and their prior densities.

An unknown between two bounds is represented by the logit of its position, one with a single bound
by the logarithm of its distance from it (B. Carpenter et al., Stan: A Probabilistic Programming
Language, Journal of Statistical Software 76, 2017, section 2.9), on its own scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import expected_sizes

LEAST_PLACE = 1e-4
"""Distance from a bound, relative to the interval, to which an estimate at the bound is moved."""


@dataclass(frozen=True, eq=False)
class IntervalCoordinates:
    """The transformation of the n unknowns to coordinates without bounds.

    Bounds and typical `sizes` are on the unknown's own scale, its natural logarithm where
    `logarithmic`. `powers` convert the prior's density (of the value, or of its logarithm) to one
    on that scale.
    """

    logarithmic: BoolArray
    lower: Array
    upper: Array
    powers: Array
    sizes: Array

    @classmethod
    def of(cls, problem: Problem) -> IntervalCoordinates:
        """Return the coordinates of a problem: logarithms for log10 scales and noise."""
        logarithmic = np.array(
            [u.parameter.scale == "log10" or u.kind == "noise" for u in problem.unknowns],
            dtype=bool,
        )
        lower, upper = problem.lower.copy(), problem.upper.copy()
        with np.errstate(divide="ignore"):
            lower[logarithmic] = np.log(np.maximum(lower[logarithmic], 0.0))
            upper[logarithmic] = np.log(upper[logarithmic])
        powers = np.zeros(len(lower))
        for i, unknown in enumerate(problem.unknowns):
            prior = unknown.parameter.prior
            if prior is not None:
                powers[i] = float(logarithmic[i]) - float(prior.on != "linear")
        sizes = np.where(logarithmic, 1.0, expected_sizes(problem))
        return cls(logarithmic, lower, upper, powers, sizes)

    @property
    def _kinds(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """The unknowns with both bounds, with a lower one alone, and with an upper one alone."""
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        return low & high, low & ~high, ~low & high

    def inside(self, vector: Array) -> Array:
        """Return the coordinates of a vector, moved slightly off the bounds."""
        w = np.array(vector, dtype=float)
        with np.errstate(divide="ignore"):
            w[self.logarithmic] = np.log(np.maximum(w[self.logarithmic], 1e-300))
        both, low, high = self._kinds
        u = w.copy()
        place = (w[both] - self.lower[both]) / (self.upper[both] - self.lower[both])
        place = np.clip(place, 0.0, 1.0)
        place = np.where(place <= 1e-12, LEAST_PLACE, place)
        place = np.where(place >= 1 - 1e-12, 1 - LEAST_PLACE, place)
        u[both] = np.log(place) - np.log1p(-place)
        u[low] = np.log(self._distances(w - self.lower, w)[low])
        u[high] = -np.log(self._distances(self.upper - w, w)[high])
        return u

    def _distances(self, distances: Array, w: Array) -> Array:
        """Return distances from bounds, of unknowns that are there a part of their sizes."""
        away = np.maximum(distances, LEAST_PLACE * np.abs(w))
        return np.where(away <= 1e-12 * self.sizes, LEAST_PLACE * self.sizes, away)

    def natural(self, coordinates: Array) -> Array:
        """Return the unknowns in natural units, shape (n,)."""
        w = self._scaled(coordinates)
        w[self.logarithmic] = np.exp(w[self.logarithmic])
        return w

    def derivative(self, coordinates: Array) -> Array:
        """Return the derivatives of the unknowns by their coordinates, shape (n,)."""
        factor = self._slope(coordinates)
        w = self._scaled(coordinates)
        factor[self.logarithmic] *= np.exp(w[self.logarithmic])
        return factor

    def log_prior(self, coordinates: Array) -> tuple[float, Array]:
        """Return the logarithm of the prior density of the coordinates, and its gradient.

        Unknowns are uniform on their own scale, or, where they have a prior, on that of the prior:
        the density of the prior itself is not included.
        """
        both, low, high = self._kinds
        gradient = np.zeros(len(coordinates))
        gradient[both] = -np.tanh(0.5 * coordinates[both])
        gradient[low] = 1.0
        gradient[high] = -1.0
        u = np.abs(coordinates[both])
        # derivative of the logistic function without overflow
        value = float(np.sum(-u - 2 * np.log1p(np.exp(-u))))
        value += float(np.sum(coordinates[low]) - np.sum(coordinates[high]))
        on_powers = self.powers != 0
        if on_powers.any():
            natural = self.natural(coordinates)[on_powers]
            value += float(self.powers[on_powers] @ np.log(natural))
            gradient[on_powers] += (
                self.powers[on_powers] * self.derivative(coordinates)[on_powers] / natural
            )
        return value, gradient

    def prior_precision(self, coordinates: Array) -> Array:
        """Return the precision of the coordinates that represents the prior, shape (n,)."""
        both, _, _ = self._kinds
        u = coordinates[both]
        precision = np.full(len(coordinates), 1e-2)
        unbounded = ~(np.isfinite(self.lower) | np.isfinite(self.upper))
        precision[unbounded] /= np.maximum(np.abs(coordinates), self.sizes)[unbounded] ** 2
        precision[both] = np.maximum(0.5 / np.cosh(0.5 * u) ** 2, 1e-2)
        return precision

    def _scaled(self, coordinates: Array) -> Array:
        """Return the unknowns on their own scales."""
        from scipy.special import expit

        both, low, high = self._kinds
        w = np.array(coordinates, dtype=float)
        w[both] = self.lower[both] + (self.upper - self.lower)[both] * expit(coordinates[both])
        w[low] = self.lower[low] + np.exp(coordinates[low])
        w[high] = self.upper[high] - np.exp(-coordinates[high])
        return w

    def _slope(self, coordinates: Array) -> Array:
        """Return the derivatives of the unknowns on their own scales by their coordinates."""
        both, low, high = self._kinds
        slope = np.ones(len(coordinates))
        slope[both] = (self.upper - self.lower)[both] / (4 * np.cosh(0.5 * coordinates[both]) ** 2)
        slope[low] = np.exp(coordinates[low])
        slope[high] = np.exp(-coordinates[high])
        return slope
