"""Mirror solutions just outside the bounds, whose nearest places within may fit as well.

The equations tell which other values have the same outputs. If those of a solution lie a little
outside a bound, the optimum at the bound may be within the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.common.arrays import Array
from odefit.fitting.fit_stages import FitState
from odefit.fitting.optimum_search import OptimumSearch
from odefit.fitting.places import Candidate
from odefit.fitting.solutions import MAX_SOLUTIONS, solution
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED

JUST = 2.0
"""Largest factor between a mirror solution's value and the bound beyond which it lies."""


def with_mirrors(state: FitState) -> FitState:
    """Add optima within the noise beside mirror solutions that lie just outside the bounds."""
    complete = state.complete
    if complete is None or not complete.outside or state.answer.start.nodes is not None:
        return state
    answer, forward = state.answer, state.answer.forward
    deviance = Deviance.of(*state.at_answer)
    limit = deviance.limit(state.wishes.level)
    if not (math.isfinite(limit) and deviance.variance > 0):
        return state
    search = OptimumSearch(answer, deviance, limit, state.control, state.polished)
    known = {start.index for start in state.polished}
    number = 1 + max(s.index for s in (*state.estimate.starts, *state.polished, answer.start))
    places = [p for o in complete.outside if (p := _within(state, o)) is not None]
    for k, place in enumerate(places[:MAX_SOLUTIONS]):
        if not search.from_place(Candidate(place, math.nan), number + k):
            break
    new = [s for s in search.optima if s.index not in known]
    solutions = list(state.solutions)
    for start in new:
        at = forward.evaluate(start.vector, UNDECIDED)
        if isinstance(at, Evaluation):
            solutions.append(solution(forward.problem, start, at, 0))
    polished = (*state.polished, *new)
    return replace(state, polished=polished, solutions=tuple(solutions[:MAX_SOLUTIONS]))


def _within(state: FitState, outside: Mapping[str, float]) -> Array | None:
    """Return the answer with some values, moved to the bounds they lie just outside of."""
    problem = state.problem
    vector = state.answer.start.vector.copy()
    for key, value in outside.items():
        vector[problem.keys.index(key)] = value
    inside = np.clip(vector, problem.lower, problem.upper)
    moved = inside != vector
    with np.errstate(all="ignore"):
        factors = inside[moved] / vector[moved]
    just = (factors >= 1 / JUST) & (factors <= JUST)
    return inside if just.all() else None
