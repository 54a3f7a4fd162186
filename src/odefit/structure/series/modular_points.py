"""Random points modulo the prime that satisfy the algebraic constraints, and gradients there."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush

import numpy as np

from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import ExpansionPoint
from odefit.structure.series.number_fields import PRIME, Residues
from odefit.structure.series.series import TaylorCoefficients

MAX_POINTS = 20
"""Largest number of random points that are tried."""

ModularExpansionPoint = ExpansionPoint[np.int64]
"""An expansion point over the prime field."""

MAX_RISES = 6
"""Largest order of derivative, in multiples of the number of orders without a rise after which the
rank counts as the highest: around given initial values it may rise late."""

FIRST_ORDER = 4
"""Highest derivative computed at first; each following attempt doubles it."""


class GrowingSeries:
    """Gradients of the outputs' Taylor coefficients at a modular point, up to the orders needed.

    Most unknowns show in low derivatives, and the work grows at least with the square of the order.
    So a few orders are computed first, and twice as many whenever they do not suffice, up to
    `highest`.
    """

    def __init__(
        self,
        system: DifferentiatedSystem,
        values: Residues,
        points: list[ModularExpansionPoint],
        highest: int,
    ) -> None:
        self.system = system
        self.values = values
        self.points = points
        self.highest = highest
        self._taylor: list[TaylorCoefficients[np.int64]] = []
        self._reached = -1

    def output(self, k: int, order: int, place: int) -> int:
        """Return a Taylor coefficient of an output of expansion `k`."""
        self._reach(order)
        return int(self._taylor[k].outputs[0, order, place])

    def gradient(self, k: int, order: int, place: int) -> Residues:
        """Return its derivatives by all unknowns of the system, shape (unknowns,)."""
        self._reach(order)
        derivatives = self._taylor[k].derivatives
        assert derivatives is not None
        row = np.zeros(len(self.system.names), dtype=np.int64)
        row[self.system.columns[k]] = derivatives[0, order, place]
        return row

    def relation_rows(self) -> Iterator[tuple[bool, Residues]]:
        """Yield the relations between the unknowns alone, whatever is measured, to first order.

        These are the gradients of constraints, each with True, and the equations between the
        differentials of auxiliary states, with False.
        """
        for k, expansion in enumerate(self.system.expansions):
            for i in range(len(expansion.observables), expansion.outputs):
                yield True, self.gradient(k, 0, i)
            for place, pairs in expansion.differentials:
                row = self.gradient(k, 0, place)
                for factor, argument in pairs:
                    by_argument = self.gradient(k, 0, argument)
                    row = (row - self.output(k, 0, factor) * by_argument) % PRIME
                yield False, row

    def _reach(self, order: int) -> None:
        if order <= self._reached:
            return
        highest = max(min(max(FIRST_ORDER, 2 * self._reached), self.highest), order)
        self._taylor = [
            self.system.run_modular(k, self.values[None], highest, point)
            for k, point in enumerate(self.points)
        ]
        self._reached = highest


def modular_point(
    system: DifferentiatedSystem,
    rng: np.random.Generator,
    order: int,
    held: Mapping[int, int] | None = None,
    *,
    any_time: bool = False,
) -> tuple[Residues, list[ModularExpansionPoint]]:
    """Return random unknowns modulo the prime, shape (unknowns,), and random points up to `order`.

    Each constraint is solved for an unknown, not among those `held`, in which it is of degree one
    or two. If no such unknown remains, the constraint keeps a nonzero value. The point then
    satisfies another equation of the same family, since the constrained quantity is constant in
    time, and is still generic.
    """
    expansions = range(len(system.expansions))
    for _ in range(MAX_POINTS):
        values = rng.integers(1, PRIME, len(system.names))
        for column, value in (held or {}).items():
            values[column] = value
        points = [
            e.modular_expansion_point(order, rng, any_time=any_time) for e in system.expansions
        ]
        moved = all(
            _satisfy_constraints(system, k, values, points[k], held or ()) for k in expansions
        )
        if moved and not any(
            _constraints(system, k, values[None], points[k]).any() for k in expansions
        ):
            break
    return values, points


def _constraints(
    system: DifferentiatedSystem, k: int, values: Residues, point: ModularExpansionPoint
) -> Residues:
    """Return the values of an expansion's constraints, shape (batch, constraints)."""
    expansion = system.expansions[k]
    taylor = system.run_modular(k, values, 0, point, derivatives=False)
    return np.asarray(taylor.outputs[:, 0, len(expansion.observables) : expansion.outputs])


