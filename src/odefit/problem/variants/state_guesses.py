"""Guesses of the states at given times, from the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_size
from odefit.problem.variants.sizes import typical_sizes


def states_from_data(
    problem: Problem, condition: Condition, names: Sequence[str], unknowns: Array, times: Array
) -> Array:
    """Return guesses of the states at `times`, interpolated between measurements, (k, names).

    Unmeasured states keep their initial value or, if that is unknown, their typical size. `names`
    are states, algebraic variables, and constants that events assign.
    """
    values = np.tile(_flat(problem, condition, names, unknowns), (len(times), 1))
    for name, series in condition.series.items():
        state = problem.model.observables[name].name
        if state in names and len(series.values):
            known, first = np.unique(condition.times[series.rows], return_index=True)
            values[:, names.index(state)] = np.interp(times, known, series.values[first])
    return values


def _flat(problem: Problem, condition: Condition, names: Sequence[str], unknowns: Array) -> Array:
    """Return a value for every name, the same at all times."""
    flat_parts = []
    sizes = typical_sizes(problem).states
    for name in names:
        bound = condition.initial.get(name, condition.scalars.get(name))
        if bound is None:
            flat_parts.append(condition.algebraic_guess[name])
            continue
        with np.errstate(all="ignore"):
            value = float(bound_value(bound, condition.scalars, unknowns.tolist(), NUMPY))
        flat_parts.append(value if np.isfinite(value) else sizes.get(name, data_size(condition)))
    return np.array(flat_parts)
