"""Deviance residuals over boxes, from Taylor models of predictions and of spreads.

Half the square of a deviance residual r is the negative log-density of a measurement, relative to
its largest one at the same spread (:mod:`odefit.problem.noise_distributions.distribution`). So any
likelihood of such terms is a sum of squares, and is bounded like one. Every distribution has a
composition of smooth functions here. For all of them r rises with the prediction, and its magnitude
falls with the spread. So values at the corners of a range give the exact range of r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.composition import (
    BEND,
    LOG_SHARE,
    RECIPROCAL,
    ROOT,
    SmoothFunction,
    chosen,
    composed,
    ranges,
    within,
)
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.noise_distributions.huber import Huber
from odefit.problem.noise_distributions.laplace import LAPLACE_ROUNDING, Laplace
from odefit.problem.noise_distributions.negative_binomial import NegativeBinomial
from odefit.problem.noise_distributions.normal import Normal, censored_terms
from odefit.problem.noise_distributions.poisson import Poisson
from odefit.problem.noise_distributions.student import Student

CORNER_ERROR = 1e-9
"""Largest error of a deviance residual at a corner, relative to it or to a thousandth; tests
compare residuals with those of many digits."""

CORNER_SHIFT = 1e-14
"""Relative shift outwards of corners, for the rounding of differences between them and data."""

LINE_SLOPE = math.sqrt(8.0)
"""Deviance of the Laplace distribution for each standard deviation of the distance."""

LINE_LOSS = LINE_SLOPE * LAPLACE_ROUNDING
"""Difference between its deviance d and the line s = LINE_SLOPE |u| far from the measured value. At
a distance u it is ``root(s^2 + LINE_LOSS^2) - LINE_LOSS``."""

VALUE_ERROR = 1e-14
"""Relative error of the logarithm of a measured value."""

HIGHEST_CAP = 1e6
"""Magnitude at which unbounded residuals are cut off if no other is given."""


@dataclass(frozen=True)
class Measurement:
    """A measured value on the scale of its noise, with the distribution of its noise.

    It is `censored` below (1) or above (-1) its value, or not (0).
    """

    law: NoiseDistribution
    value: float
    censored: int = 0


def deviance_residual(
    of: Measurement, prediction: TaylorModel, spread: TaylorModel, cap: float
) -> TaylorModel:
    """Return the deviance residual of a measurement over all boxes.

    A residual above the magnitude `cap` may count as that: sums of squares are then lower bounds.
    """
    with np.errstate(all="ignore"):
        model = _residual(of, prediction, spread)
        low, high, known = _corners(of, prediction, spread, min(2 * cap, HIGHEST_CAP))
        return within(model, low, high, known)


def deviance_line(of: Measurement, prediction: TaylorModel, spread: TaylorModel) -> TaylorModel:
    """Return the distance of a prediction by LINE_SLOPE, signed: the line of Laplace noise."""
    with np.errstate(all="ignore"):
        off = prediction - Fraction(of.value)
        off.remainder = off.remainder + VALUE_ERROR * abs(of.value)
        slope = TaylorModel.constant(off.monomials, np.full_like(off.remainder, LINE_SLOPE))
        slope.remainder = np.full_like(off.remainder, 1e-15)
        return off * composed(spread, RECIPROCAL) * slope


def _residual(of: Measurement, prediction: TaylorModel, spread: TaylorModel) -> TaylorModel:
    law, y = of.law, Fraction(of.value)
    if isinstance(law, Poisson):
        return _poisson(prediction, y)
    if isinstance(law, NegativeBinomial):
        return _negative_binomial(prediction, y, spread)
    u = (prediction - y) * composed(spread, RECIPROCAL)
    if of.censored:
        return composed(u * -of.censored, CENSORED) * of.censored
    return _STANDARD[type(law)](law, u)


def _poisson(m: TaylorModel, y: Fraction) -> TaylorModel:
    """Return the root of ``2 (m - y - y log(m/y))``, with the sign of m - y."""
    if y == 0:
        return composed(m * 2, ROOT)
    u = (m - y) * (1 / y)
    return u * composed(composed(u, BEND) * y, ROOT)


def _negative_binomial(m: TaylorModel, y: Fraction, a: TaylorModel) -> TaylorModel:
    """Return the root of the deviance of the mean m from y at the dispersion a."""
    if y == 0:
        return composed(m * composed(m * a, LOG_SHARE) * 2, ROOT)
    k = composed(a, RECIPROCAL)
    d, above = m - y, composed(k + y, RECIPROCAL)
    half = composed(d * (1 / y), BEND) * (1 / y) - composed(d * above, BEND) * above
    return d * composed(half, ROOT)


def _student(law: NoiseDistribution, u: TaylorModel) -> TaylorModel:
    """Return the root of ``(nu + 1) log(1 + u^2/nu)``."""
    assert isinstance(law, Student)
    nu = Fraction(law.degrees)
    share = composed(u * u * (1 / nu), LOG_SHARE) * ((nu + 1) / nu)
    return u * composed(share, ROOT)


def _huber(law: NoiseDistribution, u: TaylorModel) -> TaylorModel:
    """Return u, and beyond the threshold k the root of ``2 k |u| - k^2``.

    Where a range contains k, the derivative of r still has a derivative of at most 1/k.
    """
    assert isinstance(law, Huber)
    k = Fraction(law.threshold)
    middle, low, high = ranges(u)
    root, slope = law.root(middle)
    away = u - TaylorModel.constant(u.monomials, middle)
    line = away * TaylorModel.constant(u.monomials, slope)
    line = line + TaylorModel.constant(u.monomials, root)
    bend = (np.maximum(high - middle, middle - low) ** 2 / law.threshold) / 2
    error = CORNER_ERROR * (np.abs(root) + np.abs(high - low))
    line.remainder = (line.remainder + bend + error) * ROUNDING_MARGIN
    tail = composed(u * (2 * k) - k * k, ROOT)
    other = composed(u * (-2 * k) - k * k, ROOT) * -1
    r = chosen((low > -law.threshold) & (high < law.threshold), u, line)
    return chosen(low > law.threshold, tail, chosen(high < -law.threshold, other, r))


def _laplace(law: NoiseDistribution, u: TaylorModel) -> TaylorModel:
    """Return the root of twice ``root(2) (root(u^2 + e^2) - e)``."""
    e = Fraction(LAPLACE_ROUNDING)
    size = composed(u * u + e * e, ROOT)
    root_eight = TaylorModel.constant(u.monomials, np.full_like(u.remainder, LINE_SLOPE))
    root_eight.remainder = np.full_like(u.remainder, 1e-15)
    return u * composed(root_eight * composed(size + e, RECIPROCAL), ROOT)


_STANDARD: dict[type, Callable[[NoiseDistribution, TaylorModel], TaylorModel]] = {
    Normal: lambda _, u: u,
    Student: _student,
    Huber: _huber,
    Laplace: _laplace,
}
"""Deviance residuals of unit scale, by distribution."""


class Censored(SmoothFunction):
    """The root of -2 log of the normal distribution function, which falls.

    With the density over the distribution function, l, the logarithm has the derivative l, and
    ``l' = -l (z + l)`` is between -1 and 0.
    """

    least = -math.inf
    error = CORNER_ERROR
    underflow = 1e-150  # the root of that of the logarithm

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients."""
        from scipy.special import log_ndtr

        value = log_ndtr(x)
        ratio = np.exp(-0.5 * x * x - value) / math.sqrt(2 * math.pi)
        rows = [-2 * value]
        hazard = [ratio]
        for k in range(1, count):
            rows.append(-2 * hazard[k - 1] / k)
            square = sum(hazard[i] * hazard[k - 1 - i] for i in range(k))
            before = hazard[k - 2] if k > 1 else 0.0
            hazard.append(-(square + x * hazard[k - 1] + before) / k)
        return _root_series(np.array(rows))

    def largest(self, low: Array, high: Array, order: int) -> Array:
        """Return a bound of the magnitude of one coefficient over ranges."""
        from scipy.special import log_ndtr

        z = np.maximum(np.abs(low), np.abs(high))
        least, most = -2 * log_ndtr(high), -2 * log_ndtr(low)
        ratio = np.exp(-0.5 * low * low - log_ndtr(low)) / math.sqrt(2 * math.pi)
        hazard, rows = [ratio, np.minimum(1.0, ratio * (z + ratio))], [most, 2 * ratio]
        for k in range(2, order + 1):
            rows.append(2 * hazard[k - 1] / k)
            square = sum(hazard[i] * hazard[k - 1 - i] for i in range(k))
            hazard.append((square + z * hazard[k - 1] + hazard[k - 2]) / k)
        # The root of a series whose first coefficient is at least `least`, by magnitudes.
        first = np.sqrt(least)
        root = [np.sqrt(most)]
        for k in range(1, order + 1):
            square = sum(root[i] * root[k - i] for i in range(1, k))
            root.append((rows[k] + square) / (2 * first))
        return np.asarray(root[order] * (1 + 1e-6))


