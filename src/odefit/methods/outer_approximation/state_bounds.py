"""Initial finite bounds of the states.

A relaxation needs both bounds of every variable. Bounds of states follow from signs, from conserved
totals and from the data, or are given. They are conditions of the proof, and the certificate names
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.enclosure.arithmetic.intervals import Interval, real_product, relational_quotient
from odefit.expressions.expressions import Expression
from odefit.methods.bounded_problem import MIN_POSITIVE_SHARE, PROPOSAL_FACTOR, GivenBounds
from odefit.methods.domains import Domains
from odefit.methods.outer_approximation.reformulation import Affine, AffineAlgebra, Reformulation
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.variants.data_scales import data_size
from odefit.structure.signs import nonnegative_names

WIDENING = 0.2
"""Part of a discretised state's range by which contradicted bounds are moved beyond it."""

CONTRADICTION = 1e-6
"""Part of a discretised state's range by which it may exceed its bounds without contradiction."""

SAMPLED_POINTS = 5
"""Number of points of a segment at which totals must not grow."""

TOTAL_MARGIN = 1e-9
"""Relative margin of a conserved total, for the tolerance of the linear program that finds it."""


@dataclass(frozen=True, eq=False)
class StateBounds:
    """Bounds of the variables at the points of a discretised problem."""

    values: Array
    """Lower and upper bounds by condition and variable, shape (conditions, variables, 2);
    infinite where nothing is known."""

    @classmethod
    def of(
        cls, d: Discretisation, unknowns: Array, asked: GivenBounds, cutoff: float
    ) -> StateBounds:
        """Return the bounds from equations, data and the user.

        Objectives above `cutoff` are ignored, so that residuals are at most its square root.
        """
        equations = EquationBounds(d, unknowns)
        domains = Domains.of(d.problem)
        values = np.tile([-np.inf, np.inf], (len(d.problem.conditions), len(d.variables), 1))
        values[:, equations.nonnegative, 0] = 0.0
        for number, (bounds, condition) in enumerate(
            zip(values, d.problem.conditions, strict=True)
        ):
            bounds[:, 1] = equations.totals(number)
            if np.isfinite(cutoff):
                _bound_by_data(d, condition, bounds, cutoff)
            for k, name in enumerate(d.variables):
                if isinstance(asked, Mapping) and name in asked:
                    bounds[k] = asked[name]
                elif asked == "propose":
                    size = PROPOSAL_FACTOR * data_size(condition)
                    bounds[k] = max(bounds[k, 0], -size), min(bounds[k, 1], size)
                    if name in domains.positive or (name in domains.nonzero and bounds[k, 0] >= 0):
                        first = equations.initial(number)[k, 0]
                        bounds[k, 0] = max(bounds[k, 0], _positive_bound(d, condition, name, first))
        return cls(values)

    def apply(self, d: Discretisation) -> None:
        """Apply the bounds to `d`, unless tighter ones are known there."""
        bounds = self.values[d.condition_of]
        free = d.lower < d.upper
        d.lower = np.where(free, np.maximum(d.lower, bounds[:, :, 0]), d.lower)
        d.upper = np.where(free, np.minimum(d.upper, bounds[:, :, 1]), d.upper)
        d.programs.clear()  # they were compiled with the previous bounds

    def containing(self, d: Discretisation, values: Array) -> StateBounds:
        """Return the bounds, widened where a local answer, shape (P, variables), lies outside.

        Polynomials through few points oscillate: a discretised state may be negative, or exceed a
        total, where the true one does not.
        """
        widened = self.values.copy()
        for number, bounds in enumerate(widened):
            at_points = values[d.condition_of == number]
            low, high = at_points.min(axis=0), at_points.max(axis=0)
            lower, upper = self.values[number].T
            swing, slack = WIDENING * (high - low), CONTRADICTION * (high - low)
            # Positive bounds stay positive, as a logarithm may be taken.
            least = np.where((lower > 0) & (low > 0), low / PROPOSAL_FACTOR, -np.inf)
            bounds[:, 0] = np.where(low < lower - slack, np.maximum(low - swing, least), lower)
            bounds[:, 1] = np.where(high > upper + slack, high + swing, upper)
        return StateBounds(widened)

    def description(self, d: Discretisation) -> str:
        """Return the bounds in words, for the scope of a certificate."""
        low, high = self.values[:, :, 0].min(axis=0), self.values[:, :, 1].max(axis=0)
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
        if len(set(ends)) == 1:
            return _in_words(ends[0], "states") or "states free"
        parts = [_in_words(e, n) for n, e in zip(d.variables, ends, strict=True)]
        return ", ".join(p for p in parts if p) or "states free"


