"""Several solutions that fit: the deviance, weight and intervals of each.

The weights are shares of the posterior probability by Laplace's approximation (D. J. C. MacKay,
Information Theory, Inference, and Learning Algorithms, 2003, chapter 27): the density at a solution
times the volume of its hill, within the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.assessment.profiles.linear_checks import checked
from odefit.common.arrays import Array, BoolArray
from odefit.methods.local.scaling import Scaling
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap


@dataclass(frozen=True, eq=False)
class FittingSolution:
    """A solution that fits: its deviance from the best, its weight, and its intervals (n, 2)."""

    deviance: float
    weight: float
    intervals: Array


def fitting_solutions(
    forward: ForwardMap,
    best: tuple[Array, Evaluation, Uncertainty],
    others: Sequence[Array],
    adapted: Callable[[Array, Evaluation, Uncertainty], Uncertainty],
) -> list[FittingSolution | None]:
    """Return the deviances, weights and intervals of the best solution and of others, in order.

    `adapted` returns the uncertainty at a solution in the form that the user requests. Solutions
    that cannot be evaluated give None.
    """
    vector, evaluation, uncertainty = best
    deviance = Deviance.of(forward, vector, evaluation)
    evaluations = [evaluation, *map(forward.evaluate, others)]
    solutions: list[FittingSolution | None] = []
    logarithms = []
    for at, x in zip(evaluations, [vector, *others], strict=True):
        if not isinstance(at, Evaluation):
            solutions.append(None)
            continue
        at_solution = uncertainty
        if x is not vector:
            at_solution = checked(
                forward, x, at, assess_uncertainty(forward, x, at, uncertainty.level)
            )
            at_solution = adapted(x, at, at_solution)
        rise = max(deviance.at(at.cost), 0.0)
        intervals = x[:, None] + (at_solution.intervals - x[:, None]) * remaining(
            deviance, rise, uncertainty.level
        )
        if x is not vector:
            inside = _by_profile_around(uncertainty, x)
            intervals[inside] = uncertainty.intervals[inside]
        logarithms.append(_log_mass(forward, x, at, deviance))
        solutions.append(FittingSolution(rise, math.nan, intervals))
    masses = np.exp(np.array(logarithms) - np.max(logarithms))
    weights = iter((masses / masses.sum()).tolist())
    return [f and FittingSolution(f.deviance, next(weights), f.intervals) for f in solutions]


def _by_profile_around(uncertainty: Uncertainty, vector: Array) -> BoolArray:
    """Return where the best solution's interval by profile holds another solution, shape (n,).

    At a fold the profile leads from one mirror solution through the other, so that its interval is
    that of both.
    """
    by_profile = np.array(
        [uncertainty.trouble.get(key) is Trouble.BY_PROFILE for key in uncertainty.keys]
    )
    low, high = uncertainty.intervals.T
    return np.asarray(by_profile & (low <= vector) & (vector <= high))


def remaining(deviance: Deviance, rise: float, level: float) -> float:
    """Return the fraction of a half-width left at a solution of deviance `rise`.

    The interval contains the values whose deviance from the best solution is within the limit.
    """
    limit = deviance.limit(level)
    if not (limit > 0 and rise < limit):
        return 0.0 if rise >= limit else 1.0
    whole = deviance.root(limit)
    return math.sqrt(max(whole**2 - deviance.root(rise) ** 2, 0.0)) / whole


def _log_mass(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, deviance: Deviance
) -> float:
    """Return the logarithm of density times volume, in the coordinates of the unknowns.

    In directions that the data do not determine, a normal density as wide as the bounds is assumed.
    """
    scaling = Scaling.of(forward.problem)
    with np.errstate(all="ignore"):
        factor = scaling.derivative(vector)
        widths = scaling.upper - scaling.lower
        sizes = np.abs(sizes_at(forward.problem, vector) / factor)
    widths = np.where(np.isfinite(widths) & (widths > 0), widths, np.where(sizes > 0, sizes, 1.0))
    scaled = evaluation.information * factor * widths / math.sqrt(deviance.variance or 1.0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    rise = deviance.at(evaluation.cost)
    return -0.5 * rise - 0.5 * float(np.sum(np.log1p(singular**2)))
