"""The farthest values of curves and of numbers among all unknowns that fit well enough.

The end of a band by profile likelihood is the largest or the smallest value at a time under the
condition that the deviance is at most its limit. Each step solves this with a linear value and a
damped Gauss-Newton model of the cost; a penalty for cost beyond the limit judges the step (J.
Nocedal and S. J. Wright, Numerical Optimization, 2006, section 18.5). The farthest point at one
time is nearly the farthest at neighbouring times, and every point that fits bounds all curves at
once. So a grid of times is one continuation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import outputs_of
from odefit.assessment.profiles.coordinates import Coordinates
from odefit.assessment.profiles.families import NO_EFFECT
from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.problem.condition import Condition
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

BOUNDLESS = 1e9
"""Distance from the estimate, in sizes of the curve, beyond which a value counts as unbounded."""

ASTRAY = 5.0
"""Largest deviance, relative to the limit, from which a step can lead back to it."""

MAX_STEPS = 200
"""Largest number of steps to one end."""

SETTLED = 2e-3
"""Gain, relative to the distance from the estimate, that ends the search."""

AT_THE_LIMIT = 2e-2
"""Largest relative distance of the deviance from its limit that is linear enough to correct."""

BEYOND = 1e-3
"""Fraction of the limit by which a point may exceed it and still count as fitting."""

BETTER = 0.01
"""Deviance below the estimate's, relative to the limit, that indicates a better optimum."""

DAMPING, MOST_DAMPING = 1e-2, 1e8
"""Damping of the first step, relative to the Gauss-Newton matrix of columns of unit length, and the
largest damping, at which steps no longer help."""


@dataclass(frozen=True, eq=False)
class Point:
    """An evaluation with the curves of one condition and their gradients at some times."""

    vector: Array
    evaluation: Evaluation
    curves: Mapping[str, Array]
    gradients: Mapping[str, Array]


@dataclass(frozen=True)
class End:
    """The farthest value of a curve at one time; `settled` is true if the search converged."""

    value: float
    settled: bool


Curves = tuple[dict[str, Array], dict[str, Array]]
"""Values of curves by name, shape (times,), and their gradients, shape (chosen times, n)."""


class CurvesOfCondition:
    """The curves of some observables and states in one condition.

    The `grid` has the times, and the indices of those `chosen` at which gradients are computed.
    """

    def __init__(
        self,
        forward: ForwardMap,
        condition: Condition,
        grid: tuple[Array, IntArray],
        names: Collection[str],
    ) -> None:
        self._forward, self._condition, self._names = forward, condition, names
        self._times, self._chosen = grid
        self._choice = UNDECIDED

    def __call__(self, vector: Array) -> Curves | None:
        """Return the curves of the unknowns, and their gradients; None if integration fails."""
        trajectory = self._forward.trajectory(
            vector, self._condition.name, self._times, choice=self._choice
        )
        self._choice = trajectory.choice
        if isinstance(trajectory, Failure):
            return None
        curves, gradients = {}, {}
        outputs = outputs_of(self._forward, self._condition, vector, trajectory, self._names)
        for name, (output, _) in outputs.items():
            curves[name] = output.array(len(self._times))
            gradients[name] = output.gradient(len(vector), len(self._times))[self._chosen]
        return curves, gradients


