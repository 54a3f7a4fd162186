"""Residuals of noise that is correlated in time: an Ornstein-Uhlenbeck process.

Within each experiment the noise of an observable, over its standard deviation, is a stationary
Gaussian process u. Values at a distance d in time have the correlation exp(-d/tau). It is a Markov
process, so that the density of the data is a product of the densities of each value given the
previous one, whatever the distances (R. H. Jones, Maximum likelihood fitting of ARMA models to time
series with missing observations, Technometrics 22, 1980, 389-395). With c = exp(-d/tau) the
*innovations*

    w_i = (u_i - c u_(i-1)) / sqrt(1 - c^2)

are independent and standard normal, and -2 log L is the sum of w^2 + 2 log(sd) + log(1 - c^2). They
replace the residuals. Missing values only make distances longer. Values of one experiment at the
same time belong to replicates, whose noise is independent: the first values of all times are one
series, the second ones another.

Let v = sd^2 (1 - c^2) be the variance of a value given the previous one. By Fisher scoring the
gradient of w^2/2 + log(v)/2, and the information, come from three rows of the Jacobian for each
value. The first is that of the innovation with respect to the predictions. That of the correlation
is (dc + c (dlog sd_i - dlog sd_(i-1))) / sqrt(1 - c^2) with the residual -w_i u_(i-1). That of the
variance is dlog(v)/sqrt(2) with the residual (1 - w_i^2)/sqrt(2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.binding import Binding, Bound, unknowns_of
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise

SQRT2 = math.sqrt(2.0)


def bound_time(noise: Noise, condition: Condition, estimated: int | None) -> Bound:
    """Return the correlation time of noise in an experiment: a number, an index or an expression.

    `estimated` is the index of the unknown if the noise estimates it.
    """
    time = noise.correlation_time
    if isinstance(time, Expression):
        scalar = condition.scalars.get(time.text)
        return time if scalar is None else scalar
    if time == "estimate":
        assert estimated is not None
        return estimated
    assert isinstance(time, float)
    return time


def time_depends_on_unknowns(time: Bound, condition: Condition) -> bool:
    """Return whether a correlation time depends on unknowns."""
    return bool(unknowns_of(time, condition.scalars))


def chains_of(times: Array) -> tuple[IntArray, Array]:
    """Return an order of values in which each follows its predecessor, with the distances.

    `times` are those of the values of one observable in one experiment, shape (n,). The distances
    are infinite for values without a predecessor: the first, and those after an infinite time.
    """
    order = np.argsort(times, kind="stable")
    replicate = np.zeros(len(times), dtype=np.intp)
    for place in range(1, len(order)):
        if times[order[place]] == times[order[place - 1]]:
            replicate[order[place]] = replicate[order[place - 1]] + 1
    order = np.lexsort((times, replicate))
    distances = np.full(len(times), math.inf)
    same = replicate[order[1:]] == replicate[order[:-1]]
    with np.errstate(invalid="ignore"):
        apart = np.diff(times[order])
    distances[1:][same] = apart[same]
    return order, distances


@dataclass(frozen=True, eq=False)
class Correlated:
    """The values of one observable in one experiment whose noise is correlated.

    Attributes
    ----------
    order, distances
        An order of the values, and their distances in it, see :func:`chains_of`.
    rows
        The numbers of their residuals in this order, shape (n,).
    lag_rows, sd_rows
        Those of the rows of the correlations and of the variances, in this order; None if the noise
        does not depend on unknowns.
    estimates_spread
        Whether the standard deviations depend on unknowns.
    depends
        Whether the correlation time does.
    time
        The correlation time: a number, the index of an unknown, or an expression.
    """

    order: IntArray
    distances: Array
    rows: IntArray
    lag_rows: IntArray | None
    sd_rows: IntArray | None
    estimates_spread: bool
    depends: bool
    time: Bound
    _time: Binding

    @classmethod
    def of(
        cls,
        condition: Condition,
        series: Series,
        time: Bound,
        rows: slice,
        further: tuple[slice, slice] | None,
        estimates_spread: bool,
    ) -> Correlated:
        """Return the correlated values of a series."""
        order, distances = chains_of(condition.times[series.rows])
        starts = (None, None) if further is None else (further[0].start, further[1].start)
        lag, sd = (None if start is None else start + order for start in starts)
        return cls(
            order,
            distances,
            rows.start + order,
            lag,
            sd,
            estimates_spread,
            time_depends_on_unknowns(time, condition),
            time,
            Binding([time], condition.scalars),
        )

    def value(self, vector: Array) -> float:
        """Return the correlation time."""
        return float(self._time(vector)[0])

    def correlations(self, vector: Array) -> tuple[Array, Array]:
        """Return the correlations with the previous value, and 1 - their squares, shape (n,)."""
        time = self.value(vector)
        if not time > 0:  # undefined: the caller sees that the values are not finite
            time = math.nan
        ratios = self.distances / time
        return np.exp(-ratios), -np.expm1(-2.0 * ratios)

    def acting(self, count: int) -> BoolArray:
        """Return which of `count` unknowns affect the correlation time, as booleans."""
        acting_ones = np.zeros(count, dtype=bool)
        acting_ones[[unknown for _, unknown in self._time.entries()]] = True
        return acting_ones

    def fill(self, vector: Array, residuals: Array, jacobian: Array, derivatives: bool) -> float:
        """Replace residuals over standard deviations by innovations, and fill the other rows.

        Returns the sum of the logarithms of sqrt(1 - c^2).
        """
        correlations, variances = self.correlations(vector)
        roots = np.sqrt(variances)
        linked = np.isfinite(self.distances)
        u = residuals[self.rows]
        before = np.where(linked, np.concatenate([[0.0], u[:-1]]), 0.0)
        w = (u - correlations * before) / roots
        residuals[self.rows] = w
        if self.sd_rows is not None:
            residuals[self.lag_rows] = -w * before
            residuals[self.sd_rows] = (1.0 - w**2) / SQRT2
        if derivatives:
            self._fill_jacobian(vector, jacobian, correlations, roots, linked)
        return float(np.sum(np.log(roots)))

    def log_determinant(self, vector: Array) -> float:
        """Return the sum of the logarithms of sqrt(1 - c^2)."""
        return float(0.5 * np.sum(np.log(self.correlations(vector)[1])))

    def _fill_jacobian(
        self, vector: Array, jacobian: Array, correlations: Array, roots: Array, linked: Array
    ) -> None:
        def earlier(rows: Array) -> Array:
            shifted = np.zeros_like(rows)
            shifted[1:] = rows[:-1]
            return np.where(linked[:, None], shifted, 0.0)

        column, root = correlations[:, None], roots[:, None]
        by_unknown = jacobian[self.rows]
        jacobian[self.rows] = (by_unknown - column * earlier(by_unknown)) / root
        if self.sd_rows is None:
            return
        logs = np.zeros_like(by_unknown)  # derivatives of the logarithms of standard deviations
        if self.estimates_spread:
            logs = jacobian[self.sd_rows] / SQRT2
        steps = np.zeros_like(by_unknown)  # derivatives of the correlations
        if self.depends:
            time = self.value(vector)
            by = self._time.derivative(vector, np.arange(len(vector)))[0]
            slopes = np.where(linked, correlations, 0.0)
            slopes[linked] *= self.distances[linked] / time**2
            steps = slopes[:, None] * by
        jacobian[self.lag_rows] = (steps + column * (logs - earlier(logs))) / root
        jacobian[self.sd_rows] = SQRT2 * (logs - column * steps / root**2)

    def innovations(self, vector: Array, standardised: Array) -> Array:
        """Return the innovations of residuals over standard deviations, in the data's order."""
        correlations, variances = self.correlations(vector)
        u = standardised[self.order]
        before = np.where(np.isfinite(self.distances), np.concatenate([[0.0], u[:-1]]), 0.0)
        innovations_found = np.empty_like(u)
        innovations_found[self.order] = (u - correlations * before) / np.sqrt(variances)
        return innovations_found

    def correlated(self, vector: Array, innovations: Array) -> Array:
        """Return residuals over standard deviations from innovations, in the data's order."""
        correlations, variances = self.correlations(vector)
        w = innovations[self.order] * np.sqrt(variances)
        u = np.empty_like(w)
        for i, c in enumerate(correlations.tolist()):
            u[i] = w[i] + (c * u[i - 1] if c > 0 else 0.0)
        correlated_values = np.empty_like(u)
        correlated_values[self.order] = u
        return correlated_values


def squares_of(residuals: Array, blocks: Sequence[slice]) -> float:
    """Return the sum of squares of the residuals of some series."""
    return float(sum(residuals[rows] @ residuals[rows] for rows in blocks))
