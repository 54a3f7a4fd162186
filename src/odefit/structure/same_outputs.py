"""Other values of the unknowns with the outputs of an answer, counted and found cheaply.

The exact count takes milliseconds for most models, and if it is 1, there are no other solutions.
Otherwise the solutions at a random point, which depend only on the equations and are cached on
disk, are carried to the answer, along one path each.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, BoolArray, ComplexArray
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import (
    Group,
    Part,
    acting_on_values,
    part_of,
    separate_parts,
)
from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.identifiability import acting_on_noise
from odefit.structure.rank.special_starts import Reach, reach_at_start
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.series.same_equations import with_same_equations
from odefit.structure.solutions.comparison import FURTHER_ORDERS
from odefit.structure.solutions.indistinguishable import IndistinguishableSolutions, carried
from odefit.structure.solutions.later_times import same_later
from odefit.structure.solutions.storage import stored_indistinguishable

REAL_TOLERANCE = 1e-6
"""Relative imaginary part up to which a solution counts as real."""

NEARLY_REAL = 1e-2
"""Relative imaginary part up to which a solution is nearly real. Where solutions merge, a small
error of the answer makes two real ones of them or two complex ones."""

PER_RIGHT_HAND_SIDE = 1e4
"""Approximate number of operations for differentiating a right-hand side by an unknown."""

LEAST_WORK = 5e6
"""Number of operations for the count of a group of experiments, however many groups there are."""


FIRST_TOGETHER = 2
"""Least number of experiments that are to determine the shared unknowns."""


@dataclass(frozen=True, eq=False)
class SameOutputs:
    """The values of the unknowns that no measurement can distinguish from given ones.

    `possible` is their number and `found` the number of those found, including the given one and
    complex ones. `real` are the other real ones, shape (m, n), and `nearly_real` the real parts of
    those that are nearly so, which may fit as well.

    If experiments share no unknowns, each may take any of its values independently of the others.
    The numbers are the products of those of the `groups`. `real` and `nearly_real` have the values
    that differ in one group alone, in the order of the groups.
    """

    possible: int
    found: int
    real: Array
    nearly_real: Array
    groups: tuple[GroupOfOutputs, ...] = ()


@dataclass(frozen=True)
class GroupOfOutputs:
    """The numbers of solutions for a group of experiments with the given `names`."""

    names: tuple[str, ...]
    keys: tuple[str, ...]  # of the unknowns that act only on these experiments
    possible: int
    found: int
    real: int
    nearly_real: int


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
    search together `search_work`. Returns None if nothing is known. Then the work did not suffice,
    the equations have inputs or no Taylor series, there are infinitely many solutions, or some
    unknowns do not act before the first event.
    """
    parts = separate_parts(problem)
    if parts:
        return _by_groups(problem, parts, vector, work, search_work, seed=seed, stop=stop)
    if _unique_by_steps(problem, vector, work, seed, stop):
        return _alone(1, vector)
    system = _system(problem, work)
    square = None if system is None else _square(system, work, seed)
    if system is None or square is None:
        return None
    limits = work, max(work, search_work or 0.0)
    outputs = _same_outputs(square, [_Answer(problem, system, vector)], limits, seed, stop)
    return None if outputs is None else outputs[0]


@dataclass(frozen=True, eq=False)
class _Answer:
    """Experiments with their equations, and the values of their unknowns, shape (n,)."""

    problem: Problem
    system: DifferentiatedSystem
    vector: Array


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
    """Count and find the values of each group of experiments; None if one cannot be counted.

    Groups with the same equations, but for doses and initial values, have the same number, and
    their paths are followed together.
    """
    each = max(work / len(parts), LEAST_WORK)
    systems: list[DifferentiatedSystem] = []
    for part in parts:
        system = None if stop() else _system(part.problem, each)
        if system is None:
            return None
        systems.append(system)
    by_group: dict[int, SameOutputs] = {}
    for members in with_same_equations(systems):
        square = None if stop() else _square(systems[members[0]], each, seed)
        if square is None:
            return None
        answers = [_Answer(parts[i].problem, systems[i], vector[parts[i].places]) for i in members]
        share = len(members) / len(parts)
        count_work = max(work * share, LEAST_WORK)
        all_work = max((search_work or 0.0) * share, 2 * LEAST_WORK)
        some = _same_outputs(square, answers, (count_work, all_work), seed, stop)
        if some is None:
            return None
        by_group |= zip(members, some, strict=True)
    groups: list[GroupOfOutputs] = []
    for number, part in enumerate(parts):
        one = by_group[number]
        keys = tuple(problem.keys[place] for place in part.unshared)
        numbers = one.possible, one.found, len(one.real), len(one.nearly_real)
        groups.append(GroupOfOutputs(part.names, keys, *numbers))

    def rows(kind: Callable[[SameOutputs], Array]) -> Array:
        """Return solutions of one kind with the values of the answer in all other groups."""
        numbered = enumerate(parts)
        of_parts = [(part, other) for k, part in numbered for other in kind(by_group[k])]
        whole = np.tile(vector, (len(of_parts), 1))
        for row, (part, other) in zip(whole, of_parts, strict=True):
            row[part.places] = other
        return whole

    possible = math.prod(group.possible for group in groups)
    total = math.prod(group.found for group in groups)
    every = rows(lambda one: one.real), rows(lambda one: one.nearly_real)
    return SameOutputs(possible, total, *every, tuple(groups))


