"""Places where other optima may lie, derived from the answer whatever the seed.

An oscillation that is sampled sparsely looks the same with other frequencies. The sensitivities
show how the unknowns change if the whole motion runs at another speed, and one long trajectory
shows how well each speed fits. Unknowns with like roles may have been exchanged, and an unknown at
a bound may belong far from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
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

MOST_CYCLES = 1.5
"""Cycles of the fastest oscillation tried, per time of measurement."""

FEWEST_CYCLES = 0.5
"""Cycles within the data of the slowest one."""

EQUIDISTANT = 0.99
"""Measurements whose distances agree within this ratio count as equally spaced."""

ALIASES, AROUND = 20, 6
"""Number of faster aliases of equally spaced measurements, and of speeds around each."""

SPEED_SHARE = 0.5
"""Share of the evaluations for the long trajectory, one for each length of the data."""

STIFFNESS = 4.0
"""Cost of a change of an unknown by a factor of e, in the refit that judges a candidate."""

LONGEST = 0.7
"""Largest change of the logarithm of an unknown in that refit."""

EXCHANGES = 10
"""Largest number of pairs of unknowns that are exchanged."""

MANY = 40
"""Fewest evaluations left, besides other speeds, for taking unknowns off their bounds."""

UNLIKE = 0.2
"""Smallest relative difference of two unknowns that are worth exchanging."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A place, shape (n,), where another optimum may lie, with its expected cost.

    The unknown number `held`, if any, stays fixed until the others are fitted.
    """

    vector: Array
    cost: float
    held: int | None = None


def candidates(
    forward: ForwardMap,
    vector: Array,
    budgets: tuple[float, float],
    stop: Callable[[], bool],
) -> list[Candidate]:
    """Return places where other optima may lie, the most promising first.

    `budgets` are the evaluations of the model allowed for other speeds, and for exchanges and
    unknowns off their bounds; the latter need many from each place.
    """
    for_speeds, for_others = budgets
    found = [
        *other_speeds(forward, vector, for_speeds),
        *exchanged(forward, vector, int(min(EXCHANGES, for_others / 4)), stop),
    ]
    found.sort(key=lambda candidate: candidate.cost)
    return found + (off_bounds(forward.problem, vector) if for_others >= MANY else [])


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
    step = max(PHASE / (2 * math.pi * cycles), (fastest - slowest) / SPEEDS)
    all_speeds = np.arange(slowest, fastest, step)
    found = []
    for beginning in (False, True):
        speeds = all_speeds
        if beginning:
            speeds = np.append(speeds, _aliases(problem, cycles, step, fastest, most))
        costs = np.full(len(speeds), math.inf)
        places = [vector] * len(speeds)
        each = _evaluations(forward, vector, powers, speeds, phased=beginning)
        for k, (place, at) in enumerate(each):
            if at is not None:
                costs[k], places[k] = refitted(problem, place, at)
        padded = np.concatenate([[math.inf], costs, [math.inf]])
        lowest = np.isfinite(costs) & (costs <= padded[:-2]) & (costs < padded[2:])
        lowest &= np.abs(np.log(speeds)) > 2 * step / speeds  # not the answer itself
        found += [Candidate(places[k], float(costs[k])) for k in np.flatnonzero(lowest)]
    return found


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
    rows, rights, cycles, along = [], [], 0.0, []
    for condition in forward.problem.conditions:
        if not condition.end > condition.t0:
            return None
        grid = np.linspace(condition.t0, condition.end, POINTS)
        found = forward.trajectory(vector, condition.name, grid)
        if isinstance(found, Failure):
            return None
        since = (grid - condition.t0)[:, None]
        slopes = _slopes(forward, condition, vector, found.states)
        columns = np.zeros((*found.states.shape, len(vector)))
        columns[:, :, list(found.unknowns)] = found.sensitivities
        along.append((found.states, columns * vector, since * slopes))
        middle = found.states - 0.5 * (found.states.max(axis=0) + found.states.min(axis=0))
        crossings = np.sum(np.diff(np.sign(middle), axis=0) != 0, axis=0)
        cycles = max(cycles, 0.5 * float(crossings.max(initial=0)))
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


def exchanged(
    forward: ForwardMap, vector: Array, most: int, stop: Callable[[], bool]
) -> list[Candidate]:
    """Return answers with two unknowns of the same kind, unit and experiment exchanged."""
    problem, found = forward.problem, []
    pairs = [
        (i, j)
        for i, j in combinations(range(len(vector)), 2)
        if _alike(problem, i, j)
        and abs(vector[i] - vector[j]) > UNLIKE * max(abs(vector[i]), abs(vector[j]))
    ]
    # Exchanging nearly equal values costs least.
    pairs.sort(key=lambda pair: _factor(vector[pair[0]], vector[pair[1]]))
    for i, j in pairs[:most]:
        place = vector.copy()
        place[[i, j]] = place[[j, i]]
        within = (place >= problem.lower) & (place <= problem.upper)
        if stop() or not within.all():
            continue
        at = forward.evaluate(place, UNDECIDED)
        if isinstance(at, Evaluation):
            cost, start = refitted(problem, place, at)
            found.append(Candidate(start, cost))
    return found


def _factor(a: float, b: float) -> float:
    """Return the ratio of the larger to the smaller value, infinite for a smaller one of zero."""
    small, large = sorted((float(a), float(b)))
    return large / small if small > 0 else math.inf


def _alike(problem: Problem, i: int, j: int) -> bool:
    a, b = problem.unknowns[i], problem.unknowns[j]
    same = a.kind == b.kind != "noise" and a.experiment == b.experiment
    positive = problem.lower[[i, j]].min() >= 0
    return bool(same and positive and a.parameter.unit == b.parameter.unit)


def off_bounds(problem: Problem, vector: Array) -> list[Candidate]:
    """Return copies of the answer with one unknown moved from its bound to mid-range."""
    found = []
    for k in np.flatnonzero(bounds_touched(problem, vector)):
        low, high = problem.lower[k], problem.upper[k]
        if not math.isfinite(high - low):
            continue
        place = vector.copy()
        place[k] = math.sqrt(low * high) if low > 0 else 0.5 * (low + high)
        found.append(Candidate(place, math.inf, int(k)))
    return found


def refitted(problem: Problem, place: Array, at: Evaluation) -> tuple[float, Array]:
    """Return the predicted cost after one step from a place, and the step's end.

    It is a Gauss-Newton step in logarithms, damped by springs.
    """
    size = np.where(place != 0, place, 1.0)
    jacobian = at.jacobian * size
    n = len(place)
    matrix = np.concatenate([jacobian, math.sqrt(STIFFNESS) * np.eye(n)])
    right = -np.concatenate([at.residuals, np.zeros(n)])
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return math.inf, place
    move = np.clip(np.linalg.lstsq(matrix, right, rcond=None)[0], -LONGEST, LONGEST)
    along = jacobian @ move
    cost = at.cost + float(at.residuals @ along + 0.5 * along @ along)
    there = np.where(place != 0, place * np.exp(move), move)
    return cost, np.clip(there, problem.lower, problem.upper)
