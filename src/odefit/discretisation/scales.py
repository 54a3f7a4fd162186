"""Sizes of the quantities of a discretised problem, from the data and the bounds alone.

Solvers stop at absolute tolerances. Without scales, a problem in which concentrations are 1e-7
counts as solved wherever it starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.initial_guess import guess_from_data
from odefit.problem.variants.sizes import expected_sizes, typical_sizes
from odefit.problem.variants.start_ranges import data_size, ranges

SCALED_OBJECTIVE = 100.0
"""Value to which the objective of constant predictions is scaled."""


ORDINARY = 1e3
"""Unknowns whose typical size is between 1 over this and this are not scaled."""


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors from scaled values to natural ones.

    Those of variables at points have shape (P, variables), of unknowns (n,), of equality
    constraints (rows,). Initial values have the size of their states, other unknowns their typical
    size where that is far from 1.
    """

    values: Array
    unknowns: Array
    rows: Array
    objective: float

    @classmethod
    def none(cls, d: Discretisation) -> Scales:
        """Return scales that leave everything in natural units."""
        return cls(
            np.ones((d.points, len(d.variables))),
            np.ones(len(d.problem.unknowns)),
            np.ones(len(d.rows.dynamic)),
            1.0,
        )

    @classmethod
    def of(cls, d: Discretisation) -> Scales:
        """Return scales from data and bounds, the same for every start of a problem."""
        values = variable_sizes(d)
        unknowns = expected_sizes(d.problem)
        unknowns[(unknowns > 1 / ORDINARY) & (unknowns < ORDINARY)] = 1.0
        for k, unknown in enumerate(d.problem.unknowns):
            if unknown.kind == "initial":
                unknowns[k] = values[:, d.variables.index(unknown.name)].max()
        return cls(values, unknowns, row_sizes(d, values), data_variation(d) / SCALED_OBJECTIVE)


def variable_sizes(d: Discretisation) -> Array:
    """Return the size of every variable at every point, the same at all points of a condition."""
    top = np.array([float(r.at(np.array(1.0))) for r in ranges(d.problem)])
    rough = np.abs(guess_from_data(d, top))
    found = np.empty(rough.shape)
    states = typical_sizes(d.problem).states
    for number, condition in enumerate(d.problem.conditions):
        own = d.condition_of == number
        largest = rough[own].max(axis=0, initial=0.0)
        typical = [states.get(name, data_size(condition)) for name in d.variables]
        found[own] = np.where(largest > 0, largest, typical)
    return found


def row_sizes(d: Discretisation, values: Array) -> Array:
    """Return the size of every row: that of its variable, or 1 for algebraic equations."""
    matrix = d.rows.values
    first = matrix.indptr[:-1]
    has = np.diff(matrix.indptr) > 0
    found = np.ones(len(has))
    found[has] = values.ravel()[matrix.indices[first[has]]]
    return found


def data_variation(d: Discretisation) -> float:
    """Return the sum of squares of the weighted data about their means, which a fit has to explain.

    It is 1 if that is zero or not finite.
    """
    total = 0.0
    for block in d.residuals:
        if "measured" in block.columns and block.instances:
            measured, sd = block.data[:, 0], block.data[:, 1]
            total += float(np.sum(((measured - measured.mean()) / sd) ** 2))
    return total if np.isfinite(total) and total > 0 else 1.0
