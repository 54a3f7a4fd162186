"""States reconstructed from observables that are known linear combinations of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.condition import Condition
from odefit.problem.model import Model

AFFINE_TOLERANCE = 1e-10
"""The relative difference of derivatives at random states up to which a function is affine, and the
relative singular value up to which linear equations do not determine a state."""

RESOLUTION_TOLERANCE = 1e-8
"""The error of a reconstructed state for other states of size 1, relative to the terms that cancel,
up to which linear equations determine the state."""

MIN_RELATIVE_SD = 1e-6
"""The smallest noise of a series relative to the noisiest one, where series are weighted."""


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

    The matrix has the shape (equations, states). By index of the state, the weights of the
    right-hand sides are returned, shape (equations,). Where there are more equations than needed,
    those with a smaller standard deviation in `sds` weigh more.
    """
    if not len(matrix):
        return {}
    noise = np.ones(len(matrix)) if sds is None or sds.max() <= 0 else sds
    noise = np.maximum(noise, MIN_RELATIVE_SD * noise.max())
    # States have units of their own: what is small is so beside the largest of its column.
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
        """Return the series of a condition that are of this form; the others are left out."""
        names, rows, offsets = [], [], {}
        for name, series in condition.series.items():
            expression = model.observables[name]
            found = _affine_observable(expression, model, condition, condition.times[series.rows])
            if found is not None:
                names.append(name)
                rows.append(found[0])
                offsets[name] = found[1]
        matrix = np.array(rows).reshape(len(rows), len(model.states))
        return cls(tuple(names), matrix, offsets)

    def states(self, kept: Sequence[str], sds: Mapping[str, float]) -> dict[int, Array]:
        """Return the states that the `kept` series determine, as combinations of these series.

        Where they determine a state more than once, those with little noise weigh more.
        """
        rows = [self.names.index(name) for name in kept]
        noise = np.array([sds.get(name, 1.0) for name in kept])
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

    None stands for an observable that is not affine, that depends on no state, or that depends on
    unknowns.
    """
    states = model.states
    if expression.name in states:
        return np.array([float(s == expression.name) for s in states]), np.zeros(len(times))
    assigned = {name for _, event in condition.events for name in event if name not in states}
    known: dict[str, Dual] = {TIME: Dual(times)}
    known |= {name: Dual(given(times)) for name, given in condition.inputs.items()}
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
        found = affine(expression.evaluate(known, DUAL), random)
    return found if found is not None and found[0].any() else None
