"""The measures of one answer in the study of Fernandez de Dios et al. (section 3.3).

A solution is compared with the reference by its parameters (MaxRE) and with the data by its
observables (NRMSE); from both follows which of the tables' columns it counts in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from odefit.common.arrays import Array
    from odefit.library import Reference
    from odefit.problem.problem import Problem

FOUND = 0.1  # largest MaxRE of a solution that counts as the reference
NEAR = 0.5  # largest MaxRE of a solution that counts as near

# NRMSE below which a solution that is farther away fits as well as the reference
ALTERNATIVE = 1e-4

# Gap between bound and objective, relative to the objective, that proves global optimality
RELATIVE_GAP = 1e-3

# The same gap relative to the data's sum of squares about their means: an optimum of zero, as
# noiseless data have it, has no relative gap
ABSOLUTE_GAP = 1e-6
Place = Literal["found", "near", "alternative", "elsewhere"]


def max_relative_error(problem: Problem, reference: Reference, unknowns: Array) -> float:
    """Return MaxRE, the largest relative error of a parameter.

    The paper's formula runs over the n_p parameters. Unknown initial values, which its Table 1
    lists beside n_p in parentheses, do not count.
    """
    values = dict(zip(problem.keys, np.asarray(unknowns, dtype=float), strict=True))
    return max(
        abs((float(values[key]) - truth) / truth)
        for key, truth in reference.parameters.items()
        if key in values
    )


def normalised_error(problem: Problem, predictions: Sequence[Mapping[str, Array]]) -> float:
    """Return NRMSE, the root mean square of the residuals over the range of all data."""
    residuals, data = [], []
    for condition, predicted in zip(problem.conditions, predictions, strict=True):
        for name, series in condition.series.items():
            residuals.append(predicted[name][series.rows] - series.values)
            data.append(series.values)
    r, y = np.concatenate(residuals), np.concatenate(data)
    return float(np.sqrt(np.mean(r**2)) / (y.max() - y.min()))


def place(max_re: float | None, nrmse: float | None) -> Place:
    """Return the column in which a feasible point counts: FOUND, NEAR, ALTERN or none."""
    if max_re is None or not max_re < np.inf:
        return "elsewhere"
    if max_re <= FOUND:
        return "found"
    if max_re <= NEAR:
        return "near"
    return "alternative" if nrmse is not None and nrmse < ALTERNATIVE else "elsewhere"


def certified(cost: float, lower_bound: float | None, absolute_gap: float) -> bool:
    """Whether bound and best point meet: no feasible point is better by more than the gap."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound):
        return False
    return bool(cost - lower_bound <= max(RELATIVE_GAP * abs(cost), absolute_gap))


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """Return the gap of bound and objective relative to the objective; None where there is none."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound) or not cost:
        return None
    return float((cost - lower_bound) / abs(cost))
