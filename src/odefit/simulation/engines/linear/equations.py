"""The coefficients of equations that are linear in the states, and change with inputs alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.casadi_algebra import (
    CasadiAlgebra,
    column_of,
    flat_symbols,
    symbols_of,
)
from odefit.simulation.engines.programs import ArrayFunction

MOST_STATES = 300
"""Largest number of states: beyond it the Jacobian takes longer than a few trajectories."""


@dataclass(frozen=True, eq=False)
class LinearEquations:
    """The coefficients of x' = A x + b, where A and b are affine functions of the inputs.

    Each coefficient is a function of the scalars. It multiplies a state (or 1, if its column is the
    number of states), and also an input if it has one.
    """

    states: int
    inputs: int
    coefficients: ArrayFunction  # returns the coefficients, then their derivatives by the scalars
    rows: IntArray  # of each coefficient, shape (e,)
    columns: IntArray
    factors: IntArray  # one more than the number of the input, or 0 without an input
    derivative: IntArray  # of each derivative, the number of its coefficient, shape (d,)
    scalar: IntArray  # and of the scalar
    cycles: bool  # whether a state acts on itself through others

    @property
    def bilinear(self) -> bool:
        """True if an input multiplies a state, so that A changes with time."""
        return bool(((self.factors > 0) & (self.columns < self.states)).any())

    def values(self, scalars: Array, changes: Array) -> tuple[Array, Array]:
        """Return the coefficients and their changes along directions, shapes (e,) and (e, m).

        `changes` are those of the scalars, shape (p, m).
        """
        values = self.coefficients(list(scalars), 1)[:, 0]  # floats would raise at 1/0
        count = len(self.rows)
        along = np.zeros((count, changes.shape[1]))
        np.add.at(along, self.derivative, values[count:, None] * changes[self.scalar])
        return values[:count], along

    def at(self, scalars: Array, changes: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, b, and their changes along directions, shapes (m, n, n) and (m, n).

        `changes` are those of the scalars, shape (p, m). The equations have no inputs.
        """
        n, m = self.states, changes.shape[1]
        values, along = self.values(scalars, changes)
        both, by_direction = np.zeros((n, n + 1)), np.zeros((n, n + 1, m))
        both[self.rows, self.columns] = values
        by_direction[self.rows, self.columns] = along
        turned = by_direction.transpose(2, 0, 1)
        return both[:, :n], both[:, n], turned[:, :, :n], turned[:, :, n]


@lru_cache(maxsize=8)
def linear_equations(field: VectorField) -> LinearEquations | None:
    """Return the coefficients of a field that is linear in its states; None for others."""
    n, p = len(field.states), len(field.scalars)
    if n > MOST_STATES or field.algebraic or not field.smooth:
        return None
    _, symbols, values = flat_symbols(field)
    inputs = symbols_of(ca.SX.sym("u", len(field.inputs)))
    values |= zip(field.inputs, inputs, strict=True)
    time, states, scalars = symbols[0], symbols[1 : 1 + n], symbols[1 + n : 1 + n + p]
    rhs, input_column = column_of(field.rhs(values, CasadiAlgebra())), column_of(inputs)
    matrix = ca.jacobian(rhs, column_of(states))
    vector = ca.sparsify(ca.substitute(rhs, column_of(states), ca.SX.zeros(n)))
    places = [*_places(matrix), *((row, n) for row, _ in _places(vector))]
    each: list[Any] = [*matrix.nonzeros(), *vector.nonzeros()]
    terms = ca.densify(ca.vertcat(ca.SX(0, 1), *each))
    by_input = ca.jacobian(terms, input_column)
    still = ca.sparsify(ca.substitute(terms, input_column, ca.SX.zeros(len(inputs))))
    which = [(k, 0) for k, _ in _places(still)] + [(k, 1 + i) for k, i in _places(by_input)]
    nonzeros: list[Any] = [*still.nonzeros(), *by_input.nonzeros()]
    known = ca.vertcat(ca.SX(0, 1), *nonzeros)
    if ca.depends_on(known, column_of([time, *states, *inputs])):
        return None
    by_scalars = ca.jacobian(known, column_of(scalars)) if p else ca.SX(len(which), 0)
    derivatives: list[Any] = by_scalars.nonzeros()
    every = ca.densify(ca.vertcat(known, *derivatives))
    derivative, scalar = np.array(_places(by_scalars), dtype=np.intp).reshape(-1, 2).T
    places_of = np.array([places[k] for k, _ in which], dtype=np.intp).reshape(-1, 2)
    rows, columns = np.ascontiguousarray(places_of.T)
    equations = LinearEquations(
        states=n,
        inputs=len(inputs),
        coefficients=ArrayFunction(column_of(scalars), every),
        rows=rows,
        columns=columns,
        factors=np.array([factor for _, factor in which], dtype=np.intp),
        derivative=derivative,
        scalar=scalar,
        cycles=_has_cycles(rows[columns < n], columns[columns < n], n),
    )
    return equations if _holds(field, equations) else None


def _places(matrix: Any) -> list[tuple[int, int]]:
    """Return the rows and columns of the nonzeros of a matrix."""
    return list(zip(*matrix.sparsity().get_triplet(), strict=True))


def _has_cycles(rows: IntArray, columns: IntArray, n: int) -> bool:
    """Return whether a matrix with these nonzeros cannot be made triangular by a permutation."""
    acts = np.zeros((n, n), dtype=bool)
    acts[rows, columns] = rows != columns
    while len(acts):
        remaining = acts.any(axis=1)
        if remaining.all():
            return True
        acts = acts[np.ix_(remaining, remaining)]
    return False


def _holds(field: VectorField, equations: LinearEquations) -> bool:
    """Return whether the equations have these coefficients at a random point, up to rounding."""
    rng = np.random.default_rng(0)
    x, p = rng.uniform(0.5, 2.0, len(field.states)), rng.uniform(0.5, 2.0, len(field.scalars))
    u = rng.uniform(0.5, 2.0, len(field.inputs))
    names = (*field.states, *field.scalars, *field.inputs)
    by_name: dict[str, Any] = dict(zip(names, (*x, *p, *u), strict=True))
    with np.errstate(all="ignore"):
        rates = np.array(field.rhs({**by_name, TIME: 0.7}, NUMPY), dtype=float)
        values, _ = equations.values(p, np.zeros((len(p), 0)))
        terms = values * np.append(x, 1.0)[equations.columns] * np.append(1.0, u)[equations.factors]
    total = np.zeros(len(x))
    np.add.at(total, equations.rows, terms)
    return bool(np.allclose(rates, total, rtol=1e-9, atol=1e-12, equal_nan=True))
