"""A trajectory that is put together from the parts between events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.engine import SegmentSolution
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.events.event_assignments import Values
from odefit.simulation.propagation.propagation import Beginning
from odefit.simulation.trajectories.trajectory import Trajectory


class Recording:
    """The values at the times of a trajectory, as they are found.

    `times`: the times, shape (k,); `shape`: numbers of states, algebraic variables and directions;
    `switched`: scalars that events assign, with their numbers.
    """

    def __init__(
        self, times: Array, shape: tuple[int, int, int], switched: Mapping[str, int]
    ) -> None:
        count, (n, a, m) = len(times), shape
        self.times = times
        self._times, self._numbers = times, switched
        self._states, self._sensitivities = np.empty((count, n)), np.empty((count, n, m))
        self._algebraic = np.empty((count, a))
        self._algebraic_sensitivities = np.empty((count, a, m))
        self._switched = {name: (np.empty(count), np.empty((count, m))) for name in switched}

    def part(self, now: Values, found: SegmentSolution, wanted: Array, places: Any) -> None:
        """Keep the values at some of the times, which stand at `places` of a solution."""
        if not len(wanted):
            return
        first = int(np.searchsorted(self._times, wanted[0]))
        rows = slice(first, first + len(wanted))
        self._states[rows] = found.states[places]
        self._sensitivities[rows] = found.sensitivities[places]
        self._algebraic[rows] = found.algebraic[places]
        self._algebraic_sensitivities[rows] = found.algebraic_sensitivities[places]
        self._scalars(rows, now)

    def moment(self, time: float, found: Beginning) -> None:
        """Keep the values at a time, if the trajectory has it, in place of earlier ones."""
        row = int(np.searchsorted(self._times, time))
        if row == len(self._times) or self._times[row] != time:
            return
        now, self._algebraic[row], self._algebraic_sensitivities[row] = found
        self._states[row], self._sensitivities[row] = now.states, now.sensitivities
        self._scalars(slice(row, row + 1), now)

    def _scalars(self, rows: slice, now: Values) -> None:
        for name, j in self._numbers.items():
            values, sensitivities = self._switched[name]
            values[rows], sensitivities[rows] = now.scalars[j], now.scalar_sensitivities[j]

    def trajectory(self, unknowns: Sequence[int], sizes: Array, choice: EngineChoice) -> Trajectory:
        """Return the trajectory, with derivatives by unknowns whose steps have these sizes."""
        return Trajectory(
            self._times,
            self._states,
            self._algebraic,
            tuple(unknowns),
            self._sensitivities / sizes,
            self._algebraic_sensitivities / sizes,
            {name: (values, s / sizes) for name, (values, s) in self._switched.items()},
            choice,
        )
