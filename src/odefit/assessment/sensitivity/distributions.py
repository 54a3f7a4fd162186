"""The distributions over which a global sensitivity analysis varies the unknowns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean, shown
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import Range, ranges


class Distribution(Protocol):
    """The distribution of one unknown."""

    def at(self, u: Array) -> Array:
        """Return the quantiles at probabilities `u`, shape (k,)."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """The distribution of a sample of one unknown, with straight lines between its values."""

    draws: Array  # sorted, shape (k,)

    def at(self, u: Array) -> Array:
        """Return the quantiles at probabilities `u`, shape (k,)."""
        return np.asarray(np.quantile(self.draws, u))


def over_ranges(
    problem: Problem, stated: Mapping[str, Sequence[float]] | None = None
) -> list[Distribution]:
    """Return uniform distributions over the ranges of the unknowns.

    A range is the one given by the user, else the bounds, else the range of start values. It is
    uniform in the logarithm if the unknown has ``scale = "log10"`` or the range spans more than two
    decades.

    Raises InputError if a name is unknown, or if a range is not two increasing finite numbers.
    """
    stated = dict(stated or {})
    for name in stated:
        if name not in problem.keys:
            hint = did_you_mean(name, problem.keys)
            raise InputError(f"ranges: there is no unknown '{name}'{hint}")
    distributions: list[Distribution] = []
    for unknown, usual in zip(problem.unknowns, ranges(problem), strict=True):
        parameter = unknown.parameter
        bounds = (parameter.lower, parameter.upper)
        given_range = bounds if all(map(math.isfinite, bounds)) else (usual.low, usual.high)
        low, high = _pair(unknown.key, stated.get(unknown.key, given_range))
        spans = low > 0 and high / low > 100.0
        logarithmic = low > 0 and (parameter.scale == "log10" or spans)
        distributions.append(Range(low, high, logarithmic))
    return distributions


def over_draws(draws: Array) -> list[Distribution]:
    """Return the marginal distributions of a sample of the unknowns, shape (k, n)."""
    return [Marginal(np.sort(column)) for column in draws.T]


def _pair(key: str, value: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InputError(
            f"ranges: {key}: expected two numbers such as (0.1, 2), got {shown(value)}"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(
            f"ranges: {key}: expected two increasing finite numbers, got {low:g}, {high:g}"
        )
    return low, high
