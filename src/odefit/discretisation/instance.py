"""A discretised problem that is to be solved, with the point at which its solver starts."""

from __future__ import annotations

from dataclasses import dataclass

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation


@dataclass(frozen=True, eq=False)
class Instance:
    """A discretised problem that is to be solved.

    Attributes
    ----------
    discretisation, formulation
        The equations, and how strictly they hold.
    values, unknowns
        The start: variables at points, shape (P, v), and unknowns, shape (n,). None lets the
        solver choose.
    """

    discretisation: Discretisation
    formulation: Formulation
    values: Array | None = None
    unknowns: Array | None = None
