"""Priors: knowledge of an unknown before its data, as a density on some scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from odefit.common.errors import one_of, shown
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.prior_families import (
    Cauchy,
    Deviance,
    Family,
    Gamma,
    Laplace,
    Normal,
    OfLogarithm,
    Rayleigh,
    Uniform,
)

if TYPE_CHECKING:
    import numpy as np

Distribution = Literal[
    "normal", "laplace", "log-normal", "log-laplace", "uniform", "log-uniform", "cauchy",
    "chi-square", "exponential", "gamma", "rayleigh",
]  # fmt: skip

PriorScale = Literal["linear", "log", "log10"]

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "normal": ("mean", "sd"),
    "laplace": ("location", "scale"),
    "log-normal": ("mean", "sd"),
    "log-laplace": ("location", "scale"),
    "uniform": ("lower", "upper"),
    "log-uniform": ("lower", "upper"),
    "cauchy": ("location", "scale"),
    "chi-square": ("degrees",),
    "exponential": ("scale",),
    "gamma": ("shape", "scale"),
    "rayleigh": ("scale",),
}
"""The names of the parameters of each family."""

POSITIVE = ("sd", "scale", "degrees", "shape")

CENTRAL = 0.954499736103642
"""The probability within two standard deviations of a normal distribution: the central part of a
prior, in which searches start."""


EDGE_ROUNDING = 1e-13
"""Relative tolerance of a bound's logarithm beyond the end of a density's support."""


@dataclass(frozen=True)
class Prior:
    """The knowledge of an unknown before its data: a probability density.

    ``Prior(1.0, 0.2)`` is normal, in natural units: it counts as one more measurement.

    Attributes
    ----------
    mean, sd
        Of a normal prior; of the natural logarithm for ``"log-normal"``.
    distribution
        The family, see below.
    on
        The scale of the density: ``"linear"``, ``"log"`` (natural) or ``"log10"``. A normal prior
        on ``"log10"`` is a normal density of log10 of the value, without the factor that would make
        it a density of the value itself. ``"log-normal"`` on ``"linear"`` contains that factor,
        1/value. The two have their maxima at different values.
    location, scale
        Of ``"laplace"`` (the scale is the mean absolute deviation, sd over the root of two) and
        ``"cauchy"``; for ``"log-laplace"`` of the natural logarithm. ``"exponential"`` (its mean)
        and ``"rayleigh"`` have a scale alone.
    lower, upper
        Of ``"uniform"`` and ``"log-uniform"``, of the value (on its scale) in both.
    degrees
        Degrees of freedom of ``"chi-square"``.
    shape
        Of ``"gamma"``, whose mean is shape times scale.

    Examples
    --------
    >>> prior = Prior(distribution="gamma", shape=2.0, scale=0.5)
    >>> str(prior)
    'gamma (shape 2, scale 0.5)'
    >>> round(prior.log_density(0.5), 6)
    -0.306853
    """

    mean: float | None = None
    sd: float | None = None
    distribution: Distribution = "normal"
    on: PriorScale = "linear"
    location: float | None = None
    scale: float | None = None
    lower: float | None = None
    upper: float | None = None
    degrees: float | None = None
    shape: float | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """The parameters of the density by name."""
        return {name: getattr(self, name) for name in FAMILIES[self.distribution]}

    @property
    def plain(self) -> bool:
        """True if it is normal in natural units, so that it acts like a measurement."""
        return self.distribution == "normal" and self.on == "linear"

    @property
    def gaussian(self) -> bool:
        """True if its residual is a normally distributed function of the unknown."""
        return self.distribution in ("normal", "log-normal")

    @property
    def logarithmic(self) -> bool:
        """True if it concerns orders of magnitude: on a logarithmic scale, or of a logarithm."""
        return self.on != "linear" or self.distribution.startswith("log-")

    @property
    def flat(self) -> bool:
        """True if the density is constant on its support, so that it only bounds."""
        return self.distribution == "uniform"

    def __str__(self) -> str:
        if self.plain:
            return f"{self.mean:.6g} ± {self.sd:.6g}"
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in self.numbers.items())
        scale = "" if self.on == "linear" else f" of {self.on}"
        return f"{self.distribution}{scale} ({numbers})"

    @property
    def support(self) -> tuple[float, float]:
        """The interval outside which the density is zero, in natural units."""
        low, high = self._family.support
        return self._natural(low), self._natural(high)

    def log_density(self, value: float) -> float:
        """Return the logarithm of the normalised density on its scale; -inf outside its support.

        The value is that of the unknown in natural units.
        """
        z = self._on_scale(value)
        if z is None:
            return -math.inf
        try:
            return self._family.log_density(z)
        except (ValueError, OverflowError):  # the logarithm of zero at an end of the support
            return -math.inf

    def probability(self, lower: float, upper: float) -> float:
        """Return the probability between two values in natural units, which may be infinite."""
        low, high = self._edge(lower), self._edge(upper)
        family = self._family
        start, end = family.support
        low, high = max(low, start), min(high, end)
        if low >= high:
            return 0.0
        left = family.below(low) if math.isfinite(low) else 0.0
        right = family.above(high) if math.isfinite(high) else 0.0
        if left > 0.5:  # a difference of two small numbers keeps the digits
            return family.above(low) - right
        if right > 0.5:
            return family.below(high) - left
        return 1.0 - left - right

    def deviance(self, value: float) -> Deviance | None:
        """Return the deviance residual and its derivatives by the unknown; None if outside.

        The value is that of the unknown in natural units. A flat prior has zero everywhere.
        """
        z = self._on_scale(value)
        if z is None:
            return None
        try:
            residual = self._family.deviance(z)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        if residual is None:
            return Deviance(0.0, 0.0, 0.0)
        if not (math.isfinite(residual.residual) and math.isfinite(residual.slope)):
            return None
        if self.on == "linear":
            return residual
        slope = 1 / value if self.on == "log" else 1 / (value * math.log(10))
        return replace(
            residual, slope=residual.slope * slope, information=residual.information * slope * slope
        )

    def quantile(self, probability: float) -> float:
        """Return the quantile of the unknown in natural units."""
        return self._natural(self._family.quantile(probability))

    @property
    def central(self) -> tuple[float, float]:
        """The central interval: two standard deviations on either side for a normal prior."""
        return self.quantile(0.5 - CENTRAL / 2), self.quantile(0.5 + CENTRAL / 2)

    def drawn(self, value: float, random: np.random.Generator) -> Prior:
        """Return the prior that an independent repetition of its source might give.

        A location is the outcome of an earlier experiment, so that its new value scatters about the
        true value as the density describes. Families without a location (such as uniform and gamma)
        are not outcomes and stay unchanged. The true value is in natural units.
        """
        z = self._on_scale(value)
        if z is None:
            return self
        if self.distribution.startswith("log-"):
            if z <= 0:
                return self
            z = math.log(z)
        if self.gaussian and self.sd is not None:
            return replace(self, mean=float(z + self.sd * random.standard_normal()))
        if self.location is None or self.scale is None:
            return self
        if self.distribution == "cauchy":
            scatter = float(random.standard_cauchy())
        else:
            scatter = float(random.laplace())
        return replace(self, location=z + self.scale * scatter)

    def normal(self) -> Prior | None:
        """Return a normal prior of about the same place and width; None for a flat prior.

        Families of positive numbers give one on the logarithmic scale.
        """
        if self.flat:
            return None
        if self.gaussian:
            return self
        low, high = self.central
        if low > 0 and self.support[0] >= 0:
            middle = 0.5 * (math.log(low) + math.log(high))
            return Prior(middle, 0.25 * math.log(high / low), on="log")
        return Prior(0.5 * (low + high), 0.25 * (high - low))

    @cached_property
    def _family(self) -> Family:
        return _MAKERS[self.distribution](*self.numbers.values())

    def _on_scale(self, value: float) -> float | None:
        """Return the value on the prior's scale, or None outside its support."""
        if self.on != "linear" and not value > 0:
            return None
        z = self._edge(value)
        low, high = self._family.support
        if low <= z <= high:
            return z
        nearest = min(max(z, low), high)
        return nearest if math.isclose(z, nearest, rel_tol=EDGE_ROUNDING) else None

    def _natural(self, z: float) -> float:
        """Return a number on the prior's scale in natural units."""
        if self.on == "linear":
            return z
        try:
            return float((math.e if self.on == "log" else 10.0) ** z)
        except OverflowError:
            return math.inf

    def _edge(self, value: float) -> float:
        """Return a natural value on the prior's scale, also at an edge of the support."""
        if self.on == "linear":
            return value
        if value <= 0:
            return -math.inf
        return math.log(value) if self.on == "log" else math.log10(value)


