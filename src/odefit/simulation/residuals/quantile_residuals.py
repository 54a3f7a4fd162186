"""Quantile residuals: standard normal under a correct model, for any distribution of noise.

A value whose distribution function is p there has the residual Phi^-1(p). For counts, p is drawn
between the probabilities of a smaller count and of at most the count. For censored values, it is
drawn from the range in which they lie (P. K. Dunn and G. K. Smyth, Randomized quantile residuals,
Journal of Computational and Graphical Statistics 5, 1996, 236-244).
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed

LEAST = 1e-300
"""The smallest probability: that of 37 standard deviations."""


def quantile_residuals(
    noise: Noise,
    series: Series,
    predicted: Array,
    standardized: Array,
    sds: Array,
    random: np.random.Generator,
) -> Array:
    """Return the quantile residuals of a series, with the sign of measured minus predicted.

    `predicted` are the predictions, in natural units, `standardized` the residuals of the search
    and `sds` the standard deviations, on the scale of the noise model; all have the shape (n,).
    Residuals of normal noise are the standardised ones, and those of correlated noise the
    innovations. `random` draws the places of counts and censored values.
    """
    plain = -standardized
    if noise.gaussian and series.censored is None:
        return plain
    from scipy.special import ndtri

    law = noise.law
    spread = law.spreads(predicted, sds)
    with np.errstate(all="ignore"):
        middle = transformed(predicted, noise.transform)
        measured = transformed(series.values, noise.transform)
        low, high = law.probabilities(middle, measured, spread)
    codes = np.zeros(len(plain), dtype=np.intp) if series.censored is None else series.censored
    # The true value is below a limit with the code 1, and above it with -1.
    low, high = np.where(codes == 1, 0.0, low), np.where(codes == -1, 1.0, high)
    drawn = low + (high - low) * random.random(len(plain))
    residuals = ndtri(np.clip(drawn, LEAST, 1.0 - 1e-16))
    if law.located and law.symmetric:
        # Near one, p has few digits; the lower tail of the mirrored value has full precision.
        mirrored, _ = law.probabilities(-middle, -measured, spread)
        upper = (codes == 0) & (measured > middle)
        residuals = np.where(upper, -ndtri(np.clip(mirrored, LEAST, 1.0)), residuals)
    if law.normal:
        residuals = np.where(codes == 0, plain, residuals)
    return np.asarray(residuals)