def _root_series(rows: Array) -> Array:
    """Return the Taylor coefficients of the root of a series."""
    root = [np.sqrt(rows[0])]
    for k in range(1, len(rows)):
        square = sum(root[i] * root[k - i] for i in range(1, k))
        root.append((rows[k] - square) / (2 * root[0]))
    return np.array(root)


CENSORED = Censored()


def _corners(
    of: Measurement, prediction: TaylorModel, spread: TaylorModel, cap: float
) -> tuple[Array, Array, BoolArray]:
    """Return the range of a residual by its values at the corners, and where it is known."""
    _, least, most = ranges(prediction)
    _, narrow, wide = ranges(spread)
    shift = CORNER_SHIFT * (np.maximum(np.abs(least), np.abs(most)) + abs(of.value)) + UNDERFLOW
    narrow, wide = narrow * (1 - CORNER_SHIFT), wide * (1 + CORNER_SHIFT)
    known = np.isfinite(least) & np.isfinite(most) & np.isfinite(wide)
    if of.law.has_spread:
        known &= narrow > 0
    values = np.stack(
        [
            _value(of, end, scale)
            for end in (least - shift, most + shift)
            for scale in (narrow, wide)
        ]
    )
    # No mean of counts is below zero, where the density vanishes unless none was counted.
    below, above = values[:2].min(axis=0), values[2:].max(axis=0)
    below = np.where(np.isnan(below), -math.inf if of.value > 0 else 0.0, below)
    known &= ~np.isnan(above)
    below = below - CORNER_ERROR * (np.abs(below) + 1e-3)
    above = above + CORNER_ERROR * (np.abs(above) + 1e-3)
    return np.clip(below, -cap, cap), np.clip(above, -cap, cap), known


def _value(of: Measurement, prediction: Array, spread: Array) -> Array:
    """Return a deviance residual in floating point."""
    measured = np.full_like(prediction, of.value)
    if of.censored:
        codes = np.full(len(prediction), of.censored, np.intp)
        return censored_terms((prediction - measured) / spread, spread, codes).residuals
    return np.asarray(of.law.terms(prediction, measured, spread).residuals)
