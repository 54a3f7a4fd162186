"""Expressions of observables at the measured rows of several conditions, with the chain rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import TIME, Expression, Instruction
from odefit.expressions.gradients import Gradient
from odefit.problem.binding import Binding, Bound, unknowns_of
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.trajectories.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class StackedTrajectories:
    """Trajectories of several conditions, stacked.

    Attributes
    ----------
    trajectories
        The trajectories, which have sensitivities with respect to the same unknowns.
    states, sensitivities
        Shapes (k, n) and (k, n, m).
    """

    trajectories: Sequence[Trajectory]
    states: Array
    sensitivities: Array
    _states: dict[tuple[bytes, int], Array] = field(default_factory=dict)
    _others: dict[tuple[str, int | str], tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, trajectories: Sequence[Trajectory]) -> StackedTrajectories:
        """Stack trajectories."""
        if len(trajectories) == 1:
            return cls(trajectories, trajectories[0].states, trajectories[0].sensitivities)
        states = np.concatenate([t.states for t in trajectories])
        return cls(trajectories, states, np.concatenate([t.sensitivities for t in trajectories]))

    def state(self, rows: ObservedRows, number: int) -> Array:
        """Return a state at some rows, which groups of measurements often have in common."""
        key = rows.key, number
        if key not in self._states:
            self._states[key] = self.states[rows.rows, number]
        return self._states[key]

    def algebraic(self, number: int) -> tuple[Array, Array]:
        """Return an algebraic variable and its sensitivities, shapes (k,) and (k, m)."""
        return self._stacked(
            ("algebraic", number),
            [
                (t.algebraic[:, number], t.algebraic_sensitivities[:, number])
                for t in self.trajectories
            ],
        )

    def switched(self, name: str) -> tuple[Array, Array]:
        """Return a scalar that events assign, zero in conditions in which they do not assign it."""
        parts = []
        for t in self.trajectories:
            shape = len(t.times), len(t.unknowns)
            parts.append(t.switched.get(name) or (np.zeros(shape[0]), np.zeros(shape)))
        return self._stacked(("switched", name), parts)

    def _stacked(
        self, key: tuple[str, int | str], parts: Sequence[tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        if key not in self._others:
            values, sensitivities = zip(*parts, strict=True)
            self._others[key] = np.concatenate(values), np.concatenate(sensitivities)
        return self._others[key]


class _Scalar:
    """A parameter or constant at all rows, which may be bound differently in each condition."""

    def __init__(
        self, name: str, conditions: Sequence[Condition], counts: Sequence[int], unknowns: int
    ) -> None:
        bounds: list[Bound] = [c.scalars[name] for c in conditions]
        self._n = unknowns
        self.index: int | None = None  # of the unknown, if it is the same in all rows
        self.constant = all(
            not unknowns_of(b, c.scalars) for b, c in zip(bounds, conditions, strict=True)
        )
        self._base = np.repeat([b if isinstance(b, float) else 0.0 for b in bounds], counts)
        self.rows = np.zeros(0, dtype=np.intp)
        self.columns = np.zeros(0, dtype=np.intp)
        self._expressions: list[tuple[slice, Binding]] = []
        direct = [not isinstance(b, (float, Expression)) for b in bounds]
        shared = {b for b in bounds if not isinstance(b, (float, Expression))}
        if all(direct) and len(shared) == 1:
            self.index = shared.pop()
            return
        at = np.repeat(direct, counts)
        self.rows = np.flatnonzero(at)
        indices = [b if d else 0 for b, d in zip(bounds, direct, strict=True)]
        self.columns = np.repeat(np.array(indices, dtype=np.intp), counts)[self.rows]
        start = 0
        for condition, bound, count in zip(conditions, bounds, counts, strict=True):
            if isinstance(bound, Expression):
                binding = Binding([bound], condition.scalars)
                self._expressions.append((slice(start, start + count), binding))
            start += count

    def value(self, vector: Array) -> Any:
        """Return a number, or the value at each row."""
        if self.index is not None:
            return vector[self.index]
        if not len(self.rows) and not self._expressions:
            same = len(self._base) > 0 and bool((self._base == self._base[0]).all())
            return self._base[0] if same else self._base
        values = self._base.copy()
        values[self.rows] = vector[self.columns]
        for rows, binding in self._expressions:
            values[rows] = binding(vector)[0]
        return values

    def values(self, points: Array) -> Array | None:
        """Return the value at each of many vectors, shape (points, 1) or (points, R).

        None if it has to be computed for each of them alone.
        """
        if self.index is not None:
            return points[:, [self.index]]
        if self._expressions:
            return None
        values = np.tile(self._base, (len(points), 1))
        values[:, self.rows] = points[:, self.columns]
        return values

    def add_to(self, jacobian: Array, partial: Any, vector: Array) -> None:
        """Add the contribution of the derivative with respect to this scalar to a Jacobian."""
        if self.index is not None:
            jacobian[:, self.index] += partial
            return
        by_row = at_rows(partial, len(jacobian))
        jacobian[self.rows, self.columns] += by_row[self.rows]
        every = np.arange(self._n)
        for rows, binding in self._expressions:
            partial_along = binding.derivative(vector[: self._n], every)[0]
            jacobian[rows, : self._n] += keeping_zero(by_row[rows, None], partial_along)


class ObservedRows:
    """The measured rows of some conditions, whose trajectories are stacked.

    Parameters
    ----------
    field
        The equations.
    conditions
        The conditions, one for each part of the rows.
    own_rows
        For each condition, rows of its times.
    rows
        The same rows in the stacked trajectories, joined, shape (R,).
    switched
        Scalars that events assign in these conditions.
    columns
        Unknowns of the trajectories' sensitivities, shape (m,).
    unknowns
        Number of unknowns of the problem.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        own_rows: Sequence[IntArray],
        rows: IntArray,
        switched: frozenset[str],
        columns: Sequence[int],
        unknowns: int,
    ) -> None:
        self.field = field
        self.rows, self.key = rows, rows.tobytes()
        self.columns = np.array(columns, dtype=np.intp)
        self.states = {name: i for i, name in enumerate(field.states)}
        self.algebraic = {name: i for i, name in enumerate(field.algebraic)}
        self.switched = switched
        self.scalars: dict[str, _Scalar] = {}
        self.known: dict[str, Array] = {}
        self.eliminated: dict[str, list[tuple[float, Gradient]]] = {}
        self.used: set[str] = set()
        self._conditions = conditions
        self._own_rows = own_rows
        self._n = unknowns

    def gradient(self, expression: Expression, held: Sequence[str] = ()) -> Gradient:
        """Return an expression ready to be evaluated at these rows.

        Parameters
        ----------
        given
            Names whose values and Jacobians are given, see :meth:`RowValues.give`.
        """
        given_names = set(held)
        for name in sorted(expression.names - given_names):
            if name in self.field.model.algebraic and name not in self.algebraic:
                self._eliminate(name)
                given_names.add(name)
                continue
            self.used.add(name)
            if name in self.states or name in self.algebraic or name in self.switched:
                given_names.add(name)
            elif name in self._conditions[0].scalars:
                counts = [len(r) for r in self._own_rows]
                scalar = _Scalar(name, self._conditions, counts, self._n)
                self.scalars[name] = scalar
                if not scalar.constant:
                    given_names.add(name)
            else:
                pairs = zip(self._conditions, self._own_rows, strict=True)
                parts = [
                    (c.times if name == TIME else c.inputs[name](c.times))[r] for c, r in pairs
                ]
                self.known[name] = np.concatenate(parts)
        return Gradient(expression, given_names)

    def values(self, points: Array, states: Array) -> dict[str, Array] | None:
        """Return the values of all names at many vectors, whose last axis is that of the rows.

        `states` are those of the stacked trajectories at each vector, shape (points, k, n). None is
        returned if a value has to be computed for each vector alone.
        """
        values: dict[str, Array] = dict(self.known)
        for name in self.used - self.known.keys():
            value = None
            if name in self.states:
                value = states[:, self.rows, self.states[name]]
            elif name in self.scalars and name not in self.switched:
                value = self.scalars[name].values(points)
            if value is None:
                return None
            values[name] = value
        return None if self.eliminated else values

    def _eliminate(self, name: str) -> None:
        """Prepare an algebraic variable that enters its constraint linearly."""
        field, hidden = self.field, tuple(self.field.model.algebraic)
        assert field.elimination is not None
        if name not in self.eliminated:
            self.eliminated[name] = [
                (float(factor), self.gradient(_with_zeros(constraint, hidden)))
                for factor, constraint in zip(
                    field.elimination[hidden.index(name)],
                    field.model.algebraic.values(),
                    strict=True,
                )
                if factor != 0
            ]


