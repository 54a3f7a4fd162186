"""A field linearised in states, time and scalars at many points at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit.problem.algebras import DUAL, NUMPY, Dual
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.expressions import TIME
from odefit.problem.vector_field import VectorField


@dataclass(frozen=True, eq=False)
class Tangent:
    """The field linearised at one point of each lane.

    Attributes
    ----------
    slopes
        f, shape (k, n).
    jacobian
        By the states, shape (k, n, n).
    drift
        By the time, that of the inputs included, shape (k, n).
    forcing
        By the scalars, along each direction, shape (k, n, m).
    """

    slopes: Array
    jacobian: Array
    drift: Array
    forcing: Array

    def take(self, lanes: BoolArray) -> Tangent:
        """Those of some lanes."""
        return Tangent(*(getattr(self, f.name)[lanes] for f in fields(self)))

    def mixed(self, lanes: BoolArray, other: Tangent) -> Tangent:
        """The tangents of this one in `lanes`, those of the other in the rest."""
        return Tangent(
            *(mixed(lanes, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    @property
    def finite(self) -> BoolArray:
        """Lanes where everything is, shape (k,)."""
        total = self.slopes.sum(axis=1) + self.jacobian.sum(axis=(1, 2))
        total = total + self.drift.sum(axis=1) + self.forcing.sum(axis=(1, 2))
        return np.asarray(np.isfinite(total))


class Linearization:
    """Evaluates a field and its derivatives at one point of each lane.

    Parameters
    ----------
    field
        Without algebraic variables that have to be solved for.
    active
        The scalars that may change along a direction.
    scalars
        Values of all scalars, shape (p,).
    changes
        Of the scalars by direction, shape (p, m).
    """

    def __init__(
        self,
        field: VectorField,
        active: npt.NDArray[np.intp],
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

    def tangent(self, times: Array, states: Array, polynomials: Array) -> Tangent:
        """At points of shapes (k,) and (k, n), with inputs of shape (k, inputs, 5)."""
        k, n = states.shape
        values: dict[str, Any] = {**self._scalars, TIME: Dual(times, {n: 1.0})}
        for i, name in enumerate(self._field.states):
            values[name] = Dual(states[:, i], {i: 1.0})
        for i, name in enumerate(self._field.inputs):
            u, slope = _input(polynomials[:, i], times)
            values[name] = Dual(u, {n: slope})
        slopes = np.empty((k, n))
        partials = np.zeros((k, n, n + 1 + len(self._changes)))
        for i, f in enumerate(self._field.rhs(values, DUAL)):
            slopes[:, i] = f.value
            for column, partial in f.partials.items():
                partials[:, i, column] = partial
        forcing = partials[:, :, n + 1 :] @ self._changes
        return Tangent(slopes, partials[:, :, :n], partials[:, :, n], forcing)

    def slopes(self, times: Array, states: Array, polynomials: Array) -> Array:
        """The field alone, shape (k, n)."""
        values: dict[str, Any] = {**self._plain, TIME: times}
        values |= dict(zip(self._field.states, states.T, strict=True))
        for i, name in enumerate(self._field.inputs):
            values[name] = _input(polynomials[:, i], times)[0]
        slopes = np.empty(states.shape)
        for i, f in enumerate(self._field.rhs(values, NUMPY)):
            slopes[:, i] = f
        return slopes


def driven(field: VectorField) -> bool:
    """Whether the time or an input stands in the equations."""
    equations = (*field.model.ode.values(), *field.model.algebraic.values())
    return any(e.names & {TIME, *field.inputs} for e in equations)


def _input(polynomials: Array, times: Array) -> tuple[Array, Array]:
    """Values and slopes of an input, polynomials of shape (k, 5)."""
    left, c0, c1, c2, c3 = polynomials.T
    s = times - left
    return c0 + s * (c1 + s * (c2 + s * c3)), c1 + s * (2 * c2 + s * 3 * c3)


def mixed(lanes: BoolArray, new: Array, old: Array) -> Array:
    """`new` for some lanes, `old` for the others."""
    return np.asarray(np.where(lanes.reshape(-1, *[1] * (new.ndim - 1)), new, old))
