"""The times between which steps of rough trajectories are taken."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.problem.condition import Condition

INSIDE = 1e-9  # distance from the ends of a step at which inputs are read, as they may jump there


class Edges(NamedTuple):
    """Data times, those of events and of knots of inputs, and enough times between them."""

    times: Array  # shape (e,), increasing
    rows: IntArray  # rows of the output that are kept on arrival, -1 for none, shape (e,)
    halts: BoolArray  # whether an event at a known time happens there, shape (e,)


def edges_of(condition: Condition, outputs: Array, step: float) -> Edges:
    """Return the edges of steps no longer than `step` up to the last of the `outputs` times."""
    fixed = [t for t, _ in condition.events]
    knots = [signal.times for signal in condition.inputs.values()]
    stops = np.unique(np.concatenate([[condition.t0], outputs, fixed, *knots]))
    last = outputs[-1] if len(outputs) else condition.t0
    stops = stops[(stops >= condition.t0) & (stops <= last)]
    parts = [stops[:1]]
    for before, stop in pairwise(stops.tolist()):
        count = max(int(np.ceil((stop - before) / step - INSIDE)), 1)
        parts.append(np.linspace(before, stop, count + 1)[1:])
    times = np.concatenate(parts)
    rows = np.full(len(times), -1, dtype=np.intp)
    _, at, row = np.intersect1d(times, outputs, return_indices=True)
    rows[at] = row
    return Edges(times, rows, np.isin(times, fixed))