class RowValues:
    """The values of all names at the measured rows.

    Parameters
    ----------
    rows
        The rows.
    vector
        Unknowns, shape (n,).
    stack
        The trajectories.
    derivatives
        Whether Jacobians are needed.
    """

    def __init__(
        self, rows: ObservedRows, vector: Array, stack: StackedTrajectories, derivatives: bool
    ) -> None:
        self._rows = rows
        self._vector = vector
        self._stack = stack
        self._derivatives = derivatives
        self._jacobians: dict[str, Array] = {}
        self._values: dict[str, Any] = {}
        for name in rows.used:
            if name in rows.known:
                self._values[name] = rows.known[name]
            elif name in rows.states:
                self._values[name] = stack.state(rows, rows.states[name])
            elif name in rows.algebraic:
                self._values[name] = stack.algebraic(rows.algebraic[name])[0][rows.rows]
            elif name in rows.switched:
                self._values[name] = stack.switched(name)[0][rows.rows]
            else:
                self._values[name] = rows.scalars[name].value(vector)
        for name, terms in rows.eliminated.items():
            parts = [(factor, self.evaluate(gradient)) for factor, gradient in terms]
            self.give(
                name,
                sum(factor * value for factor, (value, _) in parts),
                sum(factor * jacobian for factor, (_, jacobian) in parts) if derivatives else None,
            )

    def give(self, name: str, value: Any, jacobian: Any) -> None:
        """Set the value and the Jacobian of a name, shapes (R,) and (R, n)."""
        self._values[name] = value
        self._jacobians[name] = jacobian

    def evaluate(self, gradient: Gradient) -> tuple[Array, Any]:
        """Return value and Jacobian, shapes (R,) and (R, n), or None without derivatives."""
        count = len(self._rows.rows)
        if not self._derivatives:
            return at_rows(gradient.value(self._values), count), None
        value, partials = gradient(self._values)
        jacobian = np.zeros((count, len(self._vector)))
        columns = [name for name in partials if name in self._rows.states]
        if columns and len(self._rows.columns):
            jacobian[:, self._rows.columns] = self._along_states(columns, partials)
        for name, partial in partials.items():
            if name in self._rows.states:
                continue
            if name in self._jacobians:
                jacobian += keeping_zero(np.reshape(partial, (-1, 1)), self._jacobians[name])
            elif name in self._rows.algebraic or name in self._rows.switched:
                number = self._rows.algebraic.get(name)
                stack = self._stack
                _, by = stack.switched(name) if number is None else stack.algebraic(number)
                slopes = keeping_zero(np.reshape(partial, (-1, 1)), by[self._rows.rows])
                jacobian[:, self._rows.columns] += slopes
            else:
                self._rows.scalars[name].add_to(jacobian, partial, self._vector)
        return at_rows(value, count), jacobian

    def _along_states(self, names: Sequence[str], partials: Mapping[str, Any]) -> Array:
        """Return the contribution of the states to the Jacobian, shape (R, m)."""
        rows = self._rows.rows
        indices = np.array([self._rows.states[name] for name in names], dtype=np.intp)
        sensitivities = self._stack.sensitivities
        if len(names) == 1:
            partial = np.reshape(partials[names[0]], (-1, 1))
            return keeping_zero(partial, sensitivities[rows, indices[0]])
        by_name = np.empty((len(rows), len(names)))
        for k, name in enumerate(names):
            by_name[:, k] = partials[name]
        taken = sensitivities[rows[:, None], indices]
        if np.isfinite(by_name).all():
            return np.asarray(np.einsum("rs,rsm->rm", by_name, taken))
        return np.asarray(keeping_zero(by_name[:, :, None], taken).sum(axis=1))


def at_rows(value: Any, count: int) -> Array:
    """Return a number, or values at all rows, as an array of the shape (count,)."""
    # Usually nothing needs doing, and NumPy's broadcasting takes ten times as long as a copy.
    same = isinstance(value, np.ndarray) and value.shape == (count,)
    return value if same else np.full(count, value)


def keeping_zero(factor: Array, derivatives: Array) -> Array:
    """Return the product in which a zero derivative stays zero, however large the factor."""
    product = factor * derivatives
    if not np.isfinite(factor).all():
        product = np.where(np.equal(derivatives, 0.0), 0.0, product)
    return np.asarray(product)


def _with_zeros(expression: Expression, names: Sequence[str]) -> Expression:
    """Return an expression with zero for some names."""
    program = [
        Instruction("number", "0.0") if i.kind == "name" and i.text in names else i
        for i in expression.program
    ]
    return Expression(expression.text, tuple(program))