def _in_words(ends: tuple[float, float], name: str) -> str:
    """Return bounds in words; an empty text if both are infinite."""
    low, high = ends
    if math.isfinite(low) and math.isfinite(high):
        return f"{name} in [{low:.4g}, {high:.4g}]"
    if math.isfinite(high):
        return f"{name} <= {high:.4g}"
    return f"{name} >= {low:.4g}" if math.isfinite(low) else ""


@dataclass(frozen=True, eq=False)
class RightHandSides:
    """The right-hand sides of the states at one point, decomposed into terms.

    The first terms are the variables at the point, then the unknowns.
    """

    terms: Reformulation
    values: list[Affine]

    def enclosures(self, low: Array, high: Array) -> list[Interval]:
        """Return enclosures of all terms from bounds of the first ones, shape (first terms, B)."""
        known = [Interval(*ends) for ends in zip(low, high, strict=True)]
        for term in self.terms.definitions.values():
            a = [known[i] for i in term.arguments]
            if term.function is not None:
                ends = zip(a[0].low.tolist(), a[0].high.tolist(), strict=True)
                images = [term.function.image(*pair) for pair in ends]
                known.append(Interval(*np.array(images).T))
            elif term.kind == "sum":
                known.append(_weighted_sum(term.constant, term.coefficients, a, low.shape[1]))
            else:
                combine = real_product if term.kind == "product" else relational_quotient
                known.append(combine(*a))
        return known


def _weighted_sum(
    constant: float, weights: Iterable[float], parts: list[Interval], boxes: int
) -> Interval:
    total = Interval.number(Fraction(constant), boxes)
    with np.errstate(all="ignore"):
        for weight, part in zip(weights, parts, strict=True):
            total = total + real_product(Interval.number(Fraction(weight), boxes), part)
    return total


class EquationBounds:
    """Bounds of the states, (n, 2), that follow from the equations and bounds of the unknowns."""

    def __init__(self, d: Discretisation, unknowns: Array) -> None:
        self._d, self._unknowns = d, unknowns
        signs = [nonnegative_names(d.problem, condition) for condition in d.problem.conditions]
        self.nonnegative: BoolArray = np.array(
            [all(name in names for names in signs) for name in d.variables], dtype=bool
        )
        """The variables that stay nonnegative in all conditions."""

    def _right_hand_sides(self, number: int) -> list[RightHandSides]:
        """Return the right-hand sides at some points of a condition."""
        d = self._d
        a = assemble(d, Baseline())
        unknowns = [a.name(k) for k in range(a.at_points, a.size)]
        width, states = len(d.variables), len(d.field.states)
        sides = []
        for placed in d.segments:
            if placed.segment.condition != number or placed.first not in d.rhs_blocks:
                continue
            block = d.blocks[d.rhs_blocks[placed.first][0]]
            assert block.points is not None
            for k in np.unique(np.linspace(0, block.instances - 1, SAMPLED_POINTS).astype(int)):
                # The variables of this point get the first numbers, whatever the point.
                terms = Reformulation([*d.variables, *unknowns])
                variables = [terms.variable(i) for i in range(len(terms.names))]
                first = int(block.points[k]) * width
                w: list[Affine | float] = [0.0] * a.at_points
                w[first : first + width] = variables[:width]
                algebra = AffineAlgebra(terms)
                outputs = a.evaluated_at(block, int(k), [*w, *variables[width:]], algebra)
                sides.append(RightHandSides(terms, [algebra.affine(o) for o in outputs[:states]]))
        return sides

    def initial(self, number: int) -> Array:
        """Return bounds of the initial values of a condition, shape (variables, 2).

        They are infinite for variables that are not states, and for computed initial values.
        """
        condition = self._d.problem.conditions[number]
        bounds = np.tile([-np.inf, np.inf], (len(self._d.variables), 1))
        for k, state in enumerate(self._d.field.states):
            bound = condition.initial[state]
            if isinstance(bound, Expression):
                bound = condition.scalars.get(bound.name or "", bound)
            if isinstance(bound, float):
                bounds[k] = bound
            elif not isinstance(bound, Expression):
                bounds[k] = self._unknowns[int(bound)]
        return bounds

    def totals(self, number: int) -> Array:
        """Return upper bounds of the states of a condition from weighted sums that never grow.

        They have the shape (variables,), and are infinite without such a sum. An event may raise
        any sum.
        """
        from scipy.optimize import linprog

        bounds = np.full(len(self._d.variables), np.inf)
        first = self.initial(number)[:, 1]
        states = np.flatnonzero(self.nonnegative & np.isfinite(first)).tolist()
        if not states or self._d.problem.conditions[number].events:
            return bounds
        falling: dict[tuple[float, ...], None] = {}  # sums of these rows must not be positive
        constant: dict[tuple[float, ...], None] = {}  # sums of these must be zero
        for sides in self._right_hand_sides(number):
            for row, signed in self._growth(sides, states):
                (falling if signed else constant)[row] = None
        if not falling:
            return bounds
        for position, k in enumerate(states):
            weights: list[tuple[float, float | None]] = [(0.0, None)] * len(states)
            weights[position] = (1.0, 1.0)
            total = linprog(
                first[states],
                A_ub=np.array([*falling]),
                b_ub=np.zeros(len(falling)),
                A_eq=np.array([*constant]).reshape(len(constant), len(states)),
                b_eq=np.zeros(len(constant)),
                bounds=weights,
                method="highs",
            )
            if total.status == 0:
                bounds[k] = float(total.fun or 0.0) * (1 + TOTAL_MARGIN) + 1e-300
        return bounds

    def _growth(
        self, sides: RightHandSides, states: list[int]
    ) -> Iterable[tuple[tuple[float, ...], bool]]:
        """Yield the coefficients of each term in the states' rates, and whether it has a sign.

        Non-negative terms come first in their order, then the constants.
        """
        low = np.concatenate([np.where(self.nonnegative, 0.0, -np.inf), self._unknowns[:, 0]])
        high = np.concatenate([np.full(len(self.nonnegative), np.inf), self._unknowns[:, 1]])
        enclosures = sides.enclosures(low[:, None], high[:, None])
        rates = [sides.values[k] for k in states]
        for i in sorted({i for rate in rates for i in rate.coefficients}):
            row = tuple(rate.coefficients.get(i, 0.0) for rate in rates)
            yield row, bool(enclosures[i].low[0] >= 0)
        yield tuple(rate.constant for rate in rates), True


