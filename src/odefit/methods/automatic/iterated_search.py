"""Iterated local search: a start begins at the end of an earlier one, some unknowns drawn anew.

Where an optimum asks for the right values of many unknowns at once, few random starts reach it.
Earlier ends have some of these values right: a search from one of them, of which a few unknowns
are drawn anew, keeps the others (H. R. Lourenço, O. C. Martin and T. Stützle, Iterated local
search, 2003). Such starts often return to where they came from:
:class:`odefit.methods.automatic.families.Families` tells which of their ends are evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.methods.control import Control
from odefit.methods.cost_tolerance import CostTolerance, reaches
from odefit.methods.estimate import Start
from odefit.methods.scaling import Scaling
from odefit.methods.screening import lowest
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import sample
from odefit.methods.variable_projection import VariableProjection
from odefit.problem.arrays import Array
from odefit.simulation import Failure, ForwardMap

MAX_BASES = 3
"""Number of the best distinct ends from which starts begin."""

BEST_BASE_SHARE = 0.5
"""Share of the starts that begin at the best end."""

COARSER = 300.0
"""Tolerance of the costs of ends that are begun at, over that of equal ends: a third of a unit of
the log-likelihood, 3 per cent of a sum of squares. Where valleys are flat, starts stop at many
costs above one optimum; without it all that are begun at would be of one valley."""

MAX_REDRAWN_SHARE = 0.5
"""Largest share of the unknowns that are drawn anew."""

SCREENED = 16
"""Number of points with the same unknowns drawn anew of which the best is taken."""

MIN_UNKNOWNS = 4
"""Number of unknowns below which random starts are as good."""

DESIGN = 10**7
"""Number of the design of points for the first start; see :func:`odefit.methods.starts.sample`."""


@dataclass(frozen=True, eq=False)
class IteratedSearch:
    """Starts of single shooting from one earlier end.

    Attributes
    ----------
    method
        The local search.
    base
        The unknowns at that end, shape (n,).
    """

    method: SingleShooting
    base: Array

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        projection = VariableProjection(forward, self.method.eliminate)
        points = self.points(projection, index, control.seed)
        point, _ = lowest(projection, points, control)
        return self.method.run(forward, index, point, control)

    def points(self, projection: VariableProjection, index: int, seed: int) -> Array:
        """Return the points of which start number `index` takes the best, shape (count, n)."""
        kept, problem = projection.kept, projection.forward.problem
        rng = np.random.default_rng([seed, DESIGN, index])
        chances = self._chances(projection) if index % 2 else None
        possible = len(kept) if chances is None else np.count_nonzero(chances)
        most = max(1, int(MAX_REDRAWN_SHARE * possible))
        size = int(rng.integers(1, most + 1))
        redrawn = rng.choice(kept, size=size, replace=False, p=chances)
        points = np.tile(self.base, (SCREENED, 1))
        points[:, redrawn] = sample(problem, DESIGN + index, SCREENED, seed)[:, redrawn]
        return points

    def _chances(self, projection: VariableProjection) -> Array | None:
        """Return how likely each unknown is to be drawn anew: the more it acts on the residuals.

        It is the root of the change of all residuals over the unknown's whole interval, by the
        derivatives at the base. None where all are alike.
        """
        found = projection.evaluate(self.base)
        if isinstance(found, Failure):
            return None
        scaling, kept = Scaling.of(projection.forward.problem), projection.kept
        widths = (scaling.upper - scaling.lower)[kept]
        with np.errstate(all="ignore"):  # an unknown without bounds has no width
            moved = found.jacobian * (scaling.derivative(self.base)[kept] * widths)
            weights = np.sqrt(np.linalg.norm(moved, axis=0))
            total = float(weights.sum())
        return weights / total if math.isfinite(total) and total > 0 else None


def can_begin_at(end: Start) -> bool:
    """Return whether a start can begin at an earlier end: not where trajectories begin anew."""
    return math.isfinite(end.cost) and end.nodes is None


def base_of(ends: Sequence[Start], tolerance: CostTolerance, seed: int, index: int) -> Start:
    """Return the end from which start number `index` begins.

    Parameters
    ----------
    ends
        All ends so far; a start can begin at one of them at least.
    tolerance
        Which costs are equal.
    """
    coarse = replace(
        tolerance,
        relative=COARSER * tolerance.relative,
        absolute=COARSER * tolerance.absolute,
    )
    bases: list[Start] = []
    for end in sorted(filter(can_begin_at, ends), key=lambda s: (s.cost, s.index)):
        if len(bases) == MAX_BASES:
            break
        if not any(reaches(end, base, coarse) for base in bases):
            bases.append(end)
    rng = np.random.default_rng([seed, DESIGN + 1, index])
    if len(bases) == 1 or rng.random() < BEST_BASE_SHARE:
        return bases[0]
    return bases[int(rng.integers(1, len(bases)))]
