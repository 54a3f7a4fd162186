"""Other speeds of the motion at which the model may fit as well.

An oscillation that is sampled sparsely looks the same with other frequencies. The sensitivities
show how the unknowns change if the whole motion runs at another speed, and one long trajectory
shows how well each speed fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.fitting.places import Candidate, refitted
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.thinning import with_fewer_times
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.trajectories.trajectory import Trajectory

POINTS, SPEEDS = 400, 600
"""Points of the long trajectory that shows its dependence on speed, and most speeds to try."""

LIKE_TIME = 0.05
"""Largest relative residual for a change of the unknowns that only changes the speed."""

ROUNDED = 0.1
"""Largest distance of an exponent from a multiple of one half that counts as equal."""

STEP = 1e-6
"""Time shift for the slopes of observables, relative to the time span of the data."""

PHASE = 0.35
"""Difference of the phase at the last measurement between two speeds, in radians."""

COARSEST = 2.0
"""Largest distance of speeds, in units of the one for :data:`PHASE`, where there are very many
measurements: speeds further apart would miss most optima."""

MOST_CYCLES = 1.5
"""Cycles of the fastest oscillation tried, per time of measurement."""

FEWEST_CYCLES = 0.5
"""Cycles within the data of the slowest one."""

EQUIDISTANT = 0.99
"""Measurements whose distances agree within this ratio count as equally spaced."""

ALIASES, AROUND = 20, 6
"""Number of faster aliases of equally spaced measurements, and of speeds around each."""

MOST_TIMES = 200
"""Most times of a condition at which speeds are compared. Values at the others say little more of
a motion, and six hundred speeds at each of them would be a million points of the trajectory."""

SPEED_SHARE = 0.5
"""Share of the evaluations for the long trajectory, one for each length of the data."""


def other_speeds(forward: ForwardMap, vector: Array, evaluations: float) -> list[Candidate]:
    """Return the unknowns of the same motion at other speeds that fit nearly as well.

    The list is empty if the motion has no full cycle, or if events or inputs act at given times.
    """
    problem = forward.problem
    if forward.nodes is not None or not _autonomous(problem):
        return []
    powers = speed_powers(forward, vector)
    if powers is None:
        return []
    cycles = powers.cycles
    distinct = max(len(np.unique(c.times)) for c in problem.conditions)
    most = SPEED_SHARE * evaluations
    fastest, slowest = min(MOST_CYCLES * distinct / cycles, most), FEWEST_CYCLES / cycles
    if not fastest > slowest:
        return []
    resolved = PHASE / (2 * math.pi * cycles)
    if distinct > MOST_TIMES:
        fastest = min(fastest, slowest + COARSEST * resolved * SPEEDS)
    step = max(resolved, (fastest - slowest) / SPEEDS)
    fewer = with_fewer_times(problem, MOST_TIMES)
    scanned = forward if fewer is problem else forward.of(fewer)
    cost_of = _costs_of_all(forward, scanned, vector)
    all_speeds = np.arange(slowest, fastest, step)
    found = []
    for beginning in (False, True):
        speeds = all_speeds
        if beginning:
            speeds = np.append(speeds, _aliases(problem, cycles, step, fastest, most))
        costs = np.full(len(speeds), math.inf)
        places = [vector] * len(speeds)
        each = _evaluations(scanned, vector, powers, speeds, phased=beginning)
        for k, (place, at) in enumerate(each):
            if at is not None:
                costs[k], places[k] = refitted(problem, place, at)
        padded = np.concatenate([[math.inf], costs, [math.inf]])
        lowest = np.isfinite(costs) & (costs <= padded[:-2]) & (costs < padded[2:])
        lowest &= np.abs(np.log(speeds)) > 2 * step / speeds  # not the answer itself
        found += [Candidate(places[k], cost_of(costs[k])) for k in np.flatnonzero(lowest)]
    return found


def _costs_of_all(
    forward: ForwardMap, scanned: ForwardMap, vector: Array
) -> Callable[[float], float]:
    """Return a function from the cost of some values to the one of all that is to be expected.

    Its difference from the cost at `vector` is in proportion to the number of values.
    """
    if scanned is forward:
        return float
    every, some = (sum(c.size for c in f.problem.conditions) for f in (forward, scanned))
    minimum, of_some = forward.cost(vector, UNDECIDED), scanned.cost(vector, UNDECIDED)
    return lambda cost: float(minimum + (cost - of_some) * every / some)


def _aliases(problem: Problem, cycles: float, step: float, fastest: float, most: float) -> Array:
    """Return speeds that differ by whole cycles between measurements, and those around them.

    The distance is the most common one between measurements.
    """
    found = []
    condition = problem.conditions[0]
    distances = np.diff(np.unique(condition.times))
    if not len(distances) or not distances.min() > EQUIDISTANT * distances.max():
        return np.zeros(0)
    turn = (condition.end - condition.t0) / cycles / float(np.mean(distances))
    around = step * np.arange(-AROUND, AROUND + 1)
    for k in range(1, ALIASES + 1):
        found += [s for s in 1 + k * turn + around if fastest < s <= most]
    return np.array(found)


@dataclass(frozen=True, eq=False)
class Powers:
    """Powers of the speed by which unknowns, shape (n,), and states, shape (m,), grow.

    `cycles` are those within the data.
    """

    unknowns: Array
    states: Array
    cycles: float


def speed_powers(forward: ForwardMap, vector: Array) -> Powers | None:
    """Return how unknowns and states grow with the speed of the motion; None without cycles.

    At speed s, the observable becomes y(s t). Its derivative by log s, t dy/dt, must be a
    combination of its derivatives by the logarithms of unknowns. If no combination is close, the
    unknowns cannot change the speed alone.
    """
    if not _cycles(forward, vector) >= 1:
        return None
    rows, rights, cycles, along = [], [], 0.0, []
    for condition in forward.problem.conditions:
        grid = _grid(condition)
        found = forward.trajectory(vector, condition.name, grid)
        if isinstance(found, Failure):
            return None
        since = (grid - condition.t0)[:, None]
        slopes = _slopes(forward, condition, vector, found.states)
        columns = np.zeros((*found.states.shape, len(vector)))
        columns[:, :, list(found.unknowns)] = found.sensitivities
        along.append((found.states, columns * vector, since * slopes))
        cycles = max(cycles, _cycles_of(found.states))
        # The observables move with the states as along a short step of the motion.
        short = STEP * (condition.end - condition.t0)
        moved = [replace(found, states=found.states + d * short * slopes) for d in (-1, 1)]
        before, after = (forward.predictions(condition, vector, m) for m in moved)
        every = forward.predictions(condition, vector, found)
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
    return Powers(powers, _halves(grown), cycles)


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
        found = forward.trajectory(vector, condition.name, _grid(condition), sensitivities=False)
        if isinstance(found, Failure):
            return 0.0
        most = max(most, _cycles_of(found.states))
    return most


def _cycles_of(states: Array) -> float:
    """Return the largest number of cycles of a state, half of those its middle is crossed."""
    middle = states - 0.5 * (states.max(axis=0) + states.min(axis=0))
    crossings = np.sum(np.diff(np.sign(middle), axis=0) != 0, axis=0)
    return 0.5 * float(crossings.max(initial=0))


def _slopes(forward: ForwardMap, condition: Condition, vector: Array, states: Array) -> Array:
    """Return the right-hand sides along a trajectory, shape (k, states)."""
    field, scalars = forward.field, condition.scalars
    values = {
        name: bound_value(scalars[name], scalars, list(vector), NUMPY) for name in field.scalars
    }
    values |= dict(zip(field.states, states.T, strict=True))
    rates = field.rhs(values, NUMPY)
    return np.array([np.broadcast_to(rate, len(states)) for rate in rates], dtype=float).T


def _evaluations(
    forward: ForwardMap,
    vector: Array,
    powers: Powers,
    speeds: Array,
    *,
    phased: bool,
) -> Iterator[tuple[Array, Evaluation | None]]:
    """Yield the unknowns at each speed, and their evaluation, from one long trajectory.

    The motion starts from the same values or, if `phased`, passes the first measurement in the same
    phase. Equally spaced samples then agree at speeds that differ by whole cycles. This needs
    unknown initial values of all states.
    """
    problem = forward.problem
    long: list[tuple[Condition, IntArray, Trajectory, dict[int, int]]] = []
    for condition in problem.conditions:
        initial = {
            bound: place
            for place, name in enumerate(forward.field.states)
            if isinstance(bound := condition.initial[name], int) and not isinstance(bound, bool)
        }
        if phased and len(initial) < len(forward.field.states):
            return
        since = condition.times - condition.t0
        begin = np.zeros(len(speeds))
        if phased:
            period = (condition.end - condition.t0) / powers.cycles
            begin = (since.min() * (1 - speeds)) % period
        times = np.column_stack([begin, begin[:, None] + np.outer(speeds, since)])
        every, inverse = np.unique(condition.t0 + times, return_inverse=True)
        at_rows: IntArray = np.asarray(inverse, dtype=np.intp).reshape(times.shape)
        found = forward.trajectory(vector, condition.name, every)
        if isinstance(found, Failure):
            return
        long.append((condition, at_rows, found, initial))
    for k, speed in enumerate(speeds):
        place, grown = vector * speed**powers.unknowns, speed**powers.states
        for _, rows, whole, initial in long if phased else []:
            for number, state in initial.items():
                place[number] = whole.states[rows[k, 0], state] * grown[state]
        if ((place < problem.lower) | (place > problem.upper)).any():
            yield vector, None
            continue
        at = []
        for condition, rows, whole, initial in long:
            part = _part(whole, condition, rows[k], initial, phased)
            # The derivatives by a logarithm are the same at all speeds.
            ratio = speed ** -powers.unknowns[list(part.unknowns)]
            scaled = part.sensitivities * grown[:, None] * ratio
            at.append(replace(part, states=part.states * grown, sensitivities=scaled))
        evaluation = forward.evaluate_along(place, at)
        yield place, evaluation if isinstance(evaluation, Evaluation) else None


def _part(
    whole: Trajectory,
    condition: Condition,
    rows: IntArray,
    initial: Mapping[int, int],
    phased: bool,
) -> Trajectory:
    """Return a trajectory at some of its times, the first of which becomes the start."""
    found = replace(
        whole,
        times=condition.times,
        states=whole.states[rows[1:]],
        algebraic=whole.algebraic[rows[1:]],
        sensitivities=whole.sensitivities[rows[1:]],
        algebraic_sensitivities=whole.algebraic_sensitivities[rows[1:]],
    )
    if not phased:
        return found
    # Derivatives by the values at the new start instead of those at the old one.
    columns = [whole.unknowns.index(number) for number in initial]
    order = [*initial.values()]
    there = whole.sensitivities[rows[0]]
    by_initial = np.linalg.pinv(there[:, columns])[:, order]
    sensitivities = found.sensitivities.copy()
    new = sensitivities[:, :, columns] @ by_initial
    sensitivities -= new @ there[order]
    sensitivities[:, :, columns] = new
    return replace(found, sensitivities=sensitivities)


def _autonomous(problem: Problem) -> bool:
    """Return whether no input or event acts at given times, so that the speed is free."""
    model = problem.model
    expressions = [*model.ode.values(), *model.observables.values()]
    return (
        not model.inputs
        and not model.algebraic
        and not any(TIME in e.names for e in expressions)
        and not any(
            c.events or c.located or c.steady_start or np.isinf(c.times).any()
            for c in problem.conditions
        )
    )
