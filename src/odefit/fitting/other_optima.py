"""Other optima that fit within the noise: the data do not tell them from the answer.

A search ends most of its starts coarsely, and polishes the best alone. Ends that another polish may
bring within the limit of the likelihood ratio are polished here, and what is then an optimum of its
own, with other values of the unknowns, is a solution that fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.fitting_solutions import fitting_solutions
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.uncertainty import intervals_of_bad_fit
from odefit.assessment.local import assess_local
from odefit.assessment.parts import Uncertainty
from odefit.common.arrays import Array
from odefit.common.effects import undetermined
from odefit.fitting.fit_stages import FitState
from odefit.fitting.solutions import DISTANCE
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance, close
from odefit.methods.polish import Answer, answer_by
from odefit.methods.running.control import Control, interruptible
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.result_data import Solution
from odefit.simulation import Evaluation
from odefit.simulation.engines.cut_off import CutOffError

NEAR = 1e-2
"""Relative difference of all unknowns up to which two ends lead to the same optimum."""

REACH = 10.0
"""Deviance of an end that is not polished, relative to the limit, up to which polishing is tried:
the polish of a coarse end seldom gains more."""

SHARE, LEAST = 0.1, 50
"""Share of the evaluations of the fit that polishing other ends may take, and the number that it
may take in any case."""

MOST = 60
"""Evaluations for one end."""


def with_other_ends(state: FitState) -> bool:
    """Return whether other ends of the search may be other answers.

    Where the answer reproduces the data and no noise is given, nothing else fits within it.
    """
    if state.found is None or not state.wanted.polish or state.estimate.completeness is not None:
        return False
    return state.answer.forward.given_noise or not state.unbeatable


def with_other_optima(state: FitState) -> FitState:
    """Polish other ends that may fit within the noise; one that is better is the answer."""
    old = state.answer
    polished = other_optima(old, state.estimate, state.wanted.level, state.control)
    first = next(iter(polished), old.start)
    if first.cost < old.start.cost and not CostTolerance.of(old.forward).same(first, old.start):
        found = answer_by(old.forward, first, state.estimate, state.control, True)
        if isinstance(found, Answer):
            return replace(state, found=found, polished=(*polished, old.start))
    return replace(state, polished=polished)


def near_solutions(state: FitState, equal: Sequence[Solution]) -> tuple[Solution, ...]:
    """Return the solutions that were polished and do not fit as well as the best ones."""
    vectors = [start.vector for start in state.polished]
    return tuple(
        s
        for s in state.solutions
        if s not in equal and any(np.array_equal(s.vector, v) for v in vectors)
    )


def with_fitting(state: FitState) -> tuple[Solution, ...]:
    """Return all solutions, those that fit with their deviances, weights and intervals."""
    several = [s for s in (*state.equal, *state.near) if s.nodes is None]
    if len(several) < 2 or state.uncertainty is None or several[0] is not state.solutions[0]:
        return state.solutions
    forward, vector, evaluation = state.at_answer

    def adapted(x: Array, uncertainty: Uncertainty) -> Uncertainty:
        wanted = state.wanted.intervals
        return intervals_of_bad_fit(state.problem, x, uncertainty, state.goodness, wanted)

    at_best = vector, evaluation, state.uncertainty
    known = fitting_solutions(forward, at_best, [s.vector for s in several[1:]], adapted)
    described = {
        id(s): replace(
            s,
            deviance=found.deviance,
            weight=found.weight,
            intervals=tuple((float(low), float(high)) for low, high in found.intervals),
        )
        for s, found in zip(several, known, strict=True)
        if found is not None
    }
    return tuple(described.get(id(s), s) for s in state.solutions)


def other_optima(
    answer: Answer, estimate: Estimate, level: float, control: Control
) -> tuple[Start, ...]:
    """Return optima besides the answer whose deviance is within the limit, the lowest first.

    Each has the index of the start that led there. Differences of unknowns that are not
    determined at the answer do not count. An optimum that is better than the answer is among them.
    """
    forward, best = answer.forward, answer.start
    deviance = Deviance.of(forward, best.vector, answer.evaluation)
    limit = deviance.limit(level)
    if not (math.isfinite(limit) and deviance.variance > 0) or best.nodes is not None:
        return ()
    sizes = expected_sizes(forward.problem)
    ignored = undetermined(answer.evaluation.information, sizes_at(forward.problem, best.vector))
    left = max(LEAST, SHARE * sum(start.evaluations for start in estimate.starts))
    tried: list[Array] = [best.vector]
    found: list[Start] = []
    for end in _ends(estimate):
        height = deviance.at(end.cost)
        if left <= 0 or control.should_stop():
            break
        if height > (limit if end.status is Status.CONVERGED else REACH * limit):
            continue
        if any(close(end.vector, x, NEAR, sizes, ignored) for x in tried):
            continue
        tried.append(end.vector)
        search = SingleShooting(evaluations=int(min(left, MOST)) + 1)
        try:
            with interruptible(control):
                polished = search.run(forward, end.index, end.vector, control)
        except CutOffError:
            break
        left -= polished.evaluations
        if polished.status is Status.FAILED or deviance.at(polished.cost) > limit:
            continue
        tried.append(polished.vector)
        known = [best.vector, *(s.vector for s in found)]
        if any(close(polished.vector, x, DISTANCE, sizes, ignored) for x in known):
            continue
        evaluation = forward.evaluate(polished.vector)
        if isinstance(evaluation, Evaluation) and (
            assess_local(forward, polished.vector, evaluation).optimal
        ):
            found.append(replace(polished, status=Status.CONVERGED))
    return tuple(sorted(found, key=lambda s: (s.cost, s.index)))


def _ends(estimate: Estimate) -> list[Start]:
    """Return the ends that may be polished: the converged ones first, as they need little."""
    usable = (
        s
        for s in estimate.starts
        if s.status is not Status.FAILED and s.nodes is None and math.isfinite(s.cost)
    )
    return sorted(usable, key=lambda s: (s.status is not Status.CONVERGED, s.cost, s.index))
