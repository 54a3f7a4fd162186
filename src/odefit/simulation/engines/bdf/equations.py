"""A model's equations as arrays for the kernels of the stiff engine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.bdf.elimination import Elimination, elimination, minimum_degree
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, column_of, flat_symbols
from odefit.simulation.engines.narrow_features import NarrowFeatures
from odefit.simulation.engines.programs import Indices, Program, program


class Entries(NamedTuple):
    """Rows and columns of the nonzeros of a matrix."""

    row: Indices
    column: Indices


class Equations(NamedTuple):
    """A model as arrays.

    Kernels get the parts that they need: each array costs the compiler time in each function.
        Variables of the programs are the time, the states, and values that are constant in between.
    """

    rhs: Program
    jacobian: Program  # Nonzeros of their Jacobian by the states
    derivatives: Program  # The same, followed by nonzeros of the Jacobian by the scalars
    elimination: Elimination
    entries: Entries  # of the Jacobian
    # Terms whose changes of sign reveal features that a step could miss; none if there are no such
    # features.
    watched: Program


class ScalarTerms(NamedTuple):
    """The nonzero terms of df/dp dp, with p the scalars, tile by tile."""

    start: Indices  # Number of the first term of each tile, and of all terms, shape (tiles + 1,)
    # State, and direction within the tile, that a term belongs to.
    row: Indices
    column: Indices
    derivative: Indices  # Number of the derivative by a scalar, among the nonzeros of df/dp
    multiplier: Array


class CompiledField:
    """A vector field in the form of the kernels, whatever the sensitivities.

    The field has no algebraic variables that need solving. `order` is the order of elimination, in
    which the kernels store the states.
    """

    def __init__(self, field: VectorField, features: NarrowFeatures | None = None) -> None:
        n, p = len(field.states), len(field.scalars)
        _, symbols, values = flat_symbols(field)
        time, states, scalars = symbols[0], symbols[1 : 1 + n], symbols[1 + n : 1 + n + p]
        rhs = field.rhs(values, CasadiAlgebra())
        pattern = ca.jacobian_sparsity(ca.vertcat(*(rate.sx for rate in rhs)), column_of(states))
        self.order = minimum_degree(*_triplets(pattern), n)
        ordered = [states[i] for i in self.order]
        variables = column_of([time, *ordered, *symbols[1 + n :]])
        function = column_of(rhs[i] for i in self.order)
        jacobian = ca.jacobian(function, column_of(ordered))
        by_scalars = ca.jacobian(function, column_of(scalars)) if p else ca.SX(n, 0)
        rows, columns = _triplets(jacobian.sparsity())
        scalar_rows, scalar_columns = _triplets(by_scalars.sparsity())
        self.scalar_rows = scalar_rows.astype(np.uint32)
        self.scalar_columns = scalar_columns.astype(np.uint32)
        nonzeros = jacobian.nonzeros()
        self.equations = Equations(
            rhs=program(variables, function),
            jacobian=program(variables, _column(nonzeros)),
            derivatives=program(variables, _column(nonzeros + by_scalars.nonzeros())),
            elimination=elimination(rows, columns, n),
            entries=Entries(rows.astype(np.uint32), columns.astype(np.uint32)),
            watched=program(variables, self._watched(variables, features)),
        )

    def _watched(self, variables: Any, features: NarrowFeatures | None) -> Any:
        """Return the watched terms in the kernels' variables, with the states in their order."""
        if features is None:
            return ca.SX(0, 1)
        n = len(self.order)
        place = np.arange(variables.numel())
        place[1 + self.order] = 1 + np.arange(n)
        ordered = ca.vertcat(*(variables[int(k)] for k in place))
        return ca.densify(ca.substitute(features.watched, features.variables, ordered))


@lru_cache(maxsize=4)
def compiled_field(field: VectorField, features: NarrowFeatures | None = None) -> CompiledField:
    """Return the kernels' form of a field; the last ones are cached for other sensitivities."""
    return CompiledField(field, features)


def _triplets(sparsity: ca.Sparsity) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the nonzeros of a CasADi pattern, in CasADi's order."""
    rows, columns = sparsity.get_triplet()
    return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)


def _column(expressions: list[ca.SX]) -> ca.SX:
    """Return expressions as a dense column, which may be empty."""
    return ca.densify(ca.vertcat(*expressions)) if expressions else ca.SX(0, 1)
