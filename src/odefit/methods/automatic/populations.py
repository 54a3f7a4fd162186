"""Populations of points that follow the data over growing horizons, through events of conditions.

If conditions trigger events, as in a thermostat, a trajectory has no derivative with respect to the
threshold of an event that it does not reach. A late event depends on all earlier ones, so the cost
has optima for each number of events, and few starts lead to the best. But the first event shows in
a short part of the data, and the second in a slightly longer one. From a population of points that
fit one part, those that also fit the next are kept, and moved within the freedom that it leaves (P.
Del Moral, A. Doucet and A. Jasra, Sequential Monte Carlo samplers, 2006; by differences of two
points: C. J. F. ter Braak, A Markov chain Monte Carlo version of the genetic algorithm differential
evolution, 2006). Points are integrated roughly, side by side (:mod:`odefit.simulation.lanes`).
Local searches begin at the best points of the last population.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import sample
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import ranges
from odefit.problem.variants.thinning import with_horizon
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.lanes import Lanes

FIRST, POPULATION = 2048, 256  # number of points drawn first, and number of points in a population

HORIZONS = tuple(1.35**-k for k in range(12, 0, -1))
"""Parts of the time span that populations fit before the whole span."""

SWEEPS, LAST_SWEEPS = 2, 8  # number of moves of every point, on a part and on the whole span

LEAST_EFFECTIVE = 12.0
"""Smallest effective number of points after a part: weights are flattened until it is reached."""

WIDER = 1e3
"""Factor by which a point may leave the range of an unknown that has no effect on a part; a linear
range may be left by its own width."""

NEW = 0.15  # share of the moves that draw one unknown afresh from its whole range

WHOLE_STEP = 0.2  # share of the moves by a full difference, from one optimum to another

JITTER = 0.02  # standard deviation of a move around the difference, relative to that of all points

LEAST_NOISE = 0.01
"""Smallest noise assumed where none is given, relative to the range of a series."""

REFINED = 4  # number of points of the last population from which local searches begin

APART = 0.3
"""Difference of an unknown, in standard deviations of all points, above which two points differ."""

LANES_PER_EVALUATION = 50
"""Number of rough trajectories that cost as much as one evaluation, with all events located."""

MOST_OPERATIONS = 3000
"""Operations of the right-hand sides of all conditions above which rough trajectories take long."""

DESIGN = 5 * 10**7
"""Number of the design of points of the first start; see :func:`odefit.methods.starts.sample`."""

SHORT = SingleShooting(evaluations=30, tolerance=1e-6, step=1e-6, patience=15)
"""The local search from a point of the last population; the best of these searches continues."""


def refusal(forward: ForwardMap) -> str | None:
    """Return why populations are not tried; None if they are."""
    conditions = forward.problem.conditions
    if not any(c.has_triggers for c in conditions):
        return "no condition triggers an event"
    if not all(Lanes.can_follow(forward.field, c) for c in conditions):
        return "events or equations are of a kind that rough trajectories cannot follow"
    model = forward.problem.model
    count = sum(len(e.program) for e in (*model.ode.values(), *model.algebraic.values()))
    if count * len(conditions) > MOST_OPERATIONS:
        return "rough trajectories of so many equations and experiments would take long"
    return None


@dataclass(frozen=True)
class PopulationSearch:
    """Starts of single shooting from the best points of a population."""

    method: SingleShooting

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        began = time.perf_counter()
        population = _Population(forward, index, control)
        for part in _parts(forward):
            population.fit(part, LAST_SWEEPS if part is forward else SWEEPS)
        points = population.best()
        if not len(points):
            return _refused(forward.problem, index, time.perf_counter() - began)
        ends = [SHORT.run(forward, index, point, control) for point in points]
        best = min(ends, key=lambda s: s.cost)
        end = self.method.run(forward, index, best.vector, control)
        every = [*ends, end]
        return replace(
            end,
            start=best.start,
            evaluations=sum(s.evaluations for s in every)
            + population.integrated // LANES_PER_EVALUATION,
            seconds=time.perf_counter() - began,
            failures=dict(sum((Counter(s.failures) for s in every), Counter[str]())),
        )


def _refused(problem: Problem, index: int, seconds: float) -> Start:
    nothing = np.full(len(problem.unknowns), math.nan)
    reason = "no rough trajectory of a population is finite"
    return Start(index, nothing, nothing, math.inf, Status.FAILED, reason, 0, seconds, math.inf)


def _parts(forward: ForwardMap) -> list[ForwardMap]:
    """Return the forward maps of growing parts of the data, the last one with all."""
    least, least_parts = len(forward.problem.unknowns) + 1, []
    for fraction in HORIZONS:
        problem = with_horizon(forward.problem, fraction)
        if least <= problem.size < forward.problem.size:
            least_parts.append(forward.of(problem))
            least = problem.size + 1
    return [*least_parts, forward]


class _Population:
    """The points of one start, shape (count, n), with their negative log-likelihoods."""

    def __init__(self, forward: ForwardMap, index: int, control: Control) -> None:
        self._problem, self._control = forward.problem, control
        self._design = DESIGN + 1000 * index
        self._rng = np.random.default_rng([control.seed, self._design])
        self._lanes = [Lanes(forward.field, c) for c in forward.problem.conditions]
        self._columns = VariableProjection(forward).remaining
        every = ranges(self._problem)
        self._logarithmic = np.array([r.logarithmic and r.low > 0 for r in every])
        low, high = self._coordinates(np.array([(r.low, r.high) for r in every]).T)
        wider = np.where(self._logarithmic, math.log(WIDER), high - low)
        self._low, self._high = low - wider, high + wider
        self.integrated = 0
        self._points = self._sample(FIRST)
        self._costs = np.zeros(FIRST)
        self._unit = 1.0  # square of the ratio of the assumed to the given noise

    def _sample(self, count: int) -> Array:
        self._design += 1
        return sample(self._problem, self._design, count, self._control.seed)

    def fit(self, part: ForwardMap, sweeps: int) -> None:
        """Fit the population to a part of the data."""
        projection = VariableProjection(part)
        self._costs = self._costs_of(projection, self._points)
        if not np.isfinite(self._costs).any():
            return
        if part.given_noise and not part.likelihood:
            # A model that misses its data leaves more than noise even at its best.
            self._unit = max(1.0, 2.0 * float(self._costs.min()) / part.problem.size)
        self._filter()
        for _ in range(sweeps):
            if self._control.should_stop():
                return
            moved = self._moved()
            costs = self._costs_of(projection, moved)
            with np.errstate(invalid="ignore"):
                gains = (self._costs - costs) / self._unit
            taken = np.log(self._rng.random(POPULATION)) < gains
            self._points = np.where(taken[:, None], moved, self._points)
            self._costs = np.where(taken, costs, self._costs)

    def best(self) -> list[Array]:
        """Return the best points that differ; none if no trajectory is finite."""
        places = self._coordinates(self._points)[:, self._columns]
        apart = APART * places.std(axis=0)
        chosen: list[int] = []
        for k in np.argsort(self._costs, kind="stable"):
            if len(chosen) == REFINED or not math.isfinite(self._costs[k]):
                break
            if all((np.abs(places[k] - places[other]) > apart).any() for other in chosen):
                chosen.append(int(k))
        return [self._points[k] for k in chosen]

    def _costs_of(self, projection: VariableProjection, points: Array) -> Array:
        """Return the negative log-likelihoods at points, infinite where they are undefined."""
        part = projection.forward
        every = [
            lanes(points, c.end)
            for lanes, c in zip(self._lanes, part.problem.conditions, strict=True)
        ]
        self.integrated += len(points)
        least, costs = _least_cost(part.problem), np.full(len(points), math.inf)
        for k, along in enumerate(zip(*every, strict=True)):
            trajectories = [t for t in along if t is not None]
            if len(trajectories) < len(every):
                continue
            evaluation = projection.cost_along(points[k], trajectories)
            if isinstance(evaluation, Evaluation):
                costs[k] = evaluation.cost
                if not part.given_noise:
                    costs[k] = 0.5 * part.problem.size * math.log(evaluation.cost + least)
        return costs

    def _filter(self) -> None:
        """Draw a population from the points, with probabilities by their fit to the part."""
        with np.errstate(invalid="ignore"):
            above = (self._costs - self._costs.min()) / self._unit
        above[~np.isfinite(above)] = math.inf
        most = np.count_nonzero(np.isfinite(above))
        weights = np.exp(-above)
        while weights.sum() ** 2 < min(LEAST_EFFECTIVE, 0.5 * most) * np.sum(weights**2):
            above /= 1.5
            weights = np.exp(-above)
        places = (self._rng.random() + np.arange(POPULATION)) / POPULATION
        chosen = np.searchsorted(np.cumsum(weights) / weights.sum(), places)
        chosen = np.minimum(chosen, len(weights) - 1)
        self._points, self._costs = self._points[chosen], self._costs[chosen]

    def _moved(self) -> Array:
        """Return a move of every point: by a difference of two others, or in one unknown alone."""
        rng, free, here = self._rng, self._columns, self._coordinates(self._points)
        first, second = rng.permutation(POPULATION), rng.permutation(POPULATION)
        usual = 2.38 / math.sqrt(2 * len(free)) * np.exp(0.5 * rng.standard_normal(POPULATION))
        lengths = np.where(rng.random(POPULATION) < WHOLE_STEP, 1.0, usual)
        moving = np.zeros(here.shape, dtype=bool)
        share = rng.choice([0.4, 1.0], size=(POPULATION, 1))
        moving[:, free] = rng.random((POPULATION, len(free))) < share
        steps = lengths[:, None] * (here[first] - here[second])
        steps += JITTER * here.std(axis=0) * rng.standard_normal(here.shape)
        targets = here + np.where(moving, steps, 0.0)
        drawn = self._coordinates(self._sample(POPULATION))
        rows = np.flatnonzero(rng.random(POPULATION) < NEW)
        columns = free[rng.integers(len(free), size=len(rows))]
        targets[rows] = here[rows]
        targets[rows, columns] = drawn[rows, columns]
        targets = np.clip(targets, self._low, self._high)
        with np.errstate(over="ignore"):  # of coordinates that are not logarithms
            points = np.where(self._logarithmic, np.exp(targets), targets)
        return np.clip(points, self._problem.lower, self._problem.upper)

    def _coordinates(self, points: Array) -> Array:
        """Return points with the logarithms of unknowns that are drawn by order of magnitude."""
        positive = np.where(self._logarithmic, np.maximum(points, 1e-300), 1.0)
        return np.where(self._logarithmic, np.log(positive), points)


def _least_cost(problem: Problem) -> float:
    """Return the cost at the smallest noise that is assumed where none is given."""
    series: Sequence[Array] = [s.values for c in problem.conditions for s in c.series.values()]
    return max(sum(0.5 * len(v) * (LEAST_NOISE * float(np.ptp(v))) ** 2 for v in series), 1e-300)
