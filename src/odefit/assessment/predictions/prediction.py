"""Predictions with bands: the model's values at any time, with their uncertainty.

A confidence band holds the model's own curve, a prediction band the next measurement of it. The
linear bands (G. A. F. Seber and C. J. Wild, Nonlinear Regression, 1989, section 5.1) take the
covariance of the unknowns through the sensitivities; those of samples are percentiles of curves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from odefit.assessment.fitting_solutions import remaining
from odefit.assessment.intervals.degrees_of_freedom import (
    corrected_covariance,
    effective_degrees,
    inflated_covariance,
    noise_freedom,
)
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.dispersions import AdjustedDispersion, adjusted_dispersions
from odefit.assessment.intervals.penalised_differences import smoothness_rows
from odefit.assessment.intervals.released import released
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.assessment.intervals.small_samples import quantile_of
from odefit.assessment.outputs import evaluated, noise_sds, outputs_of
from odefit.assessment.predictions.band_checks import without_bent
from odefit.assessment.predictions.band_ends import (
    OUTWARDS,
    ends_about,
    ends_of_curve,
    joined_ends,
)
from odefit.assessment.predictions.bands import Band, Interval, NoBand
from odefit.assessment.predictions.prediction_runs import refused_on_nodes
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.expressions.algebras import Dual
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure, ForwardMap
from odefit.structure.signs import nonnegative_names

UNDETERMINED_SHARE = 1e-5
"""Effect of an undetermined change on a prediction, relative to that of changes of all unknowns by
their sizes, above which the prediction is not determined either."""

ROUNDING = 1e-9
"""Error of integration where a curve is zero, relative to its largest value."""

WIDENED = 0.1
"""Smallest movement with an unknown leaving its bound, relative to the band's half-width, that is
reported."""

LARGE_ERROR = 0.5
"""Standard error of an unknown, relative to its estimate, above which bands of states that are not
measured are checked."""

PARTICIPATION = 1e-3
"""Smallest part of the largest share in an undetermined change with which an unknown takes part."""


@dataclass(frozen=True, eq=False)
class _Errors:
    """Standard errors, NaN where unknown, their quantiles, and the reasons with the unknowns.

    `factors`, shape (2, k), widen the lower and the upper half for unknowns at bounds.
    """

    errors: Array
    quantiles: Array
    lacking: tuple[NoBand, ...]
    undetermined: tuple[str, ...]
    at_bounds: tuple[str, ...] = ()
    widening: tuple[str, ...] = ()
    factors: Array = field(default_factory=lambda: np.ones((2, 1)))

    @property
    def sides(self) -> Array:
        """The errors below and above the values, shape (2, k)."""
        return np.asarray(self.factors * self.errors)


class LinearBands:
    """Bands by linearisation at the estimate, with Student's t where the noise is estimated.

    Unknowns at a bound are held there; a curve that moves with them gets a wider band, or none if
    that movement dominates. Raises InputError if the model cannot be integrated at the estimate, or
    if its trajectories restart at shooting nodes, so that they have no sensitivities. `rise` is the
    deviance of the estimate from the best solution: confidence bands are narrower by it.
    """

    def __init__(self, forward: ForwardMap, vector: Array, rise: float = 0.0) -> None:
        if forward.nodes is not None:
            raise refused_on_nodes("linear bands")
        evaluation = evaluated(forward, vector)
        self._forward = forward
        self._functions = forward.problem.model.unknown_functions
        self._vector = vector
        self._evaluation = evaluation
        self._rise = rise
        self._deviance = Deviance.of(forward, vector, evaluation)
        jacobian = evaluation.information
        self._sizes = sizes_at(forward.problem, vector)
        norms, self._effective = acting(jacobian, self._sizes)
        self._norms = np.where(self._effective, norms, 1.0)
        self._held = bounds_touched(forward.problem, vector)
        columns = np.where(self._held, 0.0, jacobian / self._norms)
        u, s, vt = np.linalg.svd(columns, full_matrices=False)
        known = s > RANK_TOLERANCE * s.max(initial=0.0)
        self._orthonormal = u[:, known]
        self._directions = vt[known] / s[known, None]
        self._basis = vt[known]
        self._covariance = self._deviance.variance * np.eye(int(known.sum()))
        self._freedom = None
        self._smoothness = smoothness_rows(forward.problem, vector, jacobian)
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
        """Use adjusted dispersions of counts, which are larger than those of the likelihood."""
        weighted = self._orthonormal.copy()
        for dispersion in dispersions:
            weighted[dispersion.counts.rows] *= np.sqrt(
                dispersion.counts.weights(dispersion.estimate)
            )[:, None]
            self._noise_vector = self._noise_vector.copy()
            self._noise_vector[dispersion.index] = dispersion.estimate
        if dispersions:
            self._covariance = np.linalg.pinv(weighted.T @ weighted)

    def bands(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of observables and states, see :class:`BandSource`.

        A confidence band ends at zero for quantities that equations and bounds keep nonnegative.
        Its level stays the same, since the values left out are impossible. A state has none if an
        unknown at a bound, or one that is hardly determined, leads it much further.
        """
        bands_of = self.uncut(condition, times, level, names)
        if isinstance(bands_of, Failure):
            return bands_of
        if self.may_bend:
            rest = self._deviance.limit(level) - self._rise
            at = self._forward, self._vector, condition
            bands_of = without_bent(*at, bands_of, self.held, self._deviance, rest)
        floors = nonnegative_names(self._forward.problem, condition)
        return [_cut(band) if band.name in floors else band for band in bands_of]

    @property
    def held(self) -> list[str]:
        """The unknowns at a bound that act on the data."""
        keys = self._forward.problem.keys
        return [key for key, at in zip(keys, self._held & self._effective, strict=True) if at]

    @cached_property
    def may_bend(self) -> bool:
        """True if an unknown is at a bound, or if one other than of noise has a large error."""
        factors = self._directions / self._norms
        with np.errstate(over="ignore", invalid="ignore"):
            variances = np.einsum("ki,kl,li->i", factors, self._covariance, factors)
            large = np.sqrt(variances) > LARGE_ERROR * np.abs(self._vector)
        large[[u.kind == "noise" for u in self._forward.problem.unknowns]] = False
        return bool(self.held or large.any())

    def uncut(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of the linearisation, not cut off at zero."""
        vector = self._vector
        trajectory = self._forward.trajectory(vector, condition.name, times)
        if isinstance(trajectory, Failure):
            return trajectory
        bands = []
        share = remaining(self._deviance, self._rise, level)
        outputs = outputs_of(self._forward, condition, vector, trajectory, names)
        predicted = self._forward.predictions(condition, vector, trajectory, noise=True)
        for name, (output, observable) in outputs.items():
            values = output.array(len(times))
            known = self._errors(output, values, level)
            quantiles, lacking = known.quantiles, known.lacking
            noise_of = self._forward.problem.noise.get(name, Noise())
            log = self._base(name) if observable else None
            least = self._least(name, observable=observable)
            counted = math.isfinite(least)
            of_curve = partial(ends_of_curve, values, logs=log is not None, counted=counted)
            prediction = scatter = np.full((2, len(times)), np.nan)
            if observable:
                at = self._noise_vector
                sds = noise_sds(self._forward, condition, name, at, predicted, times)
                unit = 1.0 if self._forward.given_noise else math.sqrt(self._deviance.variance)
                # An unknown function is not measured, so it has no prediction band.
                if sds is not None and name not in self._functions:
                    sides = np.array([[end] for end in noise_of.law.interval(level)])
                    share_of_normal = quantiles / quantile_of(level, math.inf)
                    half = share_of_normal * unit * sides * sds * (1.0 if log is None else log)
                    noise = ends_about(values, half, logs=log is not None)
                    scatter = np.abs(noise - values)
                    whole = of_curve(quantiles * known.sides)
                    prediction = joined_ends(values, whole, noise, logs=log is not None)
            np.maximum(prediction, least, out=prediction)
            confidence = of_curve(share * quantiles * known.sides)
            if log is not None and not (values > 0).all():
                lacking = (*lacking, NoBand.NOT_POSITIVE)
            bands.append(
                Band(
                    name,
                    observable,
                    times,
                    values,
                    known.errors,
                    confidence,
                    prediction,
                    scatter,
                    lacking=lacking,
                    undetermined=known.undetermined,
                    at_bounds=known.at_bounds,
                    widening=known.widening,
                )
            )
        return bands

    def prediction_about(self, band: Band, confidence: Array) -> Array:
        """Return the ends of a prediction band for other ends of its confidence band, shape (2, k).

        The distances of the curve and of its measurements are joined as squares, on the scale of
        the noise. No measurement is below the least one of its distribution.
        """
        values, logs = band.values, band.observable and self._base(band.name) is not None
        ends = joined_ends(values, confidence, values + OUTWARDS * band.scatter, logs=logs)
        return np.maximum(ends, self._least(band.name, observable=band.observable))

    def _least(self, name: str, *, observable: bool) -> float:
        """Return the least measurement of a quantity, which is finite for counts alone."""
        noise = self._forward.problem.noise.get(name, Noise())
        return noise.law.least if observable else -math.inf

    def interval(self, value: float, gradient: Array, level: float) -> Interval:
        """Return the interval of a number whose derivatives by the unknowns have shape (n,)."""
        output = Dual(np.array([value]), dict(enumerate(gradient)))
        known = self._errors(output, np.array([value]), level)
        share = remaining(self._deviance, self._rise, level)
        below, above = (share * float(side[0] * known.quantiles[0]) for side in known.sides)
        return Interval(
            value,
            float(known.errors[0]),
            value - below,
            value + above,
            known.lacking,
            known.undetermined,
            known.at_bounds,
        )

    def factor_of(self, gradients: Array) -> Array:
        """Return F, shape (k, m), for numbers whose derivatives by the unknowns have shape (k, n).

        Their covariance is F F^T, of which no k by k matrix is made; k may be large, m is not. It
        is NaN where the data do not determine one of them.
        """
        none = np.zeros(len(gradients))
        lost, _ = self._lost(gradients, gradients / self._norms, none)
        root = np.full_like(self._covariance, np.nan)
        if np.isfinite(self._covariance).all():
            values, vectors = np.linalg.eigh(self._covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        directions = gradients / self._norms @ self._directions.T
        factor = np.hstack([directions @ root, gradients @ self._smoothness.T])
        return np.full_like(factor, np.nan) if lost.any() else factor

    def _base(self, name: str) -> float | None:
        """Return the natural logarithm of the base of the scale of a band; None without one.

        It is the scale of the noise, and that on which an unknown function is expanded.
        """
        if name in self._functions:
            return 1.0 if self._functions[name].function.log else None
        transform = self._forward.problem.noise.get(name, Noise()).transform
        return None if transform is None else log_of_base(transform)

    def _errors(self, output: Dual, values: Array, level: float) -> _Errors:
        count = len(values)
        gradient = output.gradient(len(self._vector), count)
        unbounded = ~np.isfinite(gradient).all(axis=1)  # as that of a root of zero
        gradient[unbounded] = 0.0
        whole = gradient.copy()
        gradient[:, self._held & self._effective] = 0.0
        scaled = gradient / self._norms
        lost, undetermined = self._lost(gradient, scaled, values)
        reasons = {
            NoBand.UNDETERMINED: bool(lost.any()),
            NoBand.UNBOUNDED: bool(unbounded.any()),
            NoBand.NO_FREEDOM: self._fits is None
            and not (np.isfinite(self._covariance).all() and self._deviance.degrees > 0),
        }
        lacking = tuple(reason for reason, holds in reasons.items() if holds)
        lost |= unbounded
        added = np.linalg.norm(gradient @ self._smoothness.T, axis=1)
        if self._fits is not None:
            errors = np.where(lost, np.nan, self._fits.errors(gradient))
            with np.errstate(invalid="ignore", divide="ignore"):
                quantiles = self._fits.half_widths(gradient, level) / errors
            quantiles = np.where(errors > 0, quantiles, quantile_of(level, math.inf))
            errors = np.hypot(errors, added)
            return self._unheld(_Errors(errors, quantiles, lacking, undetermined), whole, level)
        directions = scaled @ self._directions.T
        covariance = self._covariance
        degrees = np.full(count, self._deviance.degrees)
        if self._freedom is not None and self._freedom.enough:
            covariance = inflated_covariance(self._orthonormal, self._freedom, covariance)
            degrees = effective_degrees(
                self._orthonormal, self._freedom, directions, self._covariance
            )
        errors = np.sqrt(np.einsum("ki,ij,kj->k", directions, covariance, directions))
        errors = np.hypot(errors, added)
        quantiles = np.array([quantile_of(level, d) for d in degrees])
        errors = np.where(lost, np.nan, errors)
        return self._unheld(_Errors(errors, quantiles, lacking, undetermined), whole, level)

    def _unheld(self, known: _Errors, gradient: Array, level: float) -> _Errors:
        """Return errors that allow for the unknowns at a bound, which may leave it inwards.

        In the quadratic model of the cost, a value moves with such an unknown to one side. This
        movement is added to its half-width in quadrature; if it is larger, there is no error.
        """
        free = np.flatnonzero(~self._held & self._effective)
        allowed = (self._deviance.limit(level) - self._rise) * self._deviance.variance
        if not self._held.any() or not allowed > 0:
            return known
        errors, names, widening = known.errors.copy(), [], []
        squares = np.ones((2, len(errors)))
        least = UNDETERMINED_SHARE * np.linalg.norm(gradient * self._sizes, axis=1)
        for left in released(self._forward, self._vector, self._evaluation, free, allowed):
            moved = gradient @ left.direction * left.distance * left.inward
            half = known.quantiles * known.errors
            far = np.abs(moved) > np.maximum(half, least)
            with np.errstate(invalid="ignore", divide="ignore"):
                part = np.where(np.abs(moved) > least, moved / half, 0.0)
            part[far | ~np.isfinite(part)] = 0.0
            squares += np.stack([np.minimum(part, 0.0), np.maximum(part, 0.0)]) ** 2
            key = self._forward.problem.keys[left.index]
            errors[far] = np.nan
            names += [key] if far.any() else []
            widening += [key] if np.abs(part).max(initial=0.0) > WIDENED else []
        lacking = (*known.lacking, NoBand.AT_A_BOUND) if names else known.lacking
        return replace(
            known,
            errors=errors,
            lacking=lacking,
            at_bounds=tuple(names),
            widening=tuple(widening),
            factors=np.sqrt(squares),
        )

    def _lost(
        self, gradient: Array, scaled: Array, values: Array
    ) -> tuple[BoolArray, tuple[str, ...]]:
        """Return where an output changes along undetermined directions, and the keys of these.

        The criterion is the effect of a change by the sizes of the unknowns, since derivatives
        depend on units and contain integration errors.
        """
        effects = gradient * self._sizes
        reach = np.sqrt(np.sum(effects**2, axis=1))
        finite = np.abs(values[np.isfinite(values)])
        least = np.maximum(UNDETERMINED_SHARE * reach, ROUNDING * finite.max(initial=0.0))
        loose = scaled - (scaled @ self._basis.T) @ self._basis
        loose[:, ~self._effective] = 0.0
        # The change of the unknowns along `loose` by which the first has changed by its size.
        part = np.abs(loose) / (self._norms * self._sizes)
        longest = part.max(axis=1, initial=0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = np.where(longest > 0, np.sum(loose**2, axis=1) / longest, 0.0)
        idle = np.where(self._effective, 0.0, np.abs(effects))
        lost = (moved > least) | (idle.max(axis=1, initial=0.0) > least)
        part = np.where((moved > least)[:, None], part / np.maximum(longest, 1e-300)[:, None], 0.0)
        takes = (part > PARTICIPATION).any(axis=0) | (idle > least[:, None]).any(axis=0)
        keys = self._forward.problem.keys
        return lost, tuple(key for key, takes_part in zip(keys, takes, strict=True) if takes_part)


def _cut(band: Band) -> Band:
    """Return a band cut off at zero, if the value itself is not negative."""
    low, high = band.confidence
    beyond = (low < 0) & (band.values >= 0)
    if not beyond.any():
        return band
    return replace(band, confidence=np.array([np.where(beyond, 0.0, low), high]), cut=True)