def _satisfy_constraints(
    system: DifferentiatedSystem,
    k: int,
    values: Residues,
    point: ModularExpansionPoint,
    held: Container[int] = (),
) -> bool:
    """Move unknowns of an expansion, other than `held`, so that its constraints hold.

    Returns whether they do.
    """
    if not system.expansions[k].constraints:
        return True
    order = _elimination_order(system, k, values, point)
    return order is not None and all(
        _solve_constraint(
            system, k, constraint, [c for c in columns if c not in held], values, point
        )
        for constraint, columns in order
    )


def _elimination_order(
    system: DifferentiatedSystem, k: int, values: Residues, point: ModularExpansionPoint
) -> list[tuple[int, list[int]]] | None:
    """Return the order in which constraints are solved, each with its possible unknowns.

    These are unknowns on which no earlier constraint depends. Returns None if there is no such
    order.
    """
    expansion = system.expansions[k]
    derivatives = system.run_modular(k, values[None], 0, point).derivatives
    assert derivatives is not None
    gradients = derivatives[0, 0, len(expansion.observables) : expansion.outputs]
    involved = {
        i: {int(system.columns[k][c]) for c in np.flatnonzero(row)}
        for i, row in enumerate(gradients)
    }
    order = solved_in_order({i: columns for i, columns in involved.items() if columns})
    if order is None:
        return None
    # The later unknowns first: initial values of auxiliary states, then the model's.
    return [(i, sorted(columns, reverse=True)) for i, columns in order]


def solved_in_order(
    involved: Mapping[int, AbstractSet[int]],
) -> list[tuple[int, list[int]]] | None:
    """Return an order in which equations can be solved one after another, or None.

    `involved` has the unknowns of each equation. Each comes with those of its unknowns on which no
    earlier equation of the order depends. The order is found backwards: of the equations with an
    unknown that no other remaining one has, the one of the lowest number comes last. The work grows
    with the number of pairs of an equation and an unknown.
    """
    owners: dict[int, set[int]] = {}
    for i, columns in involved.items():
        for c in columns:
            owners.setdefault(c, set()).add(i)
    ready = [i for i, columns in involved.items() if any(len(owners[c]) == 1 for c in columns)]
    heapify(ready)
    order: list[tuple[int, list[int]]] = []
    removed: set[int] = set()
    while ready:
        i = heappop(ready)
        if i in removed:
            continue
        removed.add(i)
        order.append((i, [c for c in involved[i] if len(owners[c]) == 1]))
        for c in involved[i]:
            owners[c].remove(i)
            if len(owners[c]) == 1:
                heappush(ready, next(iter(owners[c])))
    return order[::-1] if len(order) == len(involved) else None


def _solve_constraint(
    system: DifferentiatedSystem,
    k: int,
    constraint: int,
    columns: list[int],
    values: Residues,
    point: ModularExpansionPoint,
) -> bool:
    """Move the first unknown of `columns` for which the constraint can be solved, if any."""
    for column in columns:
        samples = np.repeat(values[None], 4, axis=0)
        # Around its present value, since there may be a division by it.
        samples[:, column] = (samples[:, column] + np.arange(4)) % PRIME
        root = _root(_constraints(system, k, samples, point)[:, constraint])
        if root is not None:
            values[column] = (values[column] + root) % PRIME
            if not _constraints(system, k, values[None], point)[0, constraint]:
                return True
    return False


def _root(samples: Residues) -> int | None:
    """Return a root of a polynomial of degree one or two, from its values at 0, 1, 2 and 3.

    The result is None if the degree is higher, or the prime field has no root.
    """
    f0, f1, f2, f3 = (int(v) for v in samples)
    if (f3 - 3 * f2 + 3 * f1 - f0) % PRIME:
        return None
    half = pow(2, -1, PRIME)
    a = (f2 - 2 * f1 + f0) * half % PRIME
    b = (f1 - f0 - a) % PRIME
    if a == 0:
        return None if b == 0 else -f0 * pow(b, -1, PRIME) % PRIME
    discriminant = (b * b - 4 * a * f0) % PRIME
    # The prime is 3 modulo 4, so this is a square root if there is one.
    root = pow(discriminant, (PRIME + 1) // 4, PRIME)
    if root * root % PRIME != discriminant:
        return None
    return (root - b) * half * pow(a, -1, PRIME) % PRIME
