"""Degrees of freedom for estimated noise, of which a small sample has few.

Maximum likelihood treats all n measurements as informative about the noise, although the fitted
unknowns have used up some of them. The leverages show how many: those of an observable's
measurements sum to the number of unknowns that it determines. Its variance is S/(n - leverage)
instead of S/n. For a linear model with one standard deviation this is the estimate of the
restricted likelihood, and exact (Patterson and Thompson, Biometrika 58, 1971, 545-554). If the
standard deviation is an expression, the leverages are projected on the changes that its own
unknowns allow. This is one step of Fisher scoring towards the restricted likelihood.

Several estimated standard deviations are weights with their own errors. Covariances are widened for
these (Kenward and Roger, Biometrics 53, 1997, 983-997). Variances are sums whose degrees of freedom
are those of Satterthwaite (Biometrics Bulletin 2, 1946, 110-114).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.problem.binding import dynamic_unknowns
from odefit.simulation import ForwardMap

MIN_SHARE = 1e-9
"""Smallest share of the measurements that must be informative about the noise."""

SPAN_TOLERANCE = 1e-10
"""Largest singular value, relative to the largest, of noise parameters without further effect."""


@dataclass(frozen=True, eq=False)
class NoiseFreedom:
    """The information about the noise in the m measurements with estimated noise.

    `rows` and `sd_rows` are their rows of the Jacobian, and those that their standard deviations
    add; `leverages` measure how much of each the unknowns follow. `share` is the part of each that
    informs about its noise: 1 - p/n where n measurements have one standard deviation and their
    leverages add up to p. The variances of the maximum of the likelihood are too small by this
    factor. `unknowns` are the q that act on standard deviations alone; `logarithms`, shape (m, q),
    the derivatives of log-deviations by log-unknowns. `most` are the degrees of freedom that a
    variance has at most, those of all measurements.
    """

    rows: IntArray
    sd_rows: IntArray
    leverages: Array
    share: Array
    unknowns: IntArray
    logarithms: Array
    most: float = math.inf

    @property
    def count(self) -> int:
        """The number n of measurements whose standard deviation is estimated."""
        return len(self.rows)

    @property
    def degrees(self) -> float:
        """Their joint degrees of freedom: n minus the sum of the leverages."""
        return float(self.count - self.leverages.sum())

    @property
    def enough(self) -> bool:
        """True if every standard deviation has informative measurements left."""
        return bool((self.share > MIN_SHARE).all())

    @property
    def factors(self) -> BoolArray:
        """The unknowns that are factors of standard deviations, as booleans, shape (q,).

        The estimate of a factor has a chi-square distribution. Others, such as the terms of a sum,
        may come close to zero.
        """
        least = np.where(self.logarithms != 0.0, self.logarithms, np.inf).min(axis=0)
        return np.asarray(self.logarithms.max(axis=0) - least <= 1e-6 * np.abs(least))

    def corrected(self, vector: Array) -> Array:
        """Return the noise parameters with corrected standard deviations, shape (q,)."""
        larger = -0.5 * np.log(self.share)
        change, *_ = np.linalg.lstsq(self.logarithms, larger, rcond=SPAN_TOLERANCE)
        return np.asarray(vector[self.unknowns] * np.exp(change))


def noise_freedom(
    forward: ForwardMap, vector: Array, jacobian: Array, orthonormal: Array
) -> NoiseFreedom | None:
    """Return the degrees of freedom of an estimated noise; None if nothing is estimated.

    Noise that is not normal is left out, since no such theory exists for it. Values that may be
    censored count as much as they inform about the noise, by their expected information. The
    columns of the Jacobian are zero for unknowns that are held; `orthonormal` is a basis of them,
    shape (r, rank).
    """
    normal = [b for b in forward.series_rows if b.noise.gaussian]
    pairs = [(b.rows, b.sd_rows) for b in normal if b.sd_rows is not None and b.estimates_spread]
    if not pairs:
        return None
    rows = np.concatenate([np.arange(b.start, b.stop) for b, _ in pairs])
    sd_rows = np.concatenate([np.arange(b.start, b.stop) for _, b in pairs])
    measured = np.concatenate([np.arange(b.rows.start, b.rows.stop) for b in forward.series_rows])
    acts_elsewhere = (jacobian[measured] != 0.0).any(axis=0)
    if not all(b.gaussian for b in normal):  # whose rows include a part for the noise
        acts_elsewhere = _acting_on_predictions(forward)
    # A correlation time is not part of a standard deviation, although conditional variances contain
    # it.
    for one in forward.correlated.values():
        acts_elsewhere |= one.acting(len(acts_elsewhere))
    unknowns = np.flatnonzero((jacobian[sd_rows] != 0.0).any(axis=0) & ~acts_elsewhere)
    if not len(unknowns):
        return None
    logarithms = jacobian[np.ix_(sd_rows, unknowns)] * vector[unknowns] / math.sqrt(2.0)
    reached = (logarithms != 0.0).any(axis=1)
    rows, sd_rows, logarithms = rows[reached], sd_rows[reached], logarithms[reached]
    leverages = np.sum(orthonormal[rows] ** 2, axis=1)
    span = _span(logarithms)
    share = np.clip(1.0 - span @ (span.T @ leverages), 0.0, 1.0)
    most = max(len(measured) - orthonormal.shape[1] + len(unknowns), 1.0)
    return NoiseFreedom(rows, sd_rows, leverages, share, unknowns, logarithms, most)


def _acting_on_predictions(forward: ForwardMap) -> BoolArray:
    """Return which unknowns trajectories or observables depend on, as booleans, shape (n,)."""
    problem = forward.problem
    names = {n for e in problem.model.observables.values() for n in e.names}
    acting = np.zeros(len(problem.unknowns), dtype=bool)
    for condition in problem.conditions:
        scalars = sorted(names & condition.scalars.keys() | set(forward.field.scalars))
        acting[list(dynamic_unknowns(condition, scalars))] = True
    return acting


def corrected_covariance(orthonormal: Array, freedom: NoiseFreedom) -> Array:
    """Return the covariance of the coordinates of an orthonormal basis, shape (rank, rank)."""
    weighted = orthonormal.copy()
    factors = np.sqrt(freedom.share)[:, None]
    weighted[freedom.rows] *= factors
    weighted[freedom.sd_rows] *= factors
    return np.asarray(np.linalg.inv(weighted.T @ weighted))


def inflated_covariance(orthonormal: Array, freedom: NoiseFreedom, covariance: Array) -> Array:
    """Return the covariance with the errors of the weights, shape (rank, rank).

    With one common standard deviation nothing changes.
    """
    weighted = orthonormal[freedom.rows] * np.sqrt(freedom.share)[:, None]
    directions = _span(freedom.logarithms, freedom.share)
    known = np.sum(directions**2, axis=1)
    lost = weighted.T @ (known[:, None] * weighted)
    for direction in directions.T:
        change = weighted.T @ (direction[:, None] * weighted)
        lost -= change @ covariance @ change
    return np.asarray(covariance + 4.0 * covariance @ lost @ covariance)


def effective_degrees(
    orthonormal: Array, freedom: NoiseFreedom, directions: Array, covariance: Array
) -> Array:
    """Return the degrees of freedom of the variances of some linear combinations, shape (k,).

    `directions` are the combinations in the coordinates of the basis, shape (k, rank). The degrees
    are infinite if the variance does not depend on estimated noise. If a small part of it does,
    Satterthwaite's formula alone would exceed the number of measurements.
    """
    # Normalise the combinations: their lengths do not matter, and fourth powers may overflow.
    lengths = np.abs(directions).max(axis=1, initial=0.0)
    directions = directions / np.where(lengths > 0, lengths, 1.0)[:, None]
    variances = np.einsum("ki,ij,kj->k", directions, covariance, directions)
    known = variances > 0
    # Each measurement contributes a share of the variance; sums of shares are quadratic forms.
    influence = orthonormal[freedom.rows] @ covariance
    spread = np.zeros(len(directions))
    for column in _span(freedom.logarithms, freedom.share).T:
        form = influence.T @ ((freedom.share * column)[:, None] * influence)
        brought = np.einsum("ki,ij,kj->k", directions, form, directions)
        spread += (brought / np.where(known, variances, 1.0)) ** 2
    useful = known & (spread > 1e-14)
    degrees = np.minimum(1.0 / np.where(useful, spread, 1.0), freedom.most)
    return np.where(useful, degrees, math.inf)


def chi_square_interval(value: float, degrees: float, level: float) -> tuple[float, float]:
    """Return the interval of a standard deviation from its corrected estimate."""
    from scipy.special import chdtri

    tail = 0.5 * (1.0 - level)
    with np.errstate(divide="ignore", over="ignore"):
        low, high = value * np.sqrt(degrees / chdtri(degrees, np.array([tail, 1.0 - tail])))
    return float(low), float(high)


def _span(logarithms: Array, share: Array | None = None) -> Array:
    """Return a basis of the changes that noise parameters allow, shape (m, rank).

    It is orthonormal, in the inner product with the weights `share` if they are given.
    """
    root = 1.0 if share is None else np.sqrt(share)[:, None]
    u, s, _ = np.linalg.svd(root * logarithms, full_matrices=False)
    return np.asarray(u[:, s > SPAN_TOLERANCE * s.max(initial=0.0)] / root)
