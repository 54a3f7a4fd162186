"""The costs at many vectors at once, as of the points of which a start takes the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.problem import Problem
from odefit.simulation.best_seen import best_seen
from odefit.simulation.residuals.residual_arrays import ResidualArrays
from odefit.simulation.trajectories.trajectory import Trajectory


def noted_costs(
    residuals: ResidualArrays,
    problem: Problem,
    points: Array,
    along: Sequence[list[Trajectory] | None],
) -> Array | None:
    """Return the costs at many vectors, shape (k, n), and note them; infinite where undefined.

    `along` are the trajectories at each. None is returned if some are missing, or if each vector
    has to be evaluated alone. Priors are not included.
    """
    known = [trajectories for trajectories in along if trajectories is not None]
    sums = residuals.sums_at(points, known) if 0 < len(known) == len(along) else None
    if sums is None:
        return None
    costs = np.where(np.isnan(sums.squares), np.inf, 0.5 * sums.squares + sums.log_sds)
    seen = best_seen()
    if seen is not None:
        for vector, cost, squares in zip(points, costs, sums.squares.tolist(), strict=True):
            seen.note(problem, vector, float(cost), squares)
    return np.asarray(costs)
