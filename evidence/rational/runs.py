"""The measurements of the campaign `rational`: on one data set, and on preparing a model.

Errors are the paper's RMSRE (section 5.4), in per cent. A model that is only locally identifiable
has several equal solutions; the solution nearest to the truth counts, as in the paper.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from evidence.rational.plan import data_set
from evidence.running.campaign import Task
from odefit import Algebraic, Control, ForwardMap, InputError, Problem, SingleShooting, library
from odefit.common.arrays import Array
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.estimate import Estimate
from odefit.simulation import Evaluation
from odefit.structure.solutions.storage import cache_folder

STEPS = 4  # Gauss-Newton steps from the truth, for the floor of data without noise


def run(task: Task) -> Mapping[str, Any]:
    return prepared(task) if task["what"] == "preparation" else measured(task)


def prepared(task: Task) -> Mapping[str, Any]:
    """Compute structure and generic solutions of a model with an empty cache.

    ``seconds``; ``paths``, solutions for generic data; ``promised``, the number of them with equal
    outputs; ``doubt``, that there are more; ``lost``, paths that failed.
    """
    problem = library.load(task["problem"])
    with _empty_cache():
        began = time.perf_counter()
        preparation = prepare(problem)
        seconds = time.perf_counter() - began
    generic = preparation.generic
    return {
        "seconds": seconds,
        "paths": len(generic.solutions),
        "promised": preparation.solution_count,
        "doubt": generic.miss_probability,
        "lost": generic.failed,
    }


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Clear the cache inside the context, and restore it afterwards."""
    usual = cache_folder()
    before = os.environ.get("ODEFIT_CACHE")
    with tempfile.TemporaryDirectory() as empty:
        os.environ["ODEFIT_CACHE"] = empty
        try:
            yield
        finally:
            if before is None:
                del os.environ["ODEFIT_CACHE"]
            else:
                os.environ["ODEFIT_CACHE"] = before
        shutil.copytree(empty, usual, dirs_exist_ok=True)


def measured(task: Task) -> Mapping[str, Any]:
    """Run the method on one data set, after the model is prepared and compiled.

    ``before``, ``after``, ``floor``: RMSRE in per cent without polishing (for data without noise),
    with it, and of the least squares optimum next to the truth; ``worst_after``, ``worst_floor``:
    the largest relative error of an identifiable quantity; ``spread``: the largest Cramér-Rao bound
    of their relative standard deviations; ``objective``, ``objective_floor``, ``measurements``
    (their number); ``promised``, ``found``, ``real``, ``lost``: solutions; ``candidates``;
    ``seconds``; ``status``, ``message``.
    """
    problem, true = data_set(task)
    unknown = library.reference(task["problem"]).not_identifiable
    errors = _Errors(true, np.array([key not in unknown for key in problem.keys]))
    preparation = prepare(problem)
    forward = ForwardMap(problem)
    floor, objective_floor = _floor(forward, true, task["noise"])
    result: dict[str, Any] = {
        "floor": errors.rmsre(floor),
        "worst_floor": errors.worst(floor),
        "objective_floor": objective_floor,
        "measurements": sum(len(s.values) for s in problem.conditions[0].series.values()),
        "spread": _spread(forward, true, errors.counted, task["noise"]),
        "promised": preparation.solution_count,
    }
    promised = preparation.solution_count or 1
    result |= _solved(Algebraic(), problem, errors, promised)
    if task["noise"] == 0:
        result |= _before(Algebraic(polish=False), problem, errors, promised)
    return result


class _Errors:
    """Of an estimate."""

    def __init__(self, true: Array, counted: npt.NDArray[np.bool_]) -> None:
        self.true = true
        self.counted = counted

    def relative(self, vector: Array) -> Array:
        """Return the relative errors of identifiable quantities."""
        return np.asarray(vector - self.true)[self.counted] / self.true[self.counted]

    def rmsre(self, vector: Array) -> float:
        """In per cent."""
        return 100.0 * float(np.sqrt(np.mean(self.relative(vector) ** 2)))

    def worst(self, vector: Array) -> float:
        """The largest relative error."""
        return float(np.abs(self.relative(vector)).max())


