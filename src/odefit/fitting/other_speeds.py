"""Other speeds of the motion at which the model may fit as well.

An oscillation that is sampled sparsely looks the same with other frequencies. The sensitivities
show how the unknowns change if the whole motion runs at another speed, and one long trajectory
shows how well each speed fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import TIME
from odefit.fitting.free_scales import FreeScales
from odefit.fitting.places import Candidate, refitted
from odefit.fitting.speed_powers import POINTS, Powers, speed_powers
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.thinning import with_fewer_times
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice, plain
from odefit.simulation.trajectories.trajectory import Trajectory

SPEEDS = 600
"""Most speeds to try."""

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
"""Number of faster and of slower aliases of equally spaced measurements, and of speeds on each side
of one. All are tried only if the nearest ones fit."""

LENGTHS = 25.0
"""Fastest speed, and so the length of the trajectory in lengths of the data. It does not depend on
the search, so that the places found depend on the answer alone."""

MOST_TIMES = 200
"""Most times of a condition at which speeds are compared. Values at further times carry little
information on a motion, and six hundred speeds at each of them would need a million points of the
trajectory."""


def other_speeds(
    forward: ForwardMap, vector: Array, fits: Callable[[float], bool]
) -> list[Candidate]:
    """Return the unknowns of the same motion at other speeds that fit nearly as well.

    `fits` returns whether a place with a cost promises to fit. The list is empty if the motion has
    no full cycle, or if events or inputs act at given times.
    """
    problem = forward.problem
    if forward.nodes is not None or not _autonomous(problem):
        return []
    powers = speed_powers(forward, vector)
    if powers is None:
        return []
    cycles = powers.cycles
    distinct = max(len(np.unique(c.times)) for c in problem.conditions)
    within = _speeds_within(problem, vector, powers)
    slowest, fastest = FEWEST_CYCLES / cycles, min(MOST_CYCLES * distinct / cycles, LENGTHS)
    if not fastest > slowest:
        return []
    resolved = PHASE / (2 * math.pi * cycles)
    if distinct > MOST_TIMES:
        fastest = min(fastest, slowest + COARSEST * resolved * SPEEDS)
    step = max(resolved, (fastest - slowest) / SPEEDS)
    fewer = with_fewer_times(problem, MOST_TIMES)
    scanned = forward if fewer is problem else forward.of(fewer)
    at = forward.evaluate(vector, UNDECIDED)
    if not isinstance(at, Evaluation):
        return []
    scales = FreeScales.of(forward, vector, at)
    cost_of = _costs_of_all(forward, scanned, vector)
    scan = _Scan(scanned, cost_of, vector, powers, 2 * step, scales, plain(at.choice))
    speeds = np.arange(slowest, fastest, step)
    speeds = speeds[(speeds >= within[0]) & (speeds <= within[1])]
    turn = _turn(problem, powers) if powers.periodic else None
    aliases = partial(_aliases, turn, step, (within[0], min(LENGTHS, within[1])))
    places = scan.places(speeds, Beginning.SAME)
    for beginning, factor in ((Beginning.PHASE, 1.0), (Beginning.MIRRORED, -1.0)):
        nearest = aliases(factor, (-1, 1))
        aliases_alone = beginning is Beginning.MIRRORED
        here = scan.places(nearest if aliases_alone else np.union1d(speeds, nearest), beginning)
        places += here
        if any(fits(c.cost) for c in here):
            orders = range(2, ALIASES + 1)
            places += scan.places(aliases(factor, [*(-k for k in orders), *orders]), beginning)
    return places


def nearest_aliases(forward: ForwardMap, vector: Array) -> list[tuple[Array, float]]:
    """Return the unknowns of an oscillation at its nearest aliases, and their speeds.

    Aliases agree at equally spaced measurements; initial values are those of the motion itself.
    """
    powers = speed_powers(forward, vector) if _autonomous(forward.problem) else None
    turn = None if powers is None else _turn(forward.problem, powers)
    if powers is None or turn is None:
        return []
    slowest, fastest = _speeds_within(forward.problem, vector, powers)
    speeds = (1.0 - turn, turn - 1.0, 1.0 + turn)
    return [
        (vector * speed**powers.unknowns, speed)
        for speed in speeds
        if max(slowest, 0.0) < speed < min(fastest, LENGTHS)
    ]


def unknown_beginnings(condition: Condition, states: Sequence[str]) -> dict[int, int]:
    """Return the states whose initial values are unknown, by the numbers of the unknowns."""
    return {
        bound: place
        for place, name in enumerate(states)
        if isinstance(bound := condition.initial.get(name), int) and not isinstance(bound, bool)
    }


class Beginning(Enum):
    """The values from which a motion at another speed begins."""

    SAME = "same"
    """The motion begins with the same values."""
    PHASE = "phase"
    """The phase at the first measurement is the same. Equally spaced samples then agree at
    speeds that differ by whole cycles."""
    MIRRORED = "mirrored"
    """The first measured value is the same, but falls instead of rising, or rises instead
    of falling. If the motion is the same backwards, equally spaced samples then agree at speeds of
    whole cycles minus its own."""


@dataclass(frozen=True, eq=False)
class _Scan:
    """The comparison of speeds: problem with few times, answer, powers, and its nearest speeds.

    Places are centred along the free scales.
    """

    forward: ForwardMap
    cost_of: Callable[[float], float]
    vector: Array
    powers: Powers
    nearest: float
    scales: FreeScales
    choice: EngineChoice

    def places(self, speeds: Array, beginning: Beginning) -> list[Candidate]:
        """Return the places at which the cost is lower than at the speeds beside them."""
        if not len(speeds):
            return []
        costs = np.full(len(speeds), math.inf)
        places = [self.vector] * len(speeds)
        at_speeds = _evaluations(
            self.forward, self.vector, self.powers, self.scales, speeds, beginning, self.choice
        )
        for k, (place, at) in enumerate(at_speeds):
            if at is not None:
                costs[k], places[k] = refitted(self.forward.problem, place, at, self.scales)
        padded = np.concatenate([[math.inf], costs, [math.inf]])
        lowest = np.isfinite(costs) & (costs <= padded[:-2]) & (costs < padded[2:])
        lowest &= np.abs(np.log(speeds)) > self.nearest / speeds  # not the answer itself
        return [
            Candidate(places[k], self.cost_of(costs[k]), speed=float(speeds[k]))
            for k in np.flatnonzero(lowest)
        ]


def _speeds_within(problem: Problem, vector: Array, powers: Powers) -> tuple[float, float]:
    """Return the slowest and the fastest speed at which the unknowns are within their bounds.

    Initial values are left out: they may be those of another phase.
    """
    slowest, fastest = 0.0, math.inf
    for value, power, low, high, unknown in zip(
        vector, powers.unknowns, problem.lower, problem.upper, problem.unknowns, strict=True
    ):
        if power <= 0 or value <= 0 or unknown.kind == "initial":
            continue
        slowest = max(slowest, (max(low, 0.0) / value) ** (1 / power))
        fastest = min(fastest, (high / value) ** (1 / power))
    return slowest, fastest


def _costs_of_all(
    forward: ForwardMap, scanned: ForwardMap, vector: Array
) -> Callable[[float], float]:
    """Return a function that predicts the cost of all values from that of some.

    Its difference from the cost at `vector` is in proportion to the number of values.
    """
    if scanned is forward:
        return float
    every, some = (sum(c.size for c in f.problem.conditions) for f in (forward, scanned))
    minimum, of_some = forward.cost(vector, UNDECIDED), scanned.cost(vector, UNDECIDED)
    return lambda cost: float(minimum + (cost - of_some) * every / some)


def _turn(problem: Problem, powers: Powers) -> float | None:
    """Return the speed by which equally spaced measurements gain a cycle between two of them."""
    condition = problem.conditions[0]
    distances = np.diff(np.unique(condition.times))
    if not len(distances) or not distances.min() > EQUIDISTANT * distances.max():
        return None
    return powers.period / float(np.mean(distances))


def _aliases(
    turn: float | None,
    step: float,
    limits: tuple[float, float],
    factor: float,
    orders: Sequence[int],
) -> Array:
    """Return speeds that differ by whole cycles between measurements, and those around them.

    `factor` is 1, or -1 for the same motion backwards; `limits` are the slowest and the fastest
    speed.
    """
    if turn is None:
        return np.zeros(0)
    around = step * np.arange(-AROUND, AROUND + 1)
    speeds = np.concatenate([factor + k * turn + around for k in orders])
    return np.unique(speeds[(speeds > max(limits[0], step)) & (speeds <= limits[1])])


def _evaluations(
    forward: ForwardMap,
    vector: Array,
    powers: Powers,
    scales: FreeScales,
    speeds: Array,
    beginning: Beginning,
    choice: EngineChoice,
) -> Iterator[tuple[Array, Evaluation | None]]:
    """Yield the unknowns at each speed, and their evaluation, from one long trajectory.

    Other phases at the beginning need unknown initial values of all states.
    """
    problem, phased = forward.problem, beginning is not Beginning.SAME
    long: list[tuple[Condition, IntArray, Trajectory, dict[int, int]]] = []
    for condition in problem.conditions:
        initial = unknown_beginnings(condition, forward.field.states)
        if phased and len(initial) < len(forward.field.states):
            return
        since = condition.times - condition.t0
        begin = np.zeros(len(speeds))
        if phased:
            phase: float | None = since.min()
            if beginning is Beginning.MIRRORED:
                phase = _mirrored(forward, condition, vector, powers.period)
            if phase is None:
                return
            begin = (phase - since.min() * speeds) % powers.period
        times = np.column_stack([begin, begin[:, None] + np.outer(speeds, since)])
        every, inverse = np.unique(condition.t0 + times, return_inverse=True)
        at_rows: IntArray = np.asarray(inverse, dtype=np.intp).reshape(times.shape)
        trajectory = forward.trajectory(vector, condition.name, every, choice=choice)
        if isinstance(trajectory, Failure):
            return
        long.append((condition, at_rows, trajectory, initial))
    for k, speed in enumerate(speeds):
        place, grown = vector * speed**powers.unknowns, speed**powers.states
        for _, rows, whole, initial in long if phased else []:
            for number, state in initial.items():
                place[number] = whole.states[rows[k, 0], state] * grown[state]
        within = scales.centred(place)
        if ((within < problem.lower) | (within > problem.upper)).any():
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


def _mirrored(
    forward: ForwardMap, condition: Condition, vector: Array, period: float
) -> float | None:
    """Return the phase at which the first measured value returns with the other slope, if any."""
    first = float(condition.times.min() - condition.t0)
    grid = condition.t0 + first + np.linspace(0.0, period, POINTS)
    trajectory = forward.trajectory(vector, condition.name, grid)
    if isinstance(trajectory, Failure):
        return None
    series = forward.predictions(condition, vector, trajectory)[next(iter(condition.series))]
    values = series.array(POINTS)
    above = values - values[0]
    turns = np.flatnonzero(np.diff(np.sign(above[1:-1])) != 0) + 1
    if not len(turns):
        return None
    k = int(turns[0])
    return float(first + period * (k + above[k] / (above[k] - above[k + 1])) / (POINTS - 1))


def _part(
    whole: Trajectory,
    condition: Condition,
    rows: IntArray,
    initial: Mapping[int, int],
    phased: bool,
) -> Trajectory:
    """Return a trajectory at some of its times, the first of which becomes the start."""
    part = replace(
        whole,
        times=condition.times,
        states=whole.states[rows[1:]],
        algebraic=whole.algebraic[rows[1:]],
        sensitivities=whole.sensitivities[rows[1:]],
        algebraic_sensitivities=whole.algebraic_sensitivities[rows[1:]],
    )
    if not phased:
        return part
    # Derivatives by the values at the new start instead of those at the old one.
    columns = [whole.unknowns.index(number) for number in initial]
    order = [*initial.values()]
    at_start = whole.sensitivities[rows[0]]
    by_initial = np.linalg.pinv(at_start[:, columns])[:, order]
    sensitivities = part.sensitivities.copy()
    new = sensitivities[:, :, columns] @ by_initial
    sensitivities -= new @ at_start[order]
    sensitivities[:, :, columns] = new
    return replace(part, sensitivities=sensitivities)


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
