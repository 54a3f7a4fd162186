"""What derivatives of the outputs determine locally: exact ranks modulo a prime.

An unknown is determined, locally and for almost all values, if the Taylor coefficients of the
outputs do not change to first order with any change of the unknowns that changes it. Ranks at
random points of the prime field are the generic ones unless a determinant happens to vanish
there, whose probability the Schwartz-Zippel lemma bounds by its degree over the prime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import BoolArray
from odefit.structure.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.echelon import Echelon
from odefit.structure.expansion import Expansion
from odefit.structure.modular_points import modular_point
from odefit.structure.series import PRIME, Residues
from odefit.structure.tape import Term, needed

POINTS = 2
"""Random points at which ranks are computed, at least."""

MOST_POINTS = 12
"""And at most: symmetries with constant coefficients are told from others by several points."""

ATTEMPTS = 5
"""Points that are tried until the equations can be evaluated at one."""


@dataclass(frozen=True, eq=False)
class PointRank:
    """The equations at one point of the prime field.

    Attributes
    ----------
    values
        The point, shape (unknowns,).
    rank
        Of all equations.
    determined, algebraic
        By unknown, is it determined: by all equations, and without those between differentials.
    effective
        By unknown, does it change any output.
    null_space
        What no equation sees, shape (unknowns - rank, unknowns).
    orders
        By expansion, the highest order that raised the rank, by observable; -1 for none.
    """

    values: Residues
    rank: int
    determined: BoolArray
    algebraic: BoolArray
    effective: BoolArray
    null_space: Residues
    orders: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class LocalRank:
    """What is determined locally.

    Attributes
    ----------
    names
        The algebraic unknowns.
    points
        Where this was found, those of the highest rank.
    degree
        Bound of the degree of the determinants.
    """

    names: tuple[str, ...]
    points: tuple[PointRank, ...]
    degree: int

    @property
    def best(self) -> PointRank:
        """One of the points."""
        return self.points[0]

    @property
    def proved(self) -> bool:
        """Everything is determined: a rank that is full at one point is so almost everywhere."""
        return self.best.rank == len(self.names)

    @property
    def error(self) -> float:
        """Bound of the probability that the rank is in truth higher."""
        return 0.0 if self.proved else min(1.0, self.degree / PRIME) ** len(self.points)


def local_rank(system: DifferentiatedSystem, seed: int = 0) -> LocalRank:
    """Which unknowns of a system are determined.

    Raises
    ------
    NoTaylorSeriesError
        The equations cannot be evaluated at the initial values that are given.
    """
    rng = np.random.default_rng([seed, 2])
    found: list[PointRank] = []
    wanted, count = POINTS, len(system.names)
    for _ in range(MOST_POINTS + ATTEMPTS):
        try:
            found.append(_at_point(system, rng))
        except ZeroDivisionError:
            continue
        rank, lost = found[-1].rank, int((~found[-1].determined).sum())
        if rank == count:
            break
        wanted = max(wanted, min(MOST_POINTS, lost // max(lost - (count - rank), 1) + 2))
        if len(found) >= wanted:
            break
    if not found:
        raise NoTaylorSeriesError(
            system.problem.name,
            "at the given initial values there is a division by zero, so that the outputs have "
            "no Taylor series there",
        )
    most = max(p.rank for p in found)
    points = tuple(p for p in found if p.rank == most)
    return LocalRank(tuple(system.names), points, _degree(system))


def _at_point(system: DifferentiatedSystem, rng: np.random.Generator) -> PointRank:
    count, order = len(system.names), system.sufficient_order
    values, points = modular_point(system, rng, order)
    taylor = [system.run_modular(k, values[None], order, p) for k, p in enumerate(points)]
    echelon = Echelon(count)
    effective = np.zeros(count, dtype=bool)
    orders = [[-1] * len(b.observables) for b in system.expansions]

    def wide(k: int, row: Residues) -> Residues:
        full = np.zeros(count, dtype=np.int64)
        full[system.columns[k]] = row
        return full

    algebraic = Echelon(count)
    for k, expansion in enumerate(system.expansions):
        derivatives, outputs = taylor[k].derivatives, taylor[k].outputs
        assert derivatives is not None
        for i in range(len(expansion.observables), expansion.outputs):
            echelon.add(wide(k, derivatives[0, 0, i]))
            algebraic.add(wide(k, derivatives[0, 0, i]))
        for place, pairs in expansion.differentials:
            row = derivatives[0, 0, place].copy()
            for factor, argument in pairs:
                row = (row - outputs[0, 0, factor] * derivatives[0, 0, argument]) % PRIME
            echelon.add(wide(k, row))
    relations = echelon.null_space()
    for j in range(order + 1):
        for k, expansion in enumerate(system.expansions):
            derivatives = taylor[k].derivatives
            assert derivatives is not None
            for i in range(len(expansion.observables)):
                row = wide(k, derivatives[0, j, i])
                effective |= _seen(row, relations, count)
                if algebraic.rank < count:
                    algebraic.add(row)
                if echelon.rank < count and echelon.add(row):
                    orders[k][i] = j
    return PointRank(
        values,
        echelon.rank,
        np.array([echelon.determines(i) for i in range(count)], dtype=bool),
        np.array([algebraic.determines(i) for i in range(count)], dtype=bool),
        effective,
        echelon.null_space(),
        tuple(tuple(o) for o in orders),
    )


def _seen(row: Residues, relations: Residues, count: int) -> BoolArray:
    """Unknowns on which an output depends: directly, or through what is related to them."""
    direct = row != 0
    if len(relations) == count:
        return np.asarray(direct)
    moved = np.array([(vector * row % PRIME).sum() % PRIME != 0 for vector in relations])
    return np.asarray(direct | (relations[moved] != 0).any(axis=0))


# The degree of the determinants ---------------------------------------------------------------


def _degree(system: DifferentiatedSystem) -> int:
    """Bound of the degree, in all random numbers, of a minor of the equations' Jacobian."""
    highest = max((_growth(b) for b in system.expansions), default=1)
    order, count = system.sufficient_order, len(system.names)
    # With x' = P/Q, derivative j has the denominator Q^(2j - 1), and its numerator no higher
    # degree; the derivatives by the unknowns double that.
    return count * 2 * (2 * order + 2) * highest


def _growth(expansion: Expansion) -> int:
    """Bound of the degrees of right-hand sides and outputs over a common denominator."""
    e = expansion.program.equations
    degrees = [_degrees([term]) for term in (*e.rhs, *e.outputs, *e.initial)]
    below = sum(d for _, d in degrees)
    return max((n + below - d for n, d in degrees), default=0) + below + 1


def _degrees(terms: Sequence[Term]) -> tuple[int, int]:
    """Bounds of the degrees of numerator and denominator of the last of `terms`."""
    tape = terms[-1].tape
    found: dict[int, tuple[int, int]] = {}
    for i in needed(tape, terms):
        operation, a, b = tape.entries[i]
        if operation in ("number", "variable"):
            found[i] = (int(operation == "variable"), 0)
            continue
        (n1, d1), (n2, d2) = found[a], found[b]
        if operation == "*":
            found[i] = (n1 + n2, d1 + d2)
        elif operation == "/":
            found[i] = (n1 + d2, d1 + n2)
        else:
            found[i] = (max(n1 + d2, n2 + d1), d1 + d2)
    return found[terms[-1].index]
