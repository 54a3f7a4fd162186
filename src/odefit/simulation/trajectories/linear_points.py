"""Linear equations at many values of the unknowns at once, without sensitivities.

A search compares many points before it descends from one of them. For a few measurements, calls
take longer than arithmetic, so all points are computed as the conditions of one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.binding import Computed
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.linear.equations import LinearEquations, linear_equations
from odefit.simulation.engines.linear.forms import FEWEST
from odefit.simulation.trajectories.linear_batch import MOST_STATES, LinearBatch, can_join
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

MOST_TOGETHER = 1000
"""Largest number of conditions, over all points, that are computed together: larger batches gain
nothing, and take long to prepare."""


class PointsMap:
    """The trajectories of all conditions at many points."""

    def __init__(
        self,
        equations: LinearEquations,
        parts: Sequence[ConditionMap | LocatedMap],
        known: dict[Any, Computed],
    ) -> None:
        self._equations, self._parts, self._known = equations, parts, known
        self._batches: dict[int, LinearBatch] = {}

    def __call__(self, points: Array) -> Sequence[list[Trajectory] | None]:
        """Return the trajectories of each point (k, n); None if they have to be computed alone."""
        most = MOST_TOGETHER // len(self._parts)
        by_point: list[list[Trajectory] | None] = []
        for first in range(0, len(points), max(most, 1)):
            together = points[first : first + most]
            if len(together) < FEWEST:
                return [*by_point, *[None] * (len(points) - len(by_point))]
            by_point += self._at(together)
        return by_point

    def _at(self, points: Array) -> list[list[Trajectory] | None]:
        """Return the trajectories of a few points, computed together."""
        count, each = len(points), len(self._parts)
        if count not in self._batches:
            parts = [*self._parts] * count
            self._batches[count] = LinearBatch(self._equations, parts, self._known, count)
        everything = np.arange(count * each)
        trajectories = self._batches[count](points, everything, [UNDECIDED] * len(everything))
        by_point: list[list[Trajectory] | None] = []
        for first in range(0, len(trajectories), each):
            complete = [t for t in trajectories[first : first + each] if t is not None]
            by_point.append(complete if len(complete) == each else None)
        return by_point


def points_map(
    field: VectorField,
    parts: Mapping[int, ConditionMap | LocatedMap],
    known: dict[Any, Computed],
) -> list[PointsMap]:
    """Return the map of many points for the parts of all conditions, by number; none if not linear.

    A list with it, or an empty one.
    """
    equations = linear_equations(field) if len(field.states) <= MOST_STATES else None
    if equations is None or not all(can_join(field, part.condition) for part in parts.values()):
        return []
    return [PointsMap(equations, [parts[number] for number in sorted(parts)], known)]
