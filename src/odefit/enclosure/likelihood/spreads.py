"""Spreads over boxes: standard deviations and dispersions that are known or depend on unknowns.

A spread that depends on unknowns adds twice the logarithm of its normalising factor to the
objective. That is the square of one more residual, plus a constant: a lower bound of the logarithm
over all values of the unknowns. A spread may depend on the prediction m, and vanish with it. Then
the bound holds for the logarithm together with the squared residual of the value y. Near y the
spread is bounded below, and at a distance h from y the two are at least 1 + 2 log h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.enclosure.arithmetic.composition import (
    LOG_SHARE,
    LOGARITHM,
    ROOT,
    SmoothFunction,
    chosen,
    composed,
    ranges,
)
from odefit.enclosure.arithmetic.intervals import Interval, evaluated
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.system import System
from odefit.expressions.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.negative_binomial import NegativeBinomial
from odefit.problem.noise_distributions.normal import Normal
from odefit.simulation.residuals.noise import known_spreads
from odefit.structure.series.tape import Term, needed

SLACK = 1.0
"""Part of the constant that keeps the square of a spread's residual away from zero."""

CLOSE, FAR = 1e-3, 1.0
"""Distances from a value, relative to it, between which the nearest spread is sought."""

FACTOR_ERROR = 1e-12
"""Relative margin for the rounding of a square and of a logarithm."""

PARTS = 400
"""Number of parts of the range of a dispersion over which its factor is bounded."""


@dataclass(frozen=True, eq=False)
class SpreadTerm:
    """The normalising factors of measurements that share a spread, as one more residual.

    They are the `places` among the residuals of their condition; `row` is the number of the time at
    which the `term` of the tape is evaluated. `least` is a lower bound of their part of the
    objective, less a margin; the square of the residual is the rest. With `joint`, it holds only
    together with the squared residual of the measurement, and where the spread may be below that
    number, one residual stands for both.
    """

    term: Term
    row: int
    places: tuple[int, ...]
    least: float
    counts: Array | None = None  # measured counts, for dispersions
    joint: float = 0.0

    def residual(self, spread: TaylorModel) -> TaylorModel:
        """Return the root of the part of the objective above its least value."""
        if self.counts is not None:
            part = _dispersion_part(self.counts, spread)
        else:
            part = composed(spread, LOGARITHM) * (2 * len(self.places))
        shift = TaylorModel.constant(spread.monomials, np.full_like(part.remainder, -self.least))
        return composed(part + shift, ROOT)

    def with_deviance(self, r: TaylorModel, spread: TaylorModel) -> tuple[TaylorModel, BoolArray]:
        """Return a residual that stands for both where it has to, and the boxes in which it does.

        Elsewhere it is the residual `r` of the measurement.
        """
        _, least, most = ranges(spread)
        use = ~(least > self.joint)
        with np.errstate(all="ignore"):
            _, low, high = ranges(r)
            nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
            farthest = np.maximum(np.abs(low), np.abs(high))
            squares = np.stack([nearest**2 + 2 * np.log(least), farthest**2 + 2 * np.log(most)])
            squares += np.array([[-1.0], [1.0]]) * FACTOR_ERROR * (1 + np.abs(squares))
            squares = np.where(np.isnan(squares), [[-math.inf], [math.inf]], squares)
            low, high = np.sqrt(np.maximum(squares - self.least, 0.0))
            both = TaylorModel.constant(r.monomials, (low + high) / 2)
            both.remainder = np.where(np.isfinite(high), (high - low) / 2, math.inf)
            both.remainder = both.remainder + FACTOR_ERROR * (1 + np.abs(high))
        lost = ~np.isfinite(both.remainder)
        both.c[0, 0, lost] = 0.0
        return chosen(use, both, r), np.asarray(use)


