"""The scalars and initial values of one condition as functions of the vector of unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import Algebra, Expression
from odefit.expressions.gradients import Gradient
from odefit.problem.condition import Condition

Bound = int | float | Expression
"""The index of an unknown, a number, or an expression in parameters and constants."""


class Binding:
    """Some quantities of a condition, with derivatives, as functions of the unknowns.

    A quantity is the index of an unknown, a number or an expression in `scalars`. `known` collects
    the expressions of all bindings, so that each is evaluated only once.
    """

    def __init__(
        self,
        quantities: Sequence[Bound],
        scalars: Mapping[str, Bound],
        known: dict[Any, Computed] | None = None,
    ) -> None:
        self._scalars = scalars
        self._constant = np.zeros(len(quantities))
        direct: list[tuple[int, int]] = []
        self._expressions: list[tuple[int, Computed]] = []
        for row, quantity in enumerate(quantities):
            if isinstance(quantity, Expression):
                key = bound_key(quantity, scalars)
                computed = None if known is None else known.get(key)
                if computed is None:
                    computed = Computed(quantity, scalars)
                    if known is not None:
                        known[key] = computed
                self._expressions.append((row, computed))
            elif isinstance(quantity, float):
                self._constant[row] = quantity
            else:
                direct.append((row, quantity))
        self._rows = np.array([row for row, _ in direct], dtype=np.intp)
        self._columns = np.array([column for _, column in direct], dtype=np.intp)
        self._derivative: Array | None = None  # of the direct quantities

    def __call__(self, vector: Array) -> Array:
        """Return the values of the quantities, shape (quantities,)."""
        values = self._constant.copy()
        values[self._rows] = vector[self._columns]
        for row, computed in self._expressions:
            values[row] = computed.value(vector)
        return values

    def at(self, vector: Array, columns: npt.NDArray[np.intp]) -> tuple[Array, Array]:
        """Return values and derivatives, as the other two methods do."""
        derivative = self.derivative(vector, columns)
        return self(vector), derivative

    def derivative(self, vector: Array, columns: npt.NDArray[np.intp]) -> Array:
        """Return derivatives by the unknowns `columns`, shape (quantities, columns), read-only.

        `columns` is the same in every call.
        """
        if self._derivative is None:
            matrix = np.zeros((len(self._constant), len(vector)))
            matrix[self._rows, self._columns] = 1.0
            self._derivative = matrix[:, columns]
        if not self._expressions or not len(columns):
            return self._derivative
        matrix = self._derivative.copy()
        for row, computed in self._expressions:
            matrix[row] = computed.gradient(vector)[columns]
        return matrix

    def entries(self) -> set[tuple[int, int]]:
        """Return the pairs (quantity, unknown) whose derivative is not always zero."""
        pairs = set(zip(self._rows.tolist(), self._columns.tolist(), strict=True))
        for row, computed in self._expressions:
            pairs |= {(row, k) for k in unknowns_of(computed.expression, self._scalars)}
        return pairs


class Computed:
    """An expression in parameters and constants as a function of the unknowns.

    It caches value and derivatives at the last vector, because several conditions use them.
    """

    def __init__(self, expression: Expression, scalars: Mapping[str, Bound]) -> None:
        self.expression = expression
        self._bounds: dict[str, int | np.float64 | Computed] = {}
        moving = set()
        for name in expression.names:
            bound = scalars[name]
            if isinstance(bound, Expression):
                self._bounds[name] = Computed(bound, scalars)
            else:
                self._bounds[name] = np.float64(bound) if isinstance(bound, float) else bound
            if unknowns_of(bound, scalars):
                moving.add(name)
        self._function = Gradient(expression, moving)
        self._at: bytes | None = None  # the last vector, empty without unknowns
        self._value: Any = None
        self._derivatives: Array | None = None

    def value(self, vector: Array) -> Any:
        """Return the value."""
        key = vector.tobytes()
        if self._at != key:
            values = self._values(vector)
            with np.errstate(all="ignore"):  # undefined values are infinite or not a number
                self._value = self._function.value(values)
            self._at, self._derivatives = key, None
        return self._value

    def gradient(self, vector: Array) -> Array:
        """Return the derivatives by all unknowns, shape (n,), which must not be written to."""
        key = vector.tobytes()
        if self._at != key or self._derivatives is None:
            values = self._values(vector)
            derivatives = np.zeros(len(vector))
            with np.errstate(all="ignore"):  # as above
                self._value, partials = self._function(values)
                for name, partial in partials.items():
                    bound = self._bounds[name]
                    if isinstance(bound, Computed):
                        inner = bound.gradient(vector)
                        derivatives += np.where(inner == 0.0, 0.0, partial * inner)
                    else:
                        derivatives[int(bound)] += partial
            self._at, self._derivatives = key, derivatives
        return self._derivatives

    def _values(self, vector: Array) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, bound in self._bounds.items():
            if isinstance(bound, Computed):
                values[name] = bound.value(vector)
            else:
                values[name] = bound if isinstance(bound, float) else vector[bound]
        return values


def bound_value(
    bound: Bound,
    scalars: Mapping[str, Bound],
    unknowns: Sequence[Any] | Mapping[int, Any],
    algebra: Algebra[Any],
) -> Any:
    """Return the value of `bound` over the algebra of `unknowns`."""
    if isinstance(bound, float):
        return algebra.number(repr(bound))
    if isinstance(bound, Expression):
        values = {n: bound_value(scalars[n], scalars, unknowns, algebra) for n in bound.names}
        with np.errstate(all="ignore"):  # undefined values are infinite or not a number
            return bound.evaluate(values, algebra)
    return unknowns[bound]


def scalar_value(name: str, scalars: Mapping[str, Bound], vector: Array) -> Dual:
    """Return a parameter or constant as a dual number over the unknowns."""
    names = unknowns_of(scalars[name], scalars)
    unknowns = {k: Dual(vector[k], {k: 1.0}) for k in names}
    value: Dual = bound_value(scalars[name], scalars, unknowns, DUAL)
    return value


def unknowns_of(quantity: Bound, scalars: Mapping[str, Bound]) -> set[int]:
    """Return the indices of the unknowns on which `quantity` depends."""
    if isinstance(quantity, Expression):
        return {k for n in quantity.names for k in unknowns_of(scalars[n], scalars)}
    return set() if isinstance(quantity, float) else {int(quantity)}


def bound_key(bound: Bound, scalars: Mapping[str, Bound]) -> Any:
    """Return a key that is equal for equal functions of the unknowns."""
    if isinstance(bound, Expression):
        names = sorted(bound.names)
        return (bound.program, tuple((n, bound_key(scalars[n], scalars)) for n in names))
    return ("number", bound) if isinstance(bound, float) else ("unknown", bound)


def dynamic_unknowns(condition: Condition, scalars: Sequence[str]) -> set[int]:
    """Return the unknowns that affect the trajectory: by `scalars`, initial values or events."""
    quantities: list[Bound] = [condition.scalars[n] for n in scalars]
    quantities += condition.initial.values()
    located = condition.located
    if condition.repeated is not None:
        located = (*located, *condition.repeated.located)
    quantities += [e.time for e in located if e.time is not None]
    for event in located:
        quantities += [condition.scalars[n] for n in event.conditional & condition.scalars.keys()]
    for assign in condition.assignments:
        quantities += [
            condition.scalars[n]
            for e in assign.values()
            for n in e.names & condition.scalars.keys()
        ]
    return {k for q in quantities for k in unknowns_of(q, condition.scalars)}
