"""Huber's loss: P. J. Huber, Robust estimation of a location parameter, 1964.

The loss is the negative logarithm of a density that is normal in the middle and has exponential
tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.distribution import ROOT_TWO_PI, NoiseDistribution

HUBER_THRESHOLD = 1.345
"""Default threshold of Huber's loss, in units of sd: 95 % efficient for normal noise."""


@dataclass(frozen=True)
class Huber(NoiseDistribution):
    """The density of Huber's loss, which is linear beyond the threshold."""

    words: ClassVar[str] = "Huber's loss"
    threshold: float = HUBER_THRESHOLD

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return u, and beyond the threshold the root of the linear loss."""
        k = self.threshold
        far = np.abs(u) > k
        tail = np.sqrt(np.maximum(2 * k * np.abs(u) - k * k, k * k))
        return np.where(far, np.sign(u) * tail, u), np.where(far, k / tail, 1.0)

    def weights(self, u: Array) -> Array:
        """Return one, and beyond the threshold its ratio to the residual."""
        return self.threshold / np.maximum(np.abs(u), self.threshold)

    @cached_property
    def log_norm(self) -> float:
        """The logarithm of the mass of the middle and of the tails."""
        k = self.threshold
        return math.log(ROOT_TWO_PI * math.erf(k / math.sqrt(2)) + 2 * math.exp(-k * k / 2) / k)

    @cached_property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale."""
        k = self.threshold
        middle, edge = math.erf(k / math.sqrt(2)) * ROOT_TWO_PI, math.exp(-k * k / 2)
        norm = math.exp(self.log_norm)
        fourth = 3 * middle - 2 * edge * (k**3 + 3 * k)
        tails = 2 * k * k * edge * (k + 2 / k + 2 / k**3)
        return middle / norm, (fourth + tails) / norm - 1.0

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return normal values with exponential tails."""
        from scipy.special import ndtr, ndtri

        k = self.threshold
        tails, all_ = self._masses
        far = random.random(count) < tails / all_
        low, high = ndtr(-k), ndtr(k)
        near = ndtri(low + (high - low) * random.random(count))
        signs = random.choice([-1.0, 1.0], count)
        return np.asarray(np.where(far, signs * (k + random.exponential(1 / k, count)), near))

    def standard_probabilities(self, v: Array) -> Array:
        """Return the probabilities of values up to `v`, in the tails or in the middle."""
        from scipy.special import ndtr

        k = self.threshold
        far, all_ = self._masses
        size = np.abs(v)
        middle = 0.5 * far + ROOT_TWO_PI * (ndtr(k) - ndtr(np.minimum(size, k)))
        tail = np.exp(k * k / 2 - k * np.maximum(size, k)) / k
        below = np.where(size > k, tail, middle) / all_
        return np.where(v < 0, below, 1.0 - below)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval of this level, in the tails or in the middle."""
        from scipy.special import ndtri

        k = self.threshold
        far, all_ = self._masses
        beyond = (1 - level) * all_
        if beyond < far:
            half = k + math.log(far / beyond) / k
        else:
            half = float(ndtri(0.5 + (all_ - beyond) / math.sqrt(2 * math.pi) / 2))
        return half, half

    @property
    def _masses(self) -> tuple[float, float]:
        """The mass of the tails, and the total mass, before normalisation."""
        k = self.threshold
        far = 2 * math.exp(-k * k / 2) / k
        return far, far + math.sqrt(2 * math.pi) * math.erf(k / math.sqrt(2))
