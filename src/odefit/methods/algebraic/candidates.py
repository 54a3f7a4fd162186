"""From solutions of the polynomial system to vectors of unknowns of the problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.algebraic.legs import back, forward
from odefit.methods.algebraic.preparation import Preparation
from odefit.problem.arrays import Array, ComplexArray
from odefit.problem.binding import Binding
from odefit.problem.start_ranges import ranges
from odefit.structure.auxiliary_states import fill_dependent_states


@dataclass(frozen=True, eq=False)
class Candidate:
    """A solution of the polynomial system, as the problem sees it.

    Attributes
    ----------
    vector
        Unknowns, shape (n,).
    imaginary
        Largest relative imaginary part; the vector is made of the real parts.
    origin
        Which view of the data it comes from, in words.
    """

    vector: Array
    imaginary: float
    origin: str


def imaginary_part(values: ComplexArray) -> float:
    """The largest imaginary part, each relative to its number."""
    scale = np.abs(values) + 1e-9 * np.abs(values).max(initial=0.0) + 1e-300
    return float((np.abs(values.imag) / scale).max(initial=0.0))


def candidate(
    preparation: Preparation, values: ComplexArray, times: tuple[float, ...], origin: str
) -> Candidate | None:
    """The candidate of one solution; None if its trajectory does not reach back to t0.

    Parameters
    ----------
    values
        All unknowns of the system, shape (unknowns,).
    times
        By expansion, where its states are.
    """
    system, problem = preparation.system, preparation.problem
    real = values.real.astype(complex)
    place = {name: i for i, name in enumerate(system.names)}
    vector = np.array([float(r.at(np.array(0.5))) for r in ranges(problem)])
    for i, unknown in enumerate(problem.unknowns):
        if unknown.parameter.guess is not None:
            vector[i] = unknown.parameter.guess
        if unknown.key in place and unknown.kind != "noise":
            vector[i] = real[place[unknown.key]].real
    at_start = real
    if system.free_states:
        for k, time in enumerate(times):
            moved = back(system, k, at_start, vector, time)
            if moved is None:
                return None
            at_start = moved
    for i, unknown in enumerate(problem.unknowns):
        if unknown.kind == "initial" and unknown.key not in place:
            for expansion in system.expansions:
                here = unknown.experiment in (None, expansion.condition.name)
                if here and unknown.name in expansion.states:
                    vector[i] = at_start[place[expansion.states[unknown.name]]].real
                    break
    if not np.isfinite(vector).all():
        return None
    return Candidate(vector, imaginary_part(values[preparation.square.solved]), origin)


def solution_of(
    preparation: Preparation, vector: Array, times: tuple[float, ...]
) -> ComplexArray | None:
    """All unknowns of the system that belong to a vector of unknowns of the problem.

    Returns
    -------
    array or None
        Shape (unknowns,); None if a trajectory does not reach the times.
    """
    system, problem = preparation.system, preparation.problem
    place = {name: i for i, name in enumerate(system.names)}
    values = np.ones(len(system.names), dtype=complex)
    for i, unknown in enumerate(problem.unknowns):
        if unknown.key in place:
            values[place[unknown.key]] = vector[i]
    for k, (expansion, time) in enumerate(zip(system.expansions, times, strict=True)):
        condition = expansion.condition
        states = [s for s in problem.model.states if s in expansion.states]
        bounds = [condition.initial[s] for s in states]
        for state, value in zip(states, Binding(bounds, condition.scalars)(vector), strict=True):
            values[place[expansion.states[state]]] = value
        values = fill_dependent_states(system, k, values, condition.t0)
        if system.free_states:
            moved = forward(system, k, values, vector, time)
            if moved is None:
                return None
            values = moved
    return values
