"""Bound tightening under a cutoff: by intervals (FBBT), by optimality (OBBT), and by probing.

FBBT lets each row and term bound each of its variables by the bounds of the others, forward from
arguments to results and backward (P. Belotti et al., Branching and bounds tightening techniques for
non-convex MINLP, 2009). OBBT computes the smallest and largest value of a variable in the
relaxation; these, in turn, tighten the relaxation. If that stalls, the ends of the parameters'
ranges are probed: an empty part at an end is cut off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.intervals import Interval, real_product, relational_quotient
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF, round_up, summation_error
from odefit.methods.outer_approximation.linear_programs import minimise
from odefit.methods.outer_approximation.master_problem import split_point
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    StrengtheningCut,
    linear_relaxation,
    objective_coefficients,
)
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm

MAX_PASSES = 200
"""Largest number of passes through all rows and terms."""

LEAST_PROGRESS = 1e-3
"""Relative narrowing of some interval that a pass must achieve, or it is the last."""

OUTWARD = 4 * UNIT_ROUNDOFF
"""Relative distance by which bounds are moved outwards, for the rounding of their last steps."""


class Infeasible(Exception):  # noqa: N818 - not an error: the finding that there is no point
    """No point lies within the bounds."""


class FBBT:
    """Feasibility-based bound tightening of the variables of a standard form."""

    def __init__(self, form: StandardForm) -> None:
        self._form = form
        m = csr_array(form.matrix)
        self._row = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))
        self._starts = m.indptr[:-1]
        self._column = m.indices.astype(np.intp)
        self._data = m.data
        self._terms = np.diff(m.indptr)[self._row]

    def tighten(self, lower: Array, upper: Array, cutoff: float = np.inf) -> Bounds:
        """Return tightened bounds, shape (n,), of points with an objective up to the cutoff (47).

        Raises Infeasible if there is no such point within the bounds.
        """
        low, high = lower.copy(), upper.copy()
        for _ in range(MAX_PASSES):
            before = low.copy(), high.copy()
            self._rows(low, high)
            self._bilinear(low, high)
            self._univariate(low, high)
            self._objective(low, high, cutoff)
            # Every bound is rounded outward: even the slightest crossing proves emptiness.
            if (low > high).any():
                raise Infeasible
            if not _moved(before, (low, high)):
                break
        return low, high

    def _rows(self, low: Array, high: Array) -> None:
        """Bound every variable of every row by the others."""
        column, data = self._column, self._data
        if not len(data):
            return
        a, b = low[column], high[column]
        positive = data > 0
        with np.errstate(all="ignore"):
            least = np.where(positive, data * a, data * b)
            most = np.where(positive, data * b, data * a)
        finite = np.maximum(*(np.where(np.isfinite(e), np.abs(e), 0.0) for e in (least, most)))
        total = np.add.reduceat(finite, self._starts)[self._row]
        target = self._form.target[self._row]
        slack = (
            2.0 * summation_error(self._terms) * (total + np.abs(target))
            + 16 * UNIT_ROUNDOFF * total
        )
        with np.errstate(all="ignore"):
            bottom = (target - self._others(most) - slack) / data
            top = (target - self._others(least) + slack) / data
            bottom, top = np.where(positive, bottom, top), np.where(positive, top, bottom)
            bottom = np.where(
                np.isfinite(bottom), bottom - 4 * UNIT_ROUNDOFF * np.abs(bottom), -np.inf
            )
            top = np.where(np.isfinite(top), top + 4 * UNIT_ROUNDOFF * np.abs(top), np.inf)
        _narrow(low, high, column, Interval(bottom, top))

    def _others(self, values: Array) -> Array:
        """Return the sum of the other entries of each row, infinite if one of them is infinite."""
        infinite = ~np.isfinite(values)
        finite = np.where(infinite, 0.0, values)
        total = np.add.reduceat(finite, self._starts)[self._row] - finite
        count = np.add.reduceat(infinite.astype(float), self._starts)[self._row] - infinite
        sign = np.add.reduceat(np.where(infinite, np.sign(values), 0.0), self._starts)
        return np.where(count > 0, np.where(sign[self._row] < 0, -np.inf, np.inf), total)

    def _bilinear(self, low: Array, high: Array) -> None:
        k, i, j = self._form.bilinear.T
        if not len(k):
            return
        first, second = Interval(low[i], high[i]), Interval(low[j], high[j])
        _narrow(low, high, k, real_product(first, second))
        product = Interval(low[k], high[k])
        _narrow(low, high, i, relational_quotient(product, second))
        _narrow(low, high, j, relational_quotient(product, Interval(low[i], high[i])))

    def _univariate(self, low: Array, high: Array) -> None:
        for t in self._form.univariate:
            i, k = t.argument, t.result
            bottom, top = t.function.image(float(low[i]), float(high[i]))
            low[k], high[k] = max(low[k], bottom), min(high[k], top)
            within = float(low[i]), float(high[i])
            bottom, top = t.function.preimage(float(low[k]), float(high[k]), within)
            low[i], high[i] = max(low[i], bottom), min(high[i], top)

    def _objective(self, low: Array, high: Array, cutoff: float) -> None:
        """Bound each residual by the part of the cutoff that the others leave."""
        if not np.isfinite(cutoff):
            return
        form, r = self._form, self._form.residuals
        used = np.flatnonzero(form.linear)
        factor = form.linear[used]
        parts = np.where(factor > 0, factor * low[used], factor * high[used])
        rest = float(np.sum(parts)) + form.constant
        if not np.isfinite(rest):
            return
        least = np.maximum(np.maximum(low[r], -high[r]), 0.0) ** 2
        total = float(least.sum())
        slack = 1e-12 * (total + abs(cutoff) + float(np.abs(parts).sum()) + abs(form.constant))
        if total + rest > cutoff + slack:
            raise Infeasible
        left = np.maximum(cutoff + slack - rest - (total - least), 0.0)
        room = round_up(np.sqrt(left) * (1 + OUTWARD))
        _narrow(low, high, r, Interval(-room, room))


def _narrow(low: Array, high: Array, index: IntArray, tighter: Interval) -> None:
    np.maximum.at(low, index, tighter.low)
    np.minimum.at(high, index, tighter.high)


def _moved(before: Bounds, after: Bounds) -> bool:
    with np.errstate(all="ignore"):
        width = before[1] - before[0]
        gained = (after[0] - before[0]) + (before[1] - after[1])
        fresh = np.isinf(width) & ((after[0] != before[0]) | (after[1] != before[1]))
        return bool(np.any(fresh | (gained > LEAST_PROGRESS * width)))


REBUILD_INTERVAL = 10
"""Number of variables after which the relaxation is rebuilt within a round of OBBT."""

LARGEST_PROBE, SMALLEST_PROBE = 0.5, 0.03
"""Largest and smallest part of a range that is probed at its end."""

MAX_PROBES = 3
"""Largest number of probes in succession at the same end."""

PROBE_ROUNDS = 2
"""Rounds of OBBT of the parameters within a probe before it counts as not empty."""

MAX_PLANE_ROUNDS = 12
"""Largest number of times that hyper-planes are added for one bound of the relaxation."""

PLANE_TOLERANCE = 1e-3
"""Largest distance of the residuals' squares from their hyper-planes, relative to the bound."""