_MAKERS: Mapping[str, Callable[..., Family]] = {
    "normal": Normal,
    "laplace": Laplace,
    "log-normal": lambda mean, sd: OfLogarithm(Normal(mean, sd)),
    "log-laplace": lambda location, scale: OfLogarithm(Laplace(location, scale)),
    "uniform": Uniform,
    "log-uniform": lambda low, high: OfLogarithm(
        Uniform(math.log(low), math.log(high)), (low, high)
    ),
    "cauchy": Cauchy,
    "chi-square": lambda degrees: Gamma(0.5 * degrees, 2.0),
    "exponential": lambda scale: Gamma(1.0, scale),
    "gamma": Gamma,
    "rayleigh": Rayleigh,
}


def as_prior(value: Any, place: str, issues: Issues) -> Prior | None:
    """Return `value`, a :class:`Prior` or its fields, or None with the reason noted."""
    if isinstance(value, Prior):
        value = {
            f.name: getattr(value, f.name)
            for f in fields(Prior)
            if getattr(value, f.name) is not None
        }
    if not isinstance(value, Mapping):
        issues.error(
            place,
            f'expected {{ mean = ..., sd = ... }} or {{ distribution = "...", ... }}, '
            f"got {shown(value)}",
        )
        return None
    raw = dict(value)
    distribution, on = raw.pop("distribution", "normal"), raw.pop("on", "linear")
    if distribution not in get_args(Distribution):
        issues.error(
            f"{place}.distribution",
            f"got {shown(distribution)}{one_of(str(distribution), FAMILIES)}",
        )
        return None
    if on not in get_args(PriorScale):
        issues.error(f"{place}.on", f'expected "linear", "log" or "log10", got {shown(on)}')
        return None
    names = FAMILIES[distribution]
    if set(raw) != set(names):
        form = ", ".join(f"{name} = ..." for name in names)
        if "distribution" in value:
            form = f'distribution = "{distribution}", {form}'
        keys = f" with {', '.join(map(str, raw))}" if raw else ""
        issues.error(place, f"expected {{ {form} }}, got {shown(value)}{keys}")
        return None
    numbers = {name: finite_number(raw[name], f"{place}.{name}", issues) for name in names}
    prior = {name: number for name, number in numbers.items() if number is not None}
    wrong = len(prior) < len(names)
    for name, number in prior.items():
        if name in POSITIVE and number <= 0:
            issues.error(f"{place}.{name}", f"must be positive, got {number:g}")
            wrong = True
    if "lower" in prior and "upper" in prior and not prior["lower"] < prior["upper"]:
        issues.error(place, f"lower = {prior['lower']:g} must be below upper = {prior['upper']:g}")
        wrong = True
    if distribution == "log-uniform" and prior.get("lower", 1.0) <= 0:
        issues.error(f"{place}.lower", f"must be positive, got {prior['lower']:g}")
        wrong = True
    return None if wrong else Prior(distribution=cast(Distribution, distribution), on=on, **prior)


def prior_table(prior: Prior) -> dict[str, Any]:
    """Return a prior in the notation of problem files."""
    table: dict[str, Any] = {}
    if prior.distribution != "normal":
        table["distribution"] = prior.distribution
    table.update(prior.numbers)
    if prior.on != "linear":
        table["on"] = prior.on
    return table
