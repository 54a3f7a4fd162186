"""Iterated local search: a start begins near the end of an earlier one.

If an optimum needs the right values of many unknowns at once, few random starts reach it. Earlier
ends have some of these values right, and a search that begins near one of them keeps them (H. R.
Lourenço, O. C. Martin and T. Stützle, Iterated local search, 2003). There are two kinds of start:
some unknowns are drawn afresh, or all unknowns move together along directions that the data
determine poorly. Along these, other optima of nearly the same cost lie far away. Such starts often
return to the end from which they came: :class:`odefit.methods.automatic.families.Families` decides
which of their ends are evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.automatic.coarse_beginning import coarse, run_from_coarse
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance, coarser, reaches
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.variable_projection import Projection, VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import lowest, sample
from odefit.simulation import Failure, ForwardMap

MAX_BASES = 8  # number of the best distinct ends near which starts begin

HEAD_START = 4
"""Number of starts by which an end is ahead of the next worse one while no better end is found.

On the published model of Fujita et al. some ends lead to a better optimum in one start of twenty,
others that are as good in none of sixty.
"""

MAX_REDRAWN_SHARE = 0.5  # largest share of the unknowns drawn afresh
SCREENED = 4  # number of points of one kind of which a start takes the best

RISES = (0.1, 300.0)
"""Smallest and largest rise of the cost, by its linearised model, at points along poorly determined
directions; drawn from a log-uniform distribution."""

MAX_MOVED = 0.5
"""Largest standard deviation of a move along such a direction, relative to the intervals."""

SHARES_OF_DIRECTIONS = (0.15, 0.5, 1.0)
"""Shares of the directions along which a point moves, in random turns."""

MIN_UNKNOWNS = 4  # number of unknowns below which random starts are as effective

DESIGN = 10**7
"""Number of the design of points for the first start; see :func:`odefit.methods.starts.sample`."""


@dataclass(frozen=True, eq=False)
class IteratedSearch:
    """Starts of single shooting from one earlier end, whose unknowns are `base`, shape (n,)."""

    method: SingleShooting
    base: Array

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        projection = VariableProjection(coarse(forward), self.method.eliminate)
        points = self.points(projection, index, control.seed)
        point, _ = lowest(projection, points, control)
        return run_from_coarse(self.method, forward, index, point, control)

    def points(self, projection: VariableProjection, index: int, seed: int) -> Array:
        """Return the points of which start number `index` takes the best, shape (count, n)."""
        rng = np.random.default_rng([seed, DESIGN, index])
        at = projection.evaluate(self.base)
        if isinstance(at, Failure):
            return self._redrawn(projection, index, seed, rng, None)
        moved = self._moved(projection, at)
        if index % 2 == 0 and np.isfinite(moved).all():
            return self._along_directions(projection, moved, rng)
        return self._redrawn(projection, index, seed, rng, _chances(moved))

    def _redrawn(
        self,
        projection: VariableProjection,
        index: int,
        seed: int,
        rng: np.random.Generator,
        chances: Array | None,
    ) -> Array:
        """Return points with the same few unknowns drawn afresh from the whole range."""
        columns, problem = projection.remaining, projection.forward.problem
        possible = len(columns) if chances is None else np.count_nonzero(chances)
        most = max(1, int(MAX_REDRAWN_SHARE * possible))
        size = int(rng.integers(1, most + 1))
        redrawn = rng.choice(columns, size=size, replace=False, p=chances)
        points = np.tile(self.base, (SCREENED, 1))
        points[:, redrawn] = sample(problem, DESIGN + index, SCREENED, seed)[:, redrawn]
        return points

    def _along_directions(
        self, projection: VariableProjection, moved: Array, rng: np.random.Generator
    ) -> Array:
        """Return points at which the linearised model is little higher, though they may be far.

        Along the right singular vectors of the Jacobian the model of the cost has no mixed terms. A
        random move along each, as long as the rise allows, is a draw from the normal distribution
        with the inverse of the information as covariance, within the intervals.
        """
        problem = projection.forward.problem
        scaling, columns = Scaling.of(problem), projection.remaining
        widths = (scaling.upper - scaling.lower)[columns]
        _, sizes, directions = singular_value_decomposition(moved)
        coordinates = np.tile(scaling.coordinates(self.base), (SCREENED, 1))
        for row in coordinates:
            rise = math.exp(rng.uniform(*np.log(RISES)))
            lengths = np.minimum(math.sqrt(2 * rise) / np.maximum(sizes, 1e-300), MAX_MOVED)
            taken = rng.random(len(sizes)) < rng.choice(SHARES_OF_DIRECTIONS)
            amounts = rng.standard_normal(len(sizes)) * lengths * taken
            row[columns] += widths * (directions.T @ amounts)
        inside = np.clip(coordinates, scaling.lower, scaling.upper)
        points = np.array([scaling.natural(row) for row in inside])
        return np.asarray(np.clip(points, problem.lower, problem.upper))

    def _moved(self, projection: VariableProjection, at: Projection) -> Array:
        """Return the linearised change of the residuals as each unknown crosses its interval."""
        scaling, columns = Scaling.of(projection.forward.problem), projection.remaining
        with np.errstate(all="ignore"):  # an unknown without bounds has no width
            widths = (scaling.upper - scaling.lower)[columns]
            return np.asarray(at.jacobian * (scaling.derivative(self.base)[columns] * widths))


def _chances(moved: Array) -> Array | None:
    """Return the probability of drawing each unknown afresh: higher with its effect on residuals.

    It is proportional to the root of the change of all residuals over the unknown's interval, by
    the derivatives at the base, shape (r, n). Returns None if all are equal.
    """
    with np.errstate(all="ignore"):
        weights = np.sqrt(np.linalg.norm(moved, axis=0))
        total = float(weights.sum())
    return weights / total if math.isfinite(total) and total > 0 else None


def can_begin_at(end: Start) -> bool:
    """Return whether a start can begin at an earlier end: not if trajectories restart at nodes."""
    return math.isfinite(end.cost) and end.nodes is None


def bases_of(ends: Sequence[Start], tolerance: CostTolerance) -> list[Start]:
    """Return the best distinct ends at which a start can begin, the best first."""
    coarse = coarser(tolerance)
    bases: list[Start] = []
    for end in sorted(filter(can_begin_at, ends), key=lambda s: (s.cost, s.index)):
        if len(bases) == MAX_BASES:
            break
        if not any(reaches(end, base, coarse) for base in bases):
            bases.append(end)
    return bases


def base_of(bases: Sequence[Start], begun: Sequence[Start], tolerance: CostTolerance) -> Start:
    """Return the base, among these from best to worst, at which the next start begins.

    Better bases have a head start; while no better end is found, all have their turn. Earlier
    starts began at `begun`.
    """
    valley = coarser(tolerance)

    def turn(rank: int) -> int:
        tries = sum(valley.same(bases[rank], earlier) for earlier in begun)
        return tries + HEAD_START * rank

    return bases[min(range(len(bases)), key=turn)]
