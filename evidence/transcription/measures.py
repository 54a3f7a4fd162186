"""The measures of a run of the study of Fernandez de Dios et al. (section 3.3).

A solution is compared with the reference by its parameters (MaxRE) and with the data by its
observables (NRMSE); both determine the column of the tables in which it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from odefit import Problem
from odefit.common.arrays import Array
from odefit.library import Reference

FOUND = 0.1  # largest MaxRE of a solution that counts as the reference
NEAR = 0.5  # largest MaxRE of a solution that counts as near

# NRMSE below which a more distant solution fits as well as the reference
ALTERNATIVE = 1e-4

# Gap between bound and objective, relative to the objective, that proves global optimality
RELATIVE_GAP = 1e-3

# The same gap relative to the data's sum of squares about their means: an optimum of zero, as
# noiseless data have it, has no relative gap
ABSOLUTE_GAP = 1e-6
DIGITS = 3  # digits of proportions, as in the paper
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
    squares = 0.0
    for condition, predicted in zip(problem.conditions, predictions, strict=True):
        for name, series in condition.series.items():
            squares += float(np.sum((predicted[name][series.rows] - series.values) ** 2))
    return error_of_squares(problem, squares)


def error_of_squares(problem: Problem, squares: float) -> float:
    """Return NRMSE where the sum of squared residuals is `squares`."""
    y = np.concatenate([s.values for c in problem.conditions for s in c.series.values()])
    return float(np.sqrt(squares / len(y)) / (y.max() - y.min()))


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
    """Return whether bound and best point meet within the gap for a proof."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound):
        return False
    return bool(cost - lower_bound <= max(RELATIVE_GAP * abs(cost), absolute_gap))


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """Return the gap of bound and objective relative to the objective; None without a bound."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound) or not cost:
        return None
    return float((cost - lower_bound) / abs(cost))


def proportions(part: pd.DataFrame) -> dict[str, float | None]:
    """Return the columns of section 4, over all runs of a group.

    CERTIFIED, which the paper does not have: of the runs of global solvers, those whose bound
    and best point met; None where there are no such runs.
    """
    found = part["place"] == "found"
    seconds = part["seconds"][found]
    proving = part["certified"][part["scope"] == "global"]
    return {
        "runs": len(part),
        "SOLVED": round(float(part["solved"].mean()), DIGITS),
        "FOUND": round(float(found.mean()), DIGITS),
        "NEAR": round(float((part["place"] == "near").mean()), DIGITS),
        "ALTERN": round(float((part["place"] == "alternative").mean()), DIGITS),
        "TIME": round(float(seconds.min()), DIGITS) if len(seconds) else None,
        "SUCCESS": round(float(part["success"].mean()), DIGITS),
        "CERTIFIED": round(float(proving.mean()), DIGITS) if len(proving) else None,
    }
