"""A vector field linearised in states, time and scalars at many points at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField


@dataclass(frozen=True, eq=False)
class LinearizedField:
    """The field linearised at one point of each of k trajectories."""

    rhs: Array  # The right-hand sides f, shape (k, n)
    jacobian: Array  # Derivatives of f with respect to the states, shape (k, n, n)
    by_time: Array  # Derivatives of f with respect to time, also through the inputs, shape (k, n)
    by_scalars: Array  # Derivatives of f by the scalars along each direction, shape (k, n, m)

    def take(self, chosen: BoolArray) -> LinearizedField:
        """Return the linearisations of the chosen trajectories."""
        return LinearizedField(*(getattr(self, f.name)[chosen] for f in fields(self)))

    def where(self, chosen: BoolArray, other: LinearizedField) -> LinearizedField:
        """Return these linearisations for the chosen trajectories, `other` ones for the rest."""
        return LinearizedField(
            *(where(chosen, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    @property
    def finite(self) -> BoolArray:
        """Trajectories at whose points all numbers are finite, shape (k,)."""
        total = self.rhs.sum(axis=1) + self.jacobian.sum(axis=(1, 2))
        total = total + self.by_time.sum(axis=1) + self.by_scalars.sum(axis=(1, 2))
        return np.asarray(np.isfinite(total))


class Linearization:
    """Evaluates a field and its derivatives at one point of each trajectory.

    The field has no algebraic variables that need solving. `active` are the scalars that may change
    along a direction, `changes` the derivatives of all scalars along each direction, shape (p, m).
    """

    def __init__(
        self,
        field: VectorField,
        active: IntArray,
        scalars: Array,
        changes: Array,
    ) -> None:
        self._field = field
        self._changes = changes[active]
        self._plain = dict(zip(field.scalars, scalars, strict=True))
        self._scalars = {name: Dual(value) for name, value in self._plain.items()}
        time = len(field.states)
        for place, j in enumerate(active):
            self._scalars[field.scalars[j]] = Dual(scalars[j], {time + 1 + place: 1.0})

    def at(self, times: Array, states: Array, polynomials: Array) -> LinearizedField:
        """Linearise at times (k,) and states (k, n), with inputs of shape (k, inputs, 5)."""
        k, n = states.shape
        values: dict[str, Any] = {**self._scalars, TIME: Dual(times, {n: 1.0})}
        for i, name in enumerate(self._field.states):
            values[name] = Dual(states[:, i], {i: 1.0})
        for i, name in enumerate(self._field.inputs):
            u, du = _input(polynomials[:, i], times)
            values[name] = Dual(u, {n: du})
        rhs = np.empty((k, n))
        partials = np.zeros((k, n, n + 1 + len(self._changes)))
        for i, f in enumerate(self._field.rhs(values, DUAL)):
            rhs[:, i] = f.value
            for column, partial in f.partials.items():
                partials[:, i, column] = partial
        by_scalars = partials[:, :, n + 1 :] @ self._changes
        return LinearizedField(rhs, partials[:, :, :n], partials[:, :, n], by_scalars)

    def rhs(self, times: Array, states: Array, polynomials: Array) -> Array:
        """Return the right-hand sides alone, shape (k, n)."""
        values: dict[str, Any] = {**self._plain, TIME: times}
        values |= dict(zip(self._field.states, states.T, strict=True))
        for i, name in enumerate(self._field.inputs):
            values[name] = _input(polynomials[:, i], times)[0]
        rhs = np.empty(states.shape)
        for i, f in enumerate(self._field.rhs(values, NUMPY)):
            rhs[:, i] = f
        return rhs


def _input(polynomials: Array, times: Array) -> tuple[Array, Array]:
    """Return values and time derivatives of an input, polynomials of shape (k, 5)."""
    left, c0, c1, c2, c3 = polynomials.T
    s = times - left
    return c0 + s * (c1 + s * (c2 + s * c3)), c1 + s * (2 * c2 + s * 3 * c3)


def where(chosen: BoolArray, new: Array, old: Array) -> Array:
    """Return `new` for the chosen trajectories (the first axis), `old` for the others."""
    return np.asarray(np.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old))
