"""One run of the study of Fernandez de Dios et al., and its measures (section 3.3).

A solution is compared with the reference by its parameters (MaxRE) and with the data by its
observables (NRMSE); both determine the column of the tables in which it counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evidence.running.campaign import Task
from evidence.transcription.plan import Configuration, instance_of, registry
from odefit import Problem, library
from odefit.common.arrays import Array
from odefit.discretisation.instance import data_variation
from odefit.library import Reference
from odefit.methods.solvers.guarded_solve import solve_isolated
from odefit.methods.solvers.solver import Limits, penalised_objective

FOUND = 0.1  # largest MaxRE of a solution that counts as the reference
NEAR = 0.5  # largest MaxRE of a solution that counts as near

# NRMSE below which a more distant solution fits as well as the reference
ALTERNATIVE = 1e-4

# Gap between bound and objective, relative to the objective, that proves global optimality
RELATIVE_GAP = 1e-3

# The same gap relative to the data's sum of squares about their means: an optimum of zero, as
# noiseless data have it, has no relative gap
ABSOLUTE_GAP = 1e-6
Place = Literal["found", "near", "alternative", "elsewhere"]


def run(task: Task) -> dict[str, Any]:
    """Make a run; return the solver's answer and the study's measures of it."""
    configuration, seconds = Configuration.of(task["key"]), task["seconds"]
    began = time.perf_counter()
    solver = registry()[configuration.solver]
    instance = instance_of(configuration)
    d, problem = instance.discretisation, instance.discretisation.problem
    absolute = ABSOLUTE_GAP * data_variation(d)
    limits = Limits(seconds, 1, RELATIVE_GAP, absolute)
    # A global solver that overruns or dies still leaves its best point and bound.
    proves = solver.scope == "global"
    a = solve_isolated(solver, instance, limits) if proves else solver.solve(instance, limits)
    taken = time.perf_counter() - began
    max_re = nrmse = cost = None
    unknowns: dict[str, float] = {}
    if a.values is not None and a.unknowns is not None:
        reference = library.reference(configuration.problem)
        max_re = max_relative_error(problem, reference, a.unknowns)
        nrmse = normalised_error(problem, d.predictions(a.values, a.unknowns))
        cost = penalised_objective(instance, a.values, a.unknowns)
        unknowns = dict(zip(problem.keys, map(float, a.unknowns), strict=True))
    meet = cost is not None and certified(cost, a.lower_bound, absolute)
    return {
        "scope": solver.scope,
        "solved": a.solved,
        "success": a.success,
        "certified": bool(a.success and meet) if proves else None,
        "place": place(max_re, nrmse) if a.success else "elsewhere",
        "max_re": max_re,
        "nrmse": nrmse,
        "objective": a.objective,
        "cost": cost,
        "lower_bound": a.lower_bound,
        "gap": None if cost is None else relative_gap(cost, a.lower_bound),
        "violation": a.violation,
        "seconds": a.seconds,
        "build_seconds": max(taken - a.seconds, 0.0),
        "iterations": a.iterations,
        "outcome": a.outcome.value,
        "message": a.message,
        "unknowns": unknowns,
    }


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
    """Return whether bound and best point meet within the gap for a proof."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound):
        return False
    return bool(cost - lower_bound <= max(RELATIVE_GAP * abs(cost), absolute_gap))


def relative_gap(cost: float, lower_bound: float | None) -> float | None:
    """Return the gap of bound and objective relative to the objective; None without a bound."""
    if lower_bound is None or not np.isfinite(cost) or not np.isfinite(lower_bound) or not cost:
        return None
    return float((cost - lower_bound) / abs(cost))
