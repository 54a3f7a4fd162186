"""The runs of the campaign `multiple-shooting`: the measurements on each data set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence.multiple_shooting.plan import ITERATIONS, SINGLE, TOLERANCE, Data
from evidence.running.campaign import Task
from odefit import Control, Failure, ForwardMap, MultipleShooting, Problem, SingleShooting, Status
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.common.arrays import Array
from odefit.methods.multiple_shooting import History
from odefit.methods.shooting.node_evaluation import evaluate_nodes

# Difference of weighted sums of squares that is ignored: the data cannot distinguish estimates that
# differ by less than 3.84 (95 %)
SAME = 0.1


def run(task: Task) -> Mapping[str, Any]:
    """Fit all realizations of a task.

    ``unknowns`` and ``true``, their keys and values; ``fits``, for each realization ``converged``;
    ``right``: converged, and to a sum of squares as low as ``reference``, that of the optimum next
    to the truth, or of the truth where that optimum is not searched; ``steps`` of Gauss- Newton
    (evaluations of single shooting); ``seconds`` of processor time; ``objective``; ``estimate``,
    ``errors`` (standard errors of converged fits); ``message``; ``warnings``.
    """
    data = Data(task)
    problem = data.problem(task["first"])
    numbers = range(task["first"], task["first"] + task["realizations"])
    return {
        "unknowns": list(problem.keys),
        "true": data.true,
        "fits": [_fitted(task, data, number) for number in numbers],
    }


def _fitted(task: Task, data: Data, number: int) -> Mapping[str, Any]:
    problem = data.problem(number)
    start = data.start(problem, number)
    # nobody reads the warnings of workers, so they are part of the result
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        found = (
            _by_single_shooting(problem, start)
            if task["states"] == SINGLE
            else _by_multiple_shooting(task, problem, start)
        )
        seconds = time.process_time() - began
        reference = _reference(data, problem, number)
    seconds -= found.pop("assessing", 0.0)
    return {
        "realization": number,
        **found,
        "right": bool(found["converged"] and found["objective"] <= reference + SAME),
        "reference": reference,
        "seconds": seconds,
        "warnings": sorted({str(w.message) for w in caught}),
    }


_NOTHING: Mapping[str, Any] = {"estimate": None, "errors": None, "objective": np.inf}


def _by_multiple_shooting(
    task: Task, problem: Problem, start: Mapping[str, float]
) -> dict[str, Any]:
    method = MultipleShooting(
        nodes=task["nodes"] or None,
        integrator=task["integrator"],
        states=task["states"],
        start=start,
        tolerance=TOLERANCE,
        iterations=ITERATIONS,
    )
    try:
        history = method.follow(problem)
    except RuntimeError as error:
        return {"converged": False, "steps": 0, "message": str(error), **_NOTHING}
    began = time.process_time()
    errors = _errors(problem, history) if history.converged else None
    return {
        "converged": history.converged,
        # the last entry is the step that was too small to be taken
        "steps": len(history.iterations) - 1,
        "objective": history.objective,
        "estimate": history.vector,
        "errors": errors,
        "message": "" if history.converged else history.message,
        "assessing": time.process_time() - began,
    }


def _errors(problem: Problem, history: History) -> Array | None:
    found = evaluate_nodes(problem, history.vector, history.nodes())
    if isinstance(found, Failure):
        return None
    # the forward map gives only the problem's declaration of the noise
    return assess_uncertainty(ForwardMap(problem), history.vector, found[0]).standard_errors


def _by_single_shooting(problem: Problem, start: Mapping[str, float]) -> dict[str, Any]:
    vector = np.array([start[key] for key in problem.keys])
    end = SingleShooting().run(ForwardMap(problem), 0, vector, Control())
    converged = end.status is Status.CONVERGED
    return {
        "converged": converged,
        "steps": end.evaluations,
        "objective": end.objective,
        "estimate": end.vector,
        "errors": None,
        "message": "" if converged else end.message,
    }


def _reference(data: Data, problem: Problem, number: int) -> float:
    """Return the objective to compare with."""
    squares = sum(float(column @ column) for column in data.draws(number).values())
    if not data.example.searched:
        return squares
    start = dict(zip(problem.keys, data.true.tolist(), strict=True))
    method = MultipleShooting(states="simulation", start=start, tolerance=TOLERANCE)
    history = method.follow(problem)
    return min(squares, history.objective) if history.converged else squares
