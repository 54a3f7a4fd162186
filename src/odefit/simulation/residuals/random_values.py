"""Random measurements from any density of the noise model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.noise import HUBER_THRESHOLD, STUDENT_DEGREES, Noise
from odefit.simulation.residuals.noise import SeriesResiduals, limits_of


def random_series(
    noise: Noise, series: Series, block: SeriesResiduals, random: np.random.Generator
) -> Series:
    """Return measurements drawn from the density of the noise model about predictions.

    Values beyond the limits of quantification are censored there.

    Parameters
    ----------
    noise, series
        The noise model, and the series that is to be replaced.
    block
        The predictions and the scale of their noise.
    random
        The source of randomness.
    """
    n = len(series.values)
    values = random_values(noise, block.predicted, block.sd.array(n), random)
    if noise.counts:
        return replace(series, values=values)
    sds = series.sds
    if noise.relative is not None and sds is None:
        # The noise is a fraction of what was measured: it stays what it was.
        sds = noise.relative * np.abs(series.values)
    low, high = limits_of(noise, series)
    censored = np.where(values <= low, 1, np.where(values >= high, -1, 0))
    values = np.clip(values, low, high)
    return Series(series.rows, values, sds, censored if censored.any() else None)


def random_values(noise: Noise, predicted: Array, sd: Array, random: np.random.Generator) -> Array:
    """Return values drawn from the density of the noise model, shape (n,), none of them censored.

    Parameters
    ----------
    noise
        The noise model.
    predicted, sd
        Predictions, and the standard deviations on the scale of the noise model, shape (n,). Those
        of counts follow from their means.
    random
        The source of randomness.
    """
    if noise.counts:
        return _counts(noise, predicted, sd, random)
    difference = standard_values(noise, len(predicted), random) * sd
    if noise.transform is None:
        return np.asarray(predicted + difference)
    base = math.e if noise.transform == "log" else 10.0
    return np.asarray(predicted * base**difference)


def wideness(noise: Noise, level: float) -> float:
    """Return how much wider than the normal one the interval of single values is, in terms of sd.

    Parameters
    ----------
    noise
        The noise model.
    level
        The share of the values that the interval is to hold, between 0 and 1.
    """
    from scipy.special import ndtri, stdtrit

    normal = float(ndtri(0.5 + level / 2))
    if noise.loss == "student":
        return float(stdtrit(noise.degrees or STUDENT_DEGREES, 0.5 + level / 2)) / normal
    if noise.distribution == "laplace":
        return -math.log(1 - level) / math.sqrt(2) / normal
    if noise.loss == "huber":
        k = noise.threshold or HUBER_THRESHOLD
        far, all_ = _masses(k)
        beyond = (1 - level) * all_
        if beyond < far:
            return (k + math.log(far / beyond) / k) / normal
        share = (all_ - beyond) / math.sqrt(2 * math.pi)
        return float(ndtri(0.5 + share / 2)) / normal
    return 1.0


def _masses(k: float) -> tuple[float, float]:
    """Return the mass of the tails of Huber's density, and of all of it, before normalisation."""
    far = 2 * math.exp(-k * k / 2) / k
    return far, far + math.sqrt(2 * math.pi) * math.erf(k / math.sqrt(2))


def standard_values(noise: Noise, count: int, random: np.random.Generator) -> Array:
    """Return residuals of unit scale under a density that is not that of counts, shape (count,)."""
    if noise.loss == "student":
        return random.standard_t(noise.degrees or STUDENT_DEGREES, count)
    if noise.distribution == "laplace":
        return random.laplace(0.0, 1 / math.sqrt(2), count)
    if noise.loss == "huber":
        k = noise.threshold or HUBER_THRESHOLD
        tails, all_ = _masses(k)
        far = random.random(count) < tails / all_
        from scipy.special import ndtr, ndtri

        low, high = ndtr(-k), ndtr(k)
        near = ndtri(low + (high - low) * random.random(count))
        signs = random.choice([-1.0, 1.0], count)
        return np.asarray(np.where(far, signs * (k + random.exponential(1 / k, count)), near))
    return random.standard_normal(count)


def _counts(noise: Noise, mean: Array, sd: Array, random: np.random.Generator) -> Array:
    mean = np.maximum(mean, 0.0)
    if noise.distribution == "poisson":
        return random.poisson(mean).astype(float)
    # The variance is m + a m^2, a gamma distribution of the means of Poisson counts.
    square = np.maximum(sd**2 - mean, 0.0)
    shape = np.divide(mean**2, square, out=np.full(len(mean), math.inf), where=square > 0)
    spread = (shape < 1e12) & (mean > 0)
    drawn = random.gamma(np.where(spread, shape, 1.0), 1.0) * mean / np.where(spread, shape, 1.0)
    return random.poisson(np.where(spread, drawn, mean)).astype(float)
