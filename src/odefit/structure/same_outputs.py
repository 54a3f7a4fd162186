"""Other values of the unknowns with the outputs of an answer, counted and found with little work.

The exact count takes milliseconds for most models, and where it is 1, there is nothing to look
for. Otherwise the solutions at a random point, which belong to the equations alone and are kept on
disk, are carried to the answer, one path for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, separate_parts
from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.identifiability import acting_on_noise
from odefit.structure.rank.special_starts import Reach, reach_at_start
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.solutions.comparison import FURTHER_ORDERS
from odefit.structure.solutions.indistinguishable import carried
from odefit.structure.solutions.later_times import same_later
from odefit.structure.solutions.storage import stored_indistinguishable

REAL_TOLERANCE = 1e-6
"""Relative imaginary part up to which a solution counts as real."""

PER_RIGHT_HAND_SIDE = 1e4
"""Operations that it takes to differentiate a right-hand side by an unknown, about."""

LEAST_WORK = 5e6
"""Operations that the count of a group of experiments may take, however many groups there are."""


@dataclass(frozen=True, eq=False)
class SameOutputs:
    """The values of the unknowns that no measurement can distinguish from given ones.

    `possible` is their number and `found` how many were found, the given and complex ones included;
    `real` are the other real ones, shape (m, n).

    Where experiments have unknowns of their own alone, each may take any of its values whatever
    the others take: the numbers are the products of those of the `groups`, and `real` has the
    values that differ in one group alone, in the order of the groups.
    """

    possible: int
    found: int
    real: Array
    groups: tuple[GroupOfOutputs, ...] = ()


@dataclass(frozen=True)
class GroupOfOutputs:
    """The numbers of solutions for a group of experiments, which `names` names."""

    names: tuple[str, ...]
    keys: tuple[str, ...]  # of the unknowns that act on these alone
    possible: int
    found: int
    real: int


def same_outputs(
    problem: Problem,
    vector: Array,
    work: float,
    search_work: float | None = None,
    *,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> SameOutputs | None:
    """Count and find the values of the unknowns with the same outputs as `vector`, shape (n,).

    The count may take `work` operations (see :mod:`odefit.structure.series.deadline`), count and
    search together `search_work`. None is returned where nothing is known: the work did not
    suffice, the equations have inputs or no Taylor series, there are infinitely many solutions, or
    some unknowns do not act before the first event.
    """
    parts = separate_parts(problem)
    if parts:
        return _by_groups(problem, parts, vector, work, search_work, seed=seed, stop=stop)
    size = len(problem.conditions) * len(problem.model.states) * len(problem.unknowns)
    if problem.model.inputs or size * PER_RIGHT_HAND_SIDE > work:
        return None  # the exact count takes inputs for functions that vary in every way

    try:
        return _same_outputs(problem, vector, (work, max(work, search_work or 0.0)), seed, stop)
    except (NoTaylorSeriesError, UnfinishedError):
        return None


def _by_groups(
    problem: Problem,
    parts: Sequence[Part],
    vector: Array,
    work: float,
    search_work: float | None,
    *,
    seed: int,
    stop: Callable[[], bool],
) -> SameOutputs | None:
    """Count and find the values of each group of experiments; None where one is not counted."""
    count_work = max(work / len(parts), LEAST_WORK)
    all_work = max((search_work or 0.0) / len(parts), 2 * LEAST_WORK)
    groups: list[GroupOfOutputs] = []
    rows: list[Array] = []
    for part in parts:
        own = vector[part.places]
        found = same_outputs(part.problem, own, count_work, all_work, seed=seed, stop=stop)
        if found is None:
            return None
        keys = tuple(problem.keys[place] for place in part.own)
        numbers = found.possible, found.found, len(found.real)
        groups.append(GroupOfOutputs(part.names, keys, *numbers))
        for other in found.real:
            row = vector.copy()
            row[part.places] = other
            rows.append(row)
    real = np.array(rows) if rows else np.empty((0, len(vector)))
    possible = math.prod(group.possible for group in groups)
    total = math.prod(group.found for group in groups)
    return SameOutputs(possible, total, real, tuple(groups))


def _same_outputs(
    problem: Problem,
    vector: Array,
    work: tuple[float, float],
    seed: int,
    stop: Callable[[], bool],
) -> SameOutputs | None:
    """Count and find these values; `work` is that of the count, and with the search."""
    for_count, for_all = work
    spent = Deadline(work=for_count)
    system = DifferentiatedSystem(problem, free_states=False, deadline=spent)
    if operations(system) > for_count or not _covers(system):
        return None
    square = SquareSystem(system, seed)
    if len(square.held) or not square.size or spent.passed or stop():
        return None

    def counted_to(order: int) -> int | None:
        limit = Deadline(stop=stop, work=for_count - spent.spent, within=spent)
        counted = exact_count(square, structural=True, order=order, limit=limit, seed=seed)
        return None if counted is None else counted.total

    total, nothing = counted_to(0), np.empty((0, len(vector)))
    if total is None:
        return None
    spent.work = None  # what comes now knows its limit itself, and leaves what it has found
    reach = Reach(-1, True, -1)
    if total > 1:
        reach = reach_at_start(system, seed, operations=for_count)
        if not reach.generic:
            total = counted_to(reach.reached + FURTHER_ORDERS) or total
    if total == 1:
        return SameOutputs(1, 1, nothing)
    if problem.model.algebraic or any(e.lifting.definitions for e in system.expansions):
        return None  # solutions may differ in auxiliary variables alone

    def late() -> bool:
        return spent.spent >= for_all or stop()

    known = stored_indistinguishable(square, total, seed, late)
    if known is None:
        # From given initial values the count is an upper bound alone.
        return SameOutputs(total, 1, nothing) if reach.generic else None
    if not reach.generic:
        same = same_later(square, known.solutions, known.parameters, reach.reached)
        known = replace(known, solutions=known.solutions[same], expected=None)
        total = len(known.solutions)
    place = {name: i for i, name in enumerate(system.names)}
    at = np.zeros(len(system.names), dtype=complex)
    columns = [(i, place[key]) for i, key in enumerate(problem.keys) if key in place]
    for i, column in columns:
        at[column] = vector[i]
    points = [e.expansion_point(e.condition.t0, square.order) for e in system.expansions]
    parameters = square.pack(np.zeros(square.size, dtype=complex), at[square.held], points)
    point = at[square.solved]
    with np.errstate(all="ignore"):
        parameters[: square.size] = square.values(point[None], parameters[None], False)[0][0]
        others = carried(square, known, point, parameters, np.random.default_rng([seed, 5]), late)
    unknowns = square.all_unknowns(others, parameters)
    # Units differ from unknown to unknown: what is small is so beside its other values.
    largest = np.maximum(np.abs(unknowns).max(axis=0, initial=0.0), np.abs(at))
    size_of = np.abs(unknowns) + 1e-9 * largest
    real = unknowns[(np.abs(unknowns.imag) <= REAL_TOLERANCE * size_of).all(axis=1)].real
    vectors = np.tile(vector, (len(real), 1))
    for i, column in columns:
        vectors[:, i] = real[:, column]
    return SameOutputs(total, 1 + len(others), vectors)


def operations(system: DifferentiatedSystem) -> float:
    """Return how many operations on Taylor coefficients the analysis takes, about."""
    for expansion in system.expansions:
        expansion.program.prepare()
    entries = sum(len(e.program.equations.tape.entries) for e in system.expansions)
    widest = max((len(c) for c in system.columns), default=0)
    return float(entries) * system.sufficient_order**2 * widest


def _covers(system: DifferentiatedSystem) -> bool:
    """Return whether all unknowns but those of the noise are in the equations."""
    problem = system.problem
    noise = acting_on_noise(problem)
    return all(
        u.key in system.names or u.kind == "noise" or i in noise
        for i, u in enumerate(problem.unknowns)
    )
