"""Initial values before the events at t0 (doses, for example), from the states after them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.methods.integral_matching.state_reconstruction import (
    AffineObservables,
    affine,
    determined_states,
)
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.model import Model

POINTS = 4  # number of random states at which derivatives are compared


def states_before_events(
    model: Model, condition: Condition, vector: Array, after: Mapping[str, float]
) -> dict[str, float]:
    """Return the states before the events at t0 of a condition, as far as they are determined.

    An event that adds to a state determines it; one that replaces the state does not, but known
    initial values and measurements at t0, which precede the events, may. `after` are the known
    states after the events.
    """
    states = model.states
    rows: list[Array] = []
    values: list[float] = []
    identity = np.eye(len(states))
    for state, (row, offset) in _affine_assignments(model, condition, vector).items():
        if state in after:
            rows.append(row)
            values.append(after[state] - offset)
    for k, state in enumerate(states):
        bound = condition.initial[state]
        if isinstance(bound, float | Expression):
            with np.errstate(all="ignore"):
                value = float(bound_value(bound, condition.scalars, list(vector), NUMPY))
            if np.isfinite(value):
                rows.append(identity[k])
                values.append(value)
    before = _solve(states, rows, values)
    if len(before) < len(states):
        observed = AffineObservables.of(model, condition)
        for name, row in zip(observed.names, observed.matrix, strict=True):
            series = condition.series[name]
            at_start = condition.times[series.rows] == condition.t0
            if at_start.any():
                rows.append(row)
                measured = series.values - observed.offsets[name]
                values.append(float(measured[at_start].mean()))
        # What follows without measurements at t0 is smoothed, and so more accurate.
        before = _solve(states, rows, values) | before
    return before


def _solve(states: tuple[str, ...], rows: list[Array], values: list[float]) -> dict[str, float]:
    """Return the states that linear equations determine."""
    found = determined_states(np.array(rows).reshape(len(rows), len(states)))
    return {states[k]: float(weights @ np.array(values)) for k, weights in found.items()}


def _affine_assignments(
    model: Model, condition: Condition, vector: Array
) -> dict[str, tuple[Array, float]]:
    """Return states after the events at t0 as coefficients of those before, and an offset.

    States that are no affine functions of those before are left out.
    """
    states = model.states
    random = np.random.default_rng(0).uniform(0.5, 1.5, (len(states), POINTS))
    unknowns = [Dual(v) for v in vector]
    known: dict[str, Dual] = {
        name: bound_value(bound, condition.scalars, unknowns, DUAL)
        for name, bound in condition.scalars.items()
    }
    known[TIME] = Dual(condition.t0)
    for name, given in condition.inputs.items():
        known[name] = Dual(float(given(np.array([condition.t0]))[0]))
    current = known | {s: Dual(random[k], {k: 1.0}) for k, s in enumerate(states)}
    kinked: set[str] = set()
    found = {}
    with np.errstate(all="ignore"):
        for time, event in condition.events:
            if time > condition.t0:
                break
            # A function with a kink may be affine at all random states.
            kinks = {n for n, e in event.items() if e.functions & NON_SMOOTH or e.names & kinked}
            kinked = (kinked - event.keys()) | kinks
            current = current | {n: e.evaluate(current, DUAL) for n, e in event.items()}
        for state in states:
            form = affine(current[state], random)
            if form is not None and state not in kinked:
                found[state] = form[0], float(form[1].mean())
    return found
