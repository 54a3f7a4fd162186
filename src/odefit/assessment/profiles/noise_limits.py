"""Limits of the deviance for profiles that differ between unknowns.

The profile of a standard deviation s is n log(s^2/m) + n(m/s^2 - 1), with m its square at the
maximum of the likelihood. This m is too small because other unknowns were fitted as well. The
restricted likelihood (H. D. Patterson and R. Thompson, Biometrika 58, 1971) has the degrees of
freedom v instead of n, and its maximum at m n/v. Its interval, for which n m/s^2 has a chi- square
distribution with v degrees of freedom, is expressed here as one limit for each side of the profile.
The same holds for scales of noise that is not normal, and for dispersions of counts.

Other unknowns have separate limits if simulated fits give them, see
:mod:`odefit.assessment.intervals.simulated_fits`.
"""

from __future__ import annotations

import math

import numpy as np

from odefit.assessment.intervals.degrees_of_freedom import noise_freedom
from odefit.assessment.intervals.dispersions import adjusted_dispersions
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.common.arrays import Array
from odefit.common.effects import column_space
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

LEAST_LIMIT = 1e-4
"""Limit of a side on which the interval ends at the estimate or beyond it."""


def limits_by_unknown(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, level: float
) -> dict[int, tuple[float, float]]:
    """Return the limits of the deviance on both sides, by number of the unknown.

    They are those of an estimated sd or dispersion, and those of all unknowns if they are
    simulated.
    """
    if not forward.likelihood:
        return {}
    fits = SimulatedFits.for_limits(forward, vector, evaluation)
    limits_of = {}
    if fits is not None:
        identity = np.eye(len(vector))
        for index in map(int, fits.unknowns):
            limit = float(np.quantile(fits.deviances(identity[[index]]), level))
            limits_of[index] = limit, limit
    return limits_of | _of_noise(forward, vector, evaluation, level)


def _of_noise(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, level: float
) -> dict[int, tuple[float, float]]:
    counted = adjusted_dispersions(forward, vector, evaluation, level)
    limits = {d.index: d.limits for d in counted}
    fits = SimulatedFits.of(forward, vector, evaluation)
    if fits is not None:
        limits |= fits.limits_of_scales(level)
    if limits:
        return {
            i: (max(low, LEAST_LIMIT), max(high, LEAST_LIMIT)) for i, (low, high) in limits.items()
        }
    free = ~bounds_touched(forward.problem, vector)
    jacobian = np.where(free, evaluation.information, 0.0)
    basis = column_space(jacobian[:, free], sizes_at(forward.problem, vector)[free])
    freedom = noise_freedom(forward, vector, jacobian, basis)
    if freedom is None or not freedom.enough:
        return {}
    limits = {}
    for column, index in enumerate(freedom.unknowns):
        if freedom.factors[column]:
            on_noise = freedom.logarithms[:, column] != 0.0
            degrees = float(freedom.share[on_noise].sum())
            limits[int(index)] = noise_limits(float(on_noise.sum()), degrees, level)
    return limits


def noise_limits(count: float, degrees: float, level: float) -> tuple[float, float]:
    """Return the limits of the deviance below and above the estimate.

    `count` is the number n of measurements with this standard deviation, `degrees` their degrees of
    freedom v, which is n minus the sum of their leverages.
    """
    low, high = _chi_square_region(degrees, level)
    # Chi-square of v degrees of freedom is n m / s^2.
    return _deviance(count, high, below=True), _deviance(count, low, below=False)


def _deviance(count: float, chi_square: float, below: bool) -> float:
    """Return the deviance of the variance that makes n m / s^2 this chi-square."""
    ratio = count / chi_square  # s^2 over m
    if (ratio >= 1) == below:
        return LEAST_LIMIT
    return max(count * (math.log(ratio) + 1 / ratio - 1), LEAST_LIMIT)


def _chi_square_region(degrees: float, level: float) -> tuple[float, float]:
    """Return the region of chi-square with this probability whose ends are equally likely.

    Equal likelihood refers to the variance: the restricted likelihood is the same at both ends.
    """
    from scipy.optimize import brentq
    from scipy.special import chdtr

    def deviance(x: float) -> float:
        return x - degrees - degrees * math.log(x / degrees)

    def ends(limit: float) -> tuple[float, float]:
        least = degrees * math.exp(-1 - limit / degrees)  # the deviance is above the limit there
        low = brentq(lambda x: deviance(x) - limit, least, degrees)
        most = degrees + limit + 2 * math.sqrt(degrees * limit) + 1
        while deviance(most) < limit:
            most *= 2
        return float(low), float(brentq(lambda x: deviance(x) - limit, degrees, most))

    def excess(limit: float) -> float:
        low, high = ends(limit)
        return float(chdtr(degrees, high) - chdtr(degrees, low)) - level

    most = 1.0
    while excess(most) < 0:
        most *= 2
    return ends(float(brentq(excess, 1e-12, most)))
