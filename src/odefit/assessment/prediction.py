"""Predictions with bands: the model's values at any time, and how far the data support them.

A confidence band holds the model's own curve, a prediction band the next measurement of it. The
linear bands (G. A. F. Seber and C. J. Wild, Nonlinear Regression, 1989, section 5.1) take the
covariance of the unknowns through the sensitivities; those of samples are percentiles of curves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from odefit.assessment.intervals.degrees_of_freedom import (
    corrected_covariance,
    effective_degrees,
    inflated_covariance,
    noise_freedom,
)
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.dispersions import AdjustedDispersion, adjusted_dispersions
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.assessment.intervals.small_samples import quantile_of
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES
from odefit.common.arrays import Array
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.common.errors import InputError
from odefit.expressions.algebras import Dual
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.residuals.noise import standard_deviations
from odefit.simulation.residuals.random_values import random_values
from odefit.simulation.trajectories.trajectory import Trajectory
from odefit.structure.signs import nonnegative_names

UNDETERMINED_SHARE = 1e-5
"""Share of the gradient of a prediction in directions that the data do not determine, above which
the prediction is not determined either."""


@dataclass(frozen=True, eq=False)
class Band:
    """The prediction of one observable or state in one experiment.

    `values`, shape (k,), are those at the estimate, with standard `errors`, NaN where the data do
    not determine them. `confidence` and `prediction` are the ends of the bands, shape (2, k); the
    latter is NaN without a noise model. `cut` tells that a linear band was cut at zero, which the
    equations keep the values above.
    """

    name: str
    observable: bool
    times: Array
    values: Array
    errors: Array
    confidence: Array
    prediction: Array
    cut: bool = False


class BandSource(Protocol):
    """Makes bands of the predictions of an experiment."""

    def bands(self, condition: Condition, times: Array, level: float) -> list[Band] | Failure:
        """Return the bands of all observables and states at increasing times, or a failure."""


class LinearBands:
    """Bands by linearisation at the estimate, with Student's t where the noise is estimated.

    Raises InputError if the model cannot be integrated at the estimate, or if its trajectories
    begin anew at shooting nodes, so that they have no sensitivities.
    """

    def __init__(self, forward: ForwardMap, vector: Array) -> None:
        if forward.nodes is not None:
            raise InputError(
                "the answer is on shooting nodes, since no single integration can follow it; "
                "there are no linear bands of it"
            )
        evaluation = _evaluated(forward, vector)
        self._forward = forward
        self._vector = vector
        self._deviance = Deviance.of(forward, vector, evaluation)
        jacobian = evaluation.information
        norms, self._effective = acting(jacobian, sizes_at(forward.problem, vector))
        self._norms = np.where(self._effective, norms, 1.0)
        u, s, vt = np.linalg.svd(jacobian / self._norms, full_matrices=False)
        known = s > RANK_TOLERANCE * s.max(initial=0.0)
        self._orthonormal = u[:, known]
        self._directions = vt[known] / s[known, None]
        self._basis = vt[known]
        self._covariance = self._deviance.variance * np.eye(int(known.sum()))
        self._freedom = None
        self._noise_vector = vector
        self._fits = SimulatedFits.of(forward, vector, evaluation)
        if self._fits is not None:
            self._noise_vector = vector.copy()
            for index, (factor, *_) in self._fits.scales(0.95).items():
                self._noise_vector[index] *= factor
        elif forward.likelihood:
            self._freedom = noise_freedom(forward, vector, jacobian, self._orthonormal)
            self._scatter_of_counts(adjusted_dispersions(forward, vector, evaluation, 0.95))
        if self._freedom is not None:
            if self._freedom.enough:
                self._covariance = corrected_covariance(self._orthonormal, self._freedom)
                self._noise_vector = vector.copy()
                self._noise_vector[self._freedom.unknowns] = self._freedom.corrected(vector)
            else:
                self._covariance = np.full_like(self._covariance, np.nan)

    def _scatter_of_counts(self, dispersions: Sequence[AdjustedDispersion]) -> None:
        """Let counts scatter as adjusted dispersions say, larger than those of the likelihood."""
        weighted = self._orthonormal.copy()
        for found in dispersions:
            weighted[found.counts.rows] *= np.sqrt(found.counts.weights(found.estimate))[:, None]
            self._noise_vector = self._noise_vector.copy()
            self._noise_vector[found.index] = found.estimate
        if dispersions:
            self._covariance = np.linalg.pinv(weighted.T @ weighted)

    def bands(self, condition: Condition, times: Array, level: float) -> list[Band] | Failure:
        """Return the bands of all observables and states, see :class:`BandSource`.

        A confidence band ends at zero for what the equations and the bounds keep from being
        negative: there its level is as high, since nothing that is left out can be true.
        """
        found = self.uncut(condition, times, level)
        if isinstance(found, Failure):
            return found
        floors = nonnegative_names(self._forward.problem, condition)
        return [_cut(band) if band.name in floors else band for band in found]

    def uncut(self, condition: Condition, times: Array, level: float) -> list[Band] | Failure:
        """Return the bands as the linearisation has them, whatever their sign."""
        vector = self._vector
        trajectory = self._forward.trajectory(vector, condition.name, times)
        if isinstance(trajectory, Failure):
            return trajectory
        found = []
        outputs = _outputs(self._forward, condition, vector, trajectory)
        predicted = self._forward.predictions(condition, vector, trajectory, noise=True)
        for name, (output, observable) in outputs.items():
            values = output.array(len(times))
            errors, quantiles = self._errors(output, len(times), level)
            log = _base(self._forward, name) if observable else None
            scatter = []
            if observable:
                at = self._noise_vector
                sds = noise_sds(self._forward, condition, name, at, predicted, times)
                unit = 1.0 if self._forward.given_noise else math.sqrt(self._deviance.variance)
                own = self._forward.problem.noise.get(name, Noise())
                if sds is not None:
                    ends = (end / quantile_of(level, math.inf) for end in own.law.interval(level))
                    scatter = [unit * end * sds for end in ends]
            found.append(
                Band(
                    name,
                    observable,
                    times,
                    values,
                    errors,
                    _ends(values, errors, (0.0, 0.0), quantiles, log),
                    _ends(values, errors, scatter, quantiles, log)
                    if scatter
                    else np.full((2, len(times)), np.nan),
                )
            )
            if observable and math.isfinite(own.law.least):
                np.maximum(found[-1].prediction, own.law.least, out=found[-1].prediction)
        return found

    def _errors(self, output: Dual, count: int, level: float) -> tuple[Array, Array]:
        """Return standard errors and quantiles of an output; NaN where it is not determined."""
        gradient = np.zeros((count, len(self._vector)))
        for i, partial in output.partials.items():
            gradient[:, i] = partial
        unbounded = ~np.isfinite(gradient).all(axis=1)  # as that of a root of zero
        gradient[unbounded] = 0.0
        scaled = gradient / self._norms
        size = np.sqrt(np.sum(scaled**2, axis=1))
        left = scaled - (scaled @ self._basis.T) @ self._basis
        lost = np.sqrt(np.sum(left**2, axis=1)) > UNDETERMINED_SHARE * size
        lost |= np.any(scaled[:, ~self._effective] != 0, axis=1) | unbounded
        if self._fits is not None:
            errors = np.where(lost, np.nan, self._fits.errors(gradient))
            with np.errstate(invalid="ignore", divide="ignore"):
                quantiles = self._fits.half_widths(gradient, level) / errors
            return errors, np.where(errors > 0, quantiles, quantile_of(level, math.inf))
        directions = scaled @ self._directions.T
        covariance = self._covariance
        degrees = np.full(count, self._deviance.degrees)
        if self._freedom is not None and self._freedom.enough:
            covariance = inflated_covariance(self._orthonormal, self._freedom, covariance)
            degrees = effective_degrees(
                self._orthonormal, self._freedom, directions, self._covariance
            )
        errors = np.sqrt(np.einsum("ki,ij,kj->k", directions, covariance, directions))
        return np.where(lost, np.nan, errors), np.array([quantile_of(level, d) for d in degrees])


def _cut(band: Band) -> Band:
    """Return a band without what is below zero, if the value itself is not below."""
    low, high = band.confidence
    beyond = (low < 0) & (band.values >= 0)
    if not beyond.any():
        return band
    return replace(band, confidence=np.array([np.where(beyond, 0.0, low), high]), cut=True)


def _evaluated(forward: ForwardMap, vector: Array) -> Evaluation:
    evaluation = forward.evaluate(vector)
    if isinstance(evaluation, Failure):
        raise InputError(f"bands need a model that can be integrated: {evaluation}")
    return evaluation


class SampledBands:
    """Bands from samples of the unknowns, shape (samples, n): percentiles of their curves.

    `seed` is that of the noise that the prediction band adds. Raises InputError for too few
    samples.
    """

    def __init__(self, forward: ForwardMap, vector: Array, samples: Array, seed: int = 0) -> None:
        if len(samples) < MIN_SAMPLES:
            raise InputError(f"bands need at least {MIN_SAMPLES} samples, there are {len(samples)}")
        self._forward = forward
        self._vector = vector
        self._samples = samples
        self._seed = seed
        self._unit = 1.0
        if not forward.given_noise:
            evaluation = _evaluated(forward, vector)
            self._unit = math.sqrt(Deviance.of(forward, vector, evaluation).variance)

    def bands(self, condition: Condition, times: Array, level: float) -> list[Band] | Failure:
        """Return the bands of all observables and states, see :class:`BandSource`.

        Samples that cannot be integrated are left out.
        """
        random = np.random.default_rng(self._seed)
        centre = self._curves(self._vector, condition, times, None)
        if isinstance(centre, Failure):
            return centre
        curves: dict[str, list[Array]] = {name: [] for name in centre}
        measured: dict[str, list[Array]] = {name: [] for name in centre}
        reason = None
        for vector in self._samples:
            found = self._curves(vector, condition, times, random)
            if isinstance(found, Failure):
                reason = found
                continue
            for name, (values, noisy, _) in found.items():
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
                )
            )
        return bands

    def _curves(
        self,
        vector: Array,
        condition: Condition,
        times: Array,
        random: np.random.Generator | None,
    ) -> dict[str, tuple[Array, Array | None, bool]] | Failure:
        """Return values, values with noise, and whether it is an observable, by name."""
        forward = self._forward
        trajectory = forward.trajectory(vector, condition.name, times, sensitivities=False)
        if isinstance(trajectory, Failure):
            return trajectory
        outputs = _outputs(forward, condition, vector, trajectory)
        predicted = forward.predictions(condition, vector, trajectory, noise=True)
        found: dict[str, tuple[Array, Array | None, bool]] = {}
        for name, (output, observable) in outputs.items():
            values = output.array(len(times))
            noisy = None
            if random is not None and observable:
                sds = noise_sds(forward, condition, name, vector, predicted, times)
                if sds is not None:
                    noise = forward.problem.noise.get(name, Noise())
                    noisy = random_values(noise, values, self._unit * sds, random)
            found[name] = values, noisy, observable
        return found


def _percentiles(curves: Array, level: float) -> Array:
    return np.asarray(np.quantile(curves, [0.5 - level / 2, 0.5 + level / 2], axis=0))


def _outputs(
    forward: ForwardMap, condition: Condition, vector: Array, trajectory: Trajectory
) -> dict[str, tuple[Dual, bool]]:
    """Return observables, then the states with other names, each with whether it is the former."""
    found = {
        name: (output, True)
        for name, output in forward.predictions(condition, vector, trajectory).items()
    }
    for i, name in enumerate(forward.field.states):
        if name not in found:
            partials = {}
            if trajectory.sensitivities.size:
                partials = {
                    u: trajectory.sensitivities[:, i, k] for k, u in enumerate(trajectory.unknowns)
                }
            found[name] = Dual(trajectory.states[:, i], partials), False
    return found


def _base(forward: ForwardMap, name: str) -> float | None:
    """Return the natural logarithm of the base of a logarithmic noise model; None without one."""
    transform = forward.problem.noise.get(name, Noise()).transform
    return None if transform is None else log_of_base(transform)


def _ends(
    values: Array,
    errors: Array,
    scatter: Sequence[Array | float],
    quantiles: Array,
    log: float | None,
) -> Array:
    """Return the ends of a band, shape (2, k); on the logarithmic scale where the noise is.

    `scatter` is how far measurements lie below and above the curve, beside what it is uncertain.
    """
    if log is None:
        below, above = (quantiles * np.hypot(errors, sds) for sds in scatter)
        return np.stack([values - below, values + above])
    with np.errstate(all="ignore"):
        relative = errors / np.abs(values)
        below, above = (quantiles * np.hypot(relative, sds * log) for sds in scatter)
        ends = np.stack([values * np.exp(-below), values * np.exp(above)])
    return np.where(values > 0, ends, np.nan)


def noise_sds(
    forward: ForwardMap,
    condition: Condition,
    name: str,
    vector: Array,
    predicted: Mapping[str, Dual],
    times: Array,
) -> Array | None:
    """Return the standard deviations of measurements at any times, shape (k,); None if unknown.

    They are on the scale of their noise. Where the data have a column of them, those between the
    measurements are interpolated. `predicted` holds the observables at `times` by name, and
    whatever else in the noise changes in time.
    """
    problem = forward.problem
    series = condition.series.get(name)
    if series is not None and series.sds is not None and series.sds_given:
        at = condition.times[series.rows]
        known, first = np.unique(at, return_index=True)
        return np.asarray(np.interp(times, known, series.sds[first]))
    noise = problem.noise.get(name, Noise())
    unknown = [i for i, u in enumerate(problem.unknowns) if u.key == noise.unknown(name)]
    if noise.spread == "estimate" and not unknown:
        return None
    values = np.abs(predicted[name].array(len(times)))
    every = np.arange(len(times))
    return standard_deviations(
        noise,
        Series(every, np.where(values > 0, values, 1.0), None),
        predicted,
        name,
        replace(condition, times=times),
        vector,
        unknown[0] if unknown and noise.spread == "estimate" else None,
    )
