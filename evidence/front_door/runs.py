"""The measurements of the campaign `automatic` on one fit.

Each fit has a separate process, which has imported and compiled everything but the problem. After
the fit, and not counted in its time, a search from the truth (or the published values) gives the
attainable objective.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence.front_door.broken_off import broken_off
from evidence.front_door.plan import DEFAULT, PEERS
from evidence.front_door.problems import extent, subject, warm_up
from evidence.running.campaign import Task
from odefit import Control, ForwardMap, InputError, Problem, Result, SingleShooting, fit, library
from odefit.common.arrays import Array
from odefit.methods.registry import make_method
from odefit.simulation import Evaluation


def run(task: Task) -> Mapping[str, Any]:
    """Run a fit to its end, or interrupt it.

    Return the entries of :func:`fitted`, or of :func:`evidence.front_door.broken_off.broken_off`.
    """
    warm_up()
    if task["part"] == "interrupts":
        return broken_off(task)
    return fitted(task)


def fitted(task: Task) -> dict[str, Any]:
    """Return the answer of a fit beside the best known.

    ``objective``, ``log_likelihood`` (None without one), ``status``, ``message``, ``seconds`` (wall
    time), ``processor`` (seconds of the processor), ``starts``, ``routes``; ``possible``,
    ``found``: solutions, where they were counted; ``known``: the objective of a search from the
    truth, or that of the library's reference; ``known_log_likelihood`` at the published values;
    ``size``, ``squares``: number and sum of squares of the measurements.
    """
    problem, truth = subject(task)
    began, processor = time.perf_counter(), time.process_time()
    other = task["method"] in PEERS
    result = peer(task, problem, truth) if other else own(task, problem)
    result["seconds"] = time.perf_counter() - began
    result["processor"] = time.process_time() - processor
    return result | known(task, problem, truth) | extent(problem)


def own(task: Task, problem: Problem) -> dict[str, Any]:
    """Return the answer of a method of the package."""
    method = None if task["method"] == DEFAULT else make_method(task["method"])
    try:
        result = fit(problem, method, seed=task["seed"], jobs=1, time_limit=task["limit"])
    except InputError as error:
        return _nothing("not applicable", str(error))
    return told(result)


def told(result: Result) -> dict[str, Any]:
    """Return the entries of a result that the campaign stores."""
    complete = result.assessment.complete
    return {
        "objective": result.objective if result.solutions else math.inf,
        "log_likelihood": result.log_likelihood if result.solutions else None,
        "status": result.status.value,
        "message": result.message,
        "starts": len(result.starts),
        "routes": [
            {
                "name": route.name,
                "starts": route.starts,
                "hits": route.hits,
                "objective": route.objective,
                "seconds": route.seconds,
                "message": route.message,
            }
            for route in result.routes
        ],
        "possible": complete.possible if complete is not None and complete.known else None,
        "found": None if complete is None else complete.found,
    }


def peer(task: Task, problem: Problem, truth: Array | None) -> dict[str, Any]:
    """Return the answer of another program, judged by odefit's objective."""
    try:
        if task["method"] == "copasi":
            from evidence.peers.copasi import copasi

            found = copasi(problem, task["seed"], task["limit"], truth)
        else:
            from evidence.peers.scipy_fit import by_hand

            found = by_hand(problem, task["seed"], task["limit"])
    except InputError as error:
        return _nothing("not applicable", str(error))
    objective, log_likelihood = value_at(problem, found.vector)
    beside = found.vector is not None and math.isinf(objective)
    return {
        "objective": objective,
        "log_likelihood": log_likelihood,
        "status": "time limit" if found.late else "done",
        "message": f"{found.message}; odefit cannot integrate there" if beside else found.message,
        "starts": found.starts,
        "routes": [],
        "possible": None,
        "found": None,
    }


def _nothing(status: str, message: str) -> dict[str, Any]:
    return {
        "objective": math.inf,
        "log_likelihood": None,
        "status": status,
        "message": message,
        "starts": 0,
        "routes": [],
        "possible": None,
        "found": None,
    }


def value_at(problem: Problem, vector: Array | None) -> tuple[float, float | None]:
    """Return objective and log-likelihood at a vector; infinite where it cannot be integrated."""
    if vector is None:
        return math.inf, None
    found = ForwardMap(problem).evaluate(np.clip(vector, problem.lower, problem.upper))
    if not isinstance(found, Evaluation):
        return math.inf, None
    return found.objective, found.log_likelihood


def known(task: Task, problem: Problem, truth: Array | None) -> dict[str, Any]:
    """Return the attainable objective: the reference's, or that of a search from the truth."""
    if truth is None:
        reference = library.reference(task["problem"])
        best = reference.objective if reference.best_known is None else reference.best_known
        return {"known": best, "known_log_likelihood": None}
    if task["part"] == "published":
        objective, log_likelihood = value_at(problem, truth)
        return {"known": objective, "known_log_likelihood": log_likelihood}
    search = SingleShooting().run(ForwardMap(problem), 0, truth, Control(0))
    return {"known": search.objective, "known_log_likelihood": None}
