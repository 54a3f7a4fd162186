"""Fourier extension: waves that are periodic on a longer interval than that of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.basis import Waves
from odefit.methods.smoothing.regression import Prior, regress
from odefit.methods.smoothing.smoother import Interpolant, fit_normalised, refuse_weights
from odefit.problem.arrays import Array
from odefit.problem.option_checks import number, whole


@dataclass(frozen=True)
class FourierExtension:
    """Regularised least squares with waves on an interval `length` times as long.

    The waves are nearly dependent on the data's own interval, and many of them fit any data.
    High frequencies are therefore held down by exp(-(l omega)^2 / 4), where l and the weight
    follow from the marginal likelihood: the Gaussian process with a squared exponential
    covariance on a circle.

    Attributes
    ----------
    terms
        Frequencies.
    length
        Of the circle, relative to the interval of the data.
    """

    terms: int = 48
    length: float = 6.0

    def __post_init__(self) -> None:
        whole(self.terms, "FourierExtension, terms")
        number(self.length, "FourierExtension, length", least=1.0)

    @property
    def name(self) -> str:
        """Fourier extension."""
        return "Fourier extension"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least 3 points."""
        refuse_weights(times, sds, self.name)
        return fit_normalised(times, values, self.name, 3, self._fit)

    def _fit(self, x: Array, y: Array) -> Interpolant:
        basis = Waves(self.terms, self.length)
        omega = basis.frequencies()

        def decay(width: float) -> Array:
            damped = np.exp(-((width * omega) ** 2) / 4)
            return np.concatenate([[1.0], damped, damped])

        # From the finest wave to a bell as wide as the circle.
        return regress(x, y, basis, [Prior(decay, 2.0 / float(omega[-1]), self.length)])[0]
