"""Smoothing: a measured series becomes a function with Taylor coefficients.

Shared by the methods that need derivatives of data: the algebraic one and integral matching.
For derivatives `AAA` is the default without noise and `GaussianProcess` with it; `noise_level`
tells. For values between measurements it is
`SplineByNoise`, and `AdaptiveSpline` with noise.
"""

from odefit.methods.smoothing.aaa import AAA
from odefit.methods.smoothing.adaptive_spline import AdaptiveSpline
from odefit.methods.smoothing.floater_hormann import FloaterHormann
from odefit.methods.smoothing.fourier import FourierExtension
from odefit.methods.smoothing.gaussian_process import GaussianProcess
from odefit.methods.smoothing.local_polynomial import LocalPolynomial
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.polynomial import Chebyshev
from odefit.methods.smoothing.positive import Positive
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.methods.smoothing.spline import SmoothingSpline
from odefit.methods.smoothing.spline_by_noise import SplineByNoise

__all__ = [
    "AAA",
    "AdaptiveSpline",
    "Chebyshev",
    "FloaterHormann",
    "FourierExtension",
    "GaussianProcess",
    "Interpolant",
    "LocalPolynomial",
    "Positive",
    "Smoother",
    "SmoothingSpline",
    "SplineByNoise",
    "noise_level",
]