def _solved(method: Algebraic, problem: Problem, errors: _Errors, promised: int) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        estimate = method.solve(problem, Control(jobs=1))
    except InputError as error:
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "status": "refused", "message": str(error)}
    seconds = time.perf_counter() - began
    result: dict[str, Any] = {
        "seconds": seconds,
        "candidates": len(estimate.starts),
        "status": estimate.status.value,
        "message": estimate.message,
    }
    nearest, best = _nearest(estimate, errors, promised), estimate.best
    if nearest is not None and best is not None:
        result |= {
            "after": errors.rmsre(nearest),
            "worst_after": errors.worst(nearest),
            "objective": best.objective,
        }
    counted = estimate.completeness
    if counted is not None:
        result |= {
            "found": counted.found,
            "real": counted.real,
            "lost": counted.lost,
        }
    return result


def _before(method: Algebraic, problem: Problem, errors: _Errors, promised: int) -> dict[str, Any]:
    """Return the error without polishing; the fit with polishing reports a refusal."""
    try:
        estimate = method.solve(problem, Control(jobs=1))
    except InputError:
        return {}
    nearest = _nearest(estimate, errors, promised)
    return {} if nearest is None else {"before": errors.rmsre(nearest)}


def _nearest(estimate: Estimate, errors: _Errors, promised: int) -> Array | None:
    """Return the nearest of the expected number of answers with the lowest costs."""
    usable = [s for s in estimate.starts if math.isfinite(s.cost)]
    kept = sorted(usable, key=lambda s: (s.cost, s.index))[:promised]
    return min((s.vector for s in kept), key=errors.rmsre, default=None)


def _floor(forward: ForwardMap, true: Array, noise: float) -> tuple[Array, float]:
    """Return the least squares optimum next to the truth, and its objective.

    Without noise, the residuals at the truth are the rounding of the data; a few plain Gauss-Newton
    steps reach the optimum of the rounded data.
    """
    if noise > 0:
        method = SingleShooting(evaluations=1000, tolerance=1e-14, step=1e-15, patience=100)
        end = method.run(forward, 0, true, Control())
        return (end.vector, end.objective) if math.isfinite(end.cost) else (true, math.nan)
    vector = true
    evaluation = forward.evaluate(vector)
    for _ in range(STEPS):
        if not isinstance(evaluation, Evaluation):
            break
        norms = np.linalg.norm(evaluation.jacobian, axis=0)
        norms = np.where(norms > 0, norms, 1.0)
        scaled = evaluation.jacobian / norms
        vector = vector - np.linalg.lstsq(scaled, evaluation.residuals, rcond=1e-15)[0] / norms
        evaluation = forward.evaluate(vector)
    return vector, evaluation.objective if isinstance(evaluation, Evaluation) else math.nan


def _spread(
    forward: ForwardMap, true: Array, counted: npt.NDArray[np.bool_], noise: float
) -> float | None:
    """Return the largest relative standard deviation of the weighted estimate, linearised."""
    evaluation = forward.evaluate(true)
    if noise <= 0 or not isinstance(evaluation, Evaluation):
        return None
    condition = forward.problem.conditions[0]
    sds = np.concatenate(
        [
            np.full(len(series.values), noise * abs(float(np.mean(series.values))))
            for series in condition.series.values()
        ]
    )
    scaled = (evaluation.jacobian / sds[:, None])[:, counted] * true[counted]
    _, singular, directions = np.linalg.svd(scaled, full_matrices=False)
    with np.errstate(divide="ignore"):
        return float(np.sqrt(((directions.T / singular) ** 2).sum(axis=1)).max())
