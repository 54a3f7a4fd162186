"""Candidates: solutions of the polynomial system as vectors of the problem's unknowns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, ComplexArray
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.segments import StateTransport
from odefit.problem.binding import Binding
from odefit.problem.variants.start_ranges import ranges
from odefit.structure.solutions.auxiliary_states import fill_dependent_states

REAL_TOLERANCE = 1e-6  # relative imaginary part up to which a solution counts as real


@dataclass(frozen=True, eq=False)
class Candidate:
    """A solution of the polynomial system as unknowns of the problem."""

    vector: Array  # unknowns, shape (n,), which are the real parts of the solution
    imaginary: float  # largest relative imaginary part of the solution
    origin: str  # how the data were differentiated, in words


def imaginary_part(values: ComplexArray) -> float:
    """Return the largest imaginary part, each relative to the magnitude of its number."""
    scale = np.abs(values) + 1e-9 * np.abs(values).max(initial=0.0) + 1e-300
    return float((np.abs(values.imag) / scale).max(initial=0.0))


def candidate(
    preparation: Preparation, values: ComplexArray, times: tuple[float, ...], origin: str
) -> Candidate | None:
    """Return the candidate of one solution; None if its trajectory does not reach back to t0.

    `values` are all unknowns of the system, with the states of each expansion at its time.
    """
    system, problem = preparation.system, preparation.problem
    at_start = values.real.astype(complex)
    column = {name: i for i, name in enumerate(system.names)}
    vector = np.array([float(r.at(np.array(0.5))) for r in ranges(problem)])
    for i, unknown in enumerate(problem.unknowns):
        if unknown.parameter.guess is not None:
            vector[i] = unknown.parameter.guess
        if unknown.key in column and unknown.kind != "noise":
            vector[i] = at_start[column[unknown.key]].real
    if system.free_states:
        for k, time in enumerate(times):
            moved = StateTransport(system, k, vector).to_start(at_start, time)
            if moved is None:
                return None
            at_start = moved
    for i, unknown in enumerate(problem.unknowns):
        if unknown.kind == "initial" and unknown.key not in column:
            for expansion in system.expansions:
                own = unknown.experiment in (None, expansion.condition.name)
                if own and unknown.name in expansion.states:
                    vector[i] = at_start[column[expansion.states[unknown.name]]].real
                    break
    if not np.isfinite(vector).all():
        return None
    return Candidate(vector, imaginary_part(values[preparation.square.solved]), origin)


def solution_of(
    preparation: Preparation, vector: Array, times: tuple[float, ...]
) -> ComplexArray | None:
    """Return the unknowns of the system that belong to a vector of unknowns of the problem.

    Each expansion has its states at its time; None if a trajectory does not reach the times.
    """
    system, problem = preparation.system, preparation.problem
    column = {name: i for i, name in enumerate(system.names)}
    values = np.ones(len(system.names), dtype=complex)
    for i, unknown in enumerate(problem.unknowns):
        if unknown.key in column:
            values[column[unknown.key]] = vector[i]
    for k, (expansion, time) in enumerate(zip(system.expansions, times, strict=True)):
        condition = expansion.condition
        states = [s for s in problem.model.states if s in expansion.states]
        bounds = [condition.initial[s] for s in states]
        for state, value in zip(states, Binding(bounds, condition.scalars)(vector), strict=True):
            values[column[expansion.states[state]]] = value
        values = fill_dependent_states(system, k, values, condition.t0)
        if system.free_states:
            moved = StateTransport(system, k, vector).from_start(values, time)
            if moved is None:
                return None
            values = moved
    return values
