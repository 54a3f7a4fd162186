"""Fourier extension: waves that are periodic on a longer interval than that of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.option_checks import number, whole
from odefit.methods.smoothing.basis import FourierBasis
from odefit.methods.smoothing.bayesian_regression import PriorFamily, regress
from odefit.methods.smoothing.smoother import Interpolant, NormalisedSeries, SeriesSmoother


@dataclass(frozen=True)
class FourierExtension(SeriesSmoother):
    """Regularised least squares with waves on an interval `length` times as long.

    The waves are nearly dependent on the data's own interval, and many combinations of them fit
    any data. High frequencies are therefore damped by exp(-(l omega)^2 / 4), where l and the
    variance follow from the marginal likelihood: this is the Gaussian process with a squared
    exponential covariance on a circle.

    Attributes
    ----------
    terms
        Number of frequencies.
    length
        Length of the circle, relative to the interval of the data.
    """

    terms: int = 48
    length: float = 6.0

    name: ClassVar[str] = "Fourier extension"
    min_points: ClassVar[int] = 3

    def __post_init__(self) -> None:
        whole(self.terms, "FourierExtension, terms")
        number(self.length, "FourierExtension, length", least=1.0)

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the posterior mean, averaged over the length scales of the covariance."""
        basis = FourierBasis(self.terms, self.length)
        omega = basis.frequencies()

        def decay(length_scale: float) -> Array:
            damped = np.exp(-((length_scale * omega) ** 2) / 4)
            return np.concatenate([[1.0], damped, damped])

        # From the shortest wave to a covariance as wide as the circle.
        family = PriorFamily(decay, 2.0 / float(omega[-1]), self.length)
        return regress(series.x, series.y, basis, [family])[0]