class FarthestValues:
    """The farthest values of some curves, based on all evaluations so far.

    `curves_of` a vector returns them; `chosen` are the indices of the times at which values are
    sought. `estimates` are the optimum where the search starts and, if different, the user's
    estimate, whose curves belong to the band too. The `deviance` is relative to the best. `low` and
    `high` hold the smallest and largest value of each curve at all times among the points that fit.
    `better` is a vector that fits better than the optimum, if one was found.
    """

    def __init__(
        self,
        forward: ForwardMap,
        curves_of: Callable[[Array], Curves | None],
        chosen: IntArray,
        estimates: tuple[Array, ...],
        deviance: Deviance,
        limit: float,
    ) -> None:
        self._forward, self._curves_of, self.chosen = forward, curves_of, chosen
        self._deviance, self._limit = deviance, limit
        self._most = deviance.cost(limit)
        self.better: Array | None = None
        self.evaluations = 0
        self._choice = UNDECIDED
        self._points: list[Point] = []
        self.low: dict[str, Array] = {}
        self.high: dict[str, Array] = {}
        self._estimate, *_ = [self._at(vector) for vector in estimates]

    def end(self, name: str, k: int, sign: int) -> End:
        """Return the farthest value of a curve at the time chosen as number `k`, below or above."""
        if self._estimate is None:
            return End(math.nan, settled=False)
        place = self.chosen[k]
        here = max(self._points, key=lambda p: sign * p.curves[name][place])
        centre = float(self._estimate.curves[name][place])
        whole = self._most - self._deviance.minimum
        damping, price = DAMPING, 0.0
        known = self._estimate.curves[name]
        size = float(np.abs(known[np.isfinite(known)]).max(initial=0.0)) or 1.0

        def merit(point: Point) -> float:
            over = max(point.evaluation.cost - self._most, 0.0)
            return sign * float(point.curves[name][place]) - price * over

        # the point of a risky step, and its predicted gain
        before: tuple[Point, float] | None = None
        for _ in range(MAX_STEPS):
            uphill = sign * here.gradients[name][k]
            step = _Step.of(self._forward, here, uphill, self._most, self._deviance.variance)
            move, worth = step.damped(min(damping, DAMPING))
            reach = abs(float(here.curves[name][place]) - centre)
            if reach > BOUNDLESS * size and -step.room <= AT_THE_LIMIT * whole:
                return End(sign * math.inf, settled=True)
            if -step.room <= AT_THE_LIMIT * whole:
                at_limit = step.room <= AT_THE_LIMIT * whole
                more = worth * step.room if at_limit else 0.0
                if float(step.uphill @ move) - more <= SETTLED * reach:
                    value = float(here.curves[name][place])
                    return End(value + sign * more, settled=True)
            if damping > DAMPING:
                move, worth = step.damped(damping)
            price = max(price, 2.0 * worth)
            over = max(-step.room, 0.0) - max(step.rise(move) - step.room, 0.0)
            promised = float(step.uphill @ move) + price * over
            reached = self._at(step.moved(move))
            if self.better is not None or damping > MOST_DAMPING:
                break
            start, goal = before or (here, promised)
            ratio = -math.inf
            if reached is not None and goal > 0:
                ratio = (merit(reached) - merit(start)) / goal
            if ratio > 0.1:
                here, before = reached or here, None
                damping *= 0.2 if ratio > 0.7 else 1.0 if ratio > 0.3 else 5.0
            elif before is None and reached is not None and self._near(reached):
                # A straight step leaves a curved valley; the next step returns to it.
                here, before = reached, (here, promised)
            else:
                here, before = start, None
                damping *= 5.0
        farthest = self.high if sign > 0 else self.low
        return End(float(farthest[name][place]), settled=False)

    def _near(self, point: Point) -> bool:
        return self._deviance.at(point.evaluation.cost) <= ASTRAY * self._limit

    def _at(self, vector: Array) -> Point | None:
        """Return the point of a vector, kept if it fits; None if its evaluation fails."""
        self.evaluations += 1
        evaluation = self._forward.evaluate(vector, self._choice)
        self._choice = evaluation.choice
        known = None if isinstance(evaluation, Failure) else self._curves_of(vector)
        if known is None or isinstance(evaluation, Failure):
            return None
        curves, gradients = known
        rise = self._deviance.at(evaluation.cost) / self._limit
        for name, values in curves.items():
            if not (np.isfinite(values[self.chosen]).all() and math.isfinite(rise)):
                return None
            gradients[name][~np.isfinite(gradients[name])] = 0.0
        point = Point(vector, evaluation, curves, gradients)
        if rise < -BETTER:
            self.better = vector
        if rise <= 1.0 + BEYOND:
            self._points.append(point)
            for name, values in curves.items():
                self.low[name] = np.fmin(self.low.get(name, values), values)
                self.high[name] = np.fmax(self.high.get(name, values), values)
        return point


