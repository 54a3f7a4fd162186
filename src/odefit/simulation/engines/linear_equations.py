"""The coefficients of equations that are linear in the states, and constant in time."""

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
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, column_of, flat_symbols
from odefit.simulation.engines.programs import ArrayFunction

MOST_STATES = 30
"""Largest number of states: the work of a closed form grows with its cube, for each direction."""


@dataclass(frozen=True, eq=False)
class LinearEquations:
    """The coefficients of x' = A x + b as functions of the scalars.

    `coefficients` returns the nonzeros of A, those of b, and their derivatives by the scalars.
    """

    states: int
    coefficients: ArrayFunction
    matrix: IntArray  # places of the nonzeros of A in its rows, one row after the other
    vector: IntArray  # places of the nonzeros of b
    # Of each derivative the place in A followed by b, shape (d,), and the scalar.
    derivative: IntArray
    scalar: IntArray
    cycles: bool  # whether a state acts on itself by way of others

    def at(self, scalars: Array, changes: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, b, and their changes along directions, shapes (m, n, n) and (m, n).

        `changes` are those of the scalars, shape (p, m).
        """
        n, m = self.states, changes.shape[1]
        values = self.coefficients(list(scalars), 1)[:, 0]  # floats would raise at 1/0
        first, second = len(self.matrix), len(self.matrix) + len(self.vector)
        both = np.zeros(n * n + n)
        both[self.matrix] = values[:first]
        both[n * n + self.vector] = values[first:second]
        by_direction = np.zeros((n * n + n, m))
        np.add.at(by_direction, self.derivative, values[second:, None] * changes[self.scalar])
        a, b = both[: n * n].reshape(n, n), both[n * n :]
        return a, b, by_direction[: n * n].T.reshape(m, n, n), by_direction[n * n :].T


@lru_cache(maxsize=8)
def linear_equations(field: VectorField) -> LinearEquations | None:
    """Return the coefficients of a field that is linear in its states; None of another one."""
    n, p = len(field.states), len(field.scalars)
    if n > MOST_STATES or field.inputs or field.algebraic or not field.smooth:
        return None
    _, symbols, values = flat_symbols(field)
    time, states, scalars = symbols[0], symbols[1 : 1 + n], symbols[1 + n : 1 + n + p]
    rhs, moving = column_of(field.rhs(values, CasadiAlgebra())), column_of([time, *states])
    matrix = ca.jacobian(rhs, column_of(states))
    vector = ca.sparsify(ca.substitute(rhs, column_of(states), ca.SX.zeros(n)))
    nonzeros: list[Any] = [*matrix.nonzeros(), *vector.nonzeros()]
    known = ca.vertcat(*nonzeros)
    if ca.depends_on(known, moving) or not _holds(field, scalars, matrix, vector):
        return None
    rows, columns = (np.array(k, dtype=np.intp) for k in matrix.sparsity().get_triplet())
    row, _ = (np.array(k, dtype=np.intp) for k in vector.sparsity().get_triplet())
    places = np.concatenate([rows * n + columns, n * n + row])
    by_scalars = ca.jacobian(known, column_of(scalars)) if p else ca.SX(len(places), 0)
    derivative, scalar = by_scalars.sparsity().get_triplet()
    derivatives: list[Any] = by_scalars.nonzeros()
    every = ca.vertcat(*nonzeros, *derivatives)
    return LinearEquations(
        states=n,
        coefficients=ArrayFunction(column_of(scalars), ca.densify(every)),
        matrix=rows * n + columns,
        vector=row,
        derivative=places[np.array(derivative, dtype=np.intp)],
        scalar=np.array(scalar, dtype=np.intp),
        cycles=_has_cycles(rows, columns, n),
    )


def _has_cycles(rows: IntArray, columns: IntArray, n: int) -> bool:
    """Return whether a matrix with these nonzeros cannot be made triangular by a permutation."""
    acts = np.zeros((n, n), dtype=bool)
    acts[rows, columns] = rows != columns
    while len(acts):
        kept = acts.any(axis=1)
        if kept.all():
            return True
        acts = acts[np.ix_(kept, kept)]
    return False


def _holds(field: VectorField, scalars: list[Any], matrix: Any, vector: Any) -> bool:
    """Return whether the equations are A x + b at a random point, up to rounding."""
    rng = np.random.default_rng(0)
    x, p = rng.uniform(0.5, 2.0, len(field.states)), rng.uniform(0.5, 2.0, len(field.scalars))
    values: dict[str, Any] = dict(zip((*field.states, *field.scalars), (*x, *p), strict=True))
    with np.errstate(all="ignore"):
        rates = np.array(field.rhs({**values, TIME: 0.7}, NUMPY), dtype=float)
    both = ca.Function("f", [column_of(scalars)], [ca.densify(matrix), ca.densify(vector)])(p)
    a, b = (np.array(value, dtype=float) for value in both)
    return bool(np.allclose(rates, a @ x + b[:, 0], rtol=1e-9, atol=1e-12, equal_nan=True))
