"""The vector field of a problem, with constants folded and algebraic variables eliminated."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual, DualAlgebra, NumpyAlgebra
from odefit.expressions.expressions import NON_SMOOTH, TIME, Algebra, Expression
from odefit.expressions.formulas import with_magnitudes
from odefit.expressions.gradients import Gradient
from odefit.problem.condition import Condition
from odefit.problem.model import Model


@dataclass(frozen=True, eq=False)
class VectorField:
    """The system x' = f(t, x, z, u, scalars), 0 = g(t, x, z, u, scalars), over any algebra."""

    model: Model
    scalars: tuple[str, ...]  # names of parameters and constants that are only known at run time
    # values of the other parameters and constants, known and equal in all experiments
    folded: Mapping[str, float]
    # If g is linear in z with constant coefficients, the negated inverse of their matrix, so that z
    # is explicit and the system an ODE. None otherwise.
    elimination: Array | None

    def __eq__(self, other: object) -> bool:
        """Fields of the same equations in the same order are equal, and share compiled code."""
        if not isinstance(other, VectorField):
            return NotImplemented
        return self is other or (
            self._identity == other._identity
            and (self.model is other.model or self.model == other.model)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        """Return values that differ between most pairs of unequal fields."""
        elimination = None if self.elimination is None else self.elimination.tobytes()
        variables = (*self.states, *self.model.algebraic)
        return variables, self.inputs, self.scalars, tuple(self.folded.items()), elimination

    @classmethod
    def of(cls, model: Model, conditions: Sequence[Condition]) -> VectorField:
        """Return the vector field for all `conditions` of a problem."""
        model = _with_magnitudes(model)
        assigned = {name for c in conditions for event in c.assignments for name in event}
        used = {n for e in (*model.ode.values(), *model.algebraic.values()) for n in e.names}
        folded: dict[str, float] = {}
        runtime: list[str] = []
        for name in conditions[0].scalars:
            values = [c.scalars[name] for c in conditions]
            first = values[0]
            if (
                isinstance(first, float)
                and name not in assigned
                and values.count(first) == len(values)
            ):
                folded[name] = first
            elif name in used or name in assigned:
                runtime.append(name)
        return cls.eliminated(model, tuple(runtime), folded)

    @classmethod
    def eliminated(
        cls, model: Model, scalars: tuple[str, ...], folded: Mapping[str, float]
    ) -> VectorField:
        """Return the vector field of a model; algebraic variables are eliminated if possible."""
        return cls(model, scalars, folded, cls(model, scalars, folded, None)._elimination())

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the differential states."""
        return self.model.states

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the known inputs."""
        return tuple(self.model.inputs)

    @property
    def algebraic(self) -> tuple[str, ...]:
        """Names of the algebraic variables that an integrator has to solve for."""
        return () if self.elimination is not None else tuple(self.model.algebraic)

    @cached_property
    def smooth(self) -> bool:
        """True if the equations have no kinks, so that high-order steps can be long."""
        expressions = (*self.model.ode.values(), *self.model.algebraic.values())
        return not any(e.functions & NON_SMOOTH for e in expressions)

    @cached_property
    def nonautonomous(self) -> bool:
        """True if the equations contain the time or an input."""
        expressions = (*self.model.ode.values(), *self.model.algebraic.values())
        return any(e.names & {TIME, *self.inputs} for e in expressions)

    @cached_property
    def observable_gradients(self) -> Mapping[str, Gradient]:
        """The observables, with their derivatives by all names in them."""
        return {name: Gradient(e, e.names) for name, e in self.model.observables.items()}

    @cached_property
    def _folded_numbers(self) -> dict[type, Mapping[str, Any]]:
        """The folded values as numbers of algebras without a state."""
        return {}

    def _folded_over(self, algebra: Algebra[Any]) -> Mapping[str, Any]:
        """Return the folded values as numbers of an algebra."""
        kind = type(algebra)
        if kind in self._folded_numbers:
            return self._folded_numbers[kind]
        made = {name: algebra.number(repr(v)) for name, v in self.folded.items()}
        if issubclass(kind, NumpyAlgebra | DualAlgebra):
            self._folded_numbers[kind] = made
        return made

    def complete(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> dict[str, Any]:
        """Return `values` (states, inputs, time, run-time scalars) with all other names added."""
        full = {**self._folded_over(algebra), **values}
        if self.elimination is not None and self.model.algebraic:
            zero = algebra.number("0.0")
            names = tuple(self.model.algebraic)
            at_zero = self.model.constraints({**full, **dict.fromkeys(names, zero)}, algebra)
            for name, row in zip(names, self.elimination, strict=True):
                terms = [
                    algebra.number(repr(float(a))) * g
                    for a, g in zip(row, at_zero, strict=True)
                    if a != 0
                ]
                total = terms[0]
                for term in terms[1:]:
                    total = total + term
                full[name] = total
        return full

    def rhs(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the right-hand sides, with `values` as :meth:`complete` takes them."""
        return self.model.rhs(self.complete(values, algebra), algebra)

    def constraints(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the left-hand sides of the algebraic equations that are not eliminated."""
        if not self.algebraic:
            return []
        return self.model.constraints(self.complete(values, algebra), algebra)

    def _elimination(self) -> Array | None:
        """Return minus the inverse of dg/dz if it is constant at three random points.

        A Jacobian that is equal at random points is constant with probability one.
        """
        names = tuple(self.model.algebraic)
        if not names:
            return np.zeros((0, 0))
        rng = np.random.default_rng(0)
        jacobians = []
        others = {n for e in self.model.algebraic.values() for n in e.names} - set(names)
        with np.errstate(all="ignore"):
            for _ in range(3):
                values = {n: Dual(rng.uniform(0.5, 2.0)) for n in others - set(self.folded)}
                values |= {n: Dual(rng.uniform(0.5, 2.0), {i: 1.0}) for i, n in enumerate(names)}
                values |= {n: Dual(v) for n, v in self.folded.items()}
                rows = self.model.constraints(values, DUAL)
                jacobians.append(np.array([row.gradient(len(names)) for row in rows]))
        constant = all(
            np.allclose(jacobians[0], other, rtol=1e-13, atol=0) for other in jacobians[1:]
        )
        if not constant or not np.isfinite(jacobians[0]).all():
            return None
        if np.linalg.matrix_rank(jacobians[0]) < len(names):
            return None
        return np.asarray(-np.linalg.inv(jacobians[0]))


@dataclass(frozen=True, eq=False)
class StoppedField(VectorField):
    """A vector field with time held constant."""

    time: float = 0.0  # the value of the time in the equations

    @classmethod
    def at(cls, field: VectorField, time: float) -> StoppedField:
        """Return `field` with time fixed at `time`."""
        return cls(field.model, field.scalars, field.folded, field.elimination, time)

    def complete(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> dict[str, Any]:
        """Return `values` with time fixed and all other names added."""
        return super().complete({**values, TIME: algebra.number(repr(self.time))}, algebra)


@dataclass(frozen=True)
class SensitivityPattern:
    """The sparsity pattern of the sensitivities required of a vector field."""

    directions: int  # number of directions m
    # pairs (scalar, direction) for which the scalar may change along the direction
    entries: frozenset[tuple[int, int]]


def with_equations(
    model: Model,
    ode: Mapping[str, Expression],
    algebraic: Mapping[str, Expression],
    inputs: Sequence[str] = (),
    observables: Mapping[str, Expression] | None = None,
) -> Model:
    """Return a model with other equations and more inputs, without any checks.

    The observables are those of `model` unless others are given.
    """
    other = copy.copy(model)
    tables: dict[str, Mapping[str, Any]] = {
        "ode": ode,
        "algebraic": algebraic,
        "inputs": {**model.inputs, **dict.fromkeys(inputs, "cubic")},
        "observables": model.observables if observables is None else observables,
    }
    for section, table in tables.items():
        object.__setattr__(other, section, MappingProxyType(dict(table)))
    return other


def _with_magnitudes(model: Model) -> Model:
    """Return a model with magnitudes under roots of even powers; unchanged without such roots."""
    ode, algebraic = (
        {n: with_magnitudes(e) for n, e in table.items()} for table in (model.ode, model.algebraic)
    )
    same = ode == model.ode and algebraic == model.algebraic
    return model if same else with_equations(model, ode, algebraic)
