"""The record of an integration's steps, so that they can be gone through backwards.

A record has a row for each step that was tried. With it and the equations, all else of a step
can be found again: histories need not be kept.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.compiling import compiled

ORDER, FACTOR, LENGTH, BEFORE, AFTER, ACCEPTED, STATES = range(7)
"""Columns of a record: the order; the factor by which the step length was changed before the step;
the step length; the times before and after the step; whether it was accepted; and, if so, the
first of the states after it."""

ROOM = 256  # steps that a record has room for at first


@compiled
def empty_record(recording: bool, n: int) -> Array:
    """Return a record of steps of `n` states, with room for some if there is to be one."""
    return np.empty((ROOM if recording else 0, STATES + n))


@compiled
def with_step(
    record: Array, step: int, order: int, factor: float, h: float, before: float, after: float
) -> Array:
    """Return a record with a step that is tried; it may have been moved to where there is room."""
    if step == record.shape[0]:
        longer = np.empty((2 * step, record.shape[1]))
        longer[:step] = record
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
    """Note that a step was accepted, with the states in `x`, which follow the time there."""
    record[step, ACCEPTED] = 1.0
    for i in range(record.shape[1] - STATES):
        record[step, STATES + i] = x[1 + i]
