"""Solutions on one hill of the likelihood, which count as one solution that fits.

Where the data determine a combination of unknowns poorly, searches end at several places of one
long ridge. Refits lead from one of them to the other. The unknown that differs most takes some
values between, the others follow, and the deviance hardly rises above that of the worse place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.continuation import Continuation, Place, distance
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.common.arrays import Array
from odefit.fitting.fit_stages import FitState
from odefit.fitting.solutions import SOLUTION_DISTANCE
from odefit.methods.local.cost_tolerance import close
from odefit.methods.running.control import GRACE_SECONDS
from odefit.problem.variants.parts import groups_of
from odefit.problem.variants.sizes import expected_sizes
from odefit.result_data import Solution
from odefit.simulation.engines.engine_choice import UNDECIDED

SHARE_OF_TIME = 0.25
"""Share of the time that is left for refits."""

DIP = 0.05
"""Largest deviance above that of the worse solution, relative to the limit, of the way between
solutions of one hill."""

MOST_RISE = 3e4
"""Largest deviance halfway by linearisation, relative to the limit, of solutions worth a
walk: other turns of an oscillation have far more between them."""


def with_hills(state: FitState) -> FitState:
    """Count solutions on one hill as the best of them, whose intervals reach the others."""
    several = [*state.equal, *state.near]
    if any(s.nodes is not None for s in several):
        return state
    forward = state.answer.forward
    deviance = Deviance.of(*state.at_answer)
    limit = deviance.limit(state.wishes.level)
    if not (np.isfinite(limit) and deviance.variance > 0):
        return state
    control = state.control
    if control.deadline is not None:  # the seconds from the limit to the cut-off count, too
        control = control.ending_in(SHARE_OF_TIME * (control.seconds_left + GRACE_SECONDS))
    refits = Continuation(forward, control, sum(s.evaluations for s in state.estimate.starts))
    slack, most = (part * limit * deviance.variance for part in (0.5 * DIP, MOST_RISE))
    hills = _Hills(refits, several[0].vector, slack, most)
    separate: list[Solution] = several[:1]
    joined: list[Array] = []
    seen = {frozenset[tuple[int, int]]()}
    if state.complete is not None and state.complete.known:
        for solution in several[1:]:  # the equations tell that these are different
            if any(np.array_equal(solution.vector, c) for c in state.copies):
                separate.append(solution)
                seen.add(hills.place(solution.vector, apart=True))
    unsure = 0
    for solution in (s for s in several if s not in separate):
        refits.unfinished = False
        place = hills.place(solution.vector)
        if not place:
            joined.append(solution.vector)
        if place in seen:
            continue
        seen.add(place)
        separate.append(solution)
        unsure += refits.unfinished or (refits.cut and solution in state.equal)
    uncertainty = state.uncertainty
    joined += [*hills.reached, *hills.ridges]
    if joined and uncertainty is not None:
        uncertainty = reaching(uncertainty, joined)
    return replace(
        state,
        equal=tuple(s for s in state.equal if s in separate),
        near=tuple(s for s in state.near if s in separate),
        uncertainty=uncertainty,
        unsure=unsure,
    )


class _Hills:
    """The hills on which solutions lie, by groups of experiments with unknowns of their own.

    The deviance is a sum over such groups. So a solution lies on a hill of each group, and there
    only its own unknowns of the group count. `reached` are values on the answer's hills, shape (n,)
    each, that solutions take in one of several groups, and `ridges` values along directions that
    the data do not determine.
    """

    def __init__(self, refits: Continuation, answer: Array, slack: float, most: float) -> None:
        """Solutions count as separate `slack` above the worse, or if linearly `most` apart."""
        self._refits, self._answer = refits, answer
        self._slack, self._most = slack, most
        problem = refits.forward.problem
        groups, every = groups_of(problem), np.arange(len(answer))
        unshared = [] if groups is None else [g.acting - groups.joining for g in groups.groups]
        self._apart = groups is not None
        self._places = [np.array(sorted(unknowns), dtype=np.intp) for unknowns in unshared] or [
            every
        ]
        # The known places of each hill, and their costs: its solutions, and ways between them.
        cost = refits.forward.cost(answer, UNDECIDED)
        ridges = [] if self._apart else refits.ridges(answer, cost + slack)
        self._hills: list[list[list[Place]]] = [[[(cost, answer), *ridges]] for _ in self._places]
        self.ridges = [vector for _, vector in ridges]
        self._sizes = expected_sizes(problem)
        self.reached: list[Array] = []

    def place(self, vector: Array, *, apart: bool = False) -> frozenset[tuple[int, int]]:
        """Return the groups and numbers of the hills other than those of the answer.

        With `apart`, it is known that the solution lies on no hill that is known so far.
        """
        moved = [k for k in range(len(self._places)) if not self._alike(k, vector, self._answer)]
        hills = set[tuple[int, int]]()
        for k in moved:
            alone = vector
            if len(moved) > 1:
                alone = self._answer.copy()
                alone[self._places[k]] = vector[self._places[k]]
            number = self._number(k, alone, apart)
            if number:
                hills.add((k, number))
            elif len(moved) > 1:
                self.reached.append(alone)
        return frozenset(hills)

    def _number(self, k: int, vector: Array, apart: bool) -> int:
        """Return the number of a hill in a group; it becomes a known one."""
        hills, refits = self._hills[k], self._refits
        for number, hill in enumerate(hills):
            if any(self._alike(k, vector, place) for _, place in hill):
                return number
        cost = refits.forward.cost(vector, UNDECIDED)
        highest = cost + self._slack
        for number, hill in enumerate(hills if not apart else ()):
            low = [place for height, place in hill if height <= highest] or [hill[0][1]]
            nearest = min(low, key=lambda place: distance(refits.forward.problem, place, vector))
            if refits.rise(nearest, vector) > self._most:
                continue
            way = refits.way(nearest, vector, highest)
            if way is not None:
                hill += [*way, (cost, vector)]
                return number
        hills.append([(cost, vector)])
        return len(hills) - 1

    def _alike(self, k: int, one: Array, other: Array) -> bool:
        """Return whether two solutions take the same values in one of several groups."""
        at = self._places[k]
        return self._apart and close(one[at], other[at], SOLUTION_DISTANCE, self._sizes[at])


def reaching(uncertainty: Uncertainty, vectors: Sequence[Array]) -> Uncertainty:
    """Return the uncertainty with intervals that hold other values of the same hill, too.

    `vectors` are n unknowns each. Intervals that are withheld stay so.
    """
    intervals, values = uncertainty.intervals.copy(), np.array(vectors)
    trouble, notes = dict(uncertainty.trouble), dict(uncertainty.notes)
    for k, key in enumerate(uncertainty.keys):
        low, high = min(values[:, k]), max(values[:, k])
        within = intervals[k, 0] <= low and high <= intervals[k, 1]
        if within or not np.isfinite(intervals[k]).all():
            continue
        intervals[k] = min(intervals[k, 0], low), max(intervals[k, 1], high)
        trouble.setdefault(key, Trouble.NOT_LINEAR)
        notes[key] = (
            "the interval reaches to other values that fit within the noise, on the same hill of "
            "the likelihood; a profile can tell more"
        )
    return replace(uncertainty, intervals=intervals, trouble=trouble, notes=notes)
