"""Finite bounds to begin with: of the unknowns, and of the states at every point.

A relaxation needs both ends of every variable. Those of unknowns are the problem's own, or the
user's; none is made up unasked. Those of states follow from signs, from conserved totals and from
the data. They belong to what is proved: the certificate names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from odefit.discretisation.assembly import assemble
from odefit.discretisation.blocks import Block
from odefit.discretisation.discretisation import Discretisation, PlacedSegment
from odefit.discretisation.formulations import Baseline
from odefit.methods.bounded_problem import MIN_POSITIVE_SHARE, PROPOSAL_FACTOR, GivenBounds
from odefit.methods.domains import Domains
from odefit.methods.outer_approximation.reformulation import Affine, AffineAlgebra, Reformulation
from odefit.problem.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.errors import InputError
from odefit.problem.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.state_guesses import data_size

ODD = frozenset({"power", "sqrt", "abs", "sinh", "tanh", "atan", "asin"})
"""Functions that are zero at zero; powers with a positive exponent."""

SWING = 0.2
"""Of a discretised state's range, by which bounds that it contradicts are moved beyond it."""

ROUNDING = 1e-6
"""Of a discretised state's range, by which it may lie outside without contradicting bounds."""

SAMPLES = 5
"""Points at which the signs of the equations are looked at."""


@dataclass(frozen=True, eq=False)
class Box:
    """Where the search is made.

    Attributes
    ----------
    unknowns
        Lower and upper bounds, shape (n, 2).
    states
        By condition and variable, lower and upper bounds, shape (conditions, variables, 2).
    """

    unknowns: Array
    states: Array

    def applied(self, d: Discretisation) -> None:
        """Put the states' bounds into `d`, where they are not known better."""
        own = self.states[d.condition_of]
        free = d.lower < d.upper
        d.lower = np.where(free, np.maximum(d.lower, own[:, :, 0]), d.lower)
        d.upper = np.where(free, np.minimum(d.upper, own[:, :, 1]), d.upper)
        d.programs.clear()  # they were compiled with the bounds from before

    def around(self, d: Discretisation, values: Array) -> Box:
        """Widened where a local answer, shape (P, variables), lies outside.

        Polynomials through few points swing: a discretised state may be negative, or exceed a
        total, where the true one does not.
        """
        states = self.states.copy()
        for number in range(len(states)):
            own = values[d.condition_of == number]
            low, high = own.min(axis=0), own.max(axis=0)
            swing = SWING * (high - low)
            slack = ROUNDING * (high - low)
            less, more = low < states[number, :, 0] - slack, high > states[number, :, 1] + slack
            # What is positive stays so: there may be a logarithm of it.
            positive = (states[number, :, 0] > 0) & (low > 0)
            bottom = np.where(positive, np.maximum(low - swing, low / PROPOSAL_FACTOR), low - swing)
            states[number, :, 0] = np.where(less, bottom, states[number, :, 0])
            states[number, :, 1] = np.where(more, high + swing, states[number, :, 1])
        return Box(self.unknowns, states)

    def described(self, d: Discretisation) -> str:
        """The states' bounds in words, for the scope of a certificate."""
        low, high = self.states[:, :, 0].min(axis=0), self.states[:, :, 1].max(axis=0)
        ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        if len(set(ends)) == 1:
            return _shown(ends[0], "states") or "states free"
        parts = [_shown(e, n) for n, e in zip(d.variables, ends, strict=True)]
        return ", ".join(p for p in parts if p) or "states free"


def _shown(ends: tuple[float, float], name: str) -> str:
    """Bounds in words; nothing without any."""
    low, high = ends
    if math.isinf(low) or math.isinf(high):
        above = f"{name} >= {low:.4g}" if math.isfinite(low) else ""
        return f"{name} <= {high:.4g}" if math.isfinite(high) else above
    return f"{name} in [{low:.4g}, {high:.4g}]"


def state_bounds(d: Discretisation, unknowns: Array, given: GivenBounds, cut: float) -> Array:
    """Bounds of the states, shape (conditions, variables, 2); infinite where nothing says any.

    Parameters
    ----------
    unknowns
        Their bounds, shape (n, 2).
    cut
        Objectives above this are of no interest: data are missed by its root at most.
    """
    found = np.empty((len(d.problem.conditions), len(d.variables), 2))
    found[:, :, 0], found[:, :, 1] = -np.inf, np.inf
    slopes = [_slopes(d, number) for number in range(len(found))]
    positive = _positive(d, slopes, unknowns)
    domains = Domains.of(d.problem)
    found[:, positive, 0] = 0.0
    for number, own in enumerate(found):
        _by_totals(d, slopes[number][:1], own, _initial(d, number, unknowns)[:, 1], unknowns)
        _by_data(d, number, own, cut)
        for k, name in enumerate(d.variables):
            if isinstance(given, Mapping) and name in given:
                own[k] = given[name]
            elif given == "propose":
                size = PROPOSAL_FACTOR * data_size(d.problem.conditions[number])
                own[k] = max(own[k, 0], -size), min(own[k, 1], size)
                if name in domains.positive or (name in domains.nonzero and own[k, 0] >= 0):
                    own[k, 0] = max(own[k, 0], _least(d, number, name, unknowns))
    return found