def _alone(possible: int, vector: Array) -> SameOutputs:
    """Return an answer of which no other solutions are known."""
    none = np.empty((0, len(vector)))
    return SameOutputs(possible, 1, none, none)


def _unique_by_steps(
    problem: Problem, vector: Array, work: float, seed: int, stop: Callable[[], bool]
) -> bool:
    """Return whether some experiments determine the unknowns that all share, and each its own.

    If the unknowns of the first experiments have one value each, and those of every other one do
    so with the shared unknowns known, there is no other solution. This is far less work than a
    count for all experiments at once.
    """
    acting = acting_on_values(problem)
    numbers = Counter(itertools.chain.from_iterable(acting))
    shared = frozenset(i for i, count in numbers.items() if count > 1)
    first, met = 0, set[int]()
    while first < len(acting) and (first < FIRST_TOGETHER or not shared <= met):
        met |= acting[first]
        first += 1
    rest = [k for k in range(first, len(acting)) if not acting[k] <= shared]
    if not shared or not rest:
        return False
    together = part_of(problem, Group(frozenset(met), tuple(range(first))), frozenset())
    if together is None or not _is_unique([_system(together.problem, work)], work, seed, stop):
        return False
    systems: list[DifferentiatedSystem | None] = []
    for k in rest:
        part = None if stop() else part_of(problem, Group(acting[k], (k,)), shared & acting[k])
        if part is None:
            return False
        places = enumerate(part.places.tolist())
        held = {part.problem.keys[i]: float(vector[p]) for i, p in places if p in shared}
        systems.append(_system(part.problem.with_unknowns(fix=held), work))
    return _is_unique(systems, work, seed, stop)


def _is_unique(
    systems: Sequence[DifferentiatedSystem | None], work: float, seed: int, stop: Callable[[], bool]
) -> bool:
    """Return whether equations have one solution each, as far as can be told."""
    known = [system for system in systems if system is not None]
    if len(known) < len(systems):
        return False
    for members in with_same_equations(known):
        square = _square(known[members[0]], work, seed)
        if square is None:
            return False
        spent = square.system.deadline
        limit = Deadline(stop=stop, work=work - spent.spent, within=spent)
        counted = exact_count(square, structural=True, limit=limit, seed=seed)
        if counted is None or counted.total != 1:
            return False
    return True


def _system(problem: Problem, work: float) -> DifferentiatedSystem | None:
    """Return the differentiated equations; None if their solutions cannot be counted."""
    size = len(problem.conditions) * len(problem.model.states) * len(problem.unknowns)
    if problem.model.inputs or size * PER_RIGHT_HAND_SIDE > work:
        return None  # the exact count treats inputs as arbitrary functions
    try:
        system = DifferentiatedSystem(problem, free_states=False, deadline=Deadline(work=work))
    except (NoTaylorSeriesError, UnfinishedError):
        return None
    return system if _covers(system) else None


def _square(system: DifferentiatedSystem, work: float, seed: int) -> SquareSystem | None:
    """Return the equations that determine all unknowns; None if these cannot be counted."""
    try:
        if operations(system) > work:
            return None
        square = SquareSystem(system, seed)
    except (NoTaylorSeriesError, UnfinishedError):
        return None
    return None if len(square.held) or not square.size or system.deadline.passed else square


def _same_outputs(
    square: SquareSystem,
    answers: Sequence[_Answer],
    work: tuple[float, float],
    seed: int,
    stop: Callable[[], bool],
) -> list[SameOutputs] | None:
    """Count and find these values for answers to the same equations.

    `work` limits the count, and the count with the search of all answers together.
    """
    try:
        counted = _counted(answers[0].problem, square, work, seed, stop)
        if counted is None:
            return None
        total, known, late = counted
        if known is None:
            return [_alone(total, a.vector) for a in answers]
        return _at_answers(square, answers, total, known, seed, late)
    except (NoTaylorSeriesError, UnfinishedError):
        return None


