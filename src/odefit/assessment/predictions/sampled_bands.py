"""Bands from samples of the unknowns: percentiles of their curves."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import evaluated, noise_sds, outputs_of
from odefit.assessment.predictions.bands import Band
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.random_values import random_values


class SampledBands:
    """Bands from samples of the unknowns, shape (samples, n): percentiles of their curves.

    `seed` is that of the noise that the prediction band adds. Raises InputError for too few
    samples.
    """

    def __init__(self, forward: ForwardMap, vector: Array, samples: Array, seed: int = 0) -> None:
        if len(samples) < MIN_SAMPLES:
            raise InputError(
                f"bands need at least {MIN_SAMPLES} samples, and there are {len(samples)}"
            )
        self._forward = forward
        self._vector = vector
        self._samples = samples
        self._seed = seed
        self._unit = 1.0
        if not forward.given_noise:
            evaluation = evaluated(forward, vector)
            self._unit = math.sqrt(Deviance.of(forward, vector, evaluation).variance)

    def bands(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of observables and states, see :class:`BandSource`.

        Samples that cannot be integrated are left out.
        """
        random = np.random.default_rng(self._seed)
        centre = self._curves(self._vector, condition, times, None, names)
        if isinstance(centre, Failure):
            return centre
        curves: dict[str, list[Array]] = {name: [] for name in centre}
        measured: dict[str, list[Array]] = {name: [] for name in centre}
        reason = None
        for vector in self._samples:
            sample = self._curves(vector, condition, times, random, names)
            if isinstance(sample, Failure):
                reason = sample
                continue
            for name, (values, noisy, _) in sample.items():
                curves[name].append(values)
                if noisy is not None:
                    measured[name].append(noisy)
        bands = []
        for name, (values, _, observable) in centre.items():
            if len(curves[name]) < MIN_SAMPLES:
                assert reason is not None
                return reason
            every = np.array(curves[name])
            bands.append(
                Band(
                    name,
                    observable,
                    times,
                    values,
                    every.std(axis=0, ddof=1),
                    _percentiles(every, level),
                    _percentiles(np.array(measured[name]), level)
                    if measured[name]
                    else np.full((2, len(times)), np.nan),
                    np.full((2, len(times)), np.nan),
                )
            )
        return bands

    def _curves(
        self,
        vector: Array,
        condition: Condition,
        times: Array,
        random: np.random.Generator | None,
        names: Collection[str] | None,
    ) -> dict[str, tuple[Array, Array | None, bool]] | Failure:
        """Return values, values with noise, and whether it is an observable, by name."""
        forward = self._forward
        trajectory = forward.trajectory(vector, condition.name, times, sensitivities=False)
        if isinstance(trajectory, Failure):
            return trajectory
        outputs = outputs_of(forward, condition, vector, trajectory, names)
        predicted = forward.predictions(condition, vector, trajectory, noise=True)
        curves: dict[str, tuple[Array, Array | None, bool]] = {}
        for name, (output, observable) in outputs.items():
            values = output.array(len(times))
            noisy = None
            if random is not None and observable:
                sds = noise_sds(forward, condition, name, vector, predicted, times)
                if sds is not None:
                    noise = forward.problem.noise.get(name, Noise())
                    noisy = random_values(noise, values, self._unit * sds, random)
            curves[name] = values, noisy, observable
        return curves


def _percentiles(curves: Array, level: float) -> Array:
    return np.asarray(np.quantile(curves, [0.5 - level / 2, 0.5 + level / 2], axis=0))
