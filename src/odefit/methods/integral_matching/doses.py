"""Initial values before events at t0, from the states after these."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from odefit.methods.integral_matching.readout import Readout
from odefit.problem.algebras import DUAL, NUMPY, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.model import Model

POINTS = 4
"""Random states at which slopes are compared."""

ROUNDING = 1e-9
"""Relative difference of slopes, and of what is solved for, that counts as none."""


def before_events(
    model: Model, condition: Condition, vector: Array, after: Mapping[str, float]
) -> dict[str, float]:
    """States before the events at t0 of a condition, as far as they can be told.

    A dose that adds to a state tells it; one that replaces it does not, but known initial values
    and measurements at t0, which are of before the events, may.

    Parameters
    ----------
    vector
        Unknowns, shape (n,).
    after
        States after the events, of those that are known.
    """
    states = model.states
    rows: list[Array] = []
    values: list[float] = []
    every = np.eye(len(states))
    for state, (row, offset) in _assigned(model, condition, vector).items():
        if state in after:
            rows.append(row)
            values.append(after[state] - offset)
    for k, state in enumerate(states):
        bound = condition.initial[state]
        if isinstance(bound, float | Expression):
            with np.errstate(all="ignore"):
                value = float(bound_value(bound, condition.scalars, list(vector), NUMPY))
            if np.isfinite(value):
                rows.append(every[k])
                values.append(value)
    found = _solved(states, rows, values)
    if len(found) < len(states):
        readout = Readout.of(model, condition)
        for name, row in zip(readout.names, readout.matrix, strict=True):
            series = condition.series[name]
            measured = (series.values - readout.offsets[name])[
                condition.times[series.rows] == condition.t0
            ]
            if len(measured):
                rows.append(row)
                values.append(float(measured.mean()))
        # What follows without them is smoothed, and so more accurate.
        found = _solved(states, rows, values) | found
    return found


def _solved(states: tuple[str, ...], rows: list[Array], values: list[float]) -> dict[str, float]:
    """States that linear equations determine."""
    matrix = np.array(rows).reshape(len(rows), len(states))
    inverse = np.linalg.pinv(matrix, rcond=ROUNDING)
    resolved = inverse @ matrix
    own = np.abs(resolved - np.eye(len(states))).max(axis=1) <= ROUNDING * len(states)
    answer = inverse @ np.array(values)
    return {s: float(answer[k]) for k, s in enumerate(states) if own[k]}


def _assigned(model: Model, condition: Condition, vector: Array) -> dict[str, tuple[Array, float]]:
    """States after the events at t0 as affine functions of those before: slopes and offset.

    Those that are no affine functions are left out.
    """
    states = model.states
    rng = np.random.default_rng(0)
    begin = rng.uniform(0.5, 1.5, (len(states), POINTS))
    unknowns = [Dual(v) for v in vector]
    known: dict[str, Dual] = {
        name: bound_value(bound, condition.scalars, unknowns, DUAL)
        for name, bound in condition.scalars.items()
    }
    known[TIME] = Dual(condition.t0)
    for name, given in condition.inputs.items():
        known[name] = Dual(float(given(np.array([condition.t0]))[0]))
    current = known | {s: Dual(begin[k], {k: 1.0}) for k, s in enumerate(states)}
    kinked: set[str] = set()
    with np.errstate(all="ignore"):
        for time, event in condition.events:
            if time > condition.t0:
                break
            # At random states, a kink may look straight.
            kinks = {n for n, e in event.items() if e.functions & NON_SMOOTH or e.names & kinked}
            kinked = (kinked - event.keys()) | kinks
            current = current | {n: e.evaluate(current, DUAL) for n, e in event.items()}
    found = {}
    for state in states:
        slopes = current[state].gradient(len(states), POINTS)
        offsets = current[state].array(POINTS) - np.sum(slopes * begin.T, axis=1)
        if not (np.isfinite(slopes).all() and np.isfinite(offsets).all()) or state in kinked:
            continue
        if np.ptp(slopes, axis=0).max() <= ROUNDING * np.abs(slopes).max():
            found[state] = slopes.mean(axis=0), float(offsets.mean())
    return found
