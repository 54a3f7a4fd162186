"""Smoothing: a measured series becomes a function with Taylor coefficients.

Shared by the methods that need derivatives of data: the algebraic one and integral matching.
For data without noise `AAA` is the default, `GaussianProcess` with it; `noise_level` tells.
"""

from odefit.methods.smoothing.aaa import AAA
from odefit.methods.smoothing.floater_hormann import FloaterHormann
from odefit.methods.smoothing.fourier import FourierExtension
from odefit.methods.smoothing.gaussian_process import GaussianProcess
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.polynomial import Chebyshev
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.methods.smoothing.spline import SmoothingSpline

__all__ = [
    "AAA",
    "Chebyshev",
    "FloaterHormann",
    "FourierExtension",
    "GaussianProcess",
    "Interpolant",
    "Smoother",
    "SmoothingSpline",
    "noise_level",
]
