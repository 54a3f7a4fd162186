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
    known = state.complete is not None and state.complete.known
    separate: list[Solution] = several[:1]
    if known:  # the equations tell that these are different
        separate += (
            s for s in several[1:] if any(np.array_equal(s.vector, c) for c in state.copies)
        )
    joined: list[Solution] = []
    groups = _moved_groups(forward.problem, [s.vector for s in several])
    moved = {id(s): numbers for s, numbers in zip(several, groups, strict=True)}
    unsure = 0
    slack, most = (part * limit * deviance.variance for part in (0.5 * DIP, MOST_RISE))
    for solution in (s for s in several if s not in separate):
        highest = forward.cost(solution.vector, UNDECIDED) + slack
        here = moved[id(solution)]
        near = [
            k
            for k in separate
            if (moved[id(k)] <= here or here <= moved[id(k)])
            and walker.rise(k.vector, solution.vector) <= most
        ]
        walker.unfinished = False
        joining = next((k for k in near if walker.joins(k.vector, solution.vector, highest)), None)
        if joining is None:
            separate.append(solution)
            unsure += walker.unfinished
        elif joining is several[0]:
            joined.append(solution)
    uncertainty = state.uncertainty
    if joined and uncertainty is not None:
        uncertainty = reaching(uncertainty, [s.vector for s in joined])
    return replace(
        state,
        equal=tuple(s for s in state.equal if s in separate),
        near=tuple(s for s in state.near if s in separate),
        uncertainty=uncertainty,
        unsure=unsure,
    )


def _moved_groups(problem: Problem, vectors: Sequence[Array]) -> list[frozenset[int]]:
    """Return the groups of experiments in whose own unknowns vectors differ from the first one.

    The deviance is a sum over such groups. So there is no way between solutions that differ from
    the answer in one group each, unless one of them is on the answer's hill.
    """
    groups = groups_of(problem)
    if groups is None:
        return [frozenset()] * len(vectors)
    places = [np.array(sorted(g.acting - groups.joining), dtype=np.intp) for g in groups.groups]
    sizes = expected_sizes(problem)
    return [
        frozenset(
            number
            for number, at in enumerate(places)
            if not close(vector[at], vectors[0][at], SOLUTION_DISTANCE, sizes[at])
        )
        for vector in vectors
    ]


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
        self._forward, self._control = forward, control
        self._left = max(LEAST, SHARE * spent)
        self.unfinished = False  # whether a refit was left out
        self._evaluations: dict[bytes, Evaluation | Failure] = {}

    def rise(self, one: Array, other: Array) -> float:
        """Return the rise of the sum of squares halfway, by linearisation at the better end.

        It is the lesser of both rises. Positive unknowns count by their logarithms.
        """
        problem, lowest = self._forward.problem, np.inf
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
            self._evaluations[key] = self._forward.evaluate(vector, UNDECIDED)
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
        problem, parts = self._forward.problem, np.arange(1, STEPS) / STEPS
        return all(
            self._forward.cost(_between(problem, first, last, p), UNDECIDED) <= highest
            for p in parts
        )

    def _leads(self, first: Array, last: Array, highest: float, extrapolated: bool = False) -> bool:
        """Return whether refits lead from one solution to another below a cost.

        They begin on the way to the other, or where the last two refits lead if `extrapolated`.
        """
        problem = self._forward.problem
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
        problem = with_held(self._forward.problem, held, start[held])
        forward = self._forward.of(problem)
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
