"""The distributions of measurement noise by name; a new one is a module and a row here.

All parts that handle noise read both tables: problem files, likelihoods, random values, intervals,
reports and PEtab.
"""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.noise_distributions.huber import Huber
from odefit.problem.noise_distributions.laplace import Laplace
from odefit.problem.noise_distributions.negative_binomial import NegativeBinomial
from odefit.problem.noise_distributions.normal import Normal
from odefit.problem.noise_distributions.poisson import Poisson
from odefit.problem.noise_distributions.student import Student

Transform = Literal["log", "log10"]


class Row(NamedTuple):
    """A distribution, and the scale of its measurements if that is part of it."""

    distribution: type[NoiseDistribution]
    transform: Transform | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The distribution's parameters among the fields of a noise model, except the spread."""
        return tuple(field.name for field in fields(self.distribution))


Distribution = Literal["normal", "log-normal", "laplace", "poisson", "negative-binomial"]

DISTRIBUTIONS: dict[Distribution, Row] = {
    "normal": Row(Normal),
    "log-normal": Row(Normal, "log"),
    "laplace": Row(Laplace),
    "poisson": Row(Poisson),
    "negative-binomial": Row(NegativeBinomial),
}
"""The choices for ``distribution``."""

Loss = Literal["huber", "student"]

LOSSES: dict[Loss, Row] = {"huber": Row(Huber), "student": Row(Student)}
"""The choices for ``loss``: distributions whose tails allow for outliers."""


PETAB: dict[str, Distribution] = {
    row.distribution.petab: name
    for name, row in DISTRIBUTIONS.items()
    if row.distribution.petab is not None and row.transform is None
}
"""Distributions by their names in PEtab."""


@cache
def distribution_of(
    name: Distribution | None, loss: Loss | None, parameters: tuple[tuple[str, float], ...]
) -> NoiseDistribution:
    """Return the distribution of a noise model; a loss replaces the normal distribution.

    `parameters` are the given fields of the noise model, passed to the class.
    """
    row = DISTRIBUTIONS[name or "normal"] if loss is None else LOSSES[loss]
    return row.distribution(**{name: v for name, v in parameters if name in row.parameters})


def log_of_base(transform: Transform) -> float:
    """Return the natural logarithm of the base of the logarithm of a transform."""
    return 1.0 if transform == "log" else math.log(10.0)


def transformed(values: Array, transform: Transform | None) -> Array:
    """Return values on the scale of a transform."""
    if transform is None:
        return values
    return np.asarray(np.log(values) if transform == "log" else np.log10(values))


def displaced(values: Array, differences: Array, transform: Transform | None) -> Array:
    """Return natural values plus differences on the scale of a transform."""
    if transform is None:
        return np.asarray(values + differences)
    base = math.e if transform == "log" else 10.0
    return np.asarray(values * base**differences)
