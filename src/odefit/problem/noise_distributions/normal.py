"""The normal distribution, also censored beyond limits.

Censored values: S. L. Beal, Ways to fit a PK model with some data below the quantification limit,
2001, method M3. A value below the limit L contributes the probability of being there, log Phi((L -
f) / sd), with prediction f and the normal distribution function Phi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.noise_distributions.distribution import (
    ROOT_TWO_PI,
    NoiseDistribution,
    Terms,
)


@dataclass(frozen=True)
class Normal(NoiseDistribution):
    """The normal distribution, on the scale of the transform."""

    normal: ClassVar[bool] = True
    petab: ClassVar[str | None] = "normal"

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return u and one."""
        return u, np.ones_like(u)

    @property
    def log_norm(self) -> float:
        """The logarithm of the root of 2 pi."""
        return math.log(ROOT_TWO_PI)

    @property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale."""
        return 1.0, 2.0

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return normal values."""
        return random.standard_normal(count)


def censored_terms(u: Array, scale: Array, censored: IntArray) -> Terms:
    """Return the terms of values below (1) or above (-1) their limits."""
    from scipy.special import log_ndtr

    side = np.where(censored == 0, 1, censored)
    z = -side * u
    size = np.sqrt(-2 * log_ndtr(z))
    hazard, excess = _hazard(z)
    slope = np.where(size > 0, hazard / np.where(size > 0, size, 1.0), 0.0) / scale
    step = np.sqrt(hazard * np.maximum(excess, 0.0)) * np.abs(z) / scale
    zeros = np.zeros(len(u))
    return Terms(
        side * size,
        slope,
        side * size,
        zeros,
        zeros - math.log(ROOT_TWO_PI),
        np.where(step > 0, hazard * z / scale, 0.0),
        step,
    )


def censored_information(predicted: Array, scale: Array, limits: Array) -> Array:
    """Return the information of normal values censored beyond their limits, shape (n, 3).

    The scores are those of the measured value between the limits, and of the probabilities beyond
    them. Only the limits matter, not whether a value was censored.
    """
    with np.errstate(all="ignore"):
        low, high = (limits - predicted) / scale
    # Above zero use the mirror image, since differences of numbers near one lose digits.
    mirrored = low > 0
    left, right = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    ff, fs, ss = (
        upper - lower
        for upper, lower in zip(_normal_moments(right), _normal_moments(left), strict=True)
    )
    fs = np.where(mirrored, -fs, fs)
    for z in (low, -high):  # the same to the left and, mirrored, to the right
        at = np.where(np.isfinite(z), z, 0.0)
        part = np.where(np.isfinite(z), _hazard(at)[0] * _density(at), 0.0)
        side = 1.0 if z is low else -1.0
        ff, fs, ss = ff + part, fs + side * at * part, ss + at * at * part
    b = np.sqrt(np.maximum(ff, 0.0))
    c = np.where(b > 0, fs / np.where(b > 0, b, 1.0), 0.0)
    c = np.clip(c, -np.sqrt(np.maximum(ss, 0.0)), np.sqrt(np.maximum(ss, 0.0)))
    d = np.sqrt(np.maximum(ss - c * c, 0.0))
    return np.column_stack([b, c, d]) / np.reshape(scale * np.ones(len(b)), (-1, 1))


def censored_expectations(predicted: Array, scale: Array, limits: Array) -> Array:
    """Return the expected deviance residuals of values that may be censored, shape (n,)."""
    from scipy.special import log_ndtr, ndtr

    expected = np.zeros(len(predicted))
    for side, ends in zip((1.0, -1.0), limits, strict=True):
        z = side * (ends - predicted) / scale
        finite = np.isfinite(z)
        at = np.where(finite, z, 0.0)
        # The censored part beyond the limit, and the measured part up to it:
        beyond = ndtr(at) * np.sqrt(-2 * log_ndtr(at)) - _density(at)
        expected += np.where(finite, side * beyond, 0.0)
    return expected


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / ROOT_TWO_PI)


def _hazard(z: Array) -> tuple[Array, Array]:
    """Return the normal density over the distribution function at finite z, and that plus z.

    Far below zero it uses -z - 1/z + 2/z^3, since the sum would lose its digits.
    """
    from scipy.special import log_ndtr

    far = z < -50.0
    away, near = np.where(far, z, -50.0), np.where(far, 0.0, z)
    excess = -1 / away + 2 / away**3
    hazard = np.exp(-0.5 * near * near - log_ndtr(near)) / ROOT_TWO_PI
    return np.where(far, excess - z, hazard), np.where(far, excess, hazard + near)


def _normal_moments(z: Array) -> tuple[Array, Array, Array]:
    """Integrate u^2, u (u^2 - 1) and (u^2 - 1)^2 with the normal density up to z."""
    from scipy.special import ndtr

    finite = np.where(np.isfinite(z), z, 0.0)
    density, below = np.where(np.isfinite(z), _density(finite), 0.0), ndtr(z)
    second = below - finite * density
    third = -(finite**2 + 2) * density
    fourth = 3 * below - (finite**3 + 3 * finite) * density
    return second, third + density, fourth - 2 * second + below
