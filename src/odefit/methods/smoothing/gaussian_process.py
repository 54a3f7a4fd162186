"""Gaussian process of an analytic function, hyperparameters by maximum marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from odefit.common.arrays import Array
from odefit.methods.smoothing.basis import ChebyshevBasis
from odefit.methods.smoothing.bayesian_regression import PriorFamily, regress
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import EPS, Interpolant, NormalisedSeries, SeriesSmoother

FIRST_SIZE = 40
"""The first number of Chebyshev polynomials, which is doubled while the prior is not negligible at
the last of them."""

MAX_SIZE = 320  # largest number of Chebyshev polynomials: the cost grows with its cube

UNRESOLVED_RATIO = 3.0
"""Residuals over the noise that `noise_level` estimates above which residuals hold a signal."""


@dataclass(frozen=True)
class GaussianProcess(SeriesSmoother):
    """Bayesian regression on an analytic function, for noisy data and for exact ones.

    The prior is a Gaussian process sum_j c_j T_j(t) over Chebyshev polynomials with independent
    coefficients whose standard deviations decay the way those of analytic functions do: like
    rho^j for functions with singularities at a finite distance, or like p^j / j! for those
    without, such as exponentials and oscillations. Solutions of smooth ODEs are analytic; the
    marginal likelihood decides how fast the decay is, which of the two families holds, and how
    much of the data is noise. A stationary kernel, such as the squared exponential one, says less
    about derivatives, whose errors it magnifies near the ends of the interval.
    """

    name: ClassVar[str] = "Gaussian process"
    min_points: ClassVar[int] = 3

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the posterior mean with as many polynomials as the data ask for."""
        x, y = series.x, series.y
        # The data cannot tell more than two polynomials a datum apart.
        largest = min(max(FIRST_SIZE, 2 * len(x)), MAX_SIZE)
        noise = noise_level(x, y)
        size = FIRST_SIZE
        while True:
            families = (
                PriorFamily(partial(geometric_decay, size=size), 0.005, 0.97),
                PriorFamily(partial(entire_decay, size=size), 0.02, size / 3),
            )
            fit, prior_sds = regress(x, y, ChebyshevBasis(size), families)
            # There are enough polynomials if the prior allows less than the noise beyond the last
            # one, and residuals are noise: fast oscillations look like noise to few polynomials.
            resolved = prior_sds[-1] <= max(fit.sd, EPS) and fit.sd <= UNRESOLVED_RATIO * noise
            if resolved or size >= largest:
                return fit
            size = min(2 * size, largest)


def geometric_decay(rho: float, size: int) -> Array:
    """Return the prior standard deviations rho^j of functions analytic in an ellipse."""
    return rho ** np.arange(size, dtype=float)


def entire_decay(p: float, size: int) -> Array:
    """Return the prior standard deviations min(p^j / j!, 1) of functions analytic everywhere."""
    j = np.arange(size)
    decay: Array = np.exp(np.minimum(j * np.log(p) - gammaln(j + 1), 0.0))
    return decay
