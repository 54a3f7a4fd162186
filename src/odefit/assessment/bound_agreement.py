"""Compare the objective of the answer with the bounds proved for it.

A bound in continuous time is proved with enclosures, and the objective is that of an integrated
trajectory. If the answer lies below the lower bound, or above the best point found, one of the two
is wrong. Mostly it is the integration, which stepped across a narrow feature. Then other engines
integrate the answer, and a value that agrees with the bounds becomes the answer. If none agrees,
there is no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from odefit.common.errors import InputError
from odefit.methods.estimate import Certificate, Estimate, Start
from odefit.methods.fit_measure import OBJECTIVE, FitMeasure
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.polish import Answer, answer_by
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.registry import accurate_engines

TOLERANCE = 1e-10
"""Relative tolerance for integrating an answer again, if an engine accepts one."""

INTEGRATION_ERRORS = 100.0
"""Allowed errors of an integration at the measurements, in multiples of its tolerance."""

ABOVE_FOUND = 1e-3
"""Largest relative excess of an answer over the best point found, since a search stops when close
enough."""


def agreeing_with_bounds(
    answer: Answer, estimate: Estimate, proposed: Sequence[Start], control: Control, polish: bool
) -> tuple[Answer, Estimate, str]:
    """Return an answer that agrees with the bounds of its certificate, or no certificate.

    The last value is a warning. `proposed` are other values that the proof found; with `polish` an
    answer that is integrated again is improved. The warning is empty if everything agreed.
    """
    bounds = estimate.certificate
    wrong = "" if bounds is None else contradiction(bounds, answer)
    if bounds is None or not wrong:
        return answer, estimate, ""
    first = len(estimate.starts)
    ends = [answer.start, *(replace(s, index=first + i) for i, s in enumerate(proposed))]
    for forward, how in _integrations(answer.forward.problem):
        tried = [answer_by(forward, end, estimate, control, polish) for end in ends]
        agreeing = [t for t in tried if isinstance(t, Answer) and not contradiction(bounds, t)]
        if agreeing:
            best = _with_objective(min(agreeing, key=lambda t: t.evaluation.cost))
            more = [] if best.start.index < len(estimate.starts) else [best.start]
            warning = (
                f"{wrong[0].upper()}{wrong[1:]}: it was integrated wrongly. The answer was "
                f"integrated again by {how}, which agrees with the bounds"
            )
            return best, replace(estimate, starts=(*estimate.starts, *more)), warning
    warning = (
        f"No certificate is given: {wrong}. Either the integration is wrong, which no other "
        "engine has shown, or the bound is"
    )
    return answer, replace(estimate, certificate=None), warning


def _with_objective(answer: Answer) -> Answer:
    """Return an answer whose start has the objective of its evaluation."""
    evaluation = answer.evaluation
    start = replace(answer.start, objective=evaluation.objective, cost=evaluation.cost)
    return replace(answer, start=start)


def contradiction(bounds: Certificate, answer: Answer) -> str:
    """Return a sentence on a contradiction between an objective and its bounds; empty without one.

    Bounds of a discretised problem, or of a box without the answer, do not apply to it. Integration
    errors within the tolerance are no contradiction.
    """
    start = answer.start
    if bounds.discretised or start.nodes is not None or not _within(bounds, answer):
        return ""
    evaluation, problem = answer.evaluation, answer.forward.problem
    objective = evaluation.objective
    if bounds.measure != OBJECTIVE:
        objective = FitMeasure.of(problem).value(evaluation.cost, objective)
    allowed = _integration_error(answer.forward, answer.evaluation, start)
    if objective < bounds.lower - allowed:
        return (
            f"the {bounds.measure} of the answer, {objective:.6g}, was below {bounds.lower:.6g}, "
            "which is proved to be a lower bound"
        )
    size = abs(bounds.upper) if bounds.unit is None else bounds.unit
    most = bounds.upper + max(ABOVE_FOUND * size, bounds.negligible) + allowed
    if objective > most:
        return (
            f"the {bounds.measure} of the answer, {objective:.6g}, was above {bounds.upper:.6g}, "
            "which is proved to be reached"
        )
    return ""


def _integration_error(forward: ForwardMap, evaluation: Evaluation, start: Start) -> float:
    """Return the error of the objective within the tolerance of the integration."""
    tolerance = CostTolerance.of(forward)
    accuracy = INTEGRATION_ERRORS * forward.accuracy(evaluation.choice)
    noise = tolerance.noise(evaluation.cost, accuracy, evaluation.jacobian, start.vector)
    return 2 * noise + accuracy * abs(evaluation.objective)


def _within(bounds: Certificate, answer: Answer) -> bool:
    """Return whether an answer is in the box of the bounds."""
    problem, vector = answer.forward.problem, answer.start.vector
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for i, key in enumerate(problem.keys):
        low, high = bounds.assumed.get(key, (-math.inf, math.inf))
        lower[i], upper[i] = max(lower[i], low), min(upper[i], high)
    return bool(np.all((vector >= lower) & (vector <= upper)))


def _integrations(problem: Problem) -> Iterator[tuple[ForwardMap, str]]:
    """Yield forward maps for integrating an answer again, with descriptions."""
    for engine, tolerance in accurate_engines(TOLERANCE):
        try:
            forward = ForwardMap(problem, engine, tolerance)
        except InputError:
            continue  # the engine is not installed, or cannot integrate such equations
        how = f"the engine {engine}"
        yield forward, how if tolerance is None else f"{how} at a tolerance of {tolerance:g}"
