"""Preparations of the algebraic method: computed from the equations alone, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.common.errors import InputError
from odefit.problem.problem import Problem
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.solutions.comparison import count_indistinguishable
from odefit.structure.solutions.storage import stored_solutions

SEARCH_WORK = 3e9
"""Operations (:mod:`odefit.structure.series.deadline`) that the search for the generic solutions of
several times together may take."""

MAX_SOLUTIONS = 64  # largest number of generic solutions with several times together


@dataclass(frozen=True, eq=False)
class Preparation:
    """The polynomial system of a problem, and all its solutions for generic data."""

    problem: Problem
    # all equations, and a square selection of them
    system: DifferentiatedSystem
    square: SquareSystem
    generic: GenericSolutions  # solutions for random data
    # number of indistinguishable solutions, of the system with one time for each experiment, if it
    # is known
    solution_count: int | None
    times_per_experiment: int = 1  # number of times of each experiment that are used together
    # preparation with one time for each experiment, if this is another
    one_time: Preparation | None = None

    @property
    def at_one_time(self) -> Preparation:
        """The preparation with one time for each experiment."""
        return self.one_time or self

    def at_first_times(self, values: ComplexArray) -> ComplexArray:
        """Return unknowns of :attr:`at_one_time`: the states are those at the first times."""
        other = self.at_one_time.system
        column = {name: i for i, name in enumerate(self.system.names)}
        result = np.ones(len(other.names), dtype=complex)
        for i, name in enumerate(other.names):
            if name in column:
                result[i] = values[column[name]]
        for k, expansion in enumerate(other.expansions):
            states = self.system.expansions[k * self.times_per_experiment].states
            for state, name in expansion.states.items():
                result[other.names.index(name)] = values[column[states[state]]]
        return result

    @property
    def free_initial_values(self) -> bool:
        """True if every initial value is an unknown."""
        return all(
            isinstance(bound, int)
            for condition in self.problem.conditions
            for bound in condition.initial.values()
        )

    @property
    def transcendental(self) -> bool:
        """True if unknowns act through functions that cannot be written as polynomials."""
        return any(
            not expansion.lifting.known(d.state) and not d.polynomial
            for expansion in self.system.expansions
            for d in expansion.lifting.definitions
        )

    @property
    def held(self) -> tuple[str, ...]:
        """Names of the unknowns that the equations do not determine, given the others."""
        return tuple(self.system.names[k] for k in self.square.held)

    @property
    def free_states(self) -> bool:
        """True if the data may be differentiated at any time; otherwise only at t0."""
        return self.system.free_states


def prepare(
    problem: Problem,
    seed: int = 0,
    *,
    points: int = 1,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda count: None,
) -> Preparation:
    """Prepare the system with free states if it determines as much, otherwise the one around t0.

    `points` times of each experiment are used together if states are free. More times need lower
    derivatives; if they have too many solutions, one time is used. `report` receives the number of
    solutions so far. Raises InputError if the model has no Taylor series, or its outputs determine
    nothing.
    """
    free = SquareSystem(DifferentiatedSystem(problem, free_states=True), seed)
    square = free
    try:
        known = SquareSystem(DifferentiatedSystem(problem, free_states=False), seed)
        square = free if _determined(known) <= _determined(free) else known
    except NoTaylorSeriesError:
        pass  # a division by zero at t0 need not occur later
    if not square.size:
        raise InputError(
            f"the outputs of {problem.name!r} determine none of its unknowns: there is nothing "
            "to solve; observe more, or fix some unknowns"
        )
    generic = stored_solutions(square, seed, stop=stop, report=report)
    count = count_indistinguishable(square, generic) if generic.complete else None
    one_time = Preparation(problem, square.system, square, generic, count)
    if points == 1 or not one_time.free_states or not generic.complete:
        return one_time
    several = SquareSystem(DifferentiatedSystem(problem, free_states=True, times=points), seed)
    begun = several.system.deadline.spent

    def too_much() -> bool:
        return stop() or several.system.deadline.spent - begun > SEARCH_WORK

    more = stored_solutions(several, seed, stop=too_much, report=report)
    if not more.complete or len(more.solutions) > MAX_SOLUTIONS:
        return one_time
    return Preparation(problem, several.system, several, more, count, points, one_time)


def _determined(square: SquareSystem) -> set[str]:
    """Return the unknowns of the problem that all equations together determine."""
    system = square.system
    determined = {name for name, d in zip(system.names, square.determined, strict=True) if d}
    for unknown in system.problem.unknowns:
        for expansion in system.expansions if unknown.kind == "initial" else ():
            here = unknown.experiment in (None, expansion.condition.name)
            if here and expansion.states.get(unknown.name) in determined:
                determined.add(unknown.key)
    return determined & set(system.problem.keys)
