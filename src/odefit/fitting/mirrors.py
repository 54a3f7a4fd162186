"""Mirror solutions of an answer, as far as bounds act on it or on them.

The equations determine all other values with the same outputs. If such a solution lies a little
outside a bound, the optimum at the bound may be within the noise. If the answer itself is at a
bound, its copies elsewhere are no optima: no bound holds them back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.local import assess_local
from odefit.common.arrays import Array
from odefit.fitting.fit_stages import FitState, repeated
from odefit.fitting.optimum_search import OptimumSearch
from odefit.fitting.places import Candidate
from odefit.fitting.solutions import MAX_SOLUTIONS, solution
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.polish import Answer, answer_by
from odefit.result_data import Solution
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED

REPEATED = "other optima", "count of solutions"
"""The first and the last of the stages that follow a better answer."""

JUST = 2.0
"""Largest factor between a mirror solution's value and the bound beyond which it lies."""


def with_mirrors(state: FitState, known: Sequence[Solution]) -> FitState:
    """Improve copies of an answer at a bound, and add optima beside those just outside the bounds.

    `known` are the solutions before the copies were added.
    """
    improved = _with_improved_copies(state, known)
    if improved.answer is state.answer:
        others = [s.vector for s in known] + [s.vector for s in improved.polished]
        vectors = [s.vector for s in improved.solutions]
        copies = tuple(v for v in vectors if not any(np.array_equal(v, o) for o in others))
        improved = replace(improved, copies=copies)
    return _with_optima_at_bounds(improved)


def _with_optima_at_bounds(state: FitState) -> FitState:
    """Add optima within the noise beside mirror solutions that lie just outside the bounds."""
    complete, search = state.complete, _search(state)
    if complete is None or not complete.outside or search is None:
        return state
    forward = state.answer.forward
    known = {start.index for start in state.polished}
    number = _next_number(state)
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


def _with_improved_copies(state: FitState, known: Sequence[Solution]) -> FitState:
    """Replace copies of an answer at a bound by the optima that local fits from them lead to.

    If one of these optima is better than the answer, it becomes the answer, and its stages follow.
    """
    answer, forward = state.answer, state.answer.forward
    if answer.start.nodes is not None or not any(
        bounds_touched(forward.problem, answer.start.vector)
    ):
        return state
    search = _search(state)
    vectors = [s.vector for s in known]
    number, solutions, new = _next_number(state), list[Solution](), list[Start]()
    for copy in state.solutions:
        at = forward.evaluate(copy.vector, UNDECIDED)
        if (
            search is None
            or any(np.array_equal(copy.vector, v) for v in vectors)
            or not isinstance(at, Evaluation)
            or assess_local(forward, copy.vector, at).optimal
        ):
            solutions.append(copy)
            continue
        search.follow(copy.vector, number)
        for start in (s for s in search.optima if s.index == number):
            end = forward.evaluate(start.vector, UNDECIDED)
            if isinstance(end, Evaluation):
                new.append(start)
                solutions.append(solution(forward.problem, start, end, 0))
        number += 1
    tolerance = CostTolerance.of(forward)
    best = min(new, key=lambda s: s.cost, default=answer.start)
    if best.cost < answer.start.cost and not tolerance.same(best, answer.start):
        better = answer_by(forward, best, state.estimate, state.control, True)
        if isinstance(better, Answer):
            return repeated(state, better, *REPEATED)
    return replace(state, polished=(*state.polished, *new), solutions=tuple(solutions))


def _search(state: FitState) -> OptimumSearch | None:
    """Return a search for optima within the noise of the answer; None without a limit."""
    deviance = Deviance.of(*state.at_answer)
    limit = deviance.limit(state.wishes.level)
    possible = math.isfinite(limit) and deviance.variance > 0
    if not possible or state.answer.start.nodes is not None:
        return None
    return OptimumSearch(state.answer, deviance, limit, state.control, state.polished)


def _next_number(state: FitState) -> int:
    """Return the index of a new start, above those of all known ones."""
    return 1 + max(s.index for s in (*state.estimate.starts, *state.polished, state.answer.start))


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
