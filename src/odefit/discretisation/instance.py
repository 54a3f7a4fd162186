"""A discretised problem to be solved: its start, guesses of it, and its scales.

Solvers stop at absolute tolerances. Without scales, a problem with concentrations of 1e-7 counts as
solved at any start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Formulation
from odefit.problem.variants.data_scales import data_size
from odefit.problem.variants.sizes import expected_sizes, typical_sizes
from odefit.problem.variants.start_ranges import ranges
from odefit.problem.variants.state_guesses import states_from_data
from odefit.simulation import Failure, ForwardMap


@dataclass(frozen=True, eq=False)
class Instance:
    """A discretised problem to be solved.

    Attributes
    ----------
    discretisation, formulation
        The equations, and their strictness.
    values, unknowns
        The start: variables at points, shape (P, v), and unknowns, shape (n,). None lets the solver
        choose.
    """

    discretisation: Discretisation
    formulation: Formulation
    values: Array | None = None
    unknowns: Array | None = None


StateGuess = Literal["data", "simulation", "zero"]
"""Sources of the initial guess of the states."""

DIVERGENCE_RATIO = 1e3
"""Ratio of a simulated value to the typical size of its state, or to its guess, above which a
simulation counts as diverged."""


def guess_from_data(d: Discretisation, unknowns: Array) -> Array:
    """Return a guess with measured states on straight lines between their measurements.

    Unmeasured states have their initial value throughout, or their typical size if that is unknown.
    The shape is (P, variables).
    """
    values = np.empty((d.points, len(d.variables)))
    for number, condition in enumerate(d.problem.conditions):
        points = np.flatnonzero(d.condition_of == number)
        values[points] = states_from_data(
            d.problem, condition, d.variables, unknowns, d.times[points]
        )
    return values


def guess_from_simulation(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array | None:
    """Return the integrated trajectories; None if they cannot be integrated or diverge."""
    values = guess_from_data(d, unknowns)
    n = len(d.field.states)
    typical = typical_sizes(d.problem).states
    sizes = np.array([typical[name] for name in d.field.states])
    for number, condition in enumerate(d.problem.conditions):
        points = np.flatnonzero(d.condition_of == number)
        times, back = np.unique(d.times[points], return_inverse=True)
        path = forward.trajectory(unknowns, condition.name, times, sensitivities=False)
        if isinstance(path, Failure) or not np.isfinite(path.states).all():
            return None
        allowed = DIVERGENCE_RATIO * np.maximum(np.abs(values[points, :n]).max(axis=0), sizes)
        if (np.abs(path.states).max(axis=0, initial=0.0) > allowed).any():
            return None
        values[points, :n] = path.states[back]
        if path.algebraic.shape[1]:
            values[points, n : n + path.algebraic.shape[1]] = path.algebraic[back]
        for name, (switched, _) in path.switched.items():
            values[points, d.variables.index(name)] = switched[back]
    return values


def guess_states(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array:
    """Return the integrated trajectories, or a guess from the data if they cannot be integrated."""
    values = guess_from_simulation(d, forward, unknowns)
    return guess_from_data(d, unknowns) if values is None else values


SCALED_OBJECTIVE = 100.0
"""Value to which the objective of constant predictions is scaled."""


ORDINARY = 1e3
"""Unknowns whose typical size is between 1 over this and this are not scaled."""


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors from scaled values to natural ones.

    Those of variables at points have shape (P, variables), of unknowns (n,), of equality
    constraints (rows,). Initial values have the size of their states, other unknowns their typical
    size if that is far from 1.
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
    sizes = np.empty(rough.shape)
    states = typical_sizes(d.problem).states
    for number, condition in enumerate(d.problem.conditions):
        points = d.condition_of == number
        largest = rough[points].max(axis=0, initial=0.0)
        typical = [states.get(name, data_size(condition)) for name in d.variables]
        sizes[points] = np.where(largest > 0, largest, typical)
    return sizes


def row_sizes(d: Discretisation, values: Array) -> Array:
    """Return the size of every row: that of its variable, or 1 for algebraic equations."""
    matrix = d.rows.values
    first = matrix.indptr[:-1]
    has = np.diff(matrix.indptr) > 0
    sizes = np.ones(len(has))
    sizes[has] = values.ravel()[matrix.indices[first[has]]]
    return sizes


def data_variation(d: Discretisation) -> float:
    """Return the sum of squares of the weighted data about their means.

    A fit has to explain this variation. It is 1 if the sum is zero or not finite.
    """
    total = 0.0
    for block in d.residuals:
        if "measured" in block.columns and block.instances:
            measured, sd = block.data[:, 0], block.data[:, 1]
            total += float(np.sum(((measured - measured.mean()) / sd) ** 2))
    return total if np.isfinite(total) and total > 0 else 1.0
