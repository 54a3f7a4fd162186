"""The best so far of a search that was ended before it had an answer of its own."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.estimate import NO_START, Cause, Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.running.control import Control
from odefit.methods.starts import guess, sample
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.best_seen import BestSeen

POINTS = 10
"""Number of points, beside the guess, that are tried where a search has evaluated none at all."""


def completed(
    problem: Problem, estimate: Estimate, seen: BestSeen, control: Control, final: bool
) -> Estimate:
    """Return an estimate, of a method that was told to stop, with the best point among its starts.

    `seen` is the best point of all that were evaluated in this process. The estimate stays as it is
    where it has something better, where nothing can be integrated, and where the method's own
    answer is wanted (`final`). A search that has evaluated no point in this process is given the
    guess, or the first of a few points that can be integrated.
    """
    best = estimate.best
    if best is not None and (final or not seen.cost < best.cost):
        return _labelled(estimate, control)
    if seen.vector is not None:
        points = f"the best of {counted(seen.count, 'point')} that it had evaluated"
        own = _start(estimate, seen.vector, seen.objective, seen.cost, points, 0.0, control)
        if best is not None and CostTolerance.of(ForwardMap(problem)).same(own, best):
            return _labelled(estimate, control)
    elif best is None:
        found = _first_point(problem, estimate, control)
        if found is None:
            return _labelled(estimate, control)
        own = found
    else:
        return _labelled(estimate, control)
    usable = f"ended within a start: the answer is {own.message}"
    said = NO_START if best is None else estimate.message
    more = replace(estimate, starts=(*estimate.starts, own), message=f"{said}; {usable}")
    return _labelled(more, control)


def _labelled(estimate: Estimate, control: Control) -> Estimate:
    """Return an estimate whose status says that it was ended early, and its message by what."""
    status = estimate.status
    if status is Status.CONVERGED:
        return estimate
    if status is Status.FAILED or control.interrupted.is_set():
        status = control.early
    if not status.cut_short:
        return estimate
    return replace(
        estimate,
        status=status,
        message=with_cause(estimate.message, estimate.told, control),
        told=control.cause,
    )


def with_cause(message: str, told: Cause | None, control: Control) -> str:
    """Return a message that says what has ended the fit early, if it does not say so already."""
    cause = control.cause
    if cause is None or cause is told:
        return message
    details = getattr(control.interrupted, "details", "")
    more = f" ({details})" if details else ""
    return f"{message}. Ended early by {cause}{more}: this is the best so far"


def _first_point(problem: Problem, estimate: Estimate, control: Control) -> Start | None:
    """Return the guess, or one of a few points, without any search; None if all fail."""
    began = time.perf_counter()
    forward = ForwardMap(problem)
    given = guess(problem)
    for point in [*([] if given is None else [given]), *sample(problem, 0, POINTS, control.seed)]:
        vector = np.clip(point, problem.lower, problem.upper)
        found = forward.evaluate_cost(vector)
        if not isinstance(found, Failure) and np.isfinite(found.cost):
            seconds = time.perf_counter() - began
            what = "a start value, without any search"
            return _start(estimate, vector, found.objective, found.cost, what, seconds, control)
    return None


def _start(
    estimate: Estimate,
    vector: Array,
    objective: float,
    cost: float,
    message: str,
    seconds: float,
    control: Control,
) -> Start:
    index = max((s.index for s in estimate.starts), default=-1) + 1
    return Start(index, vector, vector, objective, control.early, message, 1, seconds, cost)
