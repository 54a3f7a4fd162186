"""Where a discretised problem starts: values of all variables at all points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from odefit.methods.transcription.discretisation import Discretisation
from odefit.problem.algebras import NUMPY, Array
from odefit.problem.condition import Condition
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.binding import bound_value

States = Literal["data", "simulation", "zero"]

WILD = 1e3
"""A simulated value larger than this, relative to the data, is not used."""


def from_data(d: Discretisation, unknowns: Array) -> Array:
    """Measured states by straight lines between their measurements.

    States that are not measured have their initial value throughout, or the size of the data
    where that is not known.

    Returns
    -------
    Shape (P, variables).
    """
    values = np.empty((d.points, len(d.variables)))
    for number, condition in enumerate(d.problem.conditions):
        own = np.flatnonzero(d.condition_of == number)
        values[own] = _flat(d, condition, unknowns)
        for name, series in condition.series.items():
            state = d.problem.model.observables[name].name
            if state in d.variables and len(series.values):
                k = d.variables.index(state)
                times, first = np.unique(condition.times[series.rows], return_index=True)
                values[own, k] = np.interp(d.times[own], times, series.values[first])
    return values


def from_simulation(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array | None:
    """The true trajectories; None if they cannot be integrated or grow beyond measure."""
    values = from_data(d, unknowns)
    n = len(d.field.states)
    for number, condition in enumerate(d.problem.conditions):
        own = np.flatnonzero(d.condition_of == number)
        times, back = np.unique(d.times[own], return_inverse=True)
        path = forward.trajectory(unknowns, condition.name, times, sensitivities=False)
        if isinstance(path, Failure) or not np.isfinite(path.states).all():
            return None
        if np.abs(path.states).max(initial=0.0) > WILD * data_size(condition):
            return None
        values[own, :n] = path.states[back]
        if path.algebraic.shape[1]:
            values[own, n : n + path.algebraic.shape[1]] = path.algebraic[back]
        for name, (switched, _) in path.switched.items():
            values[own, d.variables.index(name)] = switched[back]
    return values


def near(d: Discretisation, forward: ForwardMap, unknowns: Array) -> Array:
    """The true trajectories, or the data where these cannot be had."""
    values = from_simulation(d, forward, unknowns)
    return from_data(d, unknowns) if values is None else values


def _flat(d: Discretisation, condition: Condition, unknowns: Array) -> Array:
    """A value for every variable, the same at all times."""
    found = []
    for name in d.variables:
        bound = condition.initial.get(name, condition.scalars.get(name))
        if bound is None:
            found.append(condition.algebraic_guess[name])
            continue
        with np.errstate(all="ignore"):
            value = float(bound_value(bound, condition.scalars, unknowns.tolist(), NUMPY))
        found.append(value if np.isfinite(value) else data_size(condition))
    return np.array(found)


def data_size(condition: Condition) -> float:
    """Largest measured value of a condition; 1 if that is zero."""
    values = np.concatenate([s.values for s in condition.series.values()] or [np.ones(1)])
    return float(np.max(np.abs(values), initial=0.0)) or 1.0
