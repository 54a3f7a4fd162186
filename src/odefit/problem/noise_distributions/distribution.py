"""The interface of a distribution of measurements, and what those with a scale have in common.

Each measurement contributes a *deviance residual* r, of which half the square is its negative
log-density, but for terms in which no prediction occurs (P. McCullagh and J. A. Nelder,
Generalized Linear Models, 1989, section 2.4). With the derivative of r by the prediction, a sum of
these half squares is a nonlinear least squares problem: its gradient is exact, and its Gauss-Newton
matrix is positive where the true second derivative may be negative, as that of an outlier is.

Standard errors do not come from that matrix but from the Fisher information, the expectation of
the second derivatives, which is here as well.
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
        Scores over the root of their information: their squares have the expectation one under the
        density, and no outlier makes them large where there is a loss.
    scale_terms
        What half the squares leave of the negative log-densities and depends on the spread.
    constants
        What depends neither on predictions nor on the spread, log(2 pi)/2 subtracted: the normal
        density has zero.
    scale_slopes
        Derivatives of the negative log-densities by the spread.
    scale_steps
        Positive numbers whose squares stand for the second derivatives by the spread in a search.
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

    The *spread* says how far measurements scatter: the standard deviation (or what stands for it)
    of a distribution with a location and a scale, the dispersion of counts. The methods here are
    those of the former, made from :meth:`root`, :attr:`log_norm` and :attr:`fisher` of residuals
    u = (predicted - measured) / spread, on the scale of the transform. A distribution without a
    scale replaces those that call these.
    """

    # Facts of the distribution, which everything else asks for. ----------------------------------

    words: ClassVar[str] = ""
    """The name in reports; empty for the normal distribution, which goes without saying."""
    normal: ClassVar[bool] = False
    """Residuals are (predicted - measured) / sd, and values may be censored."""
    located: ClassVar[bool] = True
    """A measurement is the prediction plus the spread times a value of unit scale."""
    counts: ClassVar[bool] = False
    """Measurements are whole numbers that are not negative."""
    spread_field: ClassVar[Literal["sd", "dispersion"]] = "sd"
    """The field of a noise model with the spread, which is also the end of the unknown's name."""
    spread_words: ClassVar[str] = "standard deviation"
    has_spread: ClassVar[bool] = True
    spread_range: ClassVar[tuple[float, float] | None] = None
    """The range of start values of a spread without a unit; None for one of the data's size."""
    symmetric: ClassVar[bool] = True
    """Residuals of both signs are as probable, so that simulated fits hold for small samples."""
    kinked: ClassVar[bool] = False
    """The density has a kink where prediction and measurement agree."""
    least: ClassVar[float] = -math.inf
    """The least value that a measurement may have."""
    requirement: ClassVar[str] = ""
    """The requirement on predictions, in words, where not all numbers will do."""
    petab: ClassVar[str | None] = None
    """The name of the distribution in PEtab, and the standard deviation over PEtab's scale."""
    petab_sd: ClassVar[float] = 1.0

    # Densities -----------------------------------------------------------------------------------

    def terms(self, predicted: Array, measured: Array, spread: Array) -> Terms:
        """Return the contributions of measurements, all arrays of the shape (n,)."""
        return self.standard_terms((predicted - measured) / spread, spread)

    def information(self, predicted: Array, spread: Array, spread_is_fixed: bool = False) -> Array:
        """Return the Fisher information of predictions and spreads.

        That is b, c and d of the information [[b, c], [0, d]]' [[b, c], [0, d]], shape (n, 3). With
        `spread_is_fixed`, d may be zero.
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
        """Return measurements drawn about predictions, where there is no location and scale."""
        raise NotImplementedError

    def probabilities(
        self, predicted: Array, measured: Array, spread: Array
    ) -> tuple[Array, Array]:
        """Return the probabilities of less than a measurement, and of at most that, shape (n,)."""
        found = self.standard_probabilities((measured - predicted) / spread)
        return found, found

    # Residuals of unit scale: r^2/2 = rho(u), of a density that is proportional to exp(-rho) -----

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
        """The Fisher information of location and scale together: zero for symmetric densities."""
        return 0.0

    @property
    def mean_residual(self) -> float:
        """The expectation of the deviance residual: zero for symmetric densities."""
        return 0.0

    def standard_values(self, count: int, random: np.random.Generator) -> Array:
        """Return random measurements less predictions, of unit scale, shape (count,)."""
        raise NotImplementedError

    def interval(self, level: float) -> tuple[float, float]:
        """Return how far below and above a prediction the interval of this level ends, in sds."""
        from scipy.special import ndtri

        half = float(ndtri(0.5 + level / 2))
        return half, half

    def standard_probabilities(self, v: Array) -> Array:
        """Return the probabilities of values up to `v` = (measured - predicted)/spread, shape (n,).

        They are exact for the normal distribution, and come from the signed root of the deviance
        where a distribution does not have them itself (O. E. Barndorff-Nielsen, Biometrika 73,
        1986, 307-322).
        """
        from scipy.special import ndtr

        return np.asarray(ndtr(-self.root(-v)[0]))

    def weights(self, u: Array) -> Array:
        """Return the weights of residuals beside that of a residual of zero, shape (n,).

        A fit with these weights, as least squares have them, has the same optimum.
        """
        with np.errstate(all="ignore"):
            root, slope = self.root(u)
            _, middle = self.root(np.full(1, 1e-9))
            weights = root * slope / u / middle[0] ** 2
        return np.where(np.abs(u) > 1e-9, weights, 1.0)
