"""What belongs to the equations and not to the data: made once, kept on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import ComplexArray
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem
from odefit.structure.counting import count_solutions
from odefit.structure.differentiated_system import DifferentiatedSystem
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.square import SquareSystem
from odefit.structure.storage import stored_solutions

PATIENCE = 60.0
"""Seconds that the solutions for several times at once may take to find."""

MOST = 64
"""Solutions up to which several times at once pay."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """The polynomial system of a problem, and all its solutions for generic data.

    Attributes
    ----------
    problem
        The problem.
    system, square
        All equations, and as many of them as unknowns.
    generic
        Solutions at random data.
    structural
        How many of them agree in all further derivatives, if that is known; of the system with
        one time an experiment.
    copies
        Times an experiment is looked at together.
    single
        The preparation with one time an experiment, if this is none.
    """

    problem: Problem
    system: DifferentiatedSystem
    square: SquareSystem
    generic: GenericSolutions
    structural: int | None
    copies: int = 1
    single: Preparation | None = None

    @property
    def once(self) -> Preparation:
        """The preparation with one time an experiment."""
        return self.single or self

    def first_copies(self, values: ComplexArray) -> ComplexArray:
        """Unknowns of :attr:`once` from those of this system: states at the first of its times."""
        once = self.once.system
        place = {name: i for i, name in enumerate(self.system.names)}
        result = np.ones(len(once.names), dtype=complex)
        for i, name in enumerate(once.names):
            if name in place:
                result[i] = values[place[name]]
        for k, expansion in enumerate(once.expansions):
            mine = self.system.expansions[k * self.copies].states
            for state, name in expansion.states.items():
                result[once.names.index(name)] = values[place[mine[state]]]
        return result

    @property
    def free(self) -> bool:
        """Whether every initial value is an unknown."""
        return all(
            isinstance(bound, int)
            for condition in self.problem.conditions
            for bound in condition.initial.values()
        )

    @property
    def transcendental(self) -> bool:
        """Whether unknowns act through functions that leave no polynomial relation behind."""
        return any(
            not expansion.lifting.known(d.state) and not d.polynomial
            for expansion in self.system.expansions
            for d in expansion.lifting.definitions
        )

    @property
    def held(self) -> tuple[str, ...]:
        """Unknowns that the equations leave open, given the others."""
        return tuple(self.system.names[k] for k in self.square.held)

    @property
    def anywhere(self) -> bool:
        """Whether the data may be differentiated at any time, or at t0 alone."""
        return self.system.free_states


def prepare(
    problem: Problem,
    seed: int = 0,
    *,
    points: int = 1,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda count: None,
) -> Preparation:
    """The system with free states if that determines as much, else the one around t0.

    Parameters
    ----------
    problem, seed
        What is prepared, and the seed of everything random.
    points
        Times an experiment is looked at together, where its states are free. More of them need
        lower derivatives; where that makes too many solutions, one is all there is.
    stop, report
        As :func:`all_solutions` takes them.

    Raises
    ------
    InputError
        The model has no Taylor series, or its outputs determine nothing.
    """
    free = SquareSystem(DifferentiatedSystem(problem, free_states=True), seed)
    known = SquareSystem(DifferentiatedSystem(problem, free_states=False), seed)
    square = free if _determined(known) <= _determined(free) else known
    if not square.size:
        raise InputError(
            f"the outputs of {problem.name!r} determine none of its unknowns: there is nothing "
            "to solve; observe more, or fix some unknowns"
        )
    generic = stored_solutions(square, seed, stop=stop, report=report)
    structural = count_solutions(square, generic).total if generic.complete else None
    single = Preparation(problem, square.system, square, generic, structural)
    if points == 1 or not single.anywhere or not generic.complete:
        return single
    several = SquareSystem(DifferentiatedSystem(problem, free_states=True, times=points), seed)
    began = time.perf_counter()

    def enough() -> bool:
        return stop() or time.perf_counter() - began > PATIENCE

    more = stored_solutions(several, seed, stop=enough, report=report)
    if not more.complete or len(more.solutions) > MOST:
        return single
    return Preparation(problem, several.system, several, more, structural, points, single)


def _determined(square: SquareSystem) -> set[str]:
    """Unknowns of the problem that all equations together determine."""
    system = square.system
    sure = {name for name, d in zip(system.names, square.determined, strict=True) if d}
    for unknown in system.problem.unknowns:
        for expansion in system.expansions if unknown.kind == "initial" else ():
            here = unknown.experiment in (None, expansion.condition.name)
            if here and expansion.states.get(unknown.name) in sure:
                sure.add(unknown.key)
    return sure & set(system.problem.keys)
