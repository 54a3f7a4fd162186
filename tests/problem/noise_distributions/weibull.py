"""The Weibull distribution, whose logarithms have the Gumbel distribution of least values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.distribution import NoiseDistribution

FACTOR = math.pi / math.sqrt(6)
EULER = float(np.euler_gamma)


@dataclass(frozen=True)
class Weibull(NoiseDistribution):
    """The predictions are the scale; the shape is pi/(root(6) sd), with the sd of the logarithm."""

    symmetric: ClassVar[bool] = False
    words: ClassVar[str] = "Weibull distribution"

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return the root of 2 (exp(z) - 1 - z) for z = -pi/root(6) u."""
        z = -FACTOR * u
        near = np.abs(z) < 1e-5
        at = np.where(near, 1.0, np.minimum(z, 300.0))
        loss = np.sqrt(2 * (np.expm1(at) - at))
        root = np.where(near, np.abs(z) * (1 + z / 6), loss)
        score = FACTOR * np.where(near, np.abs(1 + z / 2), np.abs(np.expm1(at)) / loss)
        return np.sign(u) * root, score

    @property
    def log_norm(self) -> float:
        """The logarithm of the integral of exp(1 + z - exp(z))."""
        return 1.0 - math.log(FACTOR)

    @property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale."""
        return FACTOR**2, (1 - EULER) ** 2 + math.pi**2 / 6

    @property
    def cross(self) -> float:
        """The Fisher information of location and scale together."""
        return FACTOR * (1 - EULER)

    @cached_property
    def mean_residual(self) -> float:
        """The expectation of the deviance residual."""
        from scipy.integrate import quad

        def weighted(z: float) -> float:
            return float(self.root(np.array([-z / FACTOR]))[0][0]) * math.exp(z - math.exp(z))

        return float(quad(weighted, -40.0, 0.0)[0] + quad(weighted, 0.0, 5.0)[0])

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return Gumbel values with the standard deviation one."""
        return np.asarray(np.log(random.exponential(size=count)) / FACTOR)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of this level, with equal tails."""
        low, high = (math.log(-math.log1p(-p)) / FACTOR for p in (0.5 - level / 2, 0.5 + level / 2))
        return -low, high
