"""Local identifiability by exact ranks modulo a prime.

An unknown is locally identifiable for almost all values if every change of the unknowns that
changes it changes the Taylor coefficients of the outputs to first order (A. Sedoglavic, A
probabilistic algorithm to test local algebraic observability in polynomial time, J. Symbolic
Computation 33, 2002). Ranks at random points of the prime field are generic unless a determinant
happens to vanish there. The Schwartz-Zippel lemma bounds this probability by the degree of the
determinant over the prime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import BoolArray
from odefit.structure.rank.special_starts import Reach, reach_at_start
from odefit.structure.series.deadline import UnfinishedError
from odefit.structure.series.differentiated_system import (
    NO_SERIES_AT_START,
    DifferentiatedSystem,
    NoTaylorSeriesError,
)
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.expansion import Expansion
from odefit.structure.series.modular_points import MAX_RISES, GrowingSeries, modular_point
from odefit.structure.series.number_fields import PRIME, Residues
from odefit.structure.series.tape import Term, needed

MIN_POINTS = 2
"""Smallest number of random points at which ranks are computed, unless one has full rank."""

MAX_POINTS = 12
"""Largest number of these points: several points distinguish symmetries with constant coefficients
from others."""

MAX_FAILURES = 5
"""Largest number of additional points that replace those with a division by zero."""


@dataclass(frozen=True, eq=False)
class PointRank:
    """The findings at one random point of the prime field.

    For each unknown, `determined` tells whether all equations determine it locally, `algebraic`
    whether those without the equations between differentials do, and `effective` whether it changes
    any output. `null_space`, shape (unknowns - rank, unknowns), changes no equation. `orders` holds
    for each observable of each expansion the highest order that raised the rank, or -1. If not
    `complete`, time ran out, and higher derivatives may determine more.
    """

    values: Residues
    rank: int
    determined: BoolArray
    algebraic: BoolArray
    effective: BoolArray
    null_space: Residues
    orders: tuple[tuple[int, ...], ...]
    algebraic_rank: int = 0
    complete: bool = True
    reached: int = 0


@dataclass(frozen=True, eq=False)
class LocalRank:
    """Local identifiability of the algebraic unknowns, from the points of highest rank.

    `degree` bounds the degree of the determinants. Unless `final`, derivatives beyond the order
    `reached` may determine more.
    """

    names: tuple[str, ...]
    points: tuple[PointRank, ...]
    degree: int
    final: bool = True
    reached: int = 0

    @property
    def best(self) -> PointRank:
        """One of the points, which represents all."""
        return self.points[0]

    @property
    def proved(self) -> bool:
        """True if all unknowns are determined: a rank full at one point is generically full."""
        return self.best.rank == len(self.names)

    @property
    def error(self) -> float:
        """Upper bound of the probability that the rank is higher, if it is known to be final."""
        if self.proved or not self.best.complete or not self.final:
            return 0.0
        return min(1.0, self.degree / PRIME) ** len(self.points)


def local_rank(system: DifferentiatedSystem, seed: int = 0) -> LocalRank:
    """Find which unknowns of a system are locally identifiable.

    Raises NoTaylorSeriesError if the equations cannot be evaluated at the given initial values, and
    UnfinishedError if the deadline passed before any derivative was examined.
    """
    rng, point_ranks = np.random.default_rng([seed, 2]), list[PointRank]()
    _add_points(system, rng, point_ranks, most=1)
    first, reach = point_ranks[0], Reach(-1, True, -1)
    if first.rank < len(system.names) and first.complete:
        if not system.free_states:
            try:
                reach = reach_at_start(system, seed, first.reached, _sufficient_points(first))
            except UnfinishedError:
                reach = Reach(-1, False, -1)
        if reach.order > first.reached:
            rng, point_ranks = np.random.default_rng([seed, 2]), []
        _add_points(system, rng, point_ranks, least=reach.order)
    highest = max(p.rank for p in point_ranks)
    points = tuple(p for p in point_ranks if p.rank == highest)
    reached = max(reach.reached, *(p.reached for p in point_ranks))
    degree = _degree(system, reached, len(system.names)) + _degree(system, reached, reach.width)
    return LocalRank(tuple(system.names), points, degree, reach.final, reached)


def _add_points(
    system: DifferentiatedSystem,
    rng: np.random.Generator,
    point_ranks: list[PointRank],
    *,
    least: int = 0,
    most: int = MAX_POINTS,
) -> None:
    """Add findings at random points until they suffice, or until there are `most`.

    Derivatives are followed at least up to order `least`.
    """
    for _ in range(MAX_POINTS + MAX_FAILURES):
        try:
            point_ranks.append(_at_point(system, rng, least))
        except ZeroDivisionError:
            continue
        except UnfinishedError:
            if not point_ranks:
                raise
            break
        proved = point_ranks[-1].rank == len(system.names)
        if (
            proved
            or not point_ranks[-1].complete
            or len(point_ranks) >= min(most, max(map(_sufficient_points, point_ranks)))
        ):
            break
    if not point_ranks:
        raise NoTaylorSeriesError(system.problem.name, NO_SERIES_AT_START)


def _sufficient_points(point_rank: PointRank) -> int:
    """Return the number of points that distinguish constant symmetries from others."""
    lost = int((~point_rank.determined).sum())
    independent = lost - (len(point_rank.values) - point_rank.rank)
    return max(MIN_POINTS, min(MAX_POINTS, lost // max(independent, 1) + 2))


def _at_point(system: DifferentiatedSystem, rng: np.random.Generator, least: int) -> PointRank:
    """Return the findings at one random point, with derivatives at least up to order `least`."""
    highest = max(MAX_RISES * system.sufficient_order, least)
    search = _PointSearch(system, rng, highest, least)
    for order in range(highest + 1):
        try:
            search.add_outputs(order)
        except UnfinishedError:
            if not order:
                raise
            return search.finding(complete=False)
        if search.full or order >= search.series.highest:
            return search.finding(complete=True)
    return search.finding(complete=least > 0)


class _PointSearch:
    """Row spaces at one random point, which grow with the orders of derivative."""

    def __init__(
        self, system: DifferentiatedSystem, rng: np.random.Generator, highest: int, least: int
    ) -> None:
        self.system = system
        self.count = len(system.names)
        self.reached = -1
        self.values, points = modular_point(system, rng, highest + system.sufficient_order)
        self.series = GrowingSeries(
            system, self.values, points, max(system.sufficient_order, least)
        )
        self.all, self.algebraic = Echelon(self.count), Echelon(self.count)
        self.effective = np.zeros(self.count, dtype=bool)
        self.orders = [[-1] * len(b.observables) for b in system.expansions]
        for polynomial, row in self.series.relation_rows():
            self.all.add(row)
            if polynomial:
                self.algebraic.add(row)
        self.relations = self.all.null_space()

    def add_outputs(self, order: int) -> None:
        """Add one derivative of every measured output."""
        for k, expansion in enumerate(self.system.expansions):
            for i in range(len(expansion.observables)):
                self.system.deadline.check()
                row = self.series.gradient(k, order, i)
                self.effective |= _acting(row, self.relations, self.count)
                rises = self.algebraic.rank < self.count and self.algebraic.add(row)
                if self.all.rank < self.count and self.all.add(row):
                    self.orders[k][i] = order
                    rises = True
                if rises:
                    further = order + self.system.sufficient_order
                    self.series.highest = max(self.series.highest, further)
        self.reached = order

    @property
    def full(self) -> bool:
        """True if further derivatives give no information."""
        return self.all.rank == self.algebraic.rank == self.count

    def finding(self, complete: bool) -> PointRank:
        """Return the findings, `complete` or not."""
        return PointRank(
            self.values,
            self.all.rank,
            self.all.determined,
            self.algebraic.determined,
            self.effective,
            self.all.null_space(),
            tuple(tuple(o) for o in self.orders),
            self.algebraic.rank,
            complete,
            self.reached,
        )


def _acting(row: Residues, relations: Residues, count: int) -> BoolArray:
    """Return the unknowns on which an output depends, directly or through relations."""
    direct = row != 0
    if len(relations) == count:
        return np.asarray(direct)
    moved = (relations * row % PRIME).sum(axis=1) % PRIME != 0
    return np.asarray(direct | (relations[moved] != 0).any(axis=0))


# The degree of the determinants ---------------------------------------------------------------


def _degree(system: DifferentiatedSystem, order: int, count: int) -> int:
    """Return an upper bound of the degree of the minors, of `count` columns, of the Jacobian.

    They are polynomials in all random numbers; `order` is the highest derivative.
    """
    highest = max((_degree_of_equations(e) for e in system.expansions), default=1)
    # With x' = P/Q, derivative j has the denominator Q^(2j - 1), and its numerator has no higher
    # degree; the derivatives with respect to the unknowns double that.
    return count * 2 * (2 * order + 2) * highest


def _degree_of_equations(expansion: Expansion) -> int:
    """Return a bound of the degrees of right-hand sides and outputs over a common denominator."""
    e = expansion.program.equations
    degrees = [_degrees([term]) for term in (*e.rhs, *e.outputs, *e.initial)]
    below = sum(d for _, d in degrees)
    return max((n + below - d for n, d in degrees), default=0) + below + 1


def _degrees(terms: Sequence[Term]) -> tuple[int, int]:
    """Return bounds of the degrees of numerator and denominator of the last of `terms`."""
    tape = terms[-1].tape
    degrees: dict[int, tuple[int, int]] = {}
    for i in needed(tape, terms):
        operation, a, b = tape.entries[i]
        if operation in ("number", "variable"):
            degrees[i] = (int(operation == "variable"), 0)
            continue
        (n1, d1), (n2, d2) = degrees[a], degrees[b]
        if operation == "*":
            degrees[i] = (n1 + n2, d1 + d2)
        elif operation == "/":
            degrees[i] = (n1 + d2, d1 + n2)
        else:
            degrees[i] = (max(n1 + d2, n2 + d1), d1 + d2)
    return degrees[terms[-1].index]