def _bound_by_data(d: Discretisation, condition: Condition, limits: Array, cutoff: float) -> None:
    """Bound measured states by twice the range of their data, and by the objective's cutoff."""
    for name, series in condition.series.items():
        state = d.problem.model.observables[name].name
        if state not in d.variables or not len(series.values):
            continue
        k = d.variables.index(state)
        if np.isfinite(limits[k]).all():
            continue
        sd = _largest_sd(d.problem.noise.get(name), series)
        low, high = float(series.values.min()), float(series.values.max())
        margin = high - low
        margin += margin if sd is None else sd * math.sqrt(max(cutoff, 0.0))
        limits[k] = max(limits[k, 0], low - margin), min(limits[k, 1], high + margin)


def _positive_bound(d: Discretisation, condition: Condition, name: str, first: float) -> float:
    """Return a positive lower bound of a state that must not be zero, far below its known values.

    The smallest initial value `first` is minus infinity if it is unknown.
    """
    known = [first]
    known += [
        float(series.values.min())
        for observable, series in condition.series.items()
        if d.problem.model.observables[observable].name == name and len(series.values)
    ]
    size = MIN_POSITIVE_SHARE * data_size(condition)
    # Noise may make a measurement negative; an initial value of zero remains zero.
    return max(min([v for v in known if v > size], default=size), size) / PROPOSAL_FACTOR


def _largest_sd(noise: Noise | None, series: Series) -> float | None:
    """Return a series' largest standard deviation, None if it is unknown or on another scale."""
    if noise is not None and noise.transform is not None:
        return None
    if series.sds is not None:
        return float(series.sds.max())
    if noise is None:
        return 1.0
    if noise.relative is not None:
        return noise.relative * float(np.abs(series.values).max())
    return noise.sd if isinstance(noise.sd, float) else None


def require_finite(d: Discretisation, form: StandardForm, bounds: Bounds) -> None:
    """Refuse a problem with a variable without finite bounds, with a proposal."""
    low, high = bounds
    free = ~(np.isfinite(low) & np.isfinite(high))
    if not free.any():
        return
    points, width = d.points * len(d.variables), len(d.variables)
    size = PROPOSAL_FACTOR * max(data_size(c) for c in d.problem.conditions)
    proposals = []
    for k in np.flatnonzero(free[:points].reshape(-1, width).any(axis=0)).tolist():
        least = 0.0 if low[k:points:width].min() >= 0 else -size
        proposals.append(f'"{d.variables[k]}": ({least:.3g}, {size:.3g})')
    if proposals:
        raise InputError(
            "outer approximation: these states are not measured, and nothing bounds them. If you "
            f"know that they stay within these bounds, give bounds={{{', '.join(proposals)}}}; or "
            'accept them with bounds="propose" (on the command line, --bounds propose)'
        )
    worst = [form.names[k] for k in np.flatnonzero(free) if k >= form.originals][:3]
    raise InputError(
        "outer approximation: within the bounds of the unknowns and states, these terms have no "
        f"finite bounds: {', '.join(worst)}. Give narrower bounds, within which nothing is divided "
        "by zero and no logarithm of zero is taken"
    )
