"""The runs of the campaign `separable`: the measurements on a chunk of data sets.

There are four parts: separable and nonlinear least squares on the integral criterion (`matched`);
the separable estimate with other smoothers (`smoothed`), and improved on the true trajectories
(`polished`); both methods with the optimisers of the authors' program (`published`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence.running.campaign import Task
from evidence.separable import plan as plan
from evidence.separable.published import published_estimates
from odefit import Control, ForwardMap, IntegralMatching, Problem, SingleShooting
from odefit.common.arrays import Array
from odefit.methods.smoothing import LocalPolynomial, Smoother, SmoothingSpline

SAME = 1e-6  # relative difference of objectives of the same optimum


def rivals() -> Mapping[str, Smoother]:
    """Return the smoothers with which the separable estimate is repeated, by name for tables."""
    return {
        "spline, order 2": SmoothingSpline(order=2, size=None),
        "spline, order 3": SmoothingSpline(order=3, size=None),
        "spline, order 5": SmoothingSpline(),
        "local polynomial": LocalPolynomial(),
    }


def run(task: Task) -> Mapping[str, Any]:
    parts = {"matched": matched, "smoothed": smoothed, "polished": polished, "published": published}
    return parts[task["part"]](task)


def matched(task: Task) -> Mapping[str, Any]:
    """Run both methods on the integral criterion.

    ``keys``; ``true``; by method, see :func:`_estimate`, a list with an entry a run: ``sls``,
    ``nls, low`` and so on.
    """
    methods = {"sls": ("high", IntegralMatching())}
    for quality in plan.MODELS[task["model"]].priors:
        methods[f"nls, {quality}"] = (quality, IntegralMatching(separable=False))
    return _estimates(task, methods)


def smoothed(task: Task) -> Mapping[str, Any]:
    """Run separable least squares with other smoothers than the default.

    The result is that of :func:`matched`, by name of the smoother.
    """
    methods = {"default": ("high", IntegralMatching())}
    for name, smoother in rivals().items():
        methods[name] = ("high", IntegralMatching(smoother=smoother))
    return _estimates(task, methods)


def _estimates(task: Task, methods: Mapping[str, tuple[str, IntegralMatching]]) -> dict[str, Any]:
    """Return an entry for each run, by method, from starts of the given quality of the prior."""
    exact = plan.exact(task)
    found: dict[str, Any] = {name: [] for name in methods}
    for run in range(task["first"], task["last"]):
        problem = plan.data_set(task, exact, run)
        starts = plan.starts(task, problem, run)
        for name, (quality, method) in methods.items():
            found[name].append(_estimate(method, problem, starts[quality]))
    return {"keys": exact.keys, "true": plan.truth(task, exact), **found}


def _estimate(method: IntegralMatching, problem: Problem, start: Array) -> dict[str, Any]:
    """Return a match, with its loss and time.

    ``smoothing`` and ``search`` are processor times in seconds.
    """
    began = time.process_time()
    matching = method.matching(problem)
    smoothed = time.process_time()
    match = matching.match(start, lambda: False)
    ended = time.process_time()
    return {
        "vector": match.vector,
        "loss": 2.0 * match.cost,
        "converged": match.converged,
        "evaluations": match.evaluations,
        "smoothing": smoothed - began,
        "search": ended - smoothed,
    }


def polished(task: Task) -> Mapping[str, Any]:
    """Run the separable estimate from one start, and improve it on the true trajectories.

    ``keys``; ``true``; ``runs``, a list with an entry a run: ``vector``, ``objective``, ``status``,
    ``seconds`` (processor time); ``floor``, the objective of a search that started from the true
    values; ``reached``: as low as that; ``default``, the objective of the method with its default
    starts, where one start does not reach the floor.
    """
    exact = plan.exact(task)
    true = plan.truth(task, exact)
    method, search = IntegralMatching(), SingleShooting()
    runs = []
    for run in range(task["first"], task["last"]):
        problem = plan.data_set(task, exact, run)
        forward = ForwardMap(problem)
        start = plan.starts(task, problem, run)["high"]
        began = time.process_time()
        end = method.run(forward, 0, start, Control())
        seconds = time.process_time() - began
        floor = search.run(forward, 0, true, Control()).objective
        reached = as_low(end.objective, floor)
        entry: dict[str, Any] = {
            "vector": end.vector,
            "objective": end.objective,
            "status": end.status.value,
            "seconds": seconds,
            "floor": floor,
            "reached": reached,
        }
        if not reached:
            starts = method.solve(problem, Control(seed=run, jobs=1)).starts
            entry["default"] = min((s.objective for s in starts), default=math.inf)
        runs.append(entry)
    return {"keys": exact.keys, "true": true, "runs": runs}


def as_low(objective: float | None, floor: float | None) -> bool:
    """Return whether an objective is that of the optimum, or lower."""
    if objective is None or floor is None:
        return False
    return objective <= floor * (1.0 + SAME)


def published(task: Task) -> Mapping[str, Any]:
    """Run both methods with the optimisers, starts and bounds of the authors' program.

    The result is that of :func:`matched`: ``sls``, ``nls, low`` and so on.
    """
    exact = plan.exact(task)
    found: dict[str, Any] = {}
    for run in range(task["first"], task["last"]):
        problem = plan.data_set(task, exact, run)
        starts = plan.starts(task, problem, run, published=True)
        for name, entry in published_estimates(task, problem, starts).items():
            found.setdefault(name, []).append(entry)
    return {"keys": exact.keys, "true": plan.truth(task, exact), **found}


def vectors(entries: list[Mapping[str, Any]]) -> Array:
    """Return the estimates of a list of entries, shape (runs, n); NaN where one is missing."""
    return np.array(
        [[math.nan if v is None else v for v in entry["vector"]] for entry in entries], dtype=float
    )
