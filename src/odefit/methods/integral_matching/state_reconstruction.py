"""States from known linear combinations of them: from observables, and from states after events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.model import Model

AFFINE_TOLERANCE = 1e-10
"""The relative difference of derivatives at random states up to which a function is affine; also
the relative singular value up to which linear equations do not determine a state."""

RESOLUTION_TOLERANCE = 1e-8
"""The error of a reconstructed state for other states of size 1, relative to the terms that cancel,
up to which linear equations determine the state."""

MIN_RELATIVE_SD = 1e-6  # smallest noise of a weighted series relative to the noisiest one


def affine(function: Dual, states: Array) -> tuple[Array, Array] | None:
    """Return the coefficients of a function of the states if it is affine, otherwise None.

    The function is given by values and derivatives at random states, shape (states, points). The
    coefficients have the shape (states,), the offsets (points,).
    """
    count, points = states.shape
    derivatives = function.gradient(count, points)
    values = function.array(points)
    if not (np.isfinite(derivatives).all() and np.isfinite(values).all()):
        return None
    size = float(np.abs(derivatives).max(initial=0.0))
    if np.ptp(derivatives, axis=0).max(initial=0.0) > AFFINE_TOLERANCE * size:
        return None
    coefficients = derivatives.mean(axis=0)
    return coefficients, values - coefficients @ states


def determined_states(matrix: Array, sds: Array | None = None) -> dict[int, Array]:
    """Return the states that linear equations determine, each as a combination of right-hand sides.

    The matrix has the shape (equations, states). The result has the weights of the right-hand
    sides, shape (equations,), by index of the state. If there are more equations than needed, those
    with a smaller standard deviation in `sds` have more weight.
    """
    if not len(matrix):
        return {}
    noise = np.ones(len(matrix)) if sds is None or sds.max() <= 0 else sds
    noise = np.maximum(noise, MIN_RELATIVE_SD * noise.max())
    # States have their own units: small means small compared with the largest of the column.
    units = np.abs(matrix).max(axis=0, initial=0.0)
    units = np.where(units > 0, units, 1.0)
    matrix = matrix / units
    inverse = np.linalg.pinv(matrix / noise[:, None], rcond=AFFINE_TOLERANCE) / noise
    error = np.abs(inverse @ matrix - np.eye(matrix.shape[1])).max(axis=1)
    cancelling = (np.abs(inverse) @ np.abs(matrix)).max(axis=1)
    certain = error <= RESOLUTION_TOLERANCE * np.maximum(cancelling, 1.0)
    return {int(k): inverse[k] / units[k] for k in np.flatnonzero(certain)}


@dataclass(frozen=True, eq=False)
class AffineObservables:
    """The series of one condition with y = matrix x + offset, matrix and offset known."""

    names: tuple[str, ...]  # names of the observables
    matrix: Array  # coefficients of the states, shape (names, states)
    offsets: Mapping[str, Array]  # offsets at the times of the series, by observable

    @classmethod
    def of(cls, model: Model, condition: Condition) -> AffineObservables:
        """Return the series of a condition that have this form; the others are omitted."""
        names, rows, offsets = [], [], {}
        for name, series in condition.series.items():
            expression = model.observables[name]
            form = _affine_observable(expression, model, condition, condition.times[series.rows])
            if form is not None:
                names.append(name)
                rows.append(form[0])
                offsets[name] = form[1]
        matrix = np.array(rows).reshape(len(rows), len(model.states))
        return cls(tuple(names), matrix, offsets)

    def states(self, names: Sequence[str], sds: Mapping[str, float]) -> dict[int, Array]:
        """Return the states that the `names` series determine, as combinations of these series.

        If several determine a state, those with little noise have more weight.
        """
        rows = [self.names.index(name) for name in names]
        noise = np.array([sds.get(name, 1.0) for name in names])
        return determined_states(self.matrix[rows], noise)


def measured_states(model: Model, conditions: Sequence[Condition]) -> set[str]:
    """Return the states that the series of every condition determine."""
    measured = set(model.states)
    for condition in conditions:
        observed = AffineObservables.of(model, condition)
        measured &= {model.states[k] for k in observed.states(observed.names, {})}
    return measured


def _affine_observable(
    expression: Expression, model: Model, condition: Condition, times: Array
) -> tuple[Array, Array] | None:
    """Return coefficients of the states and offsets at `times`.

    Returns None for an observable that is not affine, depends on no state, or depends on unknowns.
    """
    states = model.states
    if (name := expression.name) in states:
        coefficients = np.zeros(len(states))
        coefficients[states.index(name)] = 1.0
        return coefficients, np.zeros(len(times))
    assigned = {name for _, event in condition.events for name in event if name not in states}
    known: dict[str, Dual] = {TIME: Dual(times)}
    known |= {name: Dual(signal(times)) for name, signal in condition.inputs.items()}
    known |= {
        name: Dual(value)
        for name, value in condition.scalars.items()
        if isinstance(value, float) and name not in assigned
    }
    if expression.functions & NON_SMOOTH or not expression.names <= {*known, *states}:
        return None
    random = np.random.default_rng(0).uniform(0.5, 1.5, (len(states), len(times)))
    known |= {s: Dual(random[j], {j: 1.0}) for j, s in enumerate(states)}
    with np.errstate(all="ignore"):
        affine_form = affine(expression.evaluate(known, DUAL), random)
    return affine_form if affine_form is not None and affine_form[0].any() else None


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
        # States found without measurements at t0 come from smoothed series, which is more accurate.
        before = _solve(states, rows, values) | before
    return before


def _solve(states: tuple[str, ...], rows: list[Array], values: list[float]) -> dict[str, float]:
    """Return the states that linear equations determine."""
    solutions = determined_states(np.array(rows).reshape(len(rows), len(states)))
    return {states[k]: float(weights @ np.array(values)) for k, weights in solutions.items()}


def _affine_assignments(
    model: Model, condition: Condition, vector: Array
) -> dict[str, tuple[Array, float]]:
    """Return states after the events at t0 as coefficients of those before, and an offset.

    States that are not affine functions of those before are omitted.
    """
    states = model.states
    random = np.random.default_rng(0).uniform(0.5, 1.5, (len(states), POINTS))
    unknowns = [Dual(v) for v in vector]
    known: dict[str, Dual] = {
        name: bound_value(bound, condition.scalars, unknowns, DUAL)
        for name, bound in condition.scalars.items()
    }
    known[TIME] = Dual(condition.t0)
    for name, signal in condition.inputs.items():
        known[name] = Dual(float(signal(np.array([condition.t0]))[0]))
    current = known | {s: Dual(random[k], {k: 1.0}) for k, s in enumerate(states)}
    kinked: set[str] = set()
    assignments = {}
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
                assignments[state] = form[0], float(form[1].mean())
    return assignments
