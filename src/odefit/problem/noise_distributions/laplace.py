"""The Laplace distribution, whose maximum likelihood minimises absolute deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.distribution import NoiseDistribution

LAPLACE_ROUNDING = 1e-4
"""Size, in standard deviations, of residuals within which the kink of the Laplace density is
rounded off, since a search cannot find a minimum at a kink. No log-density changes by more than
this times the root of two."""


@dataclass(frozen=True)
class Laplace(NoiseDistribution):
    """The Laplace distribution."""

    words: ClassVar[str] = "Laplace distribution"
    kinked: ClassVar[bool] = True
    petab: ClassVar[str | None] = "laplace"
    petab_sd: ClassVar[float] = math.sqrt(2.0)

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return the root of twice root(2) (root(u^2 + e^2) - e), without cancellation."""
        size = np.hypot(u, LAPLACE_ROUNDING)
        share = math.sqrt(2.0) / (size + LAPLACE_ROUNDING)
        factor = np.sqrt(2 * share)
        return u * factor, math.sqrt(2.0) / size / factor

    @property
    def log_norm(self) -> float:
        """The logarithm of the integral of exp(-root(2) |u|)."""
        return 0.5 * math.log(2.0)

    @property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale."""
        return 2.0, 1.0

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return values with the standard deviation one."""
        return random.laplace(0.0, 1 / math.sqrt(2), count)

    def standard_probabilities(self, v: Array) -> Array:
        """Return the probabilities of values up to `v`."""
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(v))
        return np.where(v < 0, tail, 1.0 - tail)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of this level."""
        half = -math.log(1 - level) / math.sqrt(2)
        return half, half
