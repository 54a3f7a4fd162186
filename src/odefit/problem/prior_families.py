"""Densities of priors: their logarithm, probabilities, quantiles, and deviance residuals.

Every family is a density p of one number z. A search for the largest posterior density needs -log p
as one more square, so that each family has a *deviance residual* r: half its square is log p(mode)
- log p(z), and r dr/dz is the derivative of -log p exactly. If the mode is an end of the support,
-log p has no smooth root there. The half square then exceeds it by one half (`excess`), which costs
leave out.

N. L. Johnson, S. Kotz and N. Balakrishnan, Continuous Univariate Distributions, 2nd ed., 1994 and
1995, describe all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

KINK_ROUNDING = 1.4e-4
"""Distance from its location, in scales, within which the kink of a Laplace density is rounded off:
a search finds no minimum at a kink. No log-density changes by more than that."""

DENSITY_FLOOR = 1e-12
"""A density unbounded at zero counts, in a search, as constant below this fraction of its scale;
otherwise there would be no best fit."""

EXCESS = 0.5
"""The excess of half a squared residual over the deviance if the mode is an end."""

ROOT_TWO_PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Deviance:
    """The deviance residual of a prior at one value."""

    # the residual r and dr/dz
    residual: float
    slope: float
    # The information on z, for standard errors: 1/sd^2 for a normal prior, the Fisher information
    # of the location for other families that have one, else the second derivative of -log p if
    # positive.
    information: float
    excess: float = 0.0  # the excess of r^2/2 over log p(mode) - log p(z)

    @property
    def half(self) -> float:
        """The logarithm of p(mode) / p(z)."""
        return 0.5 * self.residual**2 - self.excess


class Family(Protocol):
    """A density of one number."""

    @property
    def support(self) -> tuple[float, float]:
        """The interval outside which the density is zero."""
        ...

    def log_density(self, z: float) -> float:
        """Return the logarithm of the normalised density within the support."""
        ...

    def below(self, z: float) -> float:
        """Return the probability of less than z."""
        ...

    def above(self, z: float) -> float:
        """Return the probability of more than z."""
        ...

    def quantile(self, probability: float) -> float:
        """Return the value whose probability of being exceeded is one minus this probability."""
        ...

    def deviance(self, z: float) -> Deviance | None:
        """Return the deviance residual within the support; None where the density is constant."""
        ...


@dataclass(frozen=True)
class _Located:
    """A symmetric density on the whole line, with a location and a scale."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    location: float
    scale: float

    def _standard(self, z: float) -> float:
        """Return the distance from the location in units of the scale."""
        return (z - self.location) / self.scale

    def _tail(self, distance: float) -> float:
        """Return the probability beyond a distance from the location on one side."""
        raise NotImplementedError

    def below(self, z: float) -> float:
        return self._tail(self.location - z)

    def above(self, z: float) -> float:
        return self._tail(z - self.location)


class Normal(_Located):
    """The normal distribution; the location is its mean, the scale its standard deviation."""

    def log_density(self, z: float) -> float:
        return -0.5 * self._standard(z) ** 2 - math.log(self.scale * ROOT_TWO_PI)

    def _tail(self, distance: float) -> float:
        return 0.5 * math.erfc(distance / self.scale / math.sqrt(2))

    def quantile(self, probability: float) -> float:
        from scipy.special import ndtri

        return self.location + self.scale * float(ndtri(probability))

    def deviance(self, z: float) -> Deviance:
        return Deviance(self._standard(z), 1.0 / self.scale, 1.0 / self.scale**2)

    def tilted(self, y: float) -> Deviance:
        """Return the deviance residual of the density times exp(-y)."""
        return Deviance(self._standard(y) + self.scale, 1.0 / self.scale, 1.0 / self.scale**2)


class Laplace(_Located):
    """The Laplace distribution, with the mean absolute deviation as its scale."""

    def log_density(self, z: float) -> float:
        return -abs(z - self.location) / self.scale - math.log(2 * self.scale)

    def _tail(self, distance: float) -> float:
        u = distance / self.scale
        return 0.5 * math.exp(-u) if u > 0 else 1.0 - 0.5 * math.exp(u)

    def quantile(self, probability: float) -> float:
        if probability < 0.5:
            return self.location + self.scale * math.log(2 * probability)
        return self.location - self.scale * math.log(2 * (1 - probability))

    def deviance(self, z: float) -> Deviance:
        u = self._standard(z)
        size = math.hypot(u, KINK_ROUNDING)
        factor = math.sqrt(2 / (size + KINK_ROUNDING))
        return Deviance(u * factor, 1 / (size * factor * self.scale), 1 / self.scale**2)

    def tilted(self, y: float) -> Deviance:
        """Return the deviance residual of the density times exp(-y).

        With v = y - location, the rounded kink s = root(v^2 + e^2) and the root c = root(1 - b^2)
        of a scale b < 1, -log p is v + s/b. It is least at v = -e b/c. Its distance from there is
        (v c/b + e)^2 / (s/b + e c/b - v), without cancellation.
        """
        b, e = self.scale, KINK_ROUNDING
        v = y - self.location
        s = math.hypot(v, e)
        if b >= 1:  # the density grows without limit towards zero
            floor = math.log(DENSITY_FLOOR)
            if v <= floor:
                return _one_sided(0.0, 0.0, b**-2)
            least = floor + math.hypot(floor, e) / b
            return _one_sided(v + s / b - least, 1 + v / (b * s), b**-2)
        c = math.sqrt((1 - b) * (1 + b))
        root = math.sqrt(2 / (s / b + e * c / b - v))
        left, right = (b * e - v * c, b * s - v), (b * s + v, b * e + v * c)  # equal ratios
        above, below = left if v < 0 else right
        return Deviance((v * c / b + e) * root, above / below / s / root, b**-2)


