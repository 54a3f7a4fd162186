"""Densities of measurements about predictions, other than the normal one, as residuals.

Each measurement contributes a *deviance residual* r, of which half the square is its negative
log-density, but for terms in which no prediction occurs (P. McCullagh and J. A. Nelder,
Generalized Linear Models, 1989, section 2.4). With the derivative of r by the prediction, a sum of
these half squares is a nonlinear least squares problem: its gradient is exact, and its Gauss-Newton
matrix is positive where the true second derivative may be negative, as that of an outlier is.

Standard errors do not come from that matrix but from the Fisher information, the expectation of
the second derivatives, which is here as well.

- Huber's loss: P. J. Huber, Robust estimation of a location parameter, 1964. It is the negative
  logarithm of a density, normal in the middle with exponential tails.
- Student's t distribution: K. L. Lange, R. J. A. Little and J. M. G. Taylor, Robust statistical
  modeling using the t distribution, 1989.
- Censored values: S. L. Beal, Ways to fit a PK model with some data below the quantification
  limit, 2001, method M3: what is below the limit L contributes the probability of being there,
  log Phi((L - f) / sd), with prediction f and the normal distribution function Phi.

:mod:`odefit.simulation.residuals.counts` has those of counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.noise import HUBER_THRESHOLD, STUDENT_DEGREES, Noise

LAPLACE_ROUNDING = 1e-4
"""Size, in standard deviations, of the residuals within which the kink of the Laplace density is
rounded off: a search finds no minimum at a kink, and no log-density changes by more than that times
the root of two."""

ROOT_TWO_PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Terms:
    """What measurements contribute to the negative log-likelihood, and its derivatives.

    All arrays have the shape (n,).

    Attributes
    ----------
    residuals
        Deviance residuals r, with the sign of prediction less measurement.
    slopes
        Their derivatives by the prediction.
    pearson
        Scores over the root of their information: their squares have the expectation one under the
        density, and no outlier makes them large where there is a loss.
    scale_terms
        What half the squares leave of the negative log-densities and depends on the scale (the
        standard deviation, or the dispersion of counts).
    constants
        What neither depends on predictions nor on the scale, log(2 pi)/2 subtracted: the normal
        density has zero.
    scale_slopes
        Derivatives of the negative log-densities by the scale.
    scale_steps
        Positive numbers whose squares stand for the second derivatives by the scale in a search.
    """

    residuals: Array
    slopes: Array
    pearson: Array
    scale_terms: Array
    constants: Array
    scale_slopes: Array
    scale_steps: Array


@dataclass(frozen=True, eq=False)
class Density:
    """The density of some measurements of one observable.

    Attributes
    ----------
    noise
        The noise model.
    censored
        As :class:`~odefit.problem.condition.Series` has it, shape (n,).
    limits
        Limits of quantification, shape (2, n), infinite where there are none.
    """

    noise: Noise
    censored: IntArray
    limits: Array

    def terms(self, predicted: Array, measured: Array, scale: Array) -> Terms:
        """Return what the measurements contribute.

        Parameters
        ----------
        predicted, measured
            Predictions and measurements on the scale of the transform, shape (n,).
        scale
            Standard deviations, shape (n,), positive.
        """
        u = (predicted - measured) / scale
        terms = self._measured(u, scale)
        if not self.censored.any():
            return terms
        below = _censored(u, scale, self.censored)
        is_measured = self.censored == 0
        return Terms(
            *(
                np.where(is_measured, getattr(terms, field.name), getattr(below, field.name))
                for field in fields(Terms)
            )
        )

    def information(self, predicted: Array, scale: Array) -> Array:
        """Return the Fisher information of predictions and scales.

        Parameters
        ----------
        predicted, scale
            As :meth:`terms` takes them.

        Returns
        -------
        Shape (n, 3): b, c and d of the information [[b, c], [0, d]]' [[b, c], [0, d]].
        """
        if np.isfinite(self.limits).any():
            return self._censored_information(predicted, scale)
        location, spread = self.fisher
        return np.array([[math.sqrt(location), 0.0, math.sqrt(spread)]]) / scale[:, None]

    def expected_residuals(self, predicted: Array, scale: Array) -> Array:
        """Return the expectations of the deviance residuals, shape (n,).

        They are zero where the density is symmetric, and are not where values may be censored.

        Parameters
        ----------
        predicted, scale
            As :meth:`terms` takes them.
        """
        from scipy.special import log_ndtr, ndtr

        expected = np.zeros(len(predicted))
        for side, limits in zip((1.0, -1.0), self.limits, strict=True):
            z = side * (limits - predicted) / scale
            finite = np.isfinite(z)
            at = np.where(finite, z, 0.0)
            # What is censored beyond the limit, and what is measured up to it:
            beyond = ndtr(at) * np.sqrt(-2 * log_ndtr(at)) - _density(at)
            expected += np.where(finite, side * beyond, 0.0)
        return expected

    def _measured(self, u: Array, scale: Array) -> Terms:
        root, root_slope = self.root(u)
        score = root * root_slope
        ones = np.ones(len(u))
        location, spread = self.fisher
        return Terms(
            root,
            root_slope / scale,
            score / math.sqrt(location),
            np.log(scale) * ones,
            (self._log_norm - math.log(ROOT_TWO_PI)) * ones,
            (1.0 - u * score) / scale,
            math.sqrt(spread) / scale * ones,
        )

    def weights(self, u: Array) -> Array:
        """Return the weights of residuals beside that of a residual of zero, shape (n,).

        A fit with these weights, as least squares have them, has the same optimum.
        """
        with np.errstate(all="ignore"):
            root, slope = self.root(u)
            _, middle = self.root(np.full(1, 1e-9))
            weights = root * slope / u / middle[0] ** 2
        return np.where(np.abs(u) > 1e-9, weights, 1.0)

    # Densities of residuals of unit scale: r^2/2 = rho, normalised -------------------------------

    @property
    def _threshold(self) -> float:
        return self.noise.threshold or HUBER_THRESHOLD

    @property
    def _degrees(self) -> float:
        return self.noise.degrees or STUDENT_DEGREES

    def root(self, u: Array) -> tuple[Array, Array]:
        """Return the deviance residual of unit scale, and its derivative."""
        if self.noise.loss == "huber":
            k = self._threshold
            far = np.abs(u) > k
            tail = np.sqrt(np.maximum(2 * k * np.abs(u) - k * k, k * k))
            return np.where(far, np.sign(u) * tail, u), np.where(far, k / tail, 1.0)
        if self.noise.loss == "student":
            nu = self._degrees
            x = u * u / nu
            ratio = np.where(x > 0, np.log1p(x) / np.where(x > 0, x, 1.0), 1.0)
            factor = np.sqrt((nu + 1) / nu * ratio)
            return u * factor, (nu + 1) / nu / (1 + x) / factor
        if self.noise.distribution == "laplace":
            # root(2) (root(u^2 + e^2) - e), without cancellation, is u^2 times this:
            size = np.hypot(u, LAPLACE_ROUNDING)
            share = math.sqrt(2.0) / (size + LAPLACE_ROUNDING)
            factor = np.sqrt(2 * share)
            return u * factor, math.sqrt(2.0) / size / factor
        return u, np.ones_like(u)

    @cached_property
    def _log_norm(self) -> float:
        """The logarithm of the integral of exp(-rho(u))."""
        if self.noise.loss == "huber":
            k = self._threshold
            return math.log(ROOT_TWO_PI * math.erf(k / math.sqrt(2)) + 2 * math.exp(-k * k / 2) / k)
        if self.noise.loss == "student":
            nu = self._degrees
            gammas = math.lgamma(nu / 2) - math.lgamma((nu + 1) / 2)
            return gammas + 0.5 * math.log(nu * math.pi)
        if self.noise.distribution == "laplace":
            return 0.5 * math.log(2.0)
        return math.log(ROOT_TWO_PI)

    @cached_property
    def fisher(self) -> tuple[float, float]:
        """The Fisher information of location and scale, at unit scale: they are orthogonal."""
        if self.noise.loss == "huber":
            k = self._threshold
            middle, edge = math.erf(k / math.sqrt(2)) * ROOT_TWO_PI, math.exp(-k * k / 2)
            norm = math.exp(self._log_norm)
            fourth = 3 * middle - 2 * edge * (k**3 + 3 * k)
            tails = 2 * k * k * edge * (k + 2 / k + 2 / k**3)
            return middle / norm, (fourth + tails) / norm - 1.0
        if self.noise.loss == "student":
            nu = self._degrees
            return (nu + 1) / (nu + 3), 2 * nu / (nu + 3)
        if self.noise.distribution == "laplace":
            return 2.0, 1.0
        return 1.0, 2.0

    def _censored_information(self, predicted: Array, scale: Array) -> Array:
        """Return the information of normal values that are censored beyond their limits.

        The scores are those of the measured value between the limits, and of the probabilities
        beyond them; whether a value was censored is no matter, only where it would have been.
        """
        with np.errstate(all="ignore"):
            low, high = (self.limits - predicted) / scale
        # Above zero, from the mirror image, since differences of numbers near one are rounding.
        mirrored = low > 0
        left, right = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
        ff, fs, ss = (
            upper - lower
            for upper, lower in zip(_normal_moments(right), _normal_moments(left), strict=True)
        )
        fs = np.where(mirrored, -fs, fs)
        for z in (low, -high):  # the same to the left and, mirrored, to the right
            at = np.where(np.isfinite(z), z, 0.0)
            part = np.where(np.isfinite(z), _hazard(at)[0] * _density(at), 0.0)
            side = 1.0 if z is low else -1.0
            ff, fs, ss = ff + part, fs + side * at * part, ss + at * at * part
        b = np.sqrt(np.maximum(ff, 0.0))
        c = np.where(b > 0, fs / np.where(b > 0, b, 1.0), 0.0)
        c = np.clip(c, -np.sqrt(np.maximum(ss, 0.0)), np.sqrt(np.maximum(ss, 0.0)))
        d = np.sqrt(np.maximum(ss - c * c, 0.0))
        return np.column_stack([b, c, d]) / np.reshape(scale * np.ones(len(b)), (-1, 1))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z * z) / ROOT_TWO_PI)


def _hazard(z: Array) -> tuple[Array, Array]:
    """Return the normal density over the distribution function at finite z, and that plus z.

    Far below zero it is -z - 1/z + 2/z^3, and the sum would lose its digits otherwise.
    """
    from scipy.special import log_ndtr

    far = z < -50.0
    away, near = np.where(far, z, -50.0), np.where(far, 0.0, z)
    excess = -1 / away + 2 / away**3
    hazard = np.exp(-0.5 * near * near - log_ndtr(near)) / ROOT_TWO_PI
    return np.where(far, excess - z, hazard), np.where(far, excess, hazard + near)


def _normal_moments(z: Array) -> tuple[Array, Array, Array]:
    """Integrate u^2, u (u^2 - 1) and (u^2 - 1)^2 with the normal density up to z."""
    from scipy.special import ndtr

    finite = np.where(np.isfinite(z), z, 0.0)
    density, below = np.where(np.isfinite(z), _density(finite), 0.0), ndtr(z)
    second = below - finite * density
    third = -(finite**2 + 2) * density
    fourth = 3 * below - (finite**3 + 3 * finite) * density
    return second, third + density, fourth - 2 * second + below


def _censored(u: Array, scale: Array, censored: IntArray) -> Terms:
    """Return the terms of values below (1) or above (-1) their limits."""
    from scipy.special import log_ndtr

    side = np.where(censored == 0, 1, censored)
    z = -side * u
    size = np.sqrt(-2 * log_ndtr(z))
    hazard, excess = _hazard(z)
    slope = np.where(size > 0, hazard / np.where(size > 0, size, 1.0), 0.0) / scale
    step = np.sqrt(hazard * np.maximum(excess, 0.0)) * np.abs(z) / scale
    zeros = np.zeros(len(u))
    return Terms(
        side * size,
        slope,
        side * size,
        zeros,
        zeros - math.log(ROOT_TWO_PI),
        np.where(step > 0, hazard * z / scale, 0.0),
        step,
    )
