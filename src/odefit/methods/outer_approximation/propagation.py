"""Bounds by interval arithmetic, forward and backward through every row and term."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from odefit.enclosure.intervals import Interval, real_product, relational_quotient
from odefit.enclosure.rounding import UNIT_ROUNDOFF, round_up, summation_error
from odefit.methods.outer_approximation.functions import image, preimage
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm
from odefit.problem.arrays import Array, IntArray

ROUNDS = 200
"""At most so many passes through all rows and terms."""

PROGRESS = 1e-3
"""A pass has to narrow some interval by this part of its width, or be the last."""


class Infeasible(Exception):  # noqa: N818 - not an error: the finding that there is no point
    """No point lies within the bounds."""


class Propagation:
    """Repeated passes over a standard form.

    Parameters
    ----------
    form
        Rows and terms.
    """

    def __init__(self, form: StandardForm) -> None:
        self.form = form
        m = csr_array(form.matrix)
        self._matrix = m
        self._row = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))
        self._starts = m.indptr[:-1]
        self._column = m.indices.astype(np.intp)
        self._data = m.data
        self._terms = np.diff(m.indptr)[self._row]

    def __call__(
        self, lower: Array, upper: Array, cut: float = np.inf, rounds: int = ROUNDS
    ) -> Bounds:
        """Narrowed bounds.

        Parameters
        ----------
        lower, upper
            Shape (n,).
        cut
            Objectives above this are of no interest (47).
        rounds
            Passes at most.

        Raises
        ------
        Infeasible
            Nothing is left.
        """
        low, high = lower.copy(), upper.copy()
        for _ in range(rounds):
            before = low.copy(), high.copy()
            self._rows(low, high)
            self._bilinear(low, high)
            self._univariate(low, high)
            self._objective(low, high, cut)
            _check(low, high)
            if not _moved(before, (low, high)):
                break
        return low, high

    def _rows(self, low: Array, high: Array) -> None:
        """Every variable of every row from the others."""
        form, column, data = self.form, self._column, self._data
        if not len(data):
            return
        a, b = low[column], high[column]
        positive = data > 0
        with np.errstate(all="ignore"):
            least = np.where(positive, data * a, data * b)
            most = np.where(positive, data * b, data * a)
        rest_low, rest_high = self._others(least), self._others(most)
        finite = np.where(np.isfinite(least), np.abs(least), 0.0)
        finite = np.maximum(finite, np.where(np.isfinite(most), np.abs(most), 0.0))
        total = np.add.reduceat(finite, self._starts)[self._row]
        target = form.target[self._row]
        slack = (
            2.0 * summation_error(self._terms) * (total + np.abs(target))
            + 16 * UNIT_ROUNDOFF * total
        )
        with np.errstate(all="ignore"):
            bottom = (target - rest_high - slack) / data
            top = (target - rest_low + slack) / data
        bottom, top = np.where(positive, bottom, top), np.where(positive, top, bottom)
        bottom = bottom - 4 * UNIT_ROUNDOFF * np.abs(bottom)
        top = top + 4 * UNIT_ROUNDOFF * np.abs(top)
        np.maximum.at(
            low, column, np.nan_to_num(bottom, nan=-np.inf, neginf=-np.inf, posinf=np.inf)
        )
        np.minimum.at(high, column, np.nan_to_num(top, nan=np.inf, neginf=-np.inf, posinf=np.inf))

    def _others(self, values: Array) -> Array:
        """By entry, the sum of the other entries of its row; infinite if one of them is."""
        infinite = ~np.isfinite(values)
        finite = np.where(infinite, 0.0, values)
        total = np.add.reduceat(finite, self._starts)[self._row] - finite
        count = np.add.reduceat(infinite.astype(float), self._starts)[self._row] - infinite
        sign = np.add.reduceat(np.where(infinite, np.sign(values), 0.0), self._starts)
        return np.where(count > 0, np.where(sign[self._row] < 0, -np.inf, np.inf), total)

    def _bilinear(self, low: Array, high: Array) -> None:
        k, i, j = self.form.bilinear.T
        if not len(k):
            return
        first, second = Interval(low[i], high[i]), Interval(low[j], high[j])
        _narrow(low, high, k, real_product(first, second))
        product = Interval(low[k], high[k])
        _narrow(low, high, i, relational_quotient(product, second))
        _narrow(low, high, j, relational_quotient(product, Interval(low[i], high[i])))

    def _univariate(self, low: Array, high: Array) -> None:
        for t in self.form.univariate:
            i, k = t.argument, t.result
            bottom, top = image(t.function, float(low[i]), float(high[i]), t.exponent)
            low[k], high[k] = max(low[k], bottom), min(high[k], top)
            at = float(low[i]), float(high[i])
            bottom, top = preimage(t.function, float(low[k]), float(high[k]), at, t.exponent)
            low[i], high[i] = max(low[i], bottom), min(high[i], top)

    def _objective(self, low: Array, high: Array, cut: float) -> None:
        """No residual is larger than what the others leave of the cut."""
        if not np.isfinite(cut):
            return
        form, r = self.form, self.form.residuals
        magnitude = np.where(
            (low[r] <= 0) & (high[r] >= 0), 0.0, np.minimum(abs(low[r]), abs(high[r]))
        )
        least = magnitude**2
        used = np.flatnonzero(form.linear)
        factor = form.linear[used]
        parts = np.where(factor > 0, factor * low[used], factor * high[used])
        base = float(np.sum(parts)) + form.constant
        if not np.isfinite(base):
            return
        total = float(least.sum())
        slack = 1e-12 * (total + abs(cut) + float(np.abs(parts).sum()) + abs(form.constant))
        if total + base > cut + slack:
            raise Infeasible
        room = round_up(
            np.sqrt(np.maximum(cut + slack - base - (total - least), 0.0)) * (1 + 4 * UNIT_ROUNDOFF)
        )
        np.maximum.at(low, r, -room)
        np.minimum.at(high, r, room)


def _narrow(low: Array, high: Array, index: IntArray, found: Interval) -> None:
    np.maximum.at(low, index, found.low)
    np.minimum.at(high, index, found.high)


def _check(low: Array, high: Array) -> None:
    """Stop at bounds that cross."""
    # Every bound is rounded outward: those that cross leave nothing, however little they do.
    if (low > high).any():
        raise Infeasible


def _moved(before: Bounds, after: Bounds) -> bool:
    with np.errstate(all="ignore"):
        width = before[1] - before[0]
        gained = (after[0] - before[0]) + (before[1] - after[1])
        fresh = np.isinf(width) & ((after[0] != before[0]) | (after[1] != before[1]))
        return bool(np.any(fresh | (gained > PROGRESS * width)))
