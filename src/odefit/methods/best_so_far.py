"""The best point so far of a search or a start that has ended without its own answer."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.estimate import NO_START, Cause, Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.running.control import Control, Interruption
from odefit.methods.starts import guess, sample
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.best_seen import BestSeen
from odefit.simulation.engines.engine_choice import UNDECIDED

POINTS = 10
"""Number of points, besides the guess, that are tried if a search has evaluated none."""


def completed(
    problem: Problem, estimate: Estimate, seen: BestSeen, control: Control, final: bool
) -> Estimate:
    """Return the estimate of a method that was stopped, with the best point among its starts.

    `seen` is the best of all points evaluated in this process. The estimate is unchanged if its own
    answer is better, if nothing can be integrated, or if the method's own answer is required
    (`final`). A search that has evaluated no point in this process gets the guess, or the first of
    a few points that can be integrated.
    """
    best = estimate.best
    if best is not None and (final or not seen.cost < best.cost):
        return _labelled(estimate, control)
    if seen.vector is not None:
        points = f"the best of {counted(seen.count, 'point')} that it had evaluated"
        start = Start(
            index=_next_index(estimate),
            start=seen.vector,
            vector=seen.vector,
            objective=seen.objective,
            status=control.early,
            message=points,
            evaluations=1,
            seconds=0.0,
            cost=seen.cost,
        )
        if best is not None and CostTolerance.of(ForwardMap(problem)).same(start, best):
            return _labelled(estimate, control)
    elif best is None:
        first = first_point(ForwardMap(problem), POINTS, control, _next_index(estimate))
        if first is None:
            return _labelled(estimate, control)
        start = first
    else:
        return _labelled(estimate, control)
    usable = f"ended within a start: the answer is {start.message}"
    message = NO_START if best is None else estimate.message
    more = replace(
        estimate,
        starts=(*estimate.starts, start),
        message=f"{message}; {usable}",
        finding=f"{estimate.finding or message}; {usable}",
    )
    return _labelled(more, control)


def _labelled(estimate: Estimate, control: Control) -> Estimate:
    """Return an estimate whose status and message give the cause of its early end."""
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
        finding=estimate.finding or estimate.message,
    )


def with_cause(message: str, named: Cause | None, control: Control) -> str:
    """Return a message with the cause of an early end, unless it names that already."""
    cause = control.cause
    if cause is None or cause is named:
        return message
    interrupted = control.interrupted
    details = interrupted.details if isinstance(interrupted, Interruption) else ""
    more = f" ({details})" if details else ""
    return f"{message}. Ended early by {cause}{more}: this is the best so far"


def _next_index(estimate: Estimate) -> int:
    return max((s.index for s in estimate.starts), default=-1) + 1


def first_point(forward: ForwardMap, count: int, control: Control, index: int) -> Start | None:
    """Return the guess, or one of `count` points, without any search; None if all fail."""
    began = time.perf_counter()
    problem = forward.problem
    guessed = guess(problem)
    for point in [
        *([] if guessed is None else [guessed]),
        *sample(problem, 0, count, control.seed),
    ]:
        vector = np.clip(point, problem.lower, problem.upper)
        evaluation = forward.evaluate_cost(vector, UNDECIDED)
        if not isinstance(evaluation, Failure) and np.isfinite(evaluation.cost):
            return Start(
                index=index,
                start=vector,
                vector=vector,
                objective=evaluation.objective,
                status=control.early,
                message="a start value, without any search",
                evaluations=1,
                seconds=time.perf_counter() - began,
                cost=evaluation.cost,
            )
    return None


def rescued(forward: ForwardMap, lost: Start, vectors: Iterable[Array], control: Control) -> Start:
    """Return a start at the best of the unknowns that it reached, on integrated trajectories.

    `lost` is the start without an answer, and `vectors` are the unknowns, shape (n,) each. The
    start is unchanged if none of them can be integrated.
    """
    best: tuple[Array, Evaluation] | None = None
    with np.errstate(all="ignore"):
        for vector in vectors:
            inside = np.clip(vector, forward.problem.lower, forward.problem.upper)
            evaluation = forward.evaluate_cost(inside, UNDECIDED)
            if not isinstance(evaluation, Evaluation) or not np.isfinite(evaluation.cost):
                continue
            if best is None or evaluation.cost < best[1].cost:
                best = inside, evaluation
    if best is None:
        return lost
    vector, evaluation = best
    zero = CostTolerance.of(forward).zero(forward.accuracy(evaluation.choice))
    return replace(
        lost,
        vector=vector,
        objective=evaluation.objective,
        cost=evaluation.cost,
        exact=evaluation.cost <= zero,
        status=control.early,
        nodes=None,
    )
