"""The best fit on nodes under continuity: Newton's method in the null space of the conditions.

A step goes to the minimum of a quadratic model among all points that satisfy the linearised
continuity conditions, within bounds and a radius. The remaining gaps are closed at once (a
second-order correction), so that steps may be long even if the conditions are curved. The model is
that of Gauss and Newton; if that converges slowly, second derivatives of the Lagrangian by
differences are added (J. Nocedal and S. J. Wright, Numerical Optimization, 2006, chapter 18).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.assessment.profiles.continuity import (
    Curvature,
    Joint,
    JointProblem,
    Straightened,
    Tangents,
)
from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.shooting.linear_problem import (
    GeneralisedInverse,
    Inequalities,
    active_set,
)

MAX_STEPS = 150
"""Largest number of steps of one minimisation."""

SLOW = 5
"""Number of steps between computations of second derivatives."""

FAR = 2.0
"""Largest gap of a start, in coordinates; with a larger one, it is too far off."""

CLOSED, JOINED = 1e-5, 1e-7
"""Largest gap of a minimum, and the gap above which it is closed once more."""

NEAR = 1e-2
"""Gap below which second derivatives justify their evaluations."""

DIFFERENCES = (1e-3, -1e-3, 1e-5, -1e-5)
"""Steps of the differences, in coordinates; the first one that can be evaluated within the bounds
is used."""

SHORTEST = 1e-7
"""Radius, in coordinates, below which the search is given up."""

AT_BOUND = 1e-8
"""Distance from a bound, in coordinates, that counts as zero."""


@dataclass(frozen=True, eq=False)
class JoinedMinimum:
    """The end of a minimisation on nodes.

    `near` marks the free unknowns held at bounds, `multipliers` belong to the continuity
    conditions, shape (q,). If `stopped`, the point is the best so far, and its gaps may be open.
    """

    at: Joint
    tangents: Tangents
    near: BoolArray
    multipliers: Array
    steps: int
    stopped: bool = False


class Minimiser:
    """Minimises the cost on nodes under continuity, with all unknowns but the `others` held.

    `evaluate` takes the coordinates of unknowns and nodes. When `stop` returns True, the search
    ends with the best point so far.
    """

    def __init__(
        self,
        problem: JointProblem,
        coordinates: Straightened,
        others: IntArray,
        evaluate: Callable[[Array, Array], Joint | str],
        stop: Callable[[], bool],
    ) -> None:
        self._problem, self._coordinates, self._others = problem, coordinates, others
        self._evaluate, self._stop = evaluate, stop

    def minimise(
        self,
        unknowns: Array,
        nodes: Array,
        gain: float,
        curvature: Curvature | None,
    ) -> JoinedMinimum | str:
        """Return the minimum, or a reason; if it was stopped, the best point so far.

        A decrease of the cost by `gain` is too small for another step; `curvature` is that at a
        point nearby.
        """
        at = self._evaluate(unknowns, nodes)
        if isinstance(at, str):
            return at
        if np.abs(at.gaps).max(initial=0.0) > FAR:
            return "the prediction of the trajectory is too far off"
        radius, weight, fresh = 1.0, 0.0, 0
        for steps in range(MAX_STEPS):
            tangents = Tangents(at, self._others)
            low, high = self._room(at)
            gap = float(np.abs(at.gaps).max(initial=0.0))
            stopped = self._stop()
            if stopped or (steps - fresh >= SLOW and gap < NEAR):
                near = (low >= -AT_BOUND) | (high <= AT_BOUND)
                multipliers = tangents.multipliers(near)
                if stopped:
                    # No step increases the merit of its point: the last one is the best.
                    return JoinedMinimum(at, tangents, near, multipliers, steps, stopped=True)
                curvature = self.curvature(at, tangents, near, multipliers) or curvature
                fresh = steps
            model = _Quadratic(at, tangents, curvature, low, high)
            step = model.step(0.0)
            promised = model.decrease(step)
            near = (step[: tangents.count] <= low + AT_BOUND) | (
                step[: tangents.count] >= high - AT_BOUND
            )
            multipliers = tangents.multipliers(near)
            owed = float(np.abs(multipliers) @ np.abs(at.gaps))
            if abs(promised) <= gain and owed <= 0.3 * gain and gap <= CLOSED:
                return self._closed(at, tangents, near, multipliers, steps)
            weight = max(1.5 * float(np.abs(multipliers).max(initial=0.0)), 0.5 * weight)
            moved = self._moved_on(at, tangents, model, step, radius, weight, gain)
            if moved is None:
                return "a refit on nodes stalled before its optimum"
            at, radius = moved
        return f"a refit on nodes did not converge in {MAX_STEPS} steps"

    def _room(self, at: Joint) -> tuple[Array, Array]:
        low = self._coordinates.lower - at.unknowns
        high = self._coordinates.upper - at.unknowns
        return low[self._others], high[self._others]

    def _closed(
        self, at: Joint, tangents: Tangents, near: BoolArray, multipliers: Array, steps: int
    ) -> JoinedMinimum:
        gap = float(np.abs(at.gaps).max(initial=0.0))
        if gap > JOINED:
            closed = self.moved(at, tangents, self.closing(tangents, at, near))
            if not isinstance(closed, str) and np.abs(closed.gaps).max() < gap:
                tangents = Tangents(closed, self._others)
                return JoinedMinimum(closed, tangents, near, tangents.multipliers(near), steps)
        return JoinedMinimum(at, tangents, near, multipliers, steps)

    def closing(self, tangents: Tangents, new: Joint, near: BoolArray) -> Array:
        """Return the shortest step that closes the gaps of a new point within the bounds.

        A step beyond the bounds would be cut off, and close only a part of the gaps: unknowns at a
        bound, or about to leave it, do not move.
        """
        shortest = tangents.correction(new.gaps)
        low, high = self._room(new)
        unknown_part = shortest[: tangents.count]
        return tangents.unmoved(shortest, near | (unknown_part < low) | (unknown_part > high))

    def moved(
        self, at: Joint, tangents: Tangents, step: Array, shift: Array | None = None
    ) -> Joint | str:
        """Evaluate the point after a step of the free coordinates, shape (w,).

        Unknowns stop at their bounds; `shift` is a further step of all unknowns, shape (n,).
        """
        n = len(at.vector)
        full = np.zeros(at.by_coordinate.shape[1])
        full[tangents.columns] = step
        unknowns = at.unknowns + full[:n] + (0.0 if shift is None else shift)
        inside = np.clip(unknowns, self._coordinates.lower, self._coordinates.upper)
        unknowns[self._others] = inside[self._others]
        nodes = at.nodes.copy()
        nodes[self._problem.inner] += full[n:].reshape(len(self._problem.inner), -1)
        return self._evaluate(unknowns, nodes)

    def _moved_on(
        self,
        at: Joint,
        tangents: Tangents,
        model: _Quadratic,
        whole: Array,
        radius: float,
        weight: float,
        gain: float,
    ) -> tuple[Joint, float] | None:
        """Return the next point and the next radius; None if no step is short enough."""

        def merit(point: Joint) -> float:
            return point.cost + weight * float(np.abs(point.gaps).sum())

        low, high = self._room(at)
        while True:
            step, part = model.within(radius, whole)
            unknown_part = step[: tangents.count]
            near = (unknown_part <= low + AT_BOUND) | (unknown_part >= high - AT_BOUND)
            predicted = model.change(step) + weight * part * float(np.abs(at.gaps).sum())
            ratio, new = -1.0, self.moved(at, tangents, step)
            if not isinstance(new, str):
                for _ in range(2):
                    if weight * np.abs(new.gaps).sum() <= 0.05 * max(predicted, gain):
                        break
                    closing = self.closing(tangents, new, near)
                    again = self.moved(new, tangents, closing)
                    if isinstance(again, str) or not merit(again) < merit(new):
                        break
                    new = again
                ratio = (merit(at) - merit(new)) / max(predicted, 1e-300)
                if predicted < 1e-3 * gain and merit(new) <= merit(at) + gain:
                    ratio = 1.0  # integration errors hide its gain
            size = float(np.abs(step).max(initial=0.0))
            if not isinstance(new, str) and ratio > 1e-3:
                if ratio > 0.6 and size > 0.5 * radius:
                    radius *= 2.5
                elif ratio < 0.2:
                    radius = 0.4 * min(radius, size)
                return new, radius
            radius = 0.3 * min(radius, size)
            if self._stop():
                return at, radius
            if radius < SHORTEST:
                return None

    # Second derivatives ----------------------------------------------------------------------

    def lagrangian(self, at: Joint, tangents: Tangents, multipliers: Array) -> Array:
        """Return the gradient of the Lagrangian by the free coordinates, shape (w,)."""
        rows = at.by_coordinate[:, tangents.columns]
        conditions = at.gaps_by_coordinate[:, tangents.columns]
        return np.asarray(rows.T @ at.residuals + conditions.T @ multipliers)

    def curvature(
        self, at: Joint, tangents: Tangents, near: BoolArray, multipliers: Array
    ) -> Curvature | None:
        """Return second derivatives by differences; None if a point cannot be evaluated.

        Also returns None when it is time to stop.
        """
        basis = tangents.within(near)
        here = self.lagrangian(at, tangents, multipliers)
        low, high = self._room(at)
        columns = []
        for direction in basis.T:
            if self._stop():
                return None
            for h in DIFFERENCES:
                unknown_part = h * direction[: tangents.count]
                if not (near | ((unknown_part >= low) & (unknown_part <= high))).all():
                    continue
                beside = self.moved(at, tangents, h * direction)
                if not isinstance(beside, str):
                    change = self.lagrangian(beside, tangents, multipliers) - here
                    columns.append(basis.T @ change / h)
                    break
            else:
                return None
        matrix = np.array(columns).reshape(basis.shape[1], basis.shape[1])
        rows = tangents.rows @ basis
        return Curvature(basis, 0.5 * (matrix + matrix.T) - rows.T @ rows)


class _Quadratic:
    """The quadratic model of the cost on the linearised conditions, in coordinates of a basis."""

    def __init__(
        self, at: Joint, tangents: Tangents, curvature: Curvature | None, low: Array, high: Array
    ) -> None:
        self._tangents, self._low, self._high = tangents, low, high
        self._shortest = tangents.correction(at.gaps)
        rows = tangents.rows @ tangents.null
        self._bend = None if curvature is None else curvature.on(tangents.null)
        matrix = rows.T @ rows
        self._matrix = matrix if self._bend is None else matrix + self._bend
        self._residuals = at.residuals
        self._gradient = rows.T @ (at.residuals + tangents.rows @ self._shortest)
        self._values, self._vectors = np.linalg.eigh(self._matrix)

    def _parts(self, step: Array) -> Array:
        return np.asarray(self._tangents.null.T @ (step - self._shortest))

    def decrease(self, step: Array) -> float:
        """Return the decrease of the model from the shortest step that closes the gaps."""
        y = self._parts(step)
        return -float(self._gradient @ y + 0.5 * y @ self._matrix @ y)

    def change(self, step: Array) -> float:
        """Return the decrease of the model from its base point."""
        along = self._tangents.rows @ step
        decrease = -float(self._residuals @ along + 0.5 * along @ along)
        if self._bend is not None:
            y = self._parts(step)
            decrease -= 0.5 * float(y @ self._bend @ y)
        return decrease

    def step(self, damping: float) -> Array:
        """Return the minimum of the damped model within the bounds, shape (w,)."""
        tangents, count = self._tangents, self._tangents.count
        least = float(self._values[0]) if len(self._values) else 1.0
        shift = max(damping, -1.01 * least if least < 0 else 0.0, 1e-9)
        root = np.sqrt(np.maximum(self._values + shift, 1e-300))
        target = -(self._vectors.T @ self._gradient) / root
        step = self._shortest + tangents.null @ (self._vectors @ (target / root))
        unknown_part = step[:count]
        if ((unknown_part >= self._low - 1e-9) & (unknown_part <= self._high + 1e-9)).all():
            return np.asarray(step)
        moves, rest = tangents.null[:count], self._shortest[:count]
        below, above = np.isfinite(self._low), np.isfinite(self._high)
        bounds = Inequalities(
            np.vstack([moves[below], -moves[above]]),
            np.concatenate([(self._low - rest)[below], (rest - self._high)[above]]),
        )
        none = np.zeros((0, len(target)))
        square = root[:, None] * self._vectors.T
        active = active_set(none, np.zeros(0), square, target, bounds)
        if active is None:  # the gaps cannot be closed within the bounds
            step[:count] = np.clip(unknown_part, self._low, self._high)
            return np.asarray(step)
        inverse = GeneralisedInverse(bounds.matrix[active], square)
        return np.asarray(
            self._shortest + tangents.null @ inverse.solve(bounds.values[active], target)
        )

    def within(self, radius: float, whole: Array) -> tuple[Array, float]:
        """Return the step within a radius, and the part of the gaps that it closes."""
        shortest = float(np.abs(self._shortest).max(initial=0.0))
        if shortest > radius:
            part = radius / shortest
            step = part * self._shortest
            count = self._tangents.count
            step[:count] = np.clip(step[:count], self._low, self._high)
            return step, part
        if np.abs(whole).max(initial=0.0) <= radius:
            return whole, 1.0
        goal = max(radius, 1.05 * shortest)
        low, high, damping, best = 0.0, math.inf, 1e-4, whole
        for _ in range(40):
            step = self.step(damping)
            size = float(np.abs(step).max())
            if size > goal:
                low = damping
                if math.isinf(high):
                    best = step
            else:
                high, best = damping, step
                if size > 0.7 * goal or high < 1.2 * low or high < 1e-10:
                    break
            if damping > 1e16:
                break
            damping = 10 * low if math.isinf(high) else math.sqrt(low * high) or 0.1 * high
        return best, 1.0
