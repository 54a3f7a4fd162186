"""Many linear regressions with one design at once, by maximum likelihood of any density.

Least absolute deviations are computed by the affine scaling algorithm of M. S. Meketon (Least
absolute value regression, AT&T Bell Laboratories, 1986), whose dozen iterations are weighted least
squares each; all other densities by iteratively reweighted least squares (P. W. Holland and R. E.
Welsch, Communications in Statistics A6, 1977, 813-827).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.assessment.intervals.correlated_regressions import Chains
from odefit.common.arrays import Array, IntArray
from odefit.problem.noise_distributions.distribution import NoiseDistribution

AFFINE_ITERATIONS, ITERATIONS = 14, 20
"""Numbers of iterations: of least absolute deviations, and most of reweighted least squares."""

CONVERGED = 1e-4
"""Largest change of coefficients, and relative one of scales, in the last iteration of reweighted
least squares. Both have standard errors of the order of one in regressors of unit length."""

STEP = 0.97
"""Fraction of the way to the boundary in a step of affine scaling."""

ROUNDING = 0.005
"""Size of residuals, in scales, within which the kink of Laplace's density is rounded off where
measurements of other densities stand beside those with it."""

RELAXATION = 1.5
"""Factor that shortens steps of reweighted least squares at a kink."""


@dataclass(frozen=True, eq=False)
class Part:
    """Measurements, rows of the design, with one density and one scale (an unknown or 1)."""

    rows: IntArray
    law: NoiseDistribution
    unknown: int | None
    chains: Chains | None = None
    """The correlation of its noise in time; None for noise that is independent."""

    @property
    def root_information(self) -> float:
        """The root of the Fisher information of a prediction, at unit scale."""
        return math.sqrt(self.law.fisher[0])


@dataclass(frozen=True, eq=False)
class Fitted:
    """The maxima of the likelihood.

    Shapes: coefficients `coordinates` (fits, k); `scales` (fits, parts), one where known; `costs`
    (fits,), negative log-likelihoods without constants.
    """

    coordinates: Array
    scales: Array
    costs: Array
    times: IntArray
    """Numbers of the correlation times, shape (fits, parts); zero without one."""

    @classmethod
    def joined(cls, several: Sequence[Fitted]) -> Fitted:
        """Return the joint fits of several parts of the data."""
        return cls(
            np.concatenate([f.coordinates for f in several]),
            np.concatenate([f.scales for f in several]),
            np.concatenate([f.costs for f in several]),
            np.concatenate([f.times for f in several]),
        )


def fit_all(
    design: Array,
    parts: Sequence[Part],
    values: Array,
    fixed: int | None = None,
) -> Fitted:
    """Return the fits of all data sets, shape (fits, m), to the regressors `design`, shape (m, k).

    Each row belongs to one part; the scale of part `fixed` is one, although it is unknown. Noise is
    not correlated: see :mod:`odefit.assessment.intervals.correlated_regressions` for such parts.
    """
    free = [p for p, part in enumerate(parts) if part.unknown is not None and p != fixed]
    scales = np.ones((len(values), len(parts)))
    residuals, coordinates = values, np.zeros((len(values), design.shape[1]))
    if all(part.law.kinked for part in parts) and (len(parts) == 1 or not free):
        if design.shape[1]:
            coordinates = _least_absolute_deviations(design, values)
            residuals = values - coordinates @ design.T
        _rescale(scales, residuals, parts, free)
    else:
        relaxation = RELAXATION if any(part.law.kinked for part in parts) else 1.0
        for iteration in range(ITERATIONS):
            change = 0.0
            if design.shape[1]:
                weights = _weights(residuals, scales, parts)
                step = _weighted(design, weights, residuals)
                coordinates = coordinates + (relaxation if iteration else 1.0) * step
                residuals = values - coordinates @ design.T
                change = float(np.abs(step).max())
            if max(change, _rescale(scales, residuals, parts, free)) <= CONVERGED:
                break
    times = np.zeros(scales.shape, dtype=np.intp)
    return Fitted(coordinates, scales, _costs(residuals, scales, parts), times)


def _least_absolute_deviations(design: Array, values: Array) -> Array:
    """Return the coefficients with the least sums of absolute residuals, shape (fits, k)."""
    duals = np.zeros_like(values)
    coefficients = np.zeros((len(values), design.shape[1]))
    for _ in range(AFFINE_ITERATIONS):
        weights = (1 - np.abs(duals)) ** 2
        coefficients = _weighted(design, weights, values)
        moves = weights * (values - coefficients @ design.T)
        farthest = np.maximum(moves / (1 - duals), -moves / (1 + duals)).max(axis=1)
        duals += STEP * moves / np.maximum(farthest, 1e-300)[:, None]
    return coefficients


def _weighted(design: Array, weights: Array, values: Array) -> Array:
    """Return the coefficients of weighted least squares, shape (fits, k)."""
    m, k = design.shape
    products = (design[:, :, None] * design[:, None, :]).reshape(m, k * k)
    matrices = (weights @ products).reshape(-1, k, k)
    right = ((weights * values) @ design)[:, :, None]
    return np.asarray(np.linalg.solve(matrices, right)[:, :, 0])


def _weights(residuals: Array, scales: Array, parts: Sequence[Part]) -> Array:
    weights = np.empty_like(residuals)
    for position, part in enumerate(parts):
        scale = scales[:, position, None]
        u = residuals[:, part.rows] / scale
        unit = math.sqrt(2.0) / np.hypot(u, ROUNDING) if part.law.kinked else part.law.weights(u)
        weights[:, part.rows] = unit / scale**2
    return weights


def _rescale(scales: Array, residuals: Array, parts: Sequence[Part], free: Sequence[int]) -> float:
    """Move the unknown scales towards the maximum of the likelihood; Laplace's are exact.

    Returns the largest relative change.
    """
    change = 0.0
    for position in free:
        part = parts[position]
        u = residuals[:, part.rows] / scales[:, position, None]
        moment = np.mean(part.law.weights(u) * u * u, axis=1)
        factors = moment ** (1 / part.law.fisher[1])
        scales[:, position] *= factors
        change = max(change, float(np.abs(factors - 1.0).max()))
    return change


def _costs(residuals: Array, scales: Array, parts: Sequence[Part]) -> Array:
    costs = np.zeros(len(residuals))
    for position, part in enumerate(parts):
        u = residuals[:, part.rows] / scales[:, position, None]
        costs += 0.5 * np.sum(part.law.root(u)[0] ** 2, axis=1)
        costs += len(part.rows) * np.log(scales[:, position])
    return costs
