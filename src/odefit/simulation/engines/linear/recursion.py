"""Linear equations step by step: from knot to knot of the inputs, and from output to output.

An input with thousands of knots makes as many parts, and an engine would restart at each. If the
equations are linear in the states, a compiled loop covers all of them
(:mod:`odefit.simulation.engines.linear.kernels`), by the series of each step. Steps of equal length
h have the same transition,

    x(h) = F x(0) + G w,   w = (1, coefficients of the inputs' polynomials),

whose columns, and their changes along the directions, are the series of unit vectors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.vector_field import SensitivityPattern
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work
from odefit.simulation.engines.engine import Integration, SegmentSolution, Values
from odefit.simulation.engines.linear.equations import LinearEquations
from odefit.simulation.engines.linear.kernels import (
    REACH,
    Coefficients,
    by_series,
    by_transitions,
)
from odefit.simulation.engines.segments import Steps

BEGINNING = 100_000.0  # time of the coefficients and of the plan, in ns
ORDERS = 14  # orders of a usual series
TERM = 1.0  # time of a term of a series, for each state or sensitivity, in ns
PRODUCT = 0.7  # time of a product of a transition, in ns
CALL = 15_000.0  # time of a call of a kernel, in ns
STEP = 30.0  # time of a step besides its products, in ns
SWEEPS = 12  # improvements of the bound of the rate


class Plan(NamedTuple):
    """The steps of a segment with their classes, and the predicted time in ns."""

    shared: bool  # whether steps of equal length share a transition
    time: float


class Recursion:
    """Linear equations with one structure of sensitivities, solved step by step."""

    def __init__(self, equations: LinearEquations, pattern: SensitivityPattern) -> None:
        self._equations, self._directions = equations, pattern.directions

    def integrate(self, problem: Integration, most: float) -> SegmentSolution | None:
        """Return states and sensitivities at the segment's times.

        Returns None if another engine has to integrate, because this would take more than `most`
        nanoseconds or gives values that are not finite.
        """
        initial, steps = problem.initial, problem.segment.steps
        with np.errstate(all="ignore"):
            coefficients = self._coefficients(initial)
            rate = self._rate(coefficients, steps)
        if not math.isfinite(rate):
            return None
        plan = self._plan(steps, rate)
        if BEGINNING + plan.time > most:
            return None
        count_work((BEGINNING + plan.time) / NANOSECONDS)
        count, (n, m) = len(problem.segment.times), initial.sensitivities.shape
        states, sensitivities = np.empty((count, n)), np.empty((count, n, m))
        values = initial.states, np.ascontiguousarray(initial.sensitivities), states, sensitivities
        if plan.shared:
            ended = self._by_transitions(coefficients, rate, steps, values)
        else:
            parts = steps.durations, steps.polynomials, steps.rows
            ended = by_series(coefficients, 1.0, rate, *parts, *values, True)
        if not ended or not (np.isfinite(states).all() and np.isfinite(sensitivities).all()):
            return None
        return SegmentSolution.without_algebraic(states, sensitivities, len(steps.durations))

    def _coefficients(self, initial: Values) -> Coefficients:
        """Return the coefficients at some values of the scalars."""
        equations = self._equations
        changes = initial.scalar_sensitivities.reshape(len(initial.scalars), self._directions)
        values, along = equations.values(initial.scalars, changes)
        places = equations.rows, equations.columns, equations.factors
        return Coefficients(*places, values, along, np.asarray(along.any(axis=1)))

    def _rate(self, coefficients: Coefficients, steps: Steps) -> float:
        """Return a bound of the eigenvalues of A, infinite if values are not finite.

        It is the bound of Collatz and Wielandt for the magnitudes of A, which does not depend on
        the units of states.
        """
        values, along = coefficients.values, coefficients.along
        if not all(np.isfinite(part).all() for part in (values, along, steps.sizes)):
            return math.inf
        n = self._equations.states
        sizes = np.abs(values) * np.append(1.0, steps.sizes)[coefficients.factors]
        matrix = np.zeros((n, n + 1))
        np.add.at(matrix, (coefficients.rows, coefficients.columns), sizes)
        matrix, vector, bound = matrix[:, :n], np.ones(n), math.inf
        for _ in range(SWEEPS):
            fed = matrix @ vector
            largest = float((fed / vector).max())
            bound = min(bound, largest)
            if not 0.0 < largest < math.inf:
                return largest
            vector = np.maximum(fed / largest + 0.05 * vector, 1e-200)
        return bound

    def _plan(self, steps: Steps, rate: float) -> Plan:
        """Return the better way through steps."""
        equations, m = self._equations, self._directions
        n, columns = equations.states, self._columns(steps)
        series = ORDERS * TERM * (len(equations.rows) + n) * (1 + 2 * m)
        plain = Plan(False, _series(steps.durations, rate) * (series + STEP))
        if equations.bilinear:
            return plain
        making = columns * (CALL + _series(steps.lengths, rate) * (series + STEP))
        step = STEP + PRODUCT * n * columns * (1 + 2 * m)
        shared = Plan(True, making + step * len(steps.durations))
        return min(plain, shared, key=lambda plan: plan.time)

    def _columns(self, steps: Steps) -> int:
        inputs, powers = steps.polynomials.shape[1:]
        columns: int = self._equations.states + 1 + inputs * powers
        return columns

    def _by_transitions(
        self,
        coefficients: Coefficients,
        rate: float,
        steps: Steps,
        values: tuple[Array, Array, Array, Array],
    ) -> bool:
        """Take the steps by their transitions; return False if a series does not end."""
        count, inputs, powers = steps.polynomials.shape
        n, m, columns = self._equations.states, self._directions, self._columns(steps)
        lengths, classes = steps.lengths, len(steps.lengths)
        matrices, along = np.empty((classes, n, columns)), np.empty((classes, n, columns, m))
        every, still = np.arange(classes), np.zeros((n, m))
        for column in range(columns):
            begin, unit = np.zeros(n), np.zeros((inputs, powers))
            if column < n:
                begin[column] = 1.0
            elif column > n:
                unit[divmod(column - n - 1, powers)] = 1.0
            one = float(column == n)
            out, out_along = np.empty((classes, n)), np.empty((classes, n, m))
            polynomials = np.broadcast_to(unit, (classes, inputs, powers)).copy()
            parts = lengths, polynomials, every
            if not by_series(coefficients, one, rate, *parts, begin, still, out, out_along, False):
                return False
            matrices[:, :, column], along[:, :, column] = out, out_along
        acts = np.asarray(matrices.any(axis=0) | along.any(axis=(0, 3)))
        unit = np.ones((count, columns - n))
        unit[:, 1:] = steps.polynomials.reshape(count, inputs * powers)
        by_transitions(steps.classes, matrices, along, acts, unit, steps.rows, *values)
        return True


def _series(lengths: Array, rate: float) -> float:
    """Return the number of series for steps of some lengths."""
    return float(np.maximum(1.0, np.ceil(rate * lengths / REACH)).sum())
