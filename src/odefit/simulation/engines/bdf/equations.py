"""A model's equations in arrays, as the kernels read them."""

from __future__ import annotations

from typing import NamedTuple

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.elimination import Elimination
from odefit.simulation.engines.programs import Indices, Program


class Equations(NamedTuple):
    """A model in arrays.

    Variables of the programs are the time, the states, and what is constant in between.

    Attributes
    ----------
    rhs
        Right-hand sides.
    jacobian
        Nonzeros of their Jacobian by the states.
    derivatives
        The same, followed by nonzeros of the Jacobian by the scalars.
    elimination
        Elimination of I - c J.
    jacobian_row, jacobian_column
        Rows and columns of the Jacobian's nonzeros.
    watched
        Terms whose changes of sign show what a step could step across; none where nothing can.
    """

    rhs: Program
    jacobian: Program
    derivatives: Program
    elimination: Elimination
    jacobian_row: Indices
    jacobian_column: Indices
    watched: Program


class ScalarTerms(NamedTuple):
    """The terms of df/dp dp that are not zero, with p the scalars, one tile after the other.

    Attributes
    ----------
    start
        Number of the first term of each tile, and of all terms, shape (tiles + 1,).
    row, column
        State, and direction within the tile, that a term belongs to.
    derivative
        Number of the derivative by a scalar, among the nonzeros of df/dp.
    multiplier
        The scalar's sensitivity.
    """

    start: Indices
    row: Indices
    column: Indices
    derivative: Indices
    multiplier: Array
