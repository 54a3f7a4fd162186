"""The record of an integration's steps, for the backward pass.

A record has a row for each attempted step. From the row and the equations all other values of a
step can be reconstructed, so that no histories are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled

ORDER, FACTOR, LENGTH, BEFORE, AFTER, ACCEPTED, STATES = range(7)
"""Columns of a record: the order, the factor by which the step length was changed before the step,
and the step length. Then follow the times before and after the step, whether it was accepted, and,
if so, the first of the states after it.
"""

ROOM = 256  # usual number of steps that a record has room for


@compiled
def record_step(
    record: Array, step: int, order: int, factor: float, h: float, before: float, after: float
) -> None:
    """Write an attempted step into a record, if there is room for it."""
    if step < record.shape[0]:
        record[step, ORDER] = order
        record[step, FACTOR] = factor
        record[step, LENGTH] = h
        record[step, BEFORE] = before
        record[step, AFTER] = after
        record[step, ACCEPTED] = 0.0


@compiled
def accept_step(record: Array, step: int, x: Array) -> None:
    """Mark a step as accepted, with the states in `x`, which follow the time there."""
    if step < record.shape[0]:
        record[step, ACCEPTED] = 1.0
        for i in range(record.shape[1] - STATES):
            record[step, STATES + i] = x[1 + i]


class Rooms:
    """The memory of records, which later ones use again.

    Fresh memory takes several times as long as the integration that fills it.
    """

    def __init__(self, states: int) -> None:
        self._columns = STATES + states
        self._free: list[Array] = []
        self.none = np.empty((0, self._columns))

    def take(self, steps: int = 0) -> Array:
        """Return the memory of a record of at least so many steps."""
        room = self._free.pop() if self._free else None
        if room is None or len(room) < steps:
            room = np.empty((max(ROOM, steps + steps // 4), self._columns))
        return room

    def give_back(self, records: Sequence[Array]) -> None:
        """Let later records use the memory of these, which are no longer needed."""
        self._free.extend(record if record.base is None else record.base for record in records)