@dataclass(eq=False)
class BoundTightening:
    """Bound tightening of a standard form, with all findings of the search so far."""

    form: StandardForm
    fbbt: FBBT
    planes: HyperPlanes  # more are added at the relaxation's optimum
    stop: Callable[[], bool]
    cuts: Sequence[StrengtheningCut] = ()
    remaining: Callable[[], float] = lambda: math.inf  # seconds, also for a linear program
    turn: int = 0  # place of the variable with which the next round of OBBT begins
    probes: dict[tuple[int, bool], float] = field(default_factory=dict)
    """Parts of the range for the next probes, by parameter and by end (True for the upper end)."""
    _done: int = 0

    def relaxation_bound(
        self, low: Array, high: Array, cutoff: float
    ) -> tuple[float, Array | None]:
        """Return a lower bound of the objective over the relaxation, and the point that attains it.

        Here and in the following methods, Infeasible means that no objective is below the cutoff.
        """
        best, x = -math.inf, None
        constant, r = self.form.constant, self.form.residuals
        cost = objective_coefficients(self.form)
        for _ in range(MAX_PLANE_ROUNDS):
            p = linear_relaxation(self.form, low, high, self.planes, cutoff, self.cuts)
            optimum = minimise(p, cost, self.remaining())
            if optimum.bound == math.inf:
                raise Infeasible
            best = max(best, optimum.bound + constant)
            if optimum.x is None:
                break
            x = optimum.x
            missing = float(x[r] @ x[r] - x[self.form.size :].sum())
            new = self.planes.add(x[r], low[r], high[r])
            if missing <= PLANE_TOLERANCE * abs(best) or not new or self.stop():
                break
        return best - 4 * UNIT_ROUNDOFF * (abs(best) + abs(constant)), x

    def tighten(self, low: Array, high: Array, cutoff: float, seconds: float) -> Bounds:
        """Return the bounds after one round of OBBT and of probing.

        Variables other than parameters get `seconds` of OBBT.
        """
        return self.probe(*self.obbt(low, high, cutoff, seconds), cutoff)

    def obbt(self, low: Array, high: Array, cutoff: float, seconds: float = math.inf) -> Bounds:
        """Return the least and largest values of all factors in the relaxation, parameters first.

        The others get `seconds`; the next round continues with the remaining ones.
        """
        parameters = self.form.parameters.tolist()
        low, high = self._obbt_of(low, high, cutoff, parameters)
        others = sorted(set(self.form.factors.tolist()) - set(parameters))
        if not others:
            return low, high
        self.turn %= len(others)
        turn = others[self.turn :] + others[: self.turn]
        self._done = 0
        low, high = self._obbt_of(low, high, cutoff, turn, time.monotonic() + seconds)
        self.turn += self._done
        return low, high

    def _obbt_of(
        self,
        low: Array,
        high: Array,
        cutoff: float,
        variables: Sequence[int],
        deadline: float = math.inf,
    ) -> Bounds:
        low, high = low.copy(), high.copy()
        direction = np.zeros(self.form.size + len(self.form.residuals))
        for start in range(0, len(variables), REBUILD_INTERVAL):
            p = linear_relaxation(self.form, low, high, self.planes, cutoff, self.cuts)
            for k in variables[start : start + REBUILD_INTERVAL]:
                if self.stop() or time.monotonic() > deadline:
                    return self.fbbt.tighten(low, high, cutoff)
                self._done += 1
                if not high[k] > low[k]:
                    continue
                for sign in (1.0, -1.0):
                    direction[k] = sign
                    bound = minimise(p, direction, self.remaining()).bound
                    if bound == math.inf:
                        raise Infeasible
                    if sign > 0:
                        low[k] = max(low[k], bound)
                    else:
                        high[k] = min(high[k], -bound)
                direction[k] = 0.0
            low, high = self.fbbt.tighten(low, high, cutoff)
        return low, high

    def probe(self, low: Array, high: Array, cutoff: float) -> Bounds:
        """Return the bounds without the empty ends of the parameters' ranges."""
        low, high = low.copy(), high.copy()
        for k in self.form.parameters.tolist():
            for upper in (True, False):
                for _ in range(MAX_PROBES):
                    if self.stop() or not high[k] > low[k]:
                        return low, high
                    if not self._probe_end(low, high, k, upper, cutoff):
                        break
                    low, high = self.fbbt.tighten(low, high, cutoff)
        return low, high

    def _probe_end(self, low: Array, high: Array, k: int, upper: bool, cutoff: float) -> bool:
        """Probe one end and return whether it was cut off; `low` and `high` are changed."""
        part = self.probes.get((k, upper), LARGEST_PROBE)
        at = split_point(float(low[k]), float(high[k]), 1.0 - part if upper else part)
        if not low[k] < at < high[k]:
            return False
        inner_low, inner_high = low.copy(), high.copy()
        (inner_low if upper else inner_high)[k] = at
        try:
            inner_low, inner_high = self.fbbt.tighten(inner_low, inner_high, cutoff)
            for _ in range(PROBE_ROUNDS):
                inner_low, inner_high = self._obbt_of(
                    inner_low, inner_high, cutoff, self.form.parameters.tolist()
                )
        except Infeasible:
            (high if upper else low)[k] = at
            self.probes[k, upper] = min(1.5 * part, LARGEST_PROBE)
            return True
        self.probes[k, upper] = max(0.5 * part, SMALLEST_PROBE)
        # The rest of the probed part still bounds its end.
        if upper:
            high[k] = min(high[k], inner_high[k])
        else:
            low[k] = max(low[k], inner_low[k])
        return False
