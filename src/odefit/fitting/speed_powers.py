"""Powers of the speed of a motion by which unknowns and states grow.

The sensitivities show how the unknowns change if the whole motion runs at another speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.simulation import Failure, ForwardMap

POINTS = 400
"""Points of the trajectory that shows its dependence on speed."""

REPEATED = 0.1
"""Largest difference of states a period later, relative to their range, of a periodic motion."""

LIKE_TIME = 0.05
"""Largest relative residual for a change of the unknowns that only changes the speed."""

ROUNDED = 0.1
"""Largest distance of an exponent from a multiple of one half that counts as equal."""

STEP = 1e-6
"""Time shift for the slopes of observables, relative to the time span of the data."""


@dataclass(frozen=True, eq=False)
class Powers:
    """Powers of the speed by which unknowns, shape (n,), and states, shape (m,), grow.

    `cycles` are those within the data, `period` is the length of one, and `periodic` says whether
    the motion repeats itself.
    """

    unknowns: Array
    states: Array
    cycles: float
    period: float
    periodic: bool


def speed_powers(forward: ForwardMap, vector: Array) -> Powers | None:
    """Return how unknowns and states grow with the speed of the motion; None without cycles.

    At speed s, the observable becomes y(s t). Its derivative by log s, t dy/dt, must be a
    combination of its derivatives by the logarithms of unknowns. If no combination is close, the
    unknowns cannot change the speed alone.
    """
    if not _cycles(forward, vector) >= 1:
        return None
    rows, rights, cycles, along = [], [], 0.0, []
    period, repeats = math.nan, []
    for condition in forward.problem.conditions:
        grid = _grid(condition)
        trajectory = forward.trajectory(vector, condition.name, grid)
        if isinstance(trajectory, Failure):
            return None
        since = (grid - condition.t0)[:, None]
        slopes = _slopes(forward, condition, vector, trajectory.states)
        columns = np.zeros((*trajectory.states.shape, len(vector)))
        columns[:, :, list(trajectory.unknowns)] = trajectory.sensitivities
        along.append((trajectory.states, columns * vector, since * slopes))
        middle, crossings = _crossings(trajectory.states)
        if 0.5 * crossings.max(initial=0) > cycles:
            most = int(np.argmax(crossings))
            cycles = 0.5 * float(crossings[most])
            period = _period(grid, middle[:, most], slopes[:, most])
            period = period if math.isfinite(period) else (grid[-1] - grid[0]) / cycles
        repeats.append(_repeats(grid, trajectory.states, period))
        # The observables move with the states as along a short step of the motion.
        short = STEP * (condition.end - condition.t0)
        moved = [
            replace(trajectory, states=trajectory.states + d * short * slopes) for d in (-1, 1)
        ]
        before, after = (forward.predictions(condition, vector, m) for m in moved)
        every = forward.predictions(condition, vector, trajectory)
        for name in condition.series:
            output = every[name]
            values = output.array(len(grid))
            size = float(np.ptp(values)) or 1.0
            rate = (after[name].array(len(grid)) - before[name].array(len(grid))) / (2 * short)
            rights.append(since[:, 0] * rate / size)
            rows.append(output.gradient(len(vector), len(grid)) * vector / size)
    matrix, right = np.concatenate(rows), np.concatenate(rights)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()) or cycles < 1:
        return None
    powers = _halves(np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-6)[0], dtype=float))
    left = float(np.linalg.norm(matrix @ powers - right))
    if not left <= LIKE_TIME * np.linalg.norm(right):
        return None
    states = np.concatenate([x for x, _, _ in along])
    more = np.concatenate([by @ powers - moved for _, by, moved in along])
    squares = np.sum(states**2, axis=0)
    grown = np.sum(more * states, axis=0) / np.where(squares > 0, squares, 1.0)
    return Powers(powers, _halves(grown), cycles, period, all(repeats))


def _period(times: Array, values: Array, slopes: Array) -> float:
    """Return the last distance of the times at which values rise through zero, or NaN.

    The first ones may belong to the way to a cycle.
    """
    from scipy.interpolate import CubicHermiteSpline

    roots = CubicHermiteSpline(times, values, slopes).roots(extrapolate=False)
    rising = roots[np.interp(roots, times, slopes) > 0]
    return float(rising[-1] - rising[-2]) if len(rising) > 1 else math.nan


def _repeats(times: Array, states: Array, period: float) -> bool:
    """Return whether states, shape (k, m), are the same a period later."""
    later = times[times + period <= times[-1]] + period
    if not len(later) > 1:
        return False
    sizes = np.ptp(states, axis=0)
    later_states = np.array([np.interp(later, times, column) for column in states.T]).T
    return bool((np.abs(later_states - states[: len(later)]) <= REPEATED * sizes).all())


def _halves(powers: Array) -> Array:
    """Return powers, rounded to multiples of one half within their errors."""
    halves = np.round(2 * powers) / 2
    return np.where(np.abs(powers - halves) < ROUNDED, halves, powers)


def _grid(condition: Condition) -> Array:
    return np.linspace(condition.t0, condition.end, POINTS)


def _cycles(forward: ForwardMap, vector: Array) -> float:
    """Return the largest number of cycles of a state, 0 where the states cannot be computed."""
    most = 0.0
    for condition in forward.problem.conditions:
        if not condition.end > condition.t0:
            return 0.0
        trajectory = forward.trajectory(
            vector, condition.name, _grid(condition), sensitivities=False
        )
        if isinstance(trajectory, Failure):
            return 0.0
        most = max(most, 0.5 * float(_crossings(trajectory.states)[1].max(initial=0)))
    return most


def _crossings(states: Array) -> tuple[Array, IntArray]:
    """Return the states minus their mid-ranges, and the crossings of each, two in a cycle."""
    middle = states - 0.5 * (states.max(axis=0) + states.min(axis=0))
    return middle, np.sum(np.diff(np.sign(middle), axis=0) != 0, axis=0)


def _slopes(forward: ForwardMap, condition: Condition, vector: Array, states: Array) -> Array:
    """Return the right-hand sides along a trajectory, shape (k, states)."""
    field, scalars = forward.field, condition.scalars
    values = {
        name: bound_value(scalars[name], scalars, list(vector), NUMPY) for name in field.scalars
    }
    values |= dict(zip(field.states, states.T, strict=True))
    rates = field.rhs(values, NUMPY)
    return np.array([np.broadcast_to(rate, len(states)) for rate in rates], dtype=float).T