Slopes = tuple[Reformulation, list[Affine]]


def _slopes(d: Discretisation, number: int) -> list[Slopes]:
    """Right-hand sides in standard form at some points of a condition."""
    a = assemble(d, Baseline())
    names = [a.name(k) for k in range(a.size)]
    found = []
    blocks = [(block, place) for place, block in _motion(d) if place.segment.condition == number]
    for block, _ in blocks:
        for instance in np.unique(np.linspace(0, block.instances - 1, SAMPLES).astype(int)):
            # Variables of this point get the first numbers, whichever point it is.
            terms = Reformulation([*d.variables, *names[a.at_points :]])
            width = len(d.variables)
            assert block.points is not None
            first = int(block.points[instance]) * width
            w: list[Affine | float] = [0.0] * a.at_points
            w[first : first + width] = [terms.variable(k) for k in range(width)]
            w += [terms.variable(width + k) for k in range(a.size - a.at_points)]
            algebra = AffineAlgebra(terms)
            outputs = a.evaluated_at(block, int(instance), w, algebra)
            found.append((terms, [algebra.affine(o) for o in outputs]))
    return found


def _motion(d: Discretisation) -> Iterator[tuple[PlacedSegment, Block]]:
    """The block of right-hand sides of each place."""
    for place in d.segments:
        if place.first in d.rhs_blocks:
            yield place, d.blocks[d.rhs_blocks[place.first][0]]


def _initial(d: Discretisation, number: int, unknowns: Array) -> Array:
    """Bounds of the initial values, infinite where they are computed, shape (variables, 2)."""
    condition = d.problem.conditions[number]
    found = np.empty((len(d.variables), 2))
    found[:, 0], found[:, 1] = -np.inf, np.inf
    for k, state in enumerate(d.field.states):
        bound = condition.initial[state]
        if isinstance(bound, Expression):
            bound = condition.scalars.get(bound.name or "", bound)
        if isinstance(bound, float):
            found[k] = bound
        elif not isinstance(bound, Expression):
            found[k] = unknowns[int(bound)]
    return found


def _signs(terms: Reformulation, positive: list[bool], unknowns: Array, states: int) -> list[bool]:
    """Which variables cannot be negative where the `positive` states are not."""
    found = list(positive) + [bool(low >= 0) for low in unknowns[:, 0]]
    found += [False] * (len(terms.names) - len(found))
    for k, what in terms.definitions.items():
        known = [found[i] for i in what.arguments]
        if what.kind == "sum":
            positive_terms = all(c > 0 for c in what.coefficients) and all(known)
            found[k] = what.constant >= 0 and positive_terms
        elif what.function is not None:
            f = what.function
            odd = f.name in ("power", "sinh", "tanh", "asin", "atan")
            found[k] = f.name in ("exp", "sqrt") or f.even or (odd and known[0])
        else:
            found[k] = all(known)
    return found


def _factors(terms: Reformulation, k: int) -> set[int]:
    """Variables that make variable k zero where they are zero themselves."""
    what = terms.definitions.get(k)
    if what is None or what.kind == "sum":
        return {k}
    first = _factors(terms, what.arguments[0])
    if what.kind == "product":
        return {k} | first | _factors(terms, what.arguments[1])
    if what.function is None or (what.function.name in ODD and what.function.exponent >= 0):
        return {k} | first
    return {k}


def _positive(d: Discretisation, slopes: list[list[Slopes]], unknowns: Array) -> list[bool]:
    """States that start at zero or above, and whose slope at zero is not negative."""
    count = len(d.variables)
    states = len(d.field.states)
    found = [k < states for k in range(count)]
    for number, condition in enumerate(d.problem.conditions):
        least = _initial(d, number, unknowns)[:, 0]
        found = [fine and bool(low >= 0) for fine, low in zip(found, least, strict=True)]
        if condition.events:
            return [False] * count
    while True:
        before = list(found)
        for terms, outputs in (s for own in slopes for s in own):
            sign = _signs(terms, found, unknowns, count)
            for k in range(states):
                if found[k] and not _stays(terms, outputs[k], k, sign):
                    found[k] = False
        if found == before:
            return found


def _stays(terms: Reformulation, slope: Affine, k: int, sign: list[bool]) -> bool:
    if slope.constant < 0:
        return False
    return all(
        (c > 0 and sign[i]) or k in _factors(terms, i) for i, c in slope.coefficients.items()
    )


