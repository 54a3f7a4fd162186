"""The equations of a steady state, and their conserved quantities."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.errors import InputError
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.registry import import_problem, missing_package
from odefit.simulation.steady.newton import Matrices

CONSERVED = 1e-9
"""Rate of a conserved quantity at random points, relative to its largest term, that counts as
zero."""

MORE_POINTS = 8  # number of random points beyond the number of equations


class Linearised(NamedTuple):
    """The equations F(y) = (f, g) of a steady state at one point y = (x, z)."""

    value: Array  # Right-hand sides and left-hand sides of the algebraic equations, shape (n + a,)
    jacobian: Array  # Their derivatives with respect to y, shape (n + a, n + a)
    by_scalars: Array  # Their derivatives with respect to the run-time scalars, shape (n + a, p)

    @property
    def finite(self) -> bool:
        """True if all numbers are finite."""
        return all(bool(np.isfinite(part).all()) for part in self)


class Conserved(NamedTuple):
    """Linear combinations of the states that no trajectory changes."""

    weights: Array  # Weights of the states, shape (k, n): weights x is constant
    moving: BoolArray  # Scalars on which the weights depend, such as volumes, shape (p,)


class SteadyEquations:
    """The equations 0 = f(t, x, z, u, p), 0 = g(t, x, z, u, p) of a field, at any time and inputs.

    Raises InputError if CasADi, which differentiates the equations, cannot be imported.
    """

    def __init__(self, field: VectorField) -> None:
        if import_problem("casadi"):
            raise InputError(f"no steady state can be found: {missing_package('casadi')}")
        import casadi as ca

        from odefit.simulation.engines.casadi_algebra import (
            CasadiAlgebra,
            Symbol,
            column_of,
            symbols_of,
        )
        from odefit.simulation.engines.programs import program

        self._n, self._a, self._p = len(field.states), len(field.algebraic), len(field.scalars)
        self._size = self._n + self._a
        algebra = CasadiAlgebra()
        time, point = ca.SX.sym("t"), ca.SX.sym("y", self._size)
        scalars, inputs = ca.SX.sym("p", self._p), ca.SX.sym("u", len(field.inputs))
        names = (*field.states, *field.algebraic)
        values = {TIME: Symbol(time)}
        for names_of, symbols in ((names, point), (field.scalars, scalars), (field.inputs, inputs)):
            values |= dict(zip(names_of, symbols_of(symbols), strict=True))
        equations = column_of([*field.rhs(values, algebra), *field.constraints(values, algebra)])
        derivatives = ca.jacobian(equations, ca.vertcat(point, scalars))
        rows, columns = derivatives.sparsity().get_triplet()
        self._places = np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)
        nonzeros: list[Any] = derivatives.nonzeros()
        every = ca.densify(ca.vertcat(equations, *nonzeros))
        self._program = program(ca.vertcat(time, point, scalars, inputs), every)
        by_point = int(np.searchsorted(self._places[1], self._size))  # columns are in order
        self._entries = self._places[0][:by_point] * self._size + self._places[1][:by_point]
        self._conserved: dict[bytes, Conserved] = {}

    def at(self, time: float, point: Array, scalars: Array, inputs: Array) -> Linearised:
        """Return the equations at a point, shape (n + a,), with scalars (p,) and inputs (u,)."""
        from odefit.simulation.steady.approach import values_at

        out = np.empty(len(self._program.outputs))
        values_at(self._program, np.concatenate([[time], point, scalars, inputs]), out)
        return self._linearised(out)

    def _linearised(self, out: Array) -> Linearised:
        size = self._size
        derivatives = np.zeros((size, size + self._p))
        derivatives[self._places] = out[size:]
        return Linearised(out[:size], derivatives[:, :size], derivatives[:, size:])

    def approached(
        self,
        time: float,
        point: Array,
        initial: Values,
        inputs: Array,
        weights: Array,
        largest: Array,
    ) -> tuple[Array, Linearised, IntArray] | None:
        """Return the end of Newton's method if a trajectory from a point surely approaches it.

        With it come the equations there, and the rows replaced by conservation of quantities with
        these `weights`. `largest` are the states' largest magnitudes. Stability is not checked.
        """
        from odefit.simulation.steady.approach import approach

        x = np.concatenate([[time], point, initial.scalars, inputs])
        out = np.empty(len(self._program.outputs))
        memory = Matrices.of_size(self._size, len(weights))
        states, weights = np.ascontiguousarray(initial.states), np.ascontiguousarray(weights)
        surely = approach(self._program, self._entries, x, states, weights, largest, out, memory)
        end = x[1 : 1 + self._size].copy()
        return (end, self._linearised(out), memory.places) if surely else None

    def conserved(self, time: float, scalars: Array, fixed: BoolArray, inputs: Array) -> Conserved:
        """Return the conserved quantities of the equations.

        Combinations of the right-hand sides vanish at every point if they vanish at random ones.
        These are computed with random values of order one for unknown scalars, at which no rate is
        negligible. If they do not hold for the true values, as weights may depend on these, they
        are computed at the true values.

        `fixed` marks the scalars that are known numbers, shape (p,).
        """
        same = fixed | (scalars == 0.0)
        key = np.concatenate([same, np.where(same, scalars, 0.0), inputs, [time]]).tobytes()
        quantities = self._conserved.get(key)
        if quantities is None or not self._holds(quantities, time, scalars, inputs):
            rng = np.random.default_rng(0)
            usual = np.where(same, scalars, rng.uniform(0.5, 2.0, self._p))
            quantities = self._computed(time, usual, inputs)
            if not self._holds(quantities, time, scalars, inputs):
                quantities = self._computed(time, scalars, inputs)
                if not self._holds(quantities, time, scalars, inputs):
                    quantities = Conserved(np.zeros((0, self._n)), np.zeros(self._p, dtype=bool))
            self._conserved[key] = quantities
        return quantities

    def _points(self, seed: int, count: int) -> Array:
        return np.random.default_rng(seed).uniform(0.5, 2.0, (count, self._n + self._a))

    def _computed(self, time: float, scalars: Array, inputs: Array) -> Conserved:
        size = self._n + self._a
        points = self._points(1, size + MORE_POINTS)
        rates = np.array([self.at(time, y, scalars, inputs).value for y in points]).T
        none = Conserved(np.zeros((0, self._n)), np.zeros(self._p, dtype=bool))
        if not np.isfinite(rates).all():
            return none
        largest = np.abs(rates).max(axis=1)
        largest[largest == 0.0] = 1.0
        left, singular, _ = np.linalg.svd(rates / largest[:, None])
        rank = int(np.sum(singular > CONSERVED * max(singular[0], 1e-300)))
        every = left[:, rank:].T / largest
        if not len(every):
            return none
        weights = _reduced(every)
        if not np.abs(weights[:, : self._n]).any(axis=1).all():
            return none  # the algebraic equations depend on each other
        moving = np.zeros(self._p, dtype=bool)
        for y in self._points(2, 3):
            terms = np.abs(weights) @ np.abs(self.at(time, y, scalars, inputs).by_scalars)
            change = np.abs(weights @ self.at(time, y, scalars, inputs).by_scalars)
            moving |= (change > CONSERVED * terms).any(axis=0)
        return Conserved(weights[:, : self._n], moving)

    def _holds(self, conserved: Conserved, time: float, scalars: Array, inputs: Array) -> bool:
        """Return whether quantities are conserved at other random points, with these scalars."""
        if self._a or not len(conserved.weights):
            return True
        for y in self._points(3, 2):
            rates = self.at(time, y, scalars, inputs).value
            terms = np.abs(conserved.weights) @ np.abs(rates)
            if not (np.abs(conserved.weights @ rates) <= CONSERVED * terms).all():
                return False
        return True


@lru_cache(maxsize=8)
def steady_equations(field: VectorField) -> SteadyEquations:
    """Return the equations of a field; the last ones are cached."""
    return SteadyEquations(field)


def _reduced(rows: Array) -> Array:
    """Return the reduced echelon form of independent rows, with pivots as large as possible."""
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    for i in range(len(rows)):
        rest = np.abs(rows[i:])
        row, column = divmod(int(rest.argmax()), rows.shape[1])
        rows[[i, i + row]] = rows[[i + row, i]]
        rows[i] /= rows[i, column]
        for j in range(len(rows)):
            if j != i:
                rows[j] -= rows[j, column] * rows[i]
                rows[j, column] = 0.0
    rows[np.abs(rows) < CONSERVED] = 0.0
    return rows


def eigenvalues_of(matrix: Array) -> Array:
    """Return eigenvalues; none for a matrix that is not finite."""
    if not np.isfinite(matrix).all():
        return np.zeros(0)
    return np.asarray(np.linalg.eigvals(matrix))


def ordinary_jacobian(jacobian: Array, n: int) -> Array:
    """Return the Jacobian of the differential equations with the algebraic ones eliminated."""
    if len(jacobian) == n:
        return jacobian
    try:
        by_states = np.linalg.solve(jacobian[n:, n:], jacobian[n:, :n])
    except np.linalg.LinAlgError:
        return np.full((n, n), np.nan)
    return np.asarray(jacobian[:n, :n] - jacobian[:n, n:] @ by_states)
