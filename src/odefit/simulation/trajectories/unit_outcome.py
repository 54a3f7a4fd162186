"""The result of the integration of a unit: trajectories of its conditions, or a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from odefit.common.arrays import Array
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.failure import Failure
from odefit.simulation.trajectories.trajectory import Trajectory


class UnitOutcome(NamedTuple):
    """The result of the integration of a unit."""

    trajectories: Mapping[int, Trajectory] | Failure  # Trajectories by condition, or a failure
    after: EngineChoice  # The next choice of an engine for the unit
    trunk_after: EngineChoice  # That for its trunk, if it has one


Integrate = Callable[[Sequence[int], Array, Sequence[EngineChoice]], Mapping[int, UnitOutcome]]
"""Integrates units at a vector with their choices of engines, up to the first failure."""
