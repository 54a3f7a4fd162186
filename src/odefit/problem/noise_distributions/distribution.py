"""The interface of a distribution of measurements, and the shared parts of those with a scale.

Each measurement contributes a *deviance residual* r, half of whose square is its negative
log-density, up to terms without predictions (P. McCullagh and J. A. Nelder, Generalized Linear
Models, 1989, section 2.4). With the derivative of r by the prediction, a sum of these half squares
is a nonlinear least squares problem. Its gradient is exact, and its Gauss-Newton matrix is positive
even where the true second derivative is negative, as for an outlier.

Standard errors come instead from the Fisher information, the expectation of the second derivatives,
which this module also has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from odefit.common.arrays import Array

ROOT_TWO_PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Terms:
    """The parts of the negative log-likelihood of measurements, with derivatives, shape (n,) each.

    Attributes
    ----------
    residuals, slopes
        Deviance residuals, with the sign of prediction less measurement, and their derivatives by
        the prediction.
    pearson
        Scores divided by the root of their information. Their squares have expectation one under
        the density, and with a loss no outlier makes them large.
    scale_terms
        The remaining part of the negative log-densities that depends on the spread.
    constants
        The part that depends neither on predictions nor on the spread, less log(2 pi)/2, so that it
        is zero for the normal density.
    scale_slopes
        Derivatives of the negative log-densities by the spread.
    scale_steps
        Positive numbers whose squares approximate the second derivatives by the spread in a search.
    """

    residuals: Array
    slopes: Array
    pearson: Array
    scale_terms: Array
    constants: Array
    scale_slopes: Array
    scale_steps: Array


@dataclass(frozen=True)
class NoiseDistribution:
    """A distribution of measurements about their predictions; its fields are its own parameters.

    The *spread* measures the scatter of measurements. It is the standard deviation, or its
    equivalent, of a distribution with a location and a scale, and the dispersion of counts. The
    methods here are for the former, based on :meth:`root`, :attr:`log_norm` and :attr:`fisher` of
    residuals u = (predicted - measured) / spread, on the scale of the transform. A distribution
    without a scale overrides the methods that use these.
    """

    # Facts of the distribution, which other modules query. ----------------------------------

    words: ClassVar[str] = ""
    """The name in reports; empty for the normal distribution, the default."""
    normal: ClassVar[bool] = False
    """Residuals are (predicted - measured) / sd, and values may be censored."""
    located: ClassVar[bool] = True
    """A measurement is the prediction plus the spread times a value of unit scale."""
    counts: ClassVar[bool] = False
    """Measurements are nonnegative whole numbers."""
    spread_field: ClassVar[Literal["sd", "dispersion"]] = "sd"
    """The field of a noise model with the spread, which is also the end of the unknown's name."""
    spread_words: ClassVar[str] = "standard deviation"
    has_spread: ClassVar[bool] = True
    spread_range: ClassVar[tuple[float, float] | None] = None
    """The range of start values of a unitless spread; None for one of the data's size."""
    symmetric: ClassVar[bool] = True
    """Residuals of both signs are equally probable, so that simulated fits hold for small
    samples."""
    kinked: ClassVar[bool] = False
    """The density has a kink where prediction and measurement agree."""
    least: ClassVar[float] = -math.inf
    """The smallest value that a measurement may have."""
    requirement: ClassVar[str] = ""
    """The requirement on predictions, in words, if some numbers are invalid."""
    petab: ClassVar[str | None] = None
    """The name of the distribution in PEtab, and the standard deviation relative to PEtab's
    scale."""
    petab_sd: ClassVar[float] = 1.0

    # Densities -----------------------------------------------------------------------------------

    def terms(self, predicted: Array, measured: Array, spread: Array) -> Terms:
        """Return the contributions of measurements, all arrays of the shape (n,)."""
        return self.standard_terms((predicted - measured) / spread, spread)

    def information(self, predicted: Array, spread: Array, spread_is_fixed: bool = False) -> Array:
        """Return the Fisher information of predictions and spreads.

        The result has b, c and d of the information [[b, c], [0, d]]' [[b, c], [0, d]], shape (n,
        3). With `spread_is_fixed`, d may be zero.
        """
        location, scale = self.fisher
        cross = self.cross / math.sqrt(location)
        rest = math.sqrt(scale - cross * cross)
        return np.array([[math.sqrt(location), cross, rest]]) / spread[:, None]

    def expected_residuals(self, predicted: Array, spread: Array) -> Array:
        """Return the expectations of the deviance residuals, shape (n,)."""
        return np.full(len(predicted), self.mean_residual)

    def sds(self, mean: Array, spread: Array) -> Array:
        """Return the standard deviations of measurements with these means, shape (n,)."""
        return spread

    def spreads(self, mean: Array, sds: Array) -> Array:
        """Return the spreads of measurements with these means and standard deviations."""
        return sds

    def random_values(self, predicted: Array, sds: Array, random: np.random.Generator) -> Array:
        """Return random measurements, for distributions without location and scale."""
        raise NotImplementedError

    def probabilities(
        self, predicted: Array, measured: Array, spread: Array
    ) -> tuple[Array, Array]:
        """Return the probabilities of less than a measurement, and of at most it, shape (n,)."""
        two_sided = self.standard_probabilities((measured - predicted) / spread)
        return two_sided, two_sided

    # Residuals of unit scale: r^2/2 = rho(u), for a density proportional to exp(-rho) -----

    def standard_terms(self, u: Array, spread: Array) -> Terms:
        """Return the contributions of residuals u of unit scale."""
        root, root_slope = self.root(u)
        score = root * root_slope
        ones = np.ones(len(u))
        location, scale = self.fisher
        return Terms(
            root,
            root_slope / spread,
            score / math.sqrt(location),
            np.log(spread) * ones,
            (self.log_norm - math.log(ROOT_TWO_PI)) * ones,
            (1.0 - u * score) / spread,
            math.sqrt(scale) / spread * ones,
        )

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return the deviance residual of unit scale, and its derivative."""
        raise NotImplementedError

    @property
    def log_norm(self) -> float:
        """The logarithm of the integral of exp(-rho(u))."""
        raise NotImplementedError

    @property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and of scale, at unit scale."""
        raise NotImplementedError

    @property
    def cross(self) -> float:
        """The joint Fisher information of location and scale: zero for symmetric densities."""
        return 0.0

    @property
    def mean_residual(self) -> float:
        """The expectation of the deviance residual: zero for symmetric densities."""
        return 0.0

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return random measurements less predictions, of unit scale, shape (count,)."""
        raise NotImplementedError

    def interval(self, level: float) -> tuple[float, float]:
        """Return the distances, in sds, from a prediction to both ends of its interval."""
        from scipy.special import ndtri

        half = float(ndtri(0.5 + level / 2))
        return half, half

    def standard_probabilities(self, v: Array) -> Array:
        """Return the probabilities of values up to `v` = (measured - predicted)/spread, shape (n,).

        They are exact for the normal distribution. For others without their own function they come
        from the signed root of the deviance (O. E. Barndorff-Nielsen, Biometrika 73, 1986,
        307-322).
        """
        from scipy.special import ndtr

        return np.asarray(ndtr(-self.root(-v)[0]))

    def weights(self, u: Array) -> Array:
        """Return rho'(u)/u, the weights of iteratively reweighted least squares; shape of u.

        A least squares fit with these weights has the same optimum.
        """
        root, slope = self.root(u)
        return np.asarray(np.divide(root * slope, u, out=slope**2, where=np.abs(u) > 1e-9))
