"""Initial guesses of a discretised problem: values of all variables at all points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.problem.arrays import Array
from odefit.problem.state_guesses import data_size, states_from_data
from odefit.simulation import Failure, ForwardMap

StateGuess = Literal["data", "simulation", "zero"]
"""What the initial guess of the states is made from."""

DIVERGENCE_RATIO = 1e3
"""Ratio of a simulated value to the size of the data from which a simulation counts as diverged."""


def guess_from_data(d: Discretisation, unknowns: Array) -> Array:
    """Return a guess with measured states on straight lines between their measurements.

    States that are not measured have their initial value throughout, or the size of the data
    where that is not known. The shape is (P, variables).
    """
    values = np.empty((d.points, len(d.variables)))
    for number, condition in enumerate(d.problem.conditions):
        own = np.flatnonzero(d.condition_of == number)
        values[own] = states_from_data(d.problem, condition, d.variables, unknowns, d.times[own])
    return values


def guess_from_simulation(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array | None:
    """Return the integrated trajectories; None if they cannot be integrated or diverge."""
    values = guess_from_data(d, unknowns)
    n = len(d.field.states)
    for number, condition in enumerate(d.problem.conditions):
        own = np.flatnonzero(d.condition_of == number)
        times, back = np.unique(d.times[own], return_inverse=True)
        path = forward.trajectory(unknowns, condition.name, times, sensitivities=False)
        if isinstance(path, Failure) or not np.isfinite(path.states).all():
            return None
        if np.abs(path.states).max(initial=0.0) > DIVERGENCE_RATIO * data_size(condition):
            return None
        values[own, :n] = path.states[back]
        if path.algebraic.shape[1]:
            values[own, n : n + path.algebraic.shape[1]] = path.algebraic[back]
        for name, (switched, _) in path.switched.items():
            values[own, d.variables.index(name)] = switched[back]
    return values


def guess_states(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array:
    """Return the integrated trajectories, or a guess from the data if they cannot be integrated."""
    values = guess_from_simulation(d, forward, unknowns)
    return guess_from_data(d, unknowns) if values is None else values