class Spreads:
    """The spreads of all measurements of a condition: numbers, or terms of its tape.

    `of` has them by series. `terms` are those that depend on unknowns; each adds a residual after
    those of the measurements, and `offset` is the part of the objective that these leave out.
    Raises InputError if no lower bound of it is known.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        condition = system.condition
        self.of = {name: self._of_series(name) for name in condition.series}
        groups: dict[tuple[Any, ...], list[tuple[str, int, int]]] = {}
        begin = 0
        for name, series in condition.series.items():
            for k, spread in enumerate(self.of[name]):
                measured = series.censored is None or series.censored[k] == 0
                if isinstance(spread, Term) and measured and self._depends(spread):
                    key = self._group(name, k, begin + k, spread)
                    groups.setdefault(key, []).append((name, k, begin + k))
            begin += len(series.values)
        self.terms = [self._term(members) for members in groups.values()]
        self.offset = sum(term.least for term in self.terms)

    def typical(self, name: str) -> Array:
        """Return spreads of a series of the size that they have in the middle of the bounds."""
        values = []
        for spread in self.of[name]:
            if isinstance(spread, Term):
                low, high = _range_of(self._system, spread)
                inside = 0 < low <= high < math.inf
                values.append(math.sqrt(low * high) if inside else 1.0)
            else:
                values.append(spread)
        return np.array(values)

    def _of_series(self, name: str) -> Sequence[Term | float]:
        """Return the spread of each measurement of a series."""
        system = self._system
        problem, condition = system.problem, system.condition
        noise, series = problem.noise.get(name, Noise()), condition.series[name]
        known = known_spreads(noise, series)
        if known is not None:
            return [float(value) for value in known]
        if not isinstance(noise.spread, Expression):
            unknown = system.unknown_term(problem.keys.index(noise.unknown(name)))
            return [unknown] * len(series.values)
        times = condition.times[series.rows].tolist()
        return [system.spread(noise.spread, time) for time in times]

    def _depends(self, term: Term) -> bool:
        """Return whether a spread depends on unknowns, directly or by the states."""
        system = self._system
        return bool(system.tape.depends(term) & {*system.unknowns, *system.states})

    def _group(self, name: str, k: int, place: int, term: Term) -> tuple[Any, ...]:
        """Return what is common to the measurements whose factors are one residual."""
        system = self._system
        law = system.problem.noise.get(name, Noise()).law
        if system.tape.depends(term) <= set(system.unknowns):
            return type(law), term.index
        row = int(system.condition.series[name].rows[k])
        return type(law), term.index, row, None if _range_of(system, term)[0] > 0 else place

    def _term(self, members: Sequence[tuple[str, int, int]]) -> SpreadTerm:
        """Return the residual of measurements that share a spread."""
        system, (name, k, _) = self._system, members[0]
        condition, noise = system.condition, system.problem.noise.get(name, Noise())
        term = self.of[name][k]
        assert isinstance(term, Term), "numbers have no residual"
        places = tuple(place for _, _, place in members)
        row = min(int(condition.series[name].rows[k]) for name, k, _ in members)
        low, high = _range_of(system, term)
        if isinstance(noise.law, NegativeBinomial):
            if not 0 < low <= high < math.inf:
                raise InputError(
                    f"noise.{name}.dispersion: a proof needs positive bounds of the dispersion, "
                    f"and it is between {low:.3g} and {high:.3g}; give positive bounds"
                )
            counts = np.array([condition.series[name].values[k] for name, k, _ in members])
            least = _least_dispersion_part(counts, low, high) - SLACK
            return SpreadTerm(term, row, places, least, counts)
        if low > 0:
            return SpreadTerm(term, row, places, 2 * len(places) * math.log(low) - SLACK)
        least = self._least_joint(name, k)
        if not least > 0:
            raise InputError(
                f"noise.{name}.sd: the likelihood has no lower bound, since the standard deviation "
                "may be zero; give its unknowns positive lower bounds, or add a positive constant"
            )
        return SpreadTerm(term, row, places, 2 * math.log(least) - SLACK, joint=least)

    def _least_joint(self, name: str, k: int) -> float:
        """Return a number that bounds a spread below together with its residual; 0 without one."""
        system = self._system
        problem, condition = system.problem, system.condition
        noise, series = problem.noise.get(name, Noise()), condition.series[name]
        expression, value = noise.spread, float(series.values[k])
        if not isinstance(expression, Expression) or noise.transform is not None or not value:
            return 0.0
        if not isinstance(noise.law, Normal):
            return 0.0
        time = float(condition.times[series.rows[k]])
        prediction = system.tape.variable(f"prediction of {name}")
        term = system.spread(expression, time, {name: prediction})
        distances = abs(value) * np.geomspace(CLOSE, FAR, 20)[:-1]
        around = Interval(value - distances, value + distances)
        near = _ranges(system, term, len(distances), {prediction.index: around}).low
        # With a distance h and a spread s, (h/s)^2 + 2 log s is at least 1 + 2 log h.
        return float(np.max(np.minimum(near, math.exp(0.5) * distances))) * (1 - 1e-12)


def _range_of(system: System, term: Term) -> tuple[float, float]:
    """Return the range of a term within the bounds of the unknowns, whatever the states are."""
    value = _ranges(system, term, 1, {})
    return float(value.low[0]), float(value.high[0])


def _ranges(system: System, term: Term, count: int, known: Mapping[int, Interval]) -> Interval:
    """Return intervals of a term within the bounds of the unknowns, for ranges of others."""
    problem, order = system.problem, needed(system.tape, [term])
    values = {i: Interval.anything(count) for i in order if i in system.tape.names}
    bounds = zip(system.unknowns, problem.lower, problem.upper, strict=True)
    values |= {k: Interval(np.full(count, low), np.full(count, high)) for k, low, high in bounds}
    return evaluated(system.tape, order, values | dict(known), count)[term.index]


# Counts ------------------------------------------------------------------------------------------


class _LogarithmSum(SmoothFunction):
    """Sums of ``weight_j log(1 + j x)``, with positive weights and j."""

    error = 1e-11

    def __init__(self, weights: Array, sizes: Array) -> None:
        self._weights, self._sizes = weights[:, None], sizes[:, None]
        self.least = -1.0 / float(sizes.max(initial=1.0))

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients."""
        rows = [(self._weights * np.log1p(self._sizes * x)).sum(axis=0)]
        ratio = self._sizes / (1 + self._sizes * x)
        for k in range(1, count):
            sign = 1.0 if k % 2 else -1.0
            rows.append(sign / k * (self._weights * ratio**k).sum(axis=0))
        return np.array(rows)


