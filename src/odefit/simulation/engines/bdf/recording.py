"""The record of an integration's steps, for the backward pass.

A record has a row for each attempted step. From the row and the equations all other values of a
step can be reconstructed, so that no histories are stored.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled

ORDER, FACTOR, LENGTH, BEFORE, AFTER, ACCEPTED, STATES = range(7)
"""Columns of a record: the order, the factor by which the step length was changed before the step,
and the step length. Then follow the times before and after the step, whether it was accepted, and,
if so, the first of the states after it.
"""

ROOM = 256  # initial capacity of a record, in steps


@compiled
def empty_record(recording: bool, n: int) -> Array:
    """Return a record of steps of `n` states, with some capacity if steps are recorded."""
    return np.empty((ROOM if recording else 0, STATES + n))


@compiled
def with_step(
    record: Array, step: int, order: int, factor: float, h: float, before: float, after: float
) -> Array:
    """Return a record with an attempted step; a full record is moved to a larger one."""
    if step == record.shape[0]:
        longer = np.empty((2 * step, record.shape[1]))
        for k in range(step):
            for j in range(record.shape[1]):
                longer[k, j] = record[k, j]
        record = longer
    record[step, ORDER] = order
    record[step, FACTOR] = factor
    record[step, LENGTH] = h
    record[step, BEFORE] = before
    record[step, AFTER] = after
    record[step, ACCEPTED] = 0.0
    return record


@compiled
def accept_step(record: Array, step: int, x: Array) -> None:
    """Mark a step as accepted, with the states in `x`, which follow the time there."""
    record[step, ACCEPTED] = 1.0
    for i in range(record.shape[1] - STATES):
        record[step, STATES + i] = x[1 + i]
