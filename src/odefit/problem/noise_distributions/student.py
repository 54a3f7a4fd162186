"""Student's t distribution: K. L. Lange, R. J. A. Little and J. M. G. Taylor, 1989.

Robust statistical modeling using the t distribution, Journal of the American Statistical
Association 84, 881-896.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.distribution import NoiseDistribution

STUDENT_DEGREES = 4.0
"""Default degrees of freedom of Student's t distribution, chosen by Lange, Little and Taylor (1989)
for few data."""


@dataclass(frozen=True)
class Student(NoiseDistribution):
    """Student's t distribution; the spread is its scale."""

    words: ClassVar[str] = "Student's t distribution"
    degrees: float = STUDENT_DEGREES

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return the root of (nu + 1) log(1 + u^2/nu)."""
        nu = self.degrees
        x = u * u / nu
        ratio = np.where(x > 0, np.log1p(x) / np.where(x > 0, x, 1.0), 1.0)
        factor = np.sqrt((nu + 1) / nu * ratio)
        return u * factor, (nu + 1) / nu / (1 + x) / factor

    def weights(self, u: Array) -> Array:
        """Return the weights without logarithms."""
        return np.asarray((self.degrees + 1) / (self.degrees + u * u))

    @cached_property
    def log_norm(self) -> float:
        """The logarithm of the integral of (1 + u^2/nu)^(-(nu + 1)/2)."""
        nu = self.degrees
        gammas = math.lgamma(nu / 2) - math.lgamma((nu + 1) / 2)
        return gammas + 0.5 * math.log(nu * math.pi)

    @property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale."""
        nu = self.degrees
        return (nu + 1) / (nu + 3), 2 * nu / (nu + 3)

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return values of the t distribution."""
        return random.standard_t(self.degrees, count)

    def standard_probabilities(self, v: Array) -> Array:
        """Return the probabilities of values up to `v`."""
        from scipy.special import stdtr

        return np.asarray(stdtr(self.degrees, v))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of this level."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.degrees, 0.5 + level / 2))
        return half, half
