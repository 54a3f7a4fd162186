"""Feasibility-based bound tightening (FBBT): interval arithmetic through every row and term.

Each row and term bounds each of its variables by the bounds of the others, forward from arguments
to results and backward (P. Belotti et al., Branching and bounds tightening techniques for
non-convex MINLP, 2009).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.intervals import Interval, real_product, relational_quotient
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF, round_up, summation_error
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm

MAX_PASSES = 200
"""Largest number of passes through all rows and terms."""

LEAST_PROGRESS = 1e-3
"""Part of its width by which a pass has to narrow some interval, or it is the last."""

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

        Infeasible is raised if there is no such point within the bounds.
        """
        low, high = lower.copy(), upper.copy()
        for _ in range(MAX_PASSES):
            before = low.copy(), high.copy()
            self._rows(low, high)
            self._bilinear(low, high)
            self._univariate(low, high)
            self._objective(low, high, cutoff)
            # Every bound is rounded outward: those that cross leave nothing, however little.
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
        """Return for each entry the sum of the others of its row, infinite if one of them is."""
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
        """Bound each residual by what the others leave of the cutoff."""
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


def _narrow(low: Array, high: Array, index: IntArray, found: Interval) -> None:
    np.maximum.at(low, index, found.low)
    np.minimum.at(high, index, found.high)


def _moved(before: Bounds, after: Bounds) -> bool:
    with np.errstate(all="ignore"):
        width = before[1] - before[0]
        gained = (after[0] - before[0]) + (before[1] - after[1])
        fresh = np.isinf(width) & ((after[0] != before[0]) | (after[1] != before[1]))
        return bool(np.any(fresh | (gained > LEAST_PROGRESS * width)))
