"""What of a penalised spline does not depend on the measured values, shared by all series."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpbtrf

from odefit.common.arrays import Array
from odefit.methods.smoothing.smoother import NormalisedSeries
from odefit.methods.smoothing.splines.bsplines import BandedRows, BSplines, breakpoints_among

LOG_STEP = 0.1
"""The step in the logarithm of the smoothing parameter by which determinants are differenced."""

MAX_SHARED_SIZE = 1000
"""The largest number of times whose design is kept: beyond, its memory counts for more than the
time that it takes."""

MAX_SHARED_DESIGNS = 8  # number of designs that are kept for other series at the same times


class Factorisation(NamedTuple):
    """The normal equations for one smoothing parameter."""

    factor: Array | None  # their banded Cholesky factor; None where rounding makes them singular
    log_determinant: float  # logarithm of their determinant; NaN where they are singular


@dataclass(frozen=True, eq=False)
class PenalisedDesign:
    """The B-splines at the times of the data, with the penalty on their p-th derivative.

    All matrices are banded: a factorisation costs O(n p^2), and so does the determinant in the
    restricted likelihood. The trace in cross-validation is the derivative of that determinant's
    logarithm, which is found by differences.

    The states of an experiment are mostly measured at the same times, and so are the data sets of
    a study: what is computed for one of them is kept for the others.
    """

    # normalised times and the weights of the data there, shape (n,)
    x: Array
    data_weights: Array
    basis: BSplines  # the B-splines, of degree 2p - 1
    _known: dict[float, Factorisation] = field(default_factory=dict, repr=False)

    @property
    def order(self) -> int:
        """The order p of the derivative that is penalised."""
        return (self.basis.degree + 1) // 2

    @property
    def size(self) -> int:
        """The number of B-splines, m."""
        return self.basis.size

    @cached_property
    def rows(self) -> BandedRows:
        """The B-splines at the data."""
        return self.basis.rows(self.x)

    @cached_property
    def gram(self) -> Array:
        """The weighted products of the B-splines at the data, banded."""
        return self.rows.gram(self.data_weights)

    @property
    def points(self) -> Array:
        """The Gauss points, by which squares of the penalised derivative are integrated exactly."""
        return self._gauss[0]

    @property
    def quadrature(self) -> Array:
        """The quadrature weights of the Gauss points."""
        return self._gauss[1]

    @cached_property
    def derivatives(self) -> BandedRows:
        """The p-th derivatives of the B-splines at the Gauss points."""
        return self.basis.rows(self.points, self.order)

    @cached_property
    def penalty(self) -> Array:
        """The integrals of products of the p-th derivatives, banded."""
        return self.derivatives.gram(self.quadrature)

    @property
    def unit(self) -> float:
        """The lambda at which data and penalty have equal weights where data are densest."""
        return self._densities[0]

    @property
    def unevenness(self) -> float:
        """The ratio to `unit` of the lambda where data are sparsest, the rarest tenth left out."""
        return self._densities[1] / self._densities[0]

    def factorisation(self, ratio: float) -> Factorisation:
        """Return the factorised normal equations with lambda = ratio * unit."""
        found = self._known.get(ratio)
        if found is None:
            normal = self.gram + (ratio * self.unit) * self.penalty
            factor, failed = dpbtrf(normal, lower=1, overwrite_ab=1)
            found = (
                Factorisation(None, math.nan)
                if failed
                else Factorisation(factor, _log_determinant(factor))
            )
            if len(self.x) <= MAX_SHARED_SIZE:
                self._known[ratio] = found
        return found

    def effective_parameters(self, ratio: float) -> float:
        """Return the trace of the matrix that maps data to fitted values."""
        above, below = (
            self.factorisation(ratio * float(np.exp(step))) for step in (LOG_STEP, -LOG_STEP)
        )
        if above.factor is None or below.factor is None:
            return float(self.order)
        difference = above.log_determinant - below.log_determinant
        return self.size - difference / (2 * LOG_STEP)

    @cached_property
    def _densities(self) -> tuple[float, float]:
        ratios = np.sort(self.gram[0] / self.penalty[0])
        rare = self.size // 10
        return float(ratios[rare]), float(ratios[-1 - rare])

    @cached_property
    def _gauss(self) -> tuple[Array, Array]:
        return self.basis.gauss_points(self.order)


def penalised_design(series: NormalisedSeries, order: int, pieces: int) -> PenalisedDesign:
    """Return the design for times and weights of a series, which other series at these times share.

    There is at most one polynomial piece less than there are times.
    """
    if len(series.x) > MAX_SHARED_SIZE:
        return _design(series.x, series.weights, order, pieces)
    return _shared(series.x.tobytes(), series.weights.tobytes(), order, pieces)


@lru_cache(MAX_SHARED_DESIGNS)
def _shared(x: bytes, weights: bytes, order: int, pieces: int) -> PenalisedDesign:
    return _design(np.frombuffer(x), np.frombuffer(weights), order, pieces)


def _design(x: Array, weights: Array, order: int, pieces: int) -> PenalisedDesign:
    return PenalisedDesign(x, weights, BSplines(breakpoints_among(x, pieces), 2 * order - 1))


def _log_determinant(factor: Array) -> float:
    """Return the log determinant of a matrix with a banded Cholesky factor."""
    return 2 * float(np.log(factor[0]).sum())
