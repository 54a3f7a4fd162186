"""Continuation of solutions by refits, along ridges of the likelihood.

One unknown is held at values between two solutions, or from one solution onwards, and the others
are refitted. As in the continuation of curves (E. L. Allgower and K. Georg, Introduction to
Numerical Continuation Methods, 2003), steps along a ridge begin in its flat direction, and the
unknown that changes most is held.
"""

from __future__ import annotations

from typing import NamedTuple

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

ALONG = 0.5
"""Smallest cosine of the angle between a flat direction and the secant of a ridge."""

LEADING = 0.5
"""Smallest change of an unknown along a ridge, relative to the largest, at whose bound it ends."""

DIGITS = 6  # of parts of a step: rounding does not decide which unknown is held

ROUNDING = 1e-5  # part of a step below which an unknown is at its bound

Place = tuple[float, Array]
"""The cost of the unknowns, and their values, shape (n,)."""


class Ridge(NamedTuple):
    """Places along a flat direction; it is `whole` if it ends at bounds or in itself."""

    places: list[Place]
    whole: bool


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
        rows = self._flat(vector)
        left, places = 0.5 * self._left, list[Place]()
        for k, row in enumerate(rows):
            share = (self._left - left) / (len(rows) - k)
            places += self.ridge(vector, row, highest, share).places
        return places

    def ridge(self, vector: Array, direction: Array, highest: float, most: float) -> Ridge:
        """Return the same for one direction, in natural units, within a number of evaluations."""
        away, least = direction / self._scale(vector), self._left - most
        one = self._one_way(vector, away, highest, least + 0.5 * most)
        other = self._one_way(vector, -away, highest, least)
        return Ridge(one.places + other.places, one.whole and other.whole)

    def _flat(self, vector: Array) -> Array:
        """Return the flat directions at a place in natural units, shape (d, n)."""
        problem, evaluation = self.forward.problem, self._evaluated(vector)
        if not isinstance(evaluation, Evaluation):
            return np.zeros((0, len(vector)))
        information = evaluation.information
        _, effective = acting(information, sizes_at(problem, vector))
        rows = null_directions(problem, vector, information, effective)
        return rows * sizes_at(problem, vector, part=0.0)

    def _scale(self, vector: Array) -> Array:
        """Return the sizes of unknowns by which :func:`_away` divides small changes, shape (n,)."""
        problem = self.forward.problem
        logarithmic = _logarithmic(problem, vector, vector)
        return np.where(logarithmic, vector, sizes_at(problem, vector))

    def _tangent(self, vector: Array, secant: Array) -> Array:
        """Return the flat direction closest to the secant of a ridge, as of :func:`_away`.

        It is the secant itself where no direction is flat, or another ridge crosses.
        """
        self._left -= 1
        basis, _ = np.linalg.qr((self._flat(vector) / self._scale(vector)).T)
        tangent = basis @ (basis.T @ secant)
        unlike = np.linalg.norm(tangent) < ALONG * np.linalg.norm(secant)
        return secant if unlike else tangent

    def _one_way(self, first: Array, away: Array, highest: float, least: float) -> Ridge:
        """Return refits below a cost that follow a direction, while evaluations are left."""
        problem, step, at, places = self.forward.problem, FIRST, first, list[Place]()
        while step >= SHORTEST:
            if self._left <= least:
                self.cut = True
                break
            direction = away / np.abs(away).max()
            held, part = self._held(at, direction, step)
            if part < ROUNDING:  # it is at its bound
                return Ridge(places, True)
            start = _moved(problem, at, part * step * direction)
            cost, end = self._refitted(start, held, FEW)
            if cost > highest or distance(problem, start, end) > BEND * step:
                step *= 0.5
                continue
            away, at = self._tangent(end, _away(problem, at, end)), end
            places.append((cost, end))
            if len(places) > 2 and distance(problem, end, first) <= step:
                return Ridge(places, True)
            step = min(GROWTH * step, LONGEST)
        return Ridge(places, False)

    def _held(self, at: Array, direction: Array, step: float) -> tuple[int, float]:
        """Return the unknown to be held after a step, and the part of the step within the bounds.

        It is the one that changes most, or the one that reaches its bound first.
        """
        leading = np.flatnonzero(np.abs(direction) >= LEADING)
        leading = leading[np.argsort(-np.abs(direction[leading]))]
        problem = self.forward.problem
        inside = _away(problem, at, _moved(problem, at, step * direction))
        parts = np.round(inside[leading] / (step * direction[leading]), DIGITS)
        first = int(np.argmin(parts))
        return int(leading[first]), float(parts[first])

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
