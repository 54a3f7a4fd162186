"""Continuation of solutions by refits, along ridges of the likelihood.

One unknown is held at values between two solutions, or from one solution onwards, and the others
are refitted. The unknown that is held is the one that changes most, as in the continuation of
curves (E. L. Allgower and K. Georg, Introduction to Numerical Continuation Methods, 2003).
"""

from __future__ import annotations

import numpy as np

from odefit.assessment.intervals.directions import null_directions
from odefit.common.arrays import Array
from odefit.common.effects import acting
from odefit.methods.bounded_problem import with_held
from odefit.methods.estimate import Status
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

STEPS = 16
"""Number of parts of the way from one solution to the other, between which an unknown is held."""

STEP, LEAST_STEPS = 0.1, 4
"""Relative change of that unknown in one part of a shorter way, and the least number of parts."""

EVALUATIONS, FEW = 15, 5
"""Evaluations of one refit; of one that begins close to a ridge."""

SHARE, LEAST = 0.1, 300
"""Share of the fit's evaluations allowed for refits, and the number always allowed."""

FIRST, SHORTEST, LONGEST = 0.2, 0.02, 0.5
"""First, shortest and longest step along a ridge: the relative change of the held unknown."""

GROWTH = 1.5
"""Growth of steps along a ridge."""

BEND = 0.5
"""Largest move of a refit, relative to the step, of a step along a ridge."""

Place = tuple[float, Array]
"""The cost of the unknowns, and their values, shape (n,)."""


class Continuation:
    """Refits from solution to solution, within a number of evaluations."""

    def __init__(self, forward: ForwardMap, control: Control, spent: int) -> None:
        self.forward, self._control = forward, control
        self._left = max(LEAST, SHARE * spent)
        self.unfinished = False  # whether a refit was left out
        self.cut = False  # whether a ridge continues where its evaluations end
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

    def way(self, one: Array, other: Array, highest: float) -> list[Place] | None:
        """Return costs and places of refits from one solution to the other below a cost.

        The list is empty where the straight way is that low. It is None if no refits lead there.
        """
        if self._straight(one, other, highest):
            return []
        for extrapolated in (False, True):
            for first, last in ((one, other), (other, one)):
                places = self._refits(first, last, highest, extrapolated)
                if places is not None:
                    return places
        return None

    def ridges(self, vector: Array, highest: float) -> list[Place]:
        """Return costs and places of refits along flat directions from a solution, both ways.

        They end at a bound, above a cost, back at the solution, or when half of the evaluations are
        used up. Unlike a way to a given place, a ridge may turn back in every unknown.
        """
        problem, evaluation = self.forward.problem, self._evaluated(vector)
        if not isinstance(evaluation, Evaluation):
            return []
        sizes, information = sizes_at(problem, vector), evaluation.information
        _, effective = acting(information, sizes)
        rows = null_directions(problem, vector, information, effective)
        scale = np.where(_logarithmic(problem, vector, vector), vector, sizes)
        directions = [sign * row * sizes / scale for row in rows for sign in (1, -1)]
        least, places = 0.5 * self._left, list[Place]()
        for k, direction in enumerate(directions):
            share = (self._left - least) / (len(directions) - k)
            places += self._ridge(vector, direction, highest, self._left - share)
        return places

    def _ridge(self, first: Array, away: Array, highest: float, least: float) -> list[Place]:
        """Return refits below a cost that follow a direction, while evaluations are left."""
        problem, step, at, places = self.forward.problem, FIRST, first, list[Place]()
        while step >= SHORTEST:
            if self._left <= least:
                self.cut = True
                break
            direction = away / np.abs(away).max()
            held = int(np.argmax(np.abs(direction)))
            part = _away(problem, at, _moved(problem, at, step * direction))[held]
            start = _moved(problem, at, part / direction[held] * direction)
            if start[held] == at[held]:  # at its bound
                break
            cost, end = self._refitted(start, held, FEW)
            if cost > highest or distance(problem, start, end) > BEND * step:
                step *= 0.5
                continue
            away, at = _away(problem, at, end), end
            places.append((cost, end))
            if len(places) > 2 and distance(problem, end, first) <= step:
                break
            step = min(GROWTH * step, LONGEST)
        return places

    def _straight(self, first: Array, last: Array, highest: float) -> bool:
        """Return whether the cost stays below the highest one along a straight way."""
        problem, parts = self.forward.problem, np.arange(1, STEPS) / STEPS
        return all(
            self.forward.cost(between(problem, first, last, p), UNDECIDED) <= highest for p in parts
        )

    def _refits(
        self, first: Array, last: Array, highest: float, extrapolated: bool = False
    ) -> list[Place] | None:
        """Return costs and places of refits from one solution to another below a cost, if any.

        They begin on the way to the other, or where the last two refits lead if `extrapolated`.
        """
        problem = self.forward.problem
        away = np.abs(_away(problem, first, last))
        held = int(np.argmax(away))
        steps = int(np.clip(np.ceil(away[held] / STEP), LEAST_STEPS, STEPS))
        before = at = first
        places: list[Place] = []
        for step in range(1, steps):
            point = between(problem, at, last, 1 / (steps + 1 - step))
            alone, along = at.copy(), between(problem, before, at, 2.0)
            alone[held] = along[held] = point[held]
            for start in (along, point, alone) if extrapolated and step > 1 else (point, alone):
                cost, end = self._refitted(start, held)
                if cost <= highest:
                    before, at = at, end
                    places.append((cost, end))
                    break
            else:
                return None
        return places if self._straight(at, last, highest) else None

    def _refitted(self, start: Array, held: int, most: int = EVALUATIONS) -> Place:
        if self._left <= 0 or self._control.should_stop():
            self.unfinished = True
            return np.inf, start
        problem = with_held(self.forward.problem, held, start[held])
        forward = self.forward.of(problem)
        end = SingleShooting(evaluations=most).run(forward, 0, start, self._control)
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


def _moved(problem: Problem, one: Array, away: Array) -> Array:
    """Return the point within the bounds at a distance as of :func:`_away` from another."""
    ratio = _logarithmic(problem, one, one)
    with np.errstate(all="ignore"):
        logs = one * np.exp(np.where(ratio, away, 0.0))
    point = np.where(ratio, logs, one + away * sizes_at(problem, one))
    return np.clip(point, problem.lower, problem.upper)


def distance(problem: Problem, one: Array, other: Array) -> float:
    """Return the largest distance of two points in an unknown, relative to its size."""
    return float(np.abs(_away(problem, one, other)).max())


def between(problem: Problem, one: Array, other: Array, part: float) -> Array:
    """Return the point at a part of the way from one to the other."""
    ratio = _logarithmic(problem, one, other)
    with np.errstate(all="ignore"):
        along = np.where(ratio, one * np.where(ratio, other / one, 1.0) ** part, 0.0)
    point = np.where(ratio, along, one + part * (other - one))
    return np.clip(point, problem.lower, problem.upper)
