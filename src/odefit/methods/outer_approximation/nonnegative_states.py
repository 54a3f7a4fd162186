"""Bounds of states that follow from the equations alone: signs and conserved totals.

A state stays nonnegative if it starts so and its right-hand side cannot be negative where the state
is zero. A weighted sum of nonnegative states that never grows bounds each of them by its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.enclosure.arithmetic.intervals import Interval, real_product, relational_quotient
from odefit.expressions.expressions import Expression
from odefit.methods.outer_approximation.reformulation import Affine, AffineAlgebra, Reformulation

SAMPLED_POINTS = 5
"""Number of points of a segment at which the signs of the right-hand sides are looked at."""

TOTAL_MARGIN = 1e-9
"""Relative margin of a conserved total, for the tolerance of the linear program that finds it."""


@dataclass(frozen=True, eq=False)
class RightHandSides:
    """The right-hand sides at one point, taken apart into terms.

    Attributes
    ----------
    terms
        The terms; the variables at the point come first, then the unknowns.
    values
        The right-hand sides of the states.
    """

    terms: Reformulation
    values: list[Affine]

    def enclosures(self, low: Array, high: Array) -> list[Interval]:
        """Return enclosures of all terms from bounds of the first ones, shape (first terms, B)."""
        found = [Interval(*ends) for ends in zip(low, high, strict=True)]
        for what in self.terms.definitions.values():
            a = [found[i] for i in what.arguments]
            if what.function is not None:
                ends = zip(a[0].low.tolist(), a[0].high.tolist(), strict=True)
                images = [what.function.image(*pair) for pair in ends]
                found.append(Interval(*np.array(images).T))
            elif what.kind == "sum":
                found.append(_weighted_sum(what.constant, what.coefficients, a, low.shape[1]))
            else:
                combine = real_product if what.kind == "product" else relational_quotient
                found.append(combine(*a))
        return found

    def keep_nonnegative(self, low: Array, high: Array) -> list[bool]:
        """Return for each state whether its right-hand side is nonnegative where it is zero.

        Parameters
        ----------
        low, high
            Bounds of the variables at the point and of the unknowns.
        """
        count = len(self.values)
        lower, upper = (np.tile(ends[:, None], (1, count)) for ends in (low, high))
        at_zero = np.arange(count)
        lower[at_zero, at_zero] = upper[at_zero, at_zero] = 0.0
        found = self.enclosures(lower, upper)
        rates = []
        for f in self.values:
            parts = [found[i] for i in f.coefficients]
            rates.append(_weighted_sum(f.constant, f.coefficients.values(), parts, count))
        return [bool(rate.low[k] >= 0) for k, rate in enumerate(rates)]


def _weighted_sum(
    constant: float, weights: Iterable[float], parts: list[Interval], boxes: int
) -> Interval:
    """Return ``constant + sum of weights * parts``."""
    total = Interval.number(Fraction(constant), boxes)
    with np.errstate(all="ignore"):
        for weight, part in zip(weights, parts, strict=True):
            total = total + real_product(Interval.number(Fraction(weight), boxes), part)
    return total


class EquationBounds:
    """Bounds of the states of a discretised problem that follow from its equations.

    Parameters
    ----------
    d
        The discretised problem.
    unknowns
        Bounds of the unknowns, shape (n, 2).
    """

    def __init__(self, d: Discretisation, unknowns: Array) -> None:
        self._d, self._unknowns = d, unknowns
        self._sides = [self._right_hand_sides(k) for k in range(len(d.problem.conditions))]

    def _right_hand_sides(self, number: int) -> list[RightHandSides]:
        """Return the right-hand sides at some points of a condition."""
        d = self._d
        a = assemble(d, Baseline())
        unknowns = [a.name(k) for k in range(a.at_points, a.size)]
        width, states = len(d.variables), len(d.field.states)
        found = []
        for placed in d.segments:
            if placed.segment.condition != number or placed.first not in d.rhs_blocks:
                continue
            block = d.blocks[d.rhs_blocks[placed.first][0]]
            assert block.points is not None
            for k in np.unique(np.linspace(0, block.instances - 1, SAMPLED_POINTS).astype(int)):
                # Variables of this point get the first numbers, whichever point it is.
                terms = Reformulation([*d.variables, *unknowns])
                variables = [terms.variable(i) for i in range(len(terms.names))]
                first = int(block.points[k]) * width
                w: list[Affine | float] = [0.0] * a.at_points
                w[first : first + width] = variables[:width]
                algebra = AffineAlgebra(terms)
                outputs = a.evaluated_at(block, int(k), [*w, *variables[width:]], algebra)
                found.append(RightHandSides(terms, [algebra.affine(o) for o in outputs[:states]]))
        return found

    def initial(self, number: int) -> Array:
        """Return bounds of the initial values of a condition, shape (variables, 2).

        They are infinite for variables that are not states, and where they are computed.
        """
        condition = self._d.problem.conditions[number]
        found = np.tile([-np.inf, np.inf], (len(self._d.variables), 1))
        for k, state in enumerate(self._d.field.states):
            bound = condition.initial[state]
            if isinstance(bound, Expression):
                bound = condition.scalars.get(bound.name or "", bound)
            if isinstance(bound, float):
                found[k] = bound
            elif not isinstance(bound, Expression):
                found[k] = self._unknowns[int(bound)]
        return found

    def _bounds(self, nonnegative: BoolArray) -> tuple[Array, Array]:
        """Return bounds of the variables at a point, by which are nonnegative, and of unknowns."""
        low = np.concatenate([np.where(nonnegative, 0.0, -np.inf), self._unknowns[:, 0]])
        return low, np.concatenate([np.full(len(nonnegative), np.inf), self._unknowns[:, 1]])

    @cached_property
    def nonnegative(self) -> BoolArray:
        """Which variables stay nonnegative in all conditions; with events nothing is known."""
        conditions = self._d.problem.conditions
        found = np.zeros(len(self._d.variables), dtype=bool)
        if any(condition.events for condition in conditions):
            return found
        states = len(self._d.field.states)
        least = np.min([self.initial(number)[:, 0] for number in range(len(conditions))], axis=0)
        found[:states] = least[:states] >= 0
        while True:
            before = found.copy()
            for sides in (s for own in self._sides for s in own):
                found[:states] &= sides.keep_nonnegative(*self._bounds(found))
            if (found == before).all():
                return found

    def totals(self, number: int) -> Array:
        """Return upper bounds of the states of a condition by totals that never grow.

        They have the shape (variables,), and are infinite where there is no such total.
        """
        from scipy.optimize import linprog

        found = np.full(len(self._d.variables), np.inf)
        first = self.initial(number)[:, 1]
        own = np.flatnonzero(self.nonnegative & np.isfinite(first)).tolist()
        if not own or not self._sides[number]:
            return found
        sides = self._sides[number][0]
        terms = sorted({i for k in own for i in sides.values[k].coefficients})
        growth = np.array([[sides.values[k].coefficients.get(i, 0.0) for k in own] for i in terms])
        growth = growth.reshape(len(terms), len(own))
        constants = np.array([[sides.values[k].constant for k in own]])
        low, high = self._bounds(self.nonnegative)
        enclosures = sides.enclosures(low[:, None], high[:, None])
        signed = np.array([enclosures[i].low[0] >= 0 for i in terms], dtype=bool)
        for position, k in enumerate(own):
            weights: list[tuple[float, float | None]] = [(0.0, None)] * len(own)
            weights[position] = (1.0, 1.0)
            total = linprog(
                first[own],
                A_ub=np.vstack([growth[signed], constants]),
                b_ub=np.zeros(int(signed.sum()) + 1),
                A_eq=growth[~signed],
                b_eq=np.zeros(int((~signed).sum())),
                bounds=weights,
                method="highs",
            )
            if total.status == 0:
                found[k] = float(total.fun or 0.0) * (1 + TOTAL_MARGIN) + 1e-300
        return found
