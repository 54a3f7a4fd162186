"""The damped generalised Gauss-Newton iteration (7) with natural level functions (15) to (18)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.shooting.linear_problem import LinearProblem, UserConstraints
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from odefit.simulation import Failure

MIN_DAMPING = 1e-4  # damping factor below which a step is given up
CRAWL_STEPS = 8  # number of tiny steps after which the iteration is given up

CRAWL_PART = 0.1
"""Part of a full step below which :data:`CRAWL_STEPS` steps together count as tiny: in an iteration
with progress, dampings are mostly above a tenth."""

MAX_CONTRADICTION = 1e-6
"""Size of the part of the equality constraints that no step can satisfy, relative to the sizes,
above which they are contradictory."""

CURVATURE_BOUND = 1.0
"""The constant eta in the damping factor lambda = eta / (omega |dw|), equation (17): 1 if the error
of the linear prediction is half a step."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """One step of the iteration."""

    objective: float  # objective of the discontinuous trajectory at the beginning of the step
    gap: float  # largest discontinuity there, relative to the sizes of the states
    level: float  # natural level function there: the length of the undamped step
    damping: float  # fraction of the step that was taken; 0 if no step was taken
    undetermined: int  # number of undetermined directions
    point: Point  # point at the beginning of the step


@dataclass(frozen=True, eq=False)
class IterationEnd:
    """The end of the iteration."""

    at: Linearisation | None  # last point with F and its derivatives; None if the start failed
    problem: LinearProblem | None  # linearised problem there
    converged: bool  # whether the last step was negligible
    message: str  # the reason for the end of the iteration, in words
    iterations: list[Iteration] = field(default_factory=list)  # steps, in order
    impossible: bool = False  # whether bounds and constraints contradict each other there


@np.errstate(all="ignore")  # squares overflow far from any sensible answer
def iterate(
    shooting: ShootingProblem,
    start: Point,
    sizes: Callable[[Array], Array],
    user: Callable[[Linearisation], UserConstraints],
    *,
    tolerance: float,
    max_steps: int,
    stop: Callable[[], bool],
    report: Callable[[Iteration, int], None] = lambda iteration, number: None,
) -> IterationEnd:
    """Solve the nonlinear problem from `start`.

    `sizes` returns typical sizes of coordinates, shape (n,), at given coordinates. The iteration
    ends if the largest component of a step, relative to the sizes, is below `tolerance`, or if
    `stop`, called before each evaluation, returns True. `report` is called after each step.
    """
    at = shooting.linearise(start)
    if isinstance(at, Failure):
        return IterationEnd(None, None, False, str(at))
    if not user(at).finite:
        return IterationEnd(None, None, False, "a constraint has no finite value at the start")
    done: list[Iteration] = []
    curvature = 0.0
    while True:
        constraints = user(at)
        problem = LinearProblem(shooting, at, sizes(at.point.coordinates), constraints)
        step = problem.step(at, constraints)
        level = problem.length(step)
        converged = problem.largest(step) <= tolerance
        impossible = _impossible(problem, at, constraints)
        reason = impossible
        if not reason and not math.isfinite(level):
            reason = "the linearised problem has no finite solution"
        elif not reason and converged:
            reason = "the steps have become negligible"
        if not reason and len(done) >= max_steps:
            reason = f"stopped after {max_steps} iterations"
        elif not reason and _crawls(done):
            reason = f"{CRAWL_STEPS} steps were hardly any"
        damped = _DampedStep(None, 0.0, curvature, reason)
        if not reason:
            damped = _damped_step(shooting, problem, at, step, user, curvature, stop)
        curvature, taken = damped.curvature, damped.at
        done.append(
            Iteration(
                objective=at.evaluation.objective,
                gap=shooting.gap(at),
                level=level,
                damping=damped.damping,
                undetermined=problem.inverse.undetermined.shape[1],
                point=at.point,
            )
        )
        report(done[-1], len(done))
        if taken is None:
            if converged and not impossible:
                # An unstable interval amplifies even a negligible gap, so the rest of it is
                # removed.
                last = shooting.linearise(at.point.moved(step, 1.0), at.choice)
                if not isinstance(last, Failure):
                    at = last
                    done[-1] = replace(
                        done[-1],
                        objective=at.evaluation.objective,
                        gap=shooting.gap(at),
                        point=at.point,
                    )
            return IterationEnd(
                at=at,
                problem=problem,
                converged=converged and not impossible,
                message=damped.reason,
                iterations=done,
                impossible=bool(impossible),
            )
        at = taken


def _crawls(done: list[Iteration]) -> bool:
    """Return whether the last steps made almost no progress."""
    last = [iteration.damping for iteration in done[-CRAWL_STEPS:]]
    return len(last) == CRAWL_STEPS and sum(last) < CRAWL_PART


def _impossible(problem: LinearProblem, at: Linearisation, user: UserConstraints) -> str:
    """Return the reason why no step satisfies all constraints; an empty text if one does."""
    if not problem.feasible:
        return "no step satisfies bounds and inequalities"
    if len(user.equations.values) and problem.contradiction(at, user) > MAX_CONTRADICTION:
        return "the equality constraints contradict each other"
    return ""


class _DampedStep(NamedTuple):
    """The next point, or None, and the curvature omega of the path to it."""

    at: Linearisation | None
    damping: float
    curvature: float
    reason: str  # the reason why there is no next point


def _damped_step(
    shooting: ShootingProblem,
    problem: LinearProblem,
    at: Linearisation,
    step: Point,
    user: Callable[[Linearisation], UserConstraints],
    curvature: float,
    stop: Callable[[], bool],
) -> _DampedStep:
    """Return the fraction of a step that lowers the natural level function (16).

    It is predicted from the curvature of the path so far, and corrected by the actual curvature if
    the step was too long (17), (18).
    """
    level = problem.length(step)
    damping = min(1.0, CURVATURE_BOUND / (curvature * level)) if curvature > 0 else 1.0
    # The prediction comes from another step: it must not end the search by itself.
    damping, curvature = max(damping, 10 * MIN_DAMPING), 0.0
    failure = ""
    while damping > MIN_DAMPING:
        if stop():
            return _DampedStep(None, 0.0, curvature, "the search was stopped")
        trial = shooting.linearise(at.point.moved(step, damping), at.choice)
        if isinstance(trial, Failure):
            failure = f"trial steps cannot be integrated: {trial}"
            damping *= 0.25
            continue
        constraints = user(trial)
        if not constraints.finite:
            failure = "constraints have no finite values at trial steps"
            damping *= 0.25
            continue
        new = problem.correction(trial, constraints)
        # Along the straight path the correction would be (1 - damping) times the step.
        bend = problem.length(new.moved(step, damping - 1))
        curvature = 2 * bend / (damping * level) ** 2
        if problem.length(new) < (1 - 0.25 * damping) * level:
            return _DampedStep(trial, damping, curvature, "")
        failure = ""
        damping = min(0.5 * damping, CURVATURE_BOUND / (curvature * level))
    reason = failure or "no damped step lowers the level function"
    return _DampedStep(None, 0.0, curvature, reason)