def _dispersion_part(counts: Array, a: TaylorModel) -> TaylorModel:
    """Return the part of the objective by dispersions alone, for models of the dispersion.

    For a count y it is ``2 (y log(1 + a y) + log(1 + a y)/a - sum over j < y of log(1 + a j))``,
    with a constant of y.
    """
    total = TaylorModel.constant(a.monomials, np.full_like(a.remainder, _constant_of(counts)))
    total.remainder = np.full_like(a.remainder, 1e-12 * abs(_constant_of(counts)) + 1e-300)
    some, repeats = np.unique(counts[counts > 0], return_counts=True)
    for y, number in zip(some.tolist(), repeats.tolist(), strict=True):
        total = total + composed(a * int(y), LOG_SHARE) * int(2 * y * number)
    if len(some):
        total = total + composed(a, _LogarithmSum(2.0 * some * repeats, some))
    above = np.arange(1.0, counts.max(initial=0.0))
    if len(above):
        weights = np.array([2.0 * np.sum(counts > j) for j in above])
        total = total + composed(a, _LogarithmSum(weights, above)) * -1
    return total


def _constant_of(counts: Array) -> float:
    """Return the part of the objective that depends on the counts alone."""
    from scipy.special import gammaln, xlogy

    parts = gammaln(counts + 1) - 0.5 * math.log(2 * math.pi) - xlogy(counts, counts)
    return float(2 * parts.sum())


def _least_dispersion_part(counts: Array, low: float, high: float) -> float:
    """Return a lower bound of that part for all dispersions between two numbers."""
    ends = np.geomspace(low, high, PARTS + 1) if high > low else np.array([low, high])
    middle = (ends[:-1] + ends[1:]) / 2
    radius = np.diff(ends) / 2 * (1 + 1e-12) + 1e-15 * ends[1:]
    model = TaylorModel.variable(Monomials.of(1, 2), 0, middle, radius)
    _, least, _ = ranges(_dispersion_part(counts, model))
    return float(np.min(least))
