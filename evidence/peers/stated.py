"""Code shared by the two other programs of `automatic`: problems that they can state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit import InputError, Noise, Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition

# Tolerances of their integrations: with larger ones, small noise would hide the optimum
RELATIVE, ABSOLUTE = 1e-9, 1e-11


@dataclass(frozen=True)
class Found:
    """The answer of another program."""

    vector: Array | None  # the unknowns, shape (n,); None without an answer
    starts: int  # the number of starts
    late: bool  # whether the time limit ended it
    message: str  # how it ended


def check_stated(problem: Problem) -> None:
    """Refuse problems that these programs cannot state."""
    if problem.model.algebraic:
        raise InputError("the comparison is for problems without algebraic variables")
    if any(u.parameter.prior is not None for u in problem.unknowns):
        raise InputError("the comparison is for problems without priors")
    for name, noise in problem.noise.items():
        if not noise.gaussian:
            raise InputError(f"the comparison is for normal noise, unlike that of {name}")
    for condition in problem.conditions:
        if any(series.censored is not None for series in condition.series.values()):
            raise InputError("the comparison is for problems without censored values")
        if condition.located or condition.measured_after:
            raise InputError(
                "the comparison is for events at given times, before which is measured"
            )
        if condition.steady_start or condition.repeated or not np.isfinite(condition.times).all():
            raise InputError("the comparison is for problems without steady states")


def noise_unknowns(problem: Problem) -> list[int]:
    """Return the unknowns that standard deviations of the measurements depend on, in order."""
    found = {i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name)
            if series.sds_given or noise is None or not isinstance(noise.sd, Expression):
                continue
            for used in written_out(noise.sd, problem, condition):
                bound = condition.scalars.get(used)
                if isinstance(bound, int):
                    found.add(bound)
    return sorted(found)


def estimates_noise(problem: Problem) -> bool:
    """Return whether standard deviations depend on unknowns, also through predictions."""
    if noise_unknowns(problem):
        return True
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name)
            if series.sds_given or noise is None or not isinstance(noise.sd, Expression):
                continue
            changing = {*problem.model.ode, *problem.model.observables}
            if noise.sd.names & changing:
                return True
    return False


def written_out(expression: Expression, problem: Problem, condition: Condition) -> set[str]:
    """Return the parameters and constants of an expression, also those inside others."""
    found: set[str] = set()
    to_see = set(expression.names)
    while to_see:
        name = to_see.pop()
        if name in found:
            continue
        found.add(name)
        behind = problem.model.observables.get(name, condition.scalars.get(name))
        if isinstance(behind, Expression):
            to_see |= behind.names
    return found


def deviations(
    problem: Problem, condition: Condition, name: str, known: Mapping[str, Any], vector: Array
) -> Array:
    """Return the standard deviation of each measurement of an observable, shape (n,)."""
    series = condition.series[name]
    noise = problem.noise.get(name, Noise())
    if series.sds is not None and series.sds_given:
        return series.sds
    found = _of_noise(noise, problem, condition, name, known, vector)
    return found if series.sds is None else np.where(np.isnan(series.sds), found, series.sds)


def _of_noise(
    noise: Noise,
    problem: Problem,
    condition: Condition,
    name: str,
    known: Mapping[str, Any],
    vector: Array,
) -> Array:
    series = condition.series[name]
    count = len(series.values)
    if noise.relative is not None:
        return np.asarray(noise.relative * np.abs(series.values))
    if noise.sd is None:
        return np.ones(count)
    if isinstance(noise.sd, Expression):
        value = noise.sd.evaluate(known, NUMPY)
        return np.array(np.broadcast_to(value, condition.times.shape)[series.rows], dtype=float)
    if noise.sd == "estimate":
        (own,) = (
            i
            for i, u in enumerate(problem.unknowns)
            if u.kind == "noise" and u.name == noise.unknown(name)
        )
        return np.full(count, float(vector[own]))
    return np.full(count, float(noise.sd))
