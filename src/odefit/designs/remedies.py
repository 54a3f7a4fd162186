"""Further quantities whose measurement would determine the lost unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from odefit.designs.observables import with_observables
from odefit.designs.parts import Remedy
from odefit.problem.condition import Series
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import CountedSeconds
from odefit.structure.identifiability import analysed
from odefit.structure.series.deadline import Deadline
from odefit.structure.structural_identifiability import StructuralIdentifiability

WORK = CountedSeconds(20.0)
"""Work for the structural analysis with one further quantity."""


def structure_of(
    problem: Problem, observables: Sequence[str], existing: bool
) -> StructuralIdentifiability:
    """Return the structural findings if some observables are measured without noise.

    With `existing` those with data are measured as well.
    """
    conditions = []
    for condition in problem.conditions:
        measured = list(dict.fromkeys([*(condition.series if existing else ()), *observables]))
        rows = np.arange(min(len(condition.times), 1))
        blank = Series(rows, np.ones(len(rows)), None)
        series = {name: condition.series.get(name, blank) for name in measured}
        conditions.append(replace(condition, series=series))
    other = copy(problem)
    other.conditions = tuple(conditions)
    return analysed(other, Deadline(WORK), count=False)


def remedies(
    problem: Problem, observables: Sequence[str], lost: Sequence[str], existing: bool
) -> tuple[Remedy, ...]:
    """Return the states whose measurement would determine lost unknowns, the best first.

    The equations decide, as in :func:`odefit.identifiability`.
    """
    states: list[Remedy] = []
    for state in problem.given.states:
        if state in observables or _shows(problem, observables, state):
            continue
        other, names = with_observables(problem, [state], {state: 1.0})
        structure = structure_of(other, [*observables, *names], existing)
        known = {u.key for u in structure.unknowns if u.identifiable}
        determined = tuple(key for key in lost if key in known)
        if determined:
            remaining = tuple(key for key in lost if key not in known)
            states.append(Remedy(state, determined, remaining))
    return tuple(sorted(states, key=lambda r: len(r.remaining)))


def _shows(problem: Problem, observables: Sequence[str], state: str) -> bool:
    """Return whether an observable is equal to a state, under any name."""
    return any(problem.given.observables[name].name == state for name in observables)
