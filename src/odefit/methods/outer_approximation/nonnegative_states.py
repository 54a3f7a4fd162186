"""Bounds of states that follow from the equations alone: signs and conserved totals.

A state stays nonnegative if it starts so and its right-hand side cannot be negative where the state
is zero. A weighted sum of nonnegative states that never grows bounds each of them by its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.methods.outer_approximation.reformulation import (
    Affine,
    AffineAlgebra,
    Definition,
    Reformulation,
)
from odefit.problem.arrays import Array
from odefit.problem.expressions import Expression

ZERO_AT_ZERO = frozenset({"power", "sqrt", "abs", "sinh", "tanh", "atan", "asin"})
"""Functions that are zero at zero; powers only with a positive exponent."""

SIGN_OF_ARGUMENT = frozenset({"power", "sinh", "tanh", "asin", "atan"})
"""Functions that are nonnegative where their argument is."""

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

    def nonnegative(self, states: list[bool], unknowns: Array) -> list[bool]:
        """Return which variables cannot be negative where some variables at the point are not.

        Parameters
        ----------
        states
            Which variables at the point are nonnegative.
        unknowns
            Bounds of the unknowns, shape (n, 2).
        """
        found = [*states, *(unknowns[:, 0] >= 0).tolist()]
        found += [False] * (len(self.terms.names) - len(found))
        for k, what in self.terms.definitions.items():
            found[k] = _is_nonnegative(what, [found[i] for i in what.arguments])
        return found

    def zero_factors(self, k: int) -> set[int]:
        """Return the variables that make variable k zero where they are zero themselves."""
        what = self.terms.definitions.get(k)
        if what is None or what.kind == "sum":
            return {k}
        first = self.zero_factors(what.arguments[0])
        if what.kind == "product":
            return {k} | first | self.zero_factors(what.arguments[1])
        f = what.function
        return {k} | first if f is None or (f.name in ZERO_AT_ZERO and f.exponent >= 0) else {k}

    def keeps_nonnegative(self, k: int, sign: list[bool]) -> bool:
        """Return whether the right-hand side of state k is nonnegative where the state is zero.

        Parameters
        ----------
        sign
            Which variables are nonnegative.
        """
        value = self.values[k]
        return value.constant >= 0 and all(
            (c > 0 and sign[i]) or k in self.zero_factors(i) for i, c in value.coefficients.items()
        )


def _is_nonnegative(what: Definition, arguments: list[bool]) -> bool:
    """Return whether a variable is nonnegative, given which of its arguments are."""
    f = what.function
    if f is not None:
        by_argument = f.name in SIGN_OF_ARGUMENT and arguments[0]
        return f.even or f.name in {"exp", "sqrt"} or by_argument
    return what.constant >= 0 and all(c > 0 for c in what.coefficients) and all(arguments)


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
        width = len(d.variables)
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
                found.append(RightHandSides(terms, [algebra.affine(o) for o in outputs]))
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

    @cached_property
    def nonnegative(self) -> list[bool]:
        """Which variables stay nonnegative in all conditions; with events nothing is known."""
        conditions = self._d.problem.conditions
        count, states = len(self._d.variables), len(self._d.field.states)
        if any(condition.events for condition in conditions):
            return [False] * count
        least = np.array([self.initial(number)[:, 0] for number in range(len(conditions))])
        found = [k < states and bool((least[:, k] >= 0).all()) for k in range(count)]
        while True:
            before = list(found)
            for sides in (s for own in self._sides for s in own):
                sign = sides.nonnegative(found, self._unknowns)
                found = [
                    known and (k >= states or sides.keeps_nonnegative(k, sign))
                    for k, known in enumerate(found)
                ]
            if found == before:
                return found

    def totals(self, number: int) -> Array:
        """Return upper bounds of the states of a condition by totals that never grow.

        They have the shape (variables,), and are infinite where there is no such total.
        """
        from scipy.optimize import linprog

        found = np.full(len(self._d.variables), np.inf)
        first = self.initial(number)[:, 1]
        own = [k for k, known in enumerate(self.nonnegative) if known and np.isfinite(first[k])]
        if not own or not self._sides[number]:
            return found
        sides = self._sides[number][0]
        sign = sides.nonnegative(self.nonnegative, self._unknowns)
        terms = sorted({i for k in own for i in sides.values[k].coefficients})
        growth = np.array([[sides.values[k].coefficients.get(i, 0.0) for k in own] for i in terms])
        growth = growth.reshape(len(terms), len(own))
        constants = np.array([[sides.values[k].constant for k in own]])
        signed = np.array([sign[i] for i in terms], dtype=bool)
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
