"""A model's equations in arrays, as the kernels read them."""

from __future__ import annotations

from typing import NamedTuple

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.elimination import Elimination
from odefit.simulation.engines.programs import Indices, Program


class Equations(NamedTuple):
    """A model in arrays.

    Variables of the programs are the time, the states, and what is constant in between.
    """

    rhs: Program
    jacobian: Program  # Nonzeros of their Jacobian by the states
    derivatives: Program  # The same, followed by nonzeros of the Jacobian by the scalars
    elimination: Elimination
    # Rows and columns of the Jacobian's nonzeros.
    jacobian_row: Indices
    jacobian_column: Indices
    # Terms whose changes of sign show what a step could step across; none where nothing can.
    watched: Program


class ScalarTerms(NamedTuple):
    """The terms of df/dp dp that are not zero, with p the scalars, one tile after the other."""

    start: Indices  # Number of the first term of each tile, and of all terms, shape (tiles + 1,)
    # State, and direction within the tile, that a term belongs to.
    row: Indices
    column: Indices
    derivative: Indices  # Number of the derivative by a scalar, among the nonzeros of df/dp
    multiplier: Array
