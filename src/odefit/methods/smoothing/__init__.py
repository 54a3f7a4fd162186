"""Smoothing: a measured series becomes a function with Taylor coefficients.

The methods that need values or derivatives of the data share these smoothers: the algebraic method
and integral matching. For derivatives `AAA` is the default without noise and `GaussianProcess` with
noise, as estimated by `noise_level`. For values between measurements `SplineByNoise` is the
default.
"""

from odefit.methods.smoothing.aaa import AAA
from odefit.methods.smoothing.bayesian_regression import GaussianProcess
from odefit.methods.smoothing.chebyshev import Chebyshev
from odefit.methods.smoothing.floater_hormann import FloaterHormann
from odefit.methods.smoothing.local_polynomial import LocalPolynomial
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.methods.smoothing.splines.smoothing_spline import SmoothingSpline, SplineByNoise

__all__ = [
    "AAA",
    "Chebyshev",
    "FloaterHormann",
    "GaussianProcess",
    "Interpolant",
    "LocalPolynomial",
    "Smoother",
    "SmoothingSpline",
    "SplineByNoise",
    "noise_level",
]
