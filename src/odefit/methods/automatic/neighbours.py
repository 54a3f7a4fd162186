"""Searches that begin around an end: beyond the kinks next to it, or with exchanged unknowns.

If equations switch, the cost has a smooth piece for each order of switches. It may have an optimum
on each piece, with about the same cost, such as friction that holds a motor once or lets it creep.
Random starts mostly end on one of them. If the best end of such a model could be one of several,
searches begin a few standard errors away from it, on both sides in each unknown.

Two unknowns with like roles, as the rates of two steps in sequence, may be exchanged in the lower
of two optima that most starts miss. If the best end misses the data, searches begin at such
exchanges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.variants.exchanges import exchanged
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure, ForwardMap

AWAY = 2.0  # distance of the starts from the end, in standard errors

MOST = 8  # largest number of searches around one end

MOST_EXCHANGES = 6  # largest number of pairs of unknowns that are exchanged


@dataclass(frozen=True, eq=False)
class NeighbourSearch:
    """One start that searches from around an end; it ends where the lowest search does.

    With `exchange`, the searches begin at the end with two unknowns exchanged.
    """

    method: SingleShooting
    end: Start
    exchange: bool = False

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the lowest end, or that of the base if none is lower."""
        lowest = self.method.run(forward, index, self.end.vector, control)
        evaluations, seconds = lowest.evaluations, lowest.seconds
        for point in self._points(forward):
            if control.should_stop():
                break
            end = self.method.run(forward, index, point, control)
            evaluations, seconds = evaluations + end.evaluations, seconds + end.seconds
            lowest = min(lowest, end, key=lambda s: s.cost)
        return replace(lowest, evaluations=evaluations, seconds=seconds)

    def _points(self, forward: ForwardMap) -> Array:
        if self.exchange:
            return exchanged(forward.problem, self.end.vector, MOST_EXCHANGES)
        return neighbours(forward, self.end.vector, self.method.eliminate)


def neighbours(forward: ForwardMap, vector: Array, eliminate: bool) -> Array:
    """Return points around an end, shape (k, n): on both sides in each unknown.

    The other unknowns move to their best fit in the linearised model. If all are determined, that
    model rises equally at all points. No unknown moves by more than its own size.
    """
    problem = forward.problem
    projection = VariableProjection(forward, eliminate)
    at, columns = projection.evaluate(vector), projection.remaining
    if isinstance(at, Failure) or not np.isfinite(at.jacobian).all():
        return np.zeros((0, len(vector)))
    sizes = sizes_at(problem, vector)[columns]
    _, s, directions = singular_value_decomposition(at.jacobian * sizes)
    freedom = max(problem.size - len(columns), 1)
    known_noise = forward.likelihood or forward.given_noise
    spread = 1.0 if known_noise else math.sqrt(2.0 * at.evaluation.cost / freedom)
    errors = directions.T / np.maximum(s / max(spread, 1e-300), AWAY)
    covariance = errors @ errors.T
    deviations = np.sqrt(np.diag(covariance))
    points = []
    for k in np.flatnonzero(deviations > 0)[: MOST // 2]:
        for sign in (AWAY, -AWAY):
            changes = sign * covariance[:, k] / deviations[k]
            point = vector.copy()
            positive = problem.lower[columns] >= 0
            moved = np.where(positive, sizes * np.expm1(changes), sizes * changes)
            point[columns] += moved
            points.append(np.clip(point, problem.lower, problem.upper))
    return np.array(points).reshape(-1, len(vector))
