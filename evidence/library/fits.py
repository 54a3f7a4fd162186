"""A fit of a library problem by the default method, compared with its reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odefit.library import Reference
    from odefit.problem.problem import Problem
    from odefit.result.result import Result

AS_LOW = 1e-3  # largest relative excess of an objective that counts as the lowest one known

# Residuals this small, relative to the data, count as none where the data are noiseless
EXACT = 1e-6


def compared(problem: Problem, reference: Reference, seed: int) -> dict[str, Any]:
    """Fit `problem`, and compare the answer with its reference.

    ``right``: the objective is as low as the lowest one known; ``objective``, ``known`` (that
    lowest one); ``worst_error``: the largest relative error of an identifiable unknown against its
    reference, and ``worst``, its key; ``status``, ``starts``, ``evaluations``, ``seconds``.
    """
    from odefit.fitting.fit import fit

    result = fit(problem, seed=seed, jobs=1)
    known = reference.objective if reference.best_known is None else reference.best_known
    worst, error = worst_error(result, reference)
    return {
        "right": as_low(result.objective, known, problem),
        "objective": result.objective,
        "known": known,
        "worst": worst,
        "worst_error": error,
        "status": result.status.value,
        "starts": len(result.starts),
        "evaluations": sum(s.evaluations for s in result.starts),
        "seconds": result.seconds,
    }


def as_low(objective: float, known: float, problem: Problem) -> bool:
    """Whether `objective` (a plain sum of squares) is as low as the lowest one known."""
    squares = sum(float(s.values @ s.values) for c in problem.conditions for s in c.series.values())
    return bool(objective <= (1 + AS_LOW) * known + EXACT**2 * squares)


def worst_error(result: Result, reference: Reference) -> tuple[str, float]:
    """Return the identifiable unknown with the largest relative error, and that error.

    A reference of zero has no relative error: there it is the absolute one.
    """
    truth = reference_values(result.problem, reference)
    if not result.solutions:
        return "", math.inf
    errors = {
        key: abs(float(value) - truth[key]) / (abs(truth[key]) or 1.0)
        for key, value in zip(result.problem.keys, result.best.vector, strict=True)
        if key in truth and key not in reference.not_identifiable
    }
    worst = max(errors, key=lambda k: errors[k], default="")
    return worst, errors.get(worst, 0.0)


def reference_values(problem: Problem, reference: Reference) -> Mapping[str, float]:
    """Return the reference values by the key of the unknown."""
    given = {**reference.initial, **reference.parameters}
    return {key: given[key] for key in problem.keys if key in given}
