"""The number of solutions with the same outputs, and of the values of each unknown in them.

Around generic states the exact count gives both, with one derivative more than those that determine
all unknowns. Around given initial values, such as zeros, solutions that agree in these derivatives
may differ in later ones: there the exact count is an upper bound. If it is 1, there is no other
solution. Otherwise the solutions are computed and compared, in many derivatives and along their
trajectories, and those that differ are excluded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from odefit.structure.exact.count import ExactCount, exact_count
from odefit.structure.homotopy.monodromy import MISS_PROBABILITY, miss_probability
from odefit.structure.homotopy.square import SquareSystem, distinct_values
from odefit.structure.homotopy.tracker import distinct_rows
from odefit.structure.rank.ranks import LocalRank
from odefit.structure.rank.special_starts import Reach, reach_at_start
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.auxiliary_states import consistent_point, on_principal_branch
from odefit.structure.solutions.comparison import FURTHER_ORDERS
from odefit.structure.solutions.indistinguishable import find_indistinguishable
from odefit.structure.solutions.later_times import same_later

EXACT_SHARE, EXACT_WORK = 0.6, 3e9
"""The share of the remaining limit for the exact count, and its operations without a limit.
Homotopy continuation has the rest: it sometimes succeeds if the exact count does not."""

FURTHER_SHARE = 0.3
"""The share of the rest for a second exact count, with more derivatives."""


@dataclass(frozen=True)
class SolutionNumbers:
    """The numbers of solutions that differ in the problem's unknowns, and of their values.

    `held` unknowns were fixed. `branches` is true if solutions were excluded whose auxiliary states
    are not the principal values of their functions; None without such states. `exact` counts come
    from a Groebner basis modulo a prime. `unique` unknowns certainly have one value, even if
    solutions were not counted. `compared` is the order of derivative up to which solutions were
    compared at given initial values, and from there along trajectories; None if not needed.
    """

    solutions: int = 0
    values: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False
    miss_probability: float = 1.0
    held: tuple[str, ...] = ()
    branches: bool | None = None
    exact: bool = False
    unique: frozenset[str] = frozenset()
    compared: int | None = None


def count_solutions(
    system: DifferentiatedSystem, local: LocalRank, involved: frozenset[str], seed: int
) -> SolutionNumbers:
    """Count the solutions and the values of unknowns, given which are locally determined.

    `involved` are unknowns that are identifiable in combination with others.
    """
    square = SquareSystem(system, seed, local.best.algebraic_rank, local.reached)
    keys = [k for k in system.problem.keys if k in system.names]
    place = {name: i for i, name in enumerate(system.names)}
    held = {system.names[i] for i in square.held}
    held_names = tuple(k for k in keys if k in held & involved)
    lifted = _has_auxiliary_states(system)
    if not square.size:
        return SolutionNumbers(1, {}, True, 0.0, held_names, None if not lifted else True)
    exact, reach = _counted(square, local, seed)
    if exact is not None and (exact.total == 1 or (reach.generic and not lifted)):
        values = {**dict.fromkeys(system.names, 1), **exact.values}
        return SolutionNumbers(exact.distinct, values, True, 0.0, held_names, exact=True)
    system.deadline.check()
    unique = frozenset[str]() if exact is None else _unique(exact)
    rng = np.random.default_rng([seed, 3])
    base = consistent_point(square, rng) if lifted else None
    point, parameters = base or square.generic_point(rng)
    # A homotopy does not follow multiple solutions, if there are any.
    expected = exact.total if exact is not None and exact.total == exact.dimension else None
    for number in dict.fromkeys((expected, None)):
        indistinguishable = find_indistinguishable(
            square, point, parameters, seed, lambda: system.deadline.passed, number
        )
        solutions, doubt, all_counted = (
            indistinguishable.solutions,
            indistinguishable.miss_probability,
            False,
        )
        if reach.generic:
            break
        if len(solutions) > 1:
            same = same_later(square, solutions, parameters, reach.reached)
            solutions = solutions[same]
        if len(solutions) == number:  # the largest possible number
            doubt, all_counted = 0.0, not lifted
            break
        # Solutions that agree only in the first derivatives were found as well, or instead.
        doubt = miss_probability(len(indistinguishable.solutions), indistinguishable.collisions)
    if base is not None:
        algebraic = frozenset(np.array(system.names)[local.best.algebraic].tolist())
        solutions = solutions[on_principal_branch(square, solutions, parameters, algebraic)]
    unknowns = square.all_unknowns(solutions, parameters)
    return SolutionNumbers(
        max(distinct_rows(unknowns[:, [place[k] for k in keys]]), 1),
        distinct_values(square, solutions, parameters),
        doubt <= MISS_PROBABILITY,
        doubt,
        held_names,
        None if not lifted else base is not None,
        all_counted,
        unique,
        None if reach.generic or len(solutions) == 1 else reach.reached,
    )


def _counted(square: SquareSystem, local: LocalRank, seed: int) -> tuple[ExactCount | None, Reach]:
    """Return the exact count, and the order up to which derivatives have to be followed.

    Around given initial values it counts the solutions that agree in all used derivatives.
    """
    system = square.system
    keys = [k for k in system.problem.keys if k in system.names]

    def counted(order: int, share: float) -> ExactCount | None:
        limit = system.deadline.part(share, EXACT_WORK)
        return exact_count(
            square,
            structural=True,
            order=order,
            limit=limit,
            seed=seed,
            names=keys,
        )

    exact = counted(0, EXACT_SHARE)
    if exact is not None and exact.total == 1:
        return exact, Reach(-1, True, -1)
    reach = reach_at_start(system, seed, local.reached)
    if exact is not None and not reach.generic:
        exact = counted(reach.reached + FURTHER_ORDERS, FURTHER_SHARE) or exact
    return exact, reach


def _unique(exact: ExactCount) -> frozenset[str]:
    """Return the unknowns with the same value in all solutions."""
    return frozenset(name for name, values in exact.values.items() if values == 1)


def _has_auxiliary_states(system: DifferentiatedSystem) -> bool:
    """Return whether initial values of auxiliary states are among the unknowns."""
    return any(
        name in system.names
        for e in system.expansions
        for state, name in e.states.items()
        if state not in (*e.lifting.model.states, *e.lifting.model.algebraic)
    )