@dataclass(frozen=True, eq=False)
class _Step:
    """The model of a step from a point, in suitable coordinates.

    `room` is the allowed rise of the cost. Lengths of steps are in standard deviations of the data,
    or in sizes of unknowns without effect on the data.
    """

    point: Point
    coordinates: Coordinates
    uphill: Array
    slope: Array
    jacobian: Array
    room: float
    weight: Array

    @classmethod
    def of(
        cls, forward: ForwardMap, point: Point, uphill: Array, most: float, variance: float
    ) -> _Step:
        """Return the model at a point, where `uphill` is the gradient of the value to increase."""
        evaluation, vector, sd = point.evaluation, point.vector, math.sqrt(variance)
        effects = _values_over_errors(evaluation.jacobian, vector, sd)
        coordinates = Coordinates.of(forward.problem, vector, effects)
        factor = coordinates.derivative(vector)
        jacobian = evaluation.jacobian * factor
        with np.errstate(divide="ignore"):
            sizes = np.abs(sizes_at(forward.problem, vector) / factor)
        weight = np.maximum(column_norms(jacobian), sd / np.where(sizes > 0, sizes, 1.0))
        slope = jacobian.T @ evaluation.residuals
        room = most - evaluation.cost
        return cls(point, coordinates, uphill * factor, slope, jacobian, room, weight)

    def rise(self, move: Array) -> float:
        """Return the rise of the cost in the model."""
        along = self.jacobian @ move
        return float(self.slope @ move + 0.5 * along @ along)

    def moved(self, move: Array) -> Array:
        """Return the vector after a move."""
        u = self.coordinates.of_vector(self.point.vector) + move
        u = np.clip(u, self.coordinates.lower, self.coordinates.upper)
        return self.coordinates.natural(u)

    def damped(self, damping: float) -> tuple[Array, float]:
        """Return the best move within the bounds, and its price.

        The model of the cost grows by half the `damping` times the square of the length of the
        move. The price is the gain of the value per unit of allowed cost; 0 if the move only
        returns to the limit. Unknowns that reach a bound are held there.
        """
        u = self.coordinates.of_vector(self.point.vector)
        low, high = self.coordinates.lower - u, self.coordinates.upper - u
        hessian = self.jacobian.T @ self.jacobian + damping * np.diag(self.weight**2)
        move, factor = np.zeros(len(u)), 0.0
        free = np.ones(len(u), dtype=bool)
        for _ in range(4 * len(u)):
            if free.any():
                move, factor = self._free_move(hessian, np.where(free, 0.0, move), free)
            out = (move < low) | (move > high)
            move = np.clip(move, low, high)
            if out.any():
                free &= ~out
                continue
            # Held unknowns whose gradient points away from the bound.
            pull = (factor * self.uphill - self.slope - hessian @ move) / self.weight
            back = np.where(free, 0.0, np.where(move <= low, pull, -pull))
            if not back.max(initial=0.0) > 1e-9 * np.abs(pull).max(initial=0.0):
                break
            free[int(np.argmax(back))] = True
        return move, 1.0 / factor if factor > 0 else 0.0

    def _free_move(self, hessian: Array, held: Array, free: BoolArray) -> tuple[Array, float]:
        """Return the best move with some unknowns held, and the reciprocal of its price.

        By its multiplier, hessian h = factor uphill - slope, such that the cost rises to its limit.
        """
        slope = self.slope + hessian @ held
        room = self.room - float((self.slope + 0.5 * hessian @ held) @ held)
        weight = self.weight[free]
        scaled = hessian[np.ix_(free, free)] / np.outer(weight, weight)
        p = np.linalg.solve(scaled, self.uphill[free] / weight)
        q = np.linalg.solve(scaled, slope[free] / weight)
        rest = 2.0 * room + float(slope[free] / weight @ q)
        along = float(self.uphill[free] / weight @ p)
        factor = math.sqrt(rest / along) if rest > 0 and along > 0 else 0.0
        move = held.copy()
        move[free] = (factor * p - q) / weight
        return move, factor


def _values_over_errors(jacobian: Array, vector: Array, sd: float) -> Array:
    """Return the values over their standard errors, shape (n,); zeros where these are unknown."""
    scaled = jacobian * vector
    norms = column_norms(scaled)
    norms = np.where(norms > 0, norms, 1.0)
    _, s, vt = np.linalg.svd(scaled / norms, full_matrices=False)
    if not s.max(initial=0.0) > NO_EFFECT:
        return np.zeros(len(vector))
    s = np.maximum(s, RANK_TOLERANCE * s.max())
    errors = np.sqrt(np.sum((vt / s[:, None]) ** 2, axis=0)) / norms
    return np.asarray(1.0 / (errors * sd))
