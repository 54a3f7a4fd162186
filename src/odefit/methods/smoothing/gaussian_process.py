"""Gaussian process of an analytic function, hyperparameters by maximum marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import gammaln

from odefit.methods.smoothing.basis import Polynomials
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.regression import Prior, regress
from odefit.methods.smoothing.smoother import EPS, Interpolant, fit_normalised, refuse_weights
from odefit.problem.arrays import Array

TERMS = 40
"""Chebyshev polynomials to begin with; doubled while the prior is not negligible at the last."""

MOST_TERMS = 320
"""And not more: the cost grows with the cube."""

UNRESOLVED = 3.0
"""Times the noise that `noise_level` finds: more than that left over is signal."""


@dataclass(frozen=True)
class GaussianProcess:
    """Bayesian regression on an analytic function: for noisy data, and for exact ones.

    The prior is a Gaussian process sum_j c_j T_j(t) over Chebyshev polynomials with independent
    coefficients whose standard deviations decay the way those of analytic functions do: like
    rho^j for functions with singularities at a finite distance, or like p^j / j! for those
    without, such as exponentials and oscillations. Solutions of smooth ODEs are analytic; the
    marginal likelihood decides how much so, which of the two families holds, and how much of the
    data is noise. A stationary kernel, such as the squared exponential one, says less about
    derivatives and blows their errors up near the ends.
    """

    @property
    def name(self) -> str:
        """Gaussian process."""
        return "Gaussian process"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least 3 points."""
        refuse_weights(times, sds, self.name)
        return fit_normalised(times, values, self.name, 3, self._fit)

    def _fit(self, x: Array, y: Array) -> Interpolant:
        # More than two polynomials a datum cannot be told apart.
        most = min(max(TERMS, 2 * len(x)), MOST_TERMS)
        floor = noise_level(x, y)
        size = TERMS
        while True:
            families = (
                Prior(partial(geometric, size=size), 0.005, 0.97),
                Prior(partial(entire, size=size), 0.02, size / 3),
            )
            found, deviations = regress(x, y, Polynomials(size), families)
            # Enough, if what the prior allows beyond the last polynomial is less than noise, and
            # what was not fitted is noise: fast oscillations look like it at first.
            resolved = deviations[-1] <= max(found.sd, EPS) and found.sd <= UNRESOLVED * floor
            if resolved or size >= most:
                return found
            size = min(2 * size, most)


def geometric(rho: float, size: int) -> Array:
    """Prior standard deviations rho^j: analytic in an ellipse around the interval."""
    return rho ** np.arange(size, dtype=float)


def entire(p: float, size: int) -> Array:
    """Prior standard deviations p^j / j!, at most 1: analytic everywhere."""
    j = np.arange(size)
    result: Array = np.exp(np.minimum(j * np.log(p) - gammaln(j + 1), 0.0))
    return result