def _by_totals(
    d: Discretisation, slopes: list[Slopes], own: Array, first: Array, unknowns: Array
) -> None:
    """A weighted sum of positive states that never grows bounds each of them by its start."""
    from scipy.optimize import linprog

    positive = [k for k in range(len(d.field.states)) if own[k, 0] >= 0 and np.isfinite(first[k])]
    if not positive or not slopes:
        return
    terms, outputs = slopes[0]
    sign = _signs(
        terms, [bool(own[k, 0] >= 0) for k in range(len(d.variables))], unknowns, len(d.variables)
    )
    monomials = sorted({i for k in positive for i in outputs[k].coefficients})
    matrix = np.array([[outputs[k].coefficients.get(i, 0.0) for k in positive] for i in monomials])
    constants = np.array([[outputs[k].constant for k in positive]])
    growing = np.array([sign[i] for i in monomials], dtype=bool)
    matrix = matrix.reshape(len(monomials), len(positive))
    for number, k in enumerate(positive):
        if np.isfinite(own[k, 1]):
            continue
        bounds: list[tuple[float, float | None]] = [(0.0, None)] * len(positive)
        bounds[number] = (1.0, 1.0)
        found = linprog(
            first[positive],
            A_ub=np.vstack([matrix[growing], constants]),
            b_ub=np.zeros(int(growing.sum()) + 1),
            A_eq=matrix[~growing],
            b_eq=np.zeros(int((~growing).sum())),
            bounds=bounds,
            method="highs",
        )
        if found.status == 0:
            own[k, 1] = min(own[k, 1], float(found.fun or 0.0) * (1 + 1e-9) + 1e-300)


def _by_data(d: Discretisation, number: int, own: Array, cut: float) -> None:
    """Measured states stay within twice the range of their data and what the cut leaves."""
    condition = d.problem.conditions[number]
    for name, series in condition.series.items():
        state = d.problem.model.observables[name].name
        if state not in d.variables or not len(series.values) or not np.isfinite(cut):
            continue
        k = d.variables.index(state)
        if np.isfinite(own[k]).all():
            continue
        noise = d.problem.noise.get(name)
        sd = _sd(noise, series)
        low, high = float(series.values.min()), float(series.values.max())
        margin = high - low
        margin += margin if sd is None else sd * math.sqrt(max(cut, 0.0))
        own[k] = max(own[k, 0], low - margin), min(own[k, 1], high + margin)


def _least(d: Discretisation, number: int, name: str, unknowns: Array) -> float:
    """A positive lower bound of a state that must not be zero, well below what is known of it."""
    condition = d.problem.conditions[number]
    known = [
        float(series.values.min())
        for observable, series in condition.series.items()
        if d.problem.model.observables[observable].name == name and len(series.values)
    ]
    if name in d.field.states:
        known.append(float(_initial(d, number, unknowns)[d.field.states.index(name), 0]))
    size = MIN_POSITIVE_SHARE * data_size(condition)
    # Noise may make a measurement negative; an initial value of zero is then zero.
    return max(min([v for v in known if v > size], default=size), size) / PROPOSAL_FACTOR


def _sd(noise: Noise | None, series: Series) -> float | None:
    """The largest standard deviation of a series; None where it is not known, or no plain one."""
    if noise is not None and noise.transform is not None:
        return None
    if series.sds is not None:
        return float(series.sds.max())
    if noise is None:
        return 1.0
    if noise.relative is not None:
        return noise.relative * float(np.abs(series.values).max())
    return noise.sd if isinstance(noise.sd, float) else None


def refuse_infinite(
    d: Discretisation, names: tuple[str, ...], low: Array, high: Array, originals: int
) -> None:
    """Refuse what has no finite bounds.

    Raises
    ------
    InputError
        Naming states, or terms, with a proposal.
    """
    free = ~(np.isfinite(low) & np.isfinite(high))
    if not free.any():
        return
    points = d.points * len(d.variables)
    states = sorted({int(k) % len(d.variables) for k in np.flatnonzero(free[:points])})
    if states:
        size = PROPOSAL_FACTOR * max(data_size(c) for c in d.problem.conditions)
        proposals = []
        for k in states:
            known = low[k : points : len(d.variables)].min() >= 0
            proposals.append(f'"{d.variables[k]}": ({0.0 if known else -size:.3g}, {size:.3g})')
        raise InputError(
            "outer approximation: nothing bounds these states, which are not measured. "
            f"bounds={{{', '.join(proposals)}}} would, if you know that they stay within; or "
            'accept that with bounds="propose" (on the command line, --bounds propose)'
        )
    worst = [names[k] for k in np.flatnonzero(free) if k >= originals][:3]
    raise InputError(
        "outer approximation: within the bounds of the unknowns and states these terms have no "
        f"finite bounds: {', '.join(worst)}. Narrower bounds, away from a division by zero or a "
        "logarithm of it, give them some"
    )