def _counted(
    problem: Problem,
    square: SquareSystem,
    work: tuple[float, float],
    seed: int,
    stop: Callable[[], bool],
) -> tuple[int, IndistinguishableSolutions | None, Callable[[], bool]] | None:
    """Return the number of solutions, those at a random point, and whether work is used up.

    None stands for solutions that are not sought or not found, and for an unknown number.
    """
    system = square.system
    for_count, for_all = work
    spent = system.deadline
    spent.work = for_count

    def late() -> bool:
        return spent.spent >= for_all or stop()

    def counted_to(order: int) -> int | None:
        limit = Deadline(stop=stop, work=for_count - spent.spent, within=spent)
        counted = exact_count(square, structural=True, order=order, limit=limit, seed=seed)
        return None if counted is None else counted.total

    total = None if stop() else counted_to(0)
    if total is None:
        return None
    spent.work = None  # the following code checks its own limit, and keeps its findings
    reach = Reach(-1, True, -1)
    if total > 1:
        reach = reach_at_start(system, seed, operations=for_count)
        if not reach.generic:
            total = counted_to(reach.reached + FURTHER_ORDERS) or total
    if total == 1:
        return 1, None, late
    if problem.model.algebraic or any(e.lifting.definitions for e in system.expansions):
        return None  # solutions may differ only in auxiliary variables
    known = stored_indistinguishable(square, total, seed, late)
    if known is None:
        # From given initial values the count is only an upper bound.
        return (total, None, late) if reach.generic else None
    if not reach.generic:
        same = same_later(square, known.solutions, known.parameters, reach.reached)
        known = replace(known, solutions=known.solutions[same], expected=None)
        total = len(known.solutions)
    return total, known, late


def _at_answers(
    square: SquareSystem,
    answers: Sequence[_Answer],
    total: int,
    known: IndistinguishableSolutions,
    seed: int,
    late: Callable[[], bool],
) -> list[SameOutputs]:
    """Carry the known solutions to each answer, whose equations are the same."""
    every, points, parameters = [], [], []
    for one in answers:
        system = one.system
        at = np.zeros(len(system.names), dtype=complex)
        for i, column in _columns(one):
            at[column] = one.vector[i]
        known_there = [e.expansion_point(e.condition.t0, square.order) for e in system.expansions]
        nothing = np.zeros(square.size, dtype=complex)
        every.append(at)
        points.append(at[square.solved])
        parameters.append(square.pack(nothing, at[square.held], known_there))
    with np.errstate(all="ignore"):
        for point, data in zip(points, parameters, strict=True):
            data[: square.size] = square.values(point[None], data[None], False)[0][0]
        random = np.random.default_rng([seed, 5])
        carried_to = carried(square, known, np.array(points), np.array(parameters), random, late)
    return [
        _real(one, total, square.all_unknowns(others, data), at)
        for one, others, data, at in zip(answers, carried_to, parameters, every, strict=True)
    ]


def _columns(one: _Answer) -> list[tuple[int, int]]:
    """Return the numbers of the unknowns of a problem, with those in its equations."""
    place = {name: i for i, name in enumerate(one.system.names)}
    return [(i, place[key]) for i, key in enumerate(one.problem.keys) if key in place]


def _real(one: _Answer, total: int, unknowns: ComplexArray, at: ComplexArray) -> SameOutputs:
    """Return the solutions; `unknowns` holds all of them but the answer `at`."""
    # Units differ between unknowns: small means small compared with its other values.
    largest = np.maximum(np.abs(unknowns).max(axis=0, initial=0.0), np.abs(at))
    size_of = np.abs(unknowns) + 1e-9 * largest
    imaginary = (np.abs(unknowns.imag) / np.maximum(size_of, 1e-300)).max(axis=1, initial=0.0)

    def vectors(chosen: BoolArray) -> Array:
        rows = np.tile(one.vector, (int(chosen.sum()), 1))
        for i, column in _columns(one):
            rows[:, i] = unknowns[chosen, column].real
        return rows

    real = imaginary <= REAL_TOLERANCE
    nearly = ~real & (imaginary <= NEARLY_REAL)
    return SameOutputs(total, 1 + len(unknowns), vectors(real), vectors(nearly))


def operations(system: DifferentiatedSystem) -> float:
    """Return the approximate number of operations on Taylor coefficients in the analysis."""
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