class Cauchy(_Located):
    """The Cauchy distribution."""

    def log_density(self, z: float) -> float:
        u = self._standard(z)
        return -math.log1p(u * u) - math.log(math.pi * self.scale)

    def _tail(self, distance: float) -> float:
        return math.atan2(self.scale, distance) / math.pi

    def quantile(self, probability: float) -> float:
        return self.location - self.scale / math.tan(math.pi * probability)

    def deviance(self, z: float) -> Deviance:
        u = self._standard(z)
        x = u * u
        factor = math.sqrt(2 * (math.log1p(x) / x if x > 0 else 1.0))
        return Deviance(u * factor, 2 / ((1 + x) * factor * self.scale), 0.5 / self.scale**2)


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution on an interval."""

    lower: float
    upper: float

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, self.upper

    def log_density(self, z: float) -> float:
        return -math.log(self.upper - self.lower)

    def below(self, z: float) -> float:
        return min(max((z - self.lower) / (self.upper - self.lower), 0.0), 1.0)

    def above(self, z: float) -> float:
        return min(max((self.upper - z) / (self.upper - self.lower), 0.0), 1.0)

    def quantile(self, probability: float) -> float:
        return self.lower + probability * (self.upper - self.lower)

    def deviance(self, z: float) -> None:
        return None

    def tilted(self, y: float) -> Deviance:
        """Return the deviance residual of the density times exp(-y)."""
        return _one_sided(y - self.lower, 1.0, 0.0)


@dataclass(frozen=True)
class OfLogarithm:
    """The distribution of a positive number whose natural logarithm has a given distribution."""

    inner: Normal | Laplace | Uniform
    support: tuple[float, float] = (0.0, math.inf)

    def log_density(self, z: float) -> float:
        y = math.log(z)
        return self.inner.log_density(y) - y

    def below(self, z: float) -> float:
        return self.inner.below(math.log(z)) if z > 0 else 0.0

    def above(self, z: float) -> float:
        return self.inner.above(math.log(z)) if z > 0 else 1.0

    def quantile(self, probability: float) -> float:
        return math.exp(self.inner.quantile(probability))

    def deviance(self, z: float) -> Deviance:
        tilted = self.inner.tilted(math.log(z))
        return Deviance(
            tilted.residual, tilted.slope / z, tilted.information / z / z, tilted.excess
        )


@dataclass(frozen=True)
class Gamma:
    """The gamma distribution; exponential with shape 1, chi-square with scale 2."""

    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    shape: float
    scale: float

    def log_density(self, z: float) -> float:
        k, t = self.shape, z / self.scale
        logarithm = (k - 1) * math.log(t) if k != 1 else 0.0
        return logarithm - t - math.lgamma(k) - math.log(self.scale)

    def below(self, z: float) -> float:
        from scipy.special import gammainc

        return float(gammainc(self.shape, max(z, 0.0) / self.scale))

    def above(self, z: float) -> float:
        from scipy.special import gammaincc

        return float(gammaincc(self.shape, max(z, 0.0) / self.scale))

    def quantile(self, probability: float) -> float:
        from scipy.special import gammaincinv

        return self.scale * float(gammaincinv(self.shape, probability))

    def deviance(self, z: float) -> Deviance:
        k = self.shape
        if k > 1:
            mode = (k - 1) * self.scale
            root, slope = _root_of_logarithm(z / mode)
            size = math.sqrt(k - 1)
            return Deviance(size * root, size * slope / mode, (k - 1) / z / z)
        t, floor = z / self.scale, DENSITY_FLOOR
        if k == 1:
            return _one_sided(t, 1 / self.scale, 0.0)
        if t <= floor:
            return _one_sided(0.0, 0.0, 0.0)
        half = (1 - k) * math.log(t / floor) + t - floor
        return _one_sided(half, ((1 - k) / t + 1) / self.scale, 0.0)


@dataclass(frozen=True)
class Rayleigh:
    """The Rayleigh distribution."""

    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    scale: float

    def log_density(self, z: float) -> float:
        u = z / self.scale
        return math.log(u) - 0.5 * u * u - math.log(self.scale)

    def below(self, z: float) -> float:
        return -math.expm1(-0.5 * (max(z, 0.0) / self.scale) ** 2)

    def above(self, z: float) -> float:
        return math.exp(-0.5 * (max(z, 0.0) / self.scale) ** 2)

    def quantile(self, probability: float) -> float:
        return self.scale * math.sqrt(-2 * math.log1p(-probability))

    def deviance(self, z: float) -> Deviance:
        u = z / self.scale
        root, slope = _root_of_logarithm(u * u)
        half = math.sqrt(0.5)
        return Deviance(half * root, half * slope * 2 * u / self.scale, (1 + u**-2) / self.scale**2)


def _one_sided(half: float, slope: float, information: float) -> Deviance:
    """Return a deviance residual from half its square, zero at an end, and that one's slope."""
    root = math.sqrt(2 * (half + EXCESS))
    return Deviance(root, slope / root, information, EXCESS)


def _root_of_logarithm(t: float) -> tuple[float, float]:
    """Return the root r of 2 (t - 1 - log t), with the sign of t - 1, and its derivative."""
    d = t - 1
    if abs(d) < 0.05:
        share = sum(2 * (-d) ** j / (j + 2) for j in range(14))
    else:
        share = 2 * (d - math.log(t)) / d**2
    root = math.sqrt(share)
    return d * root, 1 / (t * root)
