"""Test whether ranks at given initial values are final, or may rise with higher derivatives.

Around generic states the rank of the outputs' derivatives is final as soon as it stagnates once.
The gradient of the next derivative is a combination of the previous ones, with coefficients whose
derivatives along the trajectories exist too (J. F. Ritt's chain argument). Around given values it
is not final. The outputs of a cascade that starts from rest may begin with t^15, and as long as
they are zero the rank stagnates.

Conclusions there follow from three facts.

1. Let M be a set of states and unknowns that the equations do not leave, and that contains all
   given initial values. A rank at one of its points is at most the rank G at a generic point of M,
   which is final once it stagnates.
2. Suppose that the gradients by all directions of M, up to some order at the given initial values,
have the rank G. Then derivatives of higher order change nothing more in any direction. 3. The
unknowns of the problem move the initial values along some of these directions. An unknown without
effect up to that order never has one.

M is an affine space here: the given initial values plus the smallest space of directions that the
rates never leave, for any state in it. So no dimensions are wasted on states that stay at zero,
equilibria, states that are equal by symmetry, or conserved sums. If the rank G is not reached,
nothing is known of the orders beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.structure.series.deadline import UnfinishedError
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.modular_points import GrowingSeries, modular_point
from odefit.structure.series.number_fields import PRIME, Residues

MAX_OPERATIONS = 3e8
"""Approximate number of operations on Taylor coefficients for the search for the rank G."""

MAX_ORDER = 700
"""The highest order of derivative that is examined."""

RESTS = 2
"""Number of orders in which the rank has to stagnate around a generic point: one would suffice if
no determinant vanished by chance."""

INVARIANT_TESTS = 4
"""Number of consecutive random states whose rates leave the directions unchanged."""

MAX_FAILURES = 8
"""Number of random states with a division by zero after which the directions are unknown."""


@dataclass(frozen=True)
class Reach:
    """The orders to which derivatives at given initial values are followed, in `width` directions.

    `order` is the last informative one; `final` is true if later orders are known to be
    uninformative.
    """

    order: int
    final: bool
    reached: int
    width: int = 0

    @property
    def generic(self) -> bool:
        """True if no initial value is given, so that the start is not special."""
        return self.width == 0


def reach_at_start(
    system: DifferentiatedSystem,
    seed: int = 0,
    least: int = 0,
    points: int = 2,
    operations: float = MAX_OPERATIONS,
) -> Reach:
    """Find the order of derivative after which the rank at the given initial values is final.

    The rank G is computed at `points` generic points. About `operations` operations on Taylor
    coefficients may be spent, but derivatives up to order `least` are followed in any case. Raises
    UnfinishedError if the deadline passed before any derivative was examined.
    """
    opened = DifferentiatedSystem(
        system.problem,
        free_states=False,
        deadline=system.deadline,
        conditions=[e.condition for e in system.expansions],
        opened=True,
    )
    if not any(e.opened for e in opened.expansions):
        return Reach(-1, True, -1)
    rng = np.random.default_rng([seed, 6])
    directions = _Directions(opened, rng)
    highest = max(least, directions.affordable(operations))
    for _ in range(MAX_FAILURES):
        try:
            ceiling = max(directions.generic_rank(rng) for _ in range(points))
            return directions.special_rank(rng, ceiling, highest)
        except ZeroDivisionError:
            continue  # an unlucky point, or a division by zero at the start
    return Reach(-1, False, -1, directions.width)


class _Directions:
    """The directions along which unknowns and given initial values are moved.

    `opened` are the equations with a variable added to every given initial value.
    """

    def __init__(self, opened: DifferentiatedSystem, rng: np.random.Generator) -> None:
        self.opened = opened
        self.place = {name: i for i, name in enumerate(opened.names)}
        self.added = [
            np.array([self.place[n] for n in e.opened.values()], dtype=np.intp)
            for e in opened.expansions
        ]
        self.count = len(opened.names) - sum(len(a) for a in self.added)
        self.spaces = [self._space(k, rng) for k in range(len(opened.expansions))]
        self.width = self.count + sum(s.rank for s in self.spaces)

    def _space(self, k: int, rng: np.random.Generator) -> Echelon:
        """Return the smallest space of directions that the rates of expansion `k` never leave."""
        expansion, columns = self.opened.expansions[k], self.added[k]
        rows = [i for i, n in enumerate(expansion.lifting.states) if n in expansion.opened]
        space, tests, failures = Echelon(len(columns)), 0, 0
        while tests < INVARIANT_TESTS and space.rank < len(columns):
            values = rng.integers(1, PRIME, len(self.opened.names))
            values[columns] = _random_combination(space, rng)
            point = expansion.modular_expansion_point(1, rng, any_time=True)
            try:
                taylor = self.opened.run_modular(k, values[None], 1, point, derivatives=False)
            except ZeroDivisionError:
                failures += 1
                if failures > MAX_FAILURES:
                    return Echelon.of(np.eye(len(columns), dtype=np.int64))
                continue
            tests = 0 if space.add(taylor.states[0, 1, rows]) else tests + 1
        return space

    def row(self, gradient: Residues) -> Residues:
        """Return the derivatives along the directions, shape (width,)."""
        parts = [gradient[: self.count]]
        for columns, space in zip(self.added, self.spaces, strict=True):
            parts.append((space.rows * gradient[columns] % PRIME).sum(axis=1) % PRIME)
        return np.concatenate(parts)

    def generic_rank(self, rng: np.random.Generator) -> tuple[int, int]:
        """Return the rank at a random point, and that of the relations between unknowns alone."""
        held = {
            int(column): int(value)
            for columns, space in zip(self.added, self.spaces, strict=True)
            for column, value in zip(columns, _random_combination(space, rng), strict=True)
        }
        highest = self.width + RESTS + 1
        values, points = modular_point(self.opened, rng, highest, held, any_time=True)
        search = _Search(self, GrowingSeries(self.opened, values, points, highest))
        rests = 0
        for order in range(highest + 1):
            before = search.echelon.rank
            search.add(order)
            rests = 0 if search.echelon.rank > before else rests + 1
            if rests == RESTS or search.echelon.rank == self.width:
                break
        return search.echelon.rank, search.relations

    def special_rank(
        self, rng: np.random.Generator, ceiling: tuple[int, int], highest: int
    ) -> Reach:
        """Follow the derivatives at the given initial values until the rank is the generic one."""
        held = {int(column): 0 for columns in self.added for column in columns}
        values, points = modular_point(self.opened, rng, highest, held)
        search = _Search(self, GrowingSeries(self.opened, values, points, highest))
        reached, informative = -1, -1
        for order in range(highest + 1):
            try:
                informative = order if search.add(order) else informative
            except UnfinishedError:
                break
            reached = order
            if (search.echelon.rank, search.relations) == ceiling:
                return Reach(informative, True, reached, self.width)
        return Reach(informative, False, reached, self.width)

    def affordable(self, operations: float) -> int:
        """Return the order up to which derivatives can be followed with these operations."""
        size = 0
        for expansion, columns in zip(self.opened.expansions, self.opened.columns, strict=True):
            expansion.program.prepare()
            e = expansion.program.equations
            size += len(e.tape.entries) + len(e.states) * len(columns)
        return min(int((operations / max(size, 1)) ** 0.5), MAX_ORDER)


class _Search:
    """Row spaces at one point, along all directions and along the unknowns alone."""

    def __init__(self, directions: _Directions, series: GrowingSeries) -> None:
        self.directions = directions
        self.series = series
        self.echelon = Echelon(directions.width)
        self.unknowns = Echelon(directions.count)
        for _, row in series.relation_rows():
            self.echelon.add(directions.row(row))
            self.unknowns.add(row[: directions.count])
        self.relations = self.echelon.rank

    def add(self, order: int) -> bool:
        """Add one derivative of every output; return whether it is informative on the unknowns."""
        tells = False
        for k, expansion in enumerate(self.directions.opened.expansions):
            for i in range(len(expansion.observables)):
                self.directions.opened.deadline.check()
                row = self.series.gradient(k, order, i)
                if self.echelon.rank < self.directions.width:
                    self.echelon.add(self.directions.row(row))
                if self.unknowns.rank < self.directions.count:
                    tells |= self.unknowns.add(row[: self.directions.count])
        return tells


def _random_combination(space: Echelon, rng: np.random.Generator) -> Residues:
    """Return a random element of a row space."""
    weights = rng.integers(1, PRIME, space.rank)
    return np.asarray((weights[:, None] * space.rows % PRIME).sum(axis=0) % PRIME)
