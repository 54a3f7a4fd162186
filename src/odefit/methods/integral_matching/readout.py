"""States from what is measured, where observables are known linear combinations of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.model import Model

ROUNDING = 1e-10
"""Relative difference of coefficients that counts as none."""

LEAST_SD = 1e-6
"""Noise of a series at least, relative to that of the noisiest, where series are weighed."""


@dataclass(frozen=True, eq=False)
class Readout:
    """Series y = matrix x + offset of one condition, matrix and offset known.

    Attributes
    ----------
    names
        Observables.
    matrix
        Shape (names, states).
    offsets
        At the times of the series, by observable.
    """

    names: tuple[str, ...]
    matrix: Array
    offsets: Mapping[str, Array]

    @classmethod
    def of(cls, model: Model, condition: Condition) -> Readout:
        """Those of a condition's series for which that holds; the others are left out."""
        names, rows, offsets = [], [], {}
        for name, series in condition.series.items():
            expression = model.observables[name]
            found = _affine(expression, model, condition, condition.times[series.rows])
            if found is not None:
                names.append(name)
                rows.append(found[0])
                offsets[name] = found[1]
        matrix = np.array(rows).reshape(len(rows), len(model.states))
        return cls(tuple(names), matrix, offsets)

    def states(self, kept: Sequence[str], sds: Mapping[str, float]) -> dict[int, Array]:
        """Weights of the `kept` series in every state that they determine, by its number.

        Where they determine it more than once, those with little noise weigh more.
        """
        rows = [self.names.index(name) for name in kept]
        if not rows:
            return {}
        noise = np.array([sds.get(name, 1.0) for name in kept])
        noise = np.maximum(noise, LEAST_SD * noise.max()) if noise.max() > 0 else np.ones(len(rows))
        matrix = self.matrix[rows]
        inverse = np.linalg.pinv(matrix / noise[:, None], rcond=ROUNDING) / noise
        resolved = inverse @ matrix
        size = np.abs(inverse) @ np.abs(matrix)
        found = {}
        for k, row in enumerate(resolved):
            own = np.zeros(len(row))
            own[k] = 1.0
            if np.abs(row - own).max() <= 1e-8 * max(float(size[k].max()), 1.0):
                found[k] = inverse[k]
        return found


def measured_states(model: Model, conditions: Sequence[Condition]) -> set[str]:
    """States that the series of every condition determine."""
    found = set(model.states)
    for condition in conditions:
        readout = Readout.of(model, condition)
        own = readout.states(readout.names, {})
        found &= {model.states[k] for k in own}
    return found


def _affine(
    expression: Expression, model: Model, condition: Condition, times: Array
) -> tuple[Array, Array] | None:
    """Coefficients of the states and the offset at `times`; None if not linear, or not known."""
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
    rng = np.random.default_rng(0)
    values = {s: Dual(rng.uniform(0.5, 1.5, len(times)), {j: 1.0}) for j, s in enumerate(states)}
    with np.errstate(all="ignore"):
        found: Dual = expression.evaluate({**known, **values}, DUAL)
    slopes = found.gradient(len(states), len(times))
    size = float(np.abs(slopes).max(initial=0.0))
    if not (size > 0 and np.ptp(slopes, axis=0).max() <= ROUNDING * size):
        return None
    row = slopes.mean(axis=0)
    at = np.array([values[s].value for s in states])
    return row, found.array(len(times)) - row @ at
