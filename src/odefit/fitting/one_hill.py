"""Solutions on one hill of the likelihood, which count as one solution that fits.

Where the data determine a combination of unknowns poorly, searches end at several places of one
long ridge. Refits lead from one of them to the other. The unknown that differs most takes some
values between, the others follow, and the deviance hardly rises above that of the worse place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.common.arrays import Array
from odefit.fitting.fit_stages import FitState
from odefit.fitting.solutions import SOLUTION_DISTANCE
from odefit.methods.bounded_problem import with_held
from odefit.methods.estimate import Status
from odefit.methods.local.cost_tolerance import close
from odefit.methods.running.control import GRACE_SECONDS, Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import groups_of
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.result_data import Solution
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

STEPS = 16
"""Number of values of the held unknown from one solution to the other."""

EVALUATIONS = 15
"""Evaluations of one refit."""

SHARE, LEAST = 0.1, 300
"""Share of the fit's evaluations allowed for refits, and the number always allowed."""

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
    walker = _Walker(forward, control, sum(s.evaluations for s in state.estimate.starts))
    slack, most = (part * limit * deviance.variance for part in (0.5 * DIP, MOST_RISE))
    hills = _Hills(walker, several[0].vector, slack, most)
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
        walker.unfinished = False
        place = hills.place(solution.vector)
        if not place:
            joined.append(solution.vector)
        if place in seen:
            continue
        seen.add(place)
        separate.append(solution)
        unsure += walker.unfinished
    uncertainty = state.uncertainty
    joined += hills.reached
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
    each, that solutions take in one of several groups.
    """

    def __init__(self, walker: _Walker, answer: Array, slack: float, most: float) -> None:
        """Solutions count as separate `slack` above the worse, or if linearly `most` apart."""
        self._walker, self._answer = walker, answer
        self._slack, self._most = slack, most
        problem = walker.forward.problem
        groups, every = groups_of(problem), np.arange(len(answer))
        unshared = [] if groups is None else [g.acting - groups.joining for g in groups.groups]
        self._apart = groups is not None
        self._places = [np.array(sorted(unknowns), dtype=np.intp) for unknowns in unshared] or [
            every
        ]
        self._tops: list[list[Array]] = [[answer] for _ in self._places]
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
        tops, walker = self._tops[k], self._walker
        known = next((i for i, top in enumerate(tops) if self._alike(k, vector, top)), None)
        if known is not None:
            return known
        if not apart:
            highest = walker.forward.cost(vector, UNDECIDED) + self._slack
            near = [i for i, top in enumerate(tops) if walker.rise(top, vector) <= self._most]
            for i in near:
                if walker.joins(tops[i], vector, highest):
                    return i
        tops.append(vector)
        return len(tops) - 1

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


class _Walker:
    """Walks by refits, within a number of evaluations."""

    def __init__(self, forward: ForwardMap, control: Control, spent: int) -> None:
        self.forward, self._control = forward, control
        self._left = max(LEAST, SHARE * spent)
        self.unfinished = False  # whether a refit was left out
        self._evaluations: dict[bytes, Evaluation | Failure] = {}

    def rise(self, one: Array, other: Array) -> float:
        """Return the rise of the sum of squares halfway, by linearisation at the better end.

        It is the lesser of both rises. Positive unknowns count by their logarithms.
        """
        problem, lowest = self.forward.problem, np.inf
        ratio = _logarithmic(problem, one, other)
        for at, to in ((one, other), (other, one)):
            evaluation = self._evaluated(at)
            if isinstance(evaluation, Evaluation):
                with np.errstate(all="ignore"):
                    logs = at * np.log(np.where(ratio, to / at, 1.0))
                move = 0.5 * np.where(ratio, logs, to - at)
                lowest = min(lowest, float(np.sum((evaluation.information @ move) ** 2)))
        return lowest

    def _evaluated(self, vector: Array) -> Evaluation | Failure:
        """Return the evaluation of a solution, which is computed once."""
        key = vector.tobytes()
        if key not in self._evaluations:
            self._evaluations[key] = self.forward.evaluate(vector, UNDECIDED)
        return self._evaluations[key]

    def joins(self, one: Array, other: Array, highest: float) -> bool:
        """Return whether refits lead from one solution to the other below a cost."""
        straight = self._straight(one, other, highest)
        return straight or any(
            self._leads(first, last, highest, extrapolated)
            for extrapolated in (False, True)
            for first, last in ((one, other), (other, one))
        )

    def _straight(self, first: Array, last: Array, highest: float) -> bool:
        """Return whether the cost stays below the highest one along a straight way."""
        problem, parts = self.forward.problem, np.arange(1, STEPS) / STEPS
        return all(
            self.forward.cost(_between(problem, first, last, p), UNDECIDED) <= highest
            for p in parts
        )

    def _leads(self, first: Array, last: Array, highest: float, extrapolated: bool = False) -> bool:
        """Return whether refits lead from one solution to another below a cost.

        They begin on the way to the other, or where the last two refits lead if `extrapolated`.
        """
        problem = self.forward.problem
        held = int(np.argmax(np.abs(_away(problem, first, last))))
        before = at = first
        for step in range(1, STEPS):
            point = _between(problem, at, last, 1 / (STEPS + 1 - step))
            alone, along = at.copy(), _between(problem, before, at, 2.0)
            alone[held] = along[held] = point[held]
            for start in (along, point, alone) if extrapolated and step > 1 else (point, alone):
                cost, end = self._refitted(start, held)
                if cost <= highest:
                    before, at = at, end
                    break
            else:
                return False
        return self._straight(at, last, highest)

    def _refitted(self, start: Array, held: int) -> tuple[float, Array]:
        if self._left <= 0 or self._control.should_stop():
            self.unfinished = True
            return np.inf, start
        problem = with_held(self.forward.problem, held, start[held])
        forward = self.forward.of(problem)
        end = SingleShooting(evaluations=EVALUATIONS).run(forward, 0, start, self._control)
        self._left -= end.evaluations
        return (np.inf, start) if end.status is Status.FAILED else (end.cost, end.vector)


def _logarithmic(problem: Problem, one: Array, other: Array) -> Array:
    """Return which unknowns are compared by their ratio, shape (n,)."""
    return np.asarray((problem.lower >= 0) & (one > 0) & (other > 0))


def _away(problem: Problem, one: Array, other: Array) -> Array:
    """Return the distance of two points in each unknown, relative to its size, shape (n,)."""
    ratio = _logarithmic(problem, one, other)
    with np.errstate(all="ignore"):
        logs = np.log(np.where(ratio, other / one, 1.0))
    return np.where(ratio, logs, (other - one) / np.maximum(sizes_at(problem, one), 1e-300))


def _between(problem: Problem, one: Array, other: Array, part: float) -> Array:
    """Return the point at a part of the way from one to the other."""
    ratio = _logarithmic(problem, one, other)
    with np.errstate(all="ignore"):
        along = np.where(ratio, one * np.where(ratio, other / one, 1.0) ** part, 0.0)
    point = np.where(ratio, along, one + part * (other - one))
    return np.clip(point, problem.lower, problem.upper)
