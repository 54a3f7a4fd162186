"""Initial guesses of a discretised problem: values of all variables at all points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.problem.variants.sizes import typical_sizes
from odefit.problem.variants.start_ranges import states_from_data
from odefit.simulation import Failure, ForwardMap

StateGuess = Literal["data", "simulation", "zero"]
"""What the initial guess of the states is made from."""

DIVERGENCE_RATIO = 1e3
"""Ratio of a simulated value to the typical size of its state, or to the guess of it, from which a
simulation counts as diverged."""


def guess_from_data(d: Discretisation, unknowns: Array) -> Array:
    """Return a guess with measured states on straight lines between their measurements.

    States that are not measured have their initial value throughout, or their typical size
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
    typical = typical_sizes(d.problem).states
    sizes = np.array([typical[name] for name in d.field.states])
    for number, condition in enumerate(d.problem.conditions):
        own = np.flatnonzero(d.condition_of == number)
        times, back = np.unique(d.times[own], return_inverse=True)
        path = forward.trajectory(unknowns, condition.name, times, sensitivities=False)
        if isinstance(path, Failure) or not np.isfinite(path.states).all():
            return None
        allowed = DIVERGENCE_RATIO * np.maximum(np.abs(values[own, :n]).max(axis=0), sizes)
        if (np.abs(path.states).max(axis=0, initial=0.0) > allowed).any():
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
