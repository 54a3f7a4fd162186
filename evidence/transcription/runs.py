"""One run of the study of Fernandez de Dios et al., and its measures."""

from __future__ import annotations

import time
from typing import Any

from evidence.running.campaign import Task
from evidence.transcription.measures import (
    ABSOLUTE_GAP,
    RELATIVE_GAP,
    certified,
    max_relative_error,
    normalised_error,
    place,
    relative_gap,
)
from evidence.transcription.own_methods import solve_by_own_method
from evidence.transcription.plan import OWN, Configuration, instance_of, registry
from odefit import library
from odefit.discretisation.instance import data_variation
from odefit.methods.solvers.guarded_solve import solve_isolated
from odefit.methods.solvers.solver import Limits, penalised_objective


def run(task: Task) -> dict[str, Any]:
    """Make a run; return the solver's answer and the study's measures of it."""
    configuration, seconds = Configuration.of(task["key"]), task["seconds"]
    if configuration.solver in OWN:
        return solve_by_own_method(configuration, seconds)
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
