"""Small-sample limits from simulated fits of the linearised model.

For normal noise, Student's t and chi-square account for an estimated standard deviation. For
Laplace noise, Student's or Huber's loss no closed form is known. But take a linear model whose
errors have a density of known form. Then three ratios have distributions without parameters or
scale: the error over the estimated scale, the estimated over the true scale, and the likelihood
ratio (C. E. Antle and L. J. Bain, A property of maximum likelihood estimators of location and scale
parameters, SIAM Review 11, 1969, 251-253; J. F. Lawless, Statistical Models and Methods for
Lifetime Data, 1982, chapter 4): They depend only on the design, so that a simulation of pure noise
on that design gives them. Here the design is the model's linearisation at the estimate, as for
Student's t.

With several estimated normal standard deviations, F does not bound the likelihood ratio either
(five values each: 7.8 instead of 5.9), but a simulation at their estimated ratios does.

Laplace's density has a kink, so that asymptotic theory needs many values. The variance of a median
of n values is 1 + 1.6/sqrt(n) times the asymptotic one, a quarter more for 40 values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from odefit.assessment.intervals.correlated_regressions import Chains, Products, fit_products
from odefit.assessment.intervals.regressions import Fitted, Part, fit_all
from odefit.assessment.intervals.simulated_parts import parts_of
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

SEED = 1969
"""Seed of the simulation: the same problem always has the same limits."""

SAMPLES = 2000
"""Number of simulated fits: the error of a share of 0.95 is then 0.005."""

LEAST_SAMPLES = 200
"""Smallest useful number of simulated fits."""

MOST_WORK = 5e7
"""Largest product of the numbers of fits, of measurements, and of operations for each."""

ELEMENTWISE = 40
"""Operations for each measurement of a fit, besides the squares of the unknowns."""

PILOT = 400
"""Number of fits that estimate the bias of fitted correlation times."""

MOST_STEPS = 5
"""Largest correction of correlation times, in steps of the grid: a factor of e."""

BLOCK = 50
"""Number of data sets simulated and fitted together."""


@dataclass(frozen=True, eq=False)
class SimulatedFits:
    """The errors of fits of pure noise to the linearised model.

    `unknowns` are the k of the predictions, without noise parameters and those at a bound.
    `to_coordinates`, shape (k, rank), turns gradients by these into directions in the coordinates
    of the `design`, shape (m, rank), whose Fisher information is the identity. `samples` is the
    number of fits.
    """

    parts: tuple[Part, ...]
    unknowns: IntArray
    to_coordinates: Array
    design: Array
    samples: int

    @classmethod
    def of(cls, forward: ForwardMap, vector: Array, evaluation: Evaluation) -> SimulatedFits | None:
        """Return the simulation of a problem, made once; None if it is useless or too long.

        It is None if all noise is normal and uncorrelated, if standard deviations are expressions
        or those of censored values are estimated, and for large designs.
        """
        fits = cls.for_limits(forward, vector, evaluation)
        return None if fits is None or not (fits.correlated or not fits.normal) else fits

    @classmethod
    def for_limits(
        cls, forward: ForwardMap, vector: Array, evaluation: Evaluation
    ) -> SimulatedFits | None:
        """Return the simulation also for several estimated normal standard deviations.

        These have intervals by theory, but no limit of the likelihood ratio.
        """
        if evaluation not in _KNOWN:
            _KNOWN[evaluation] = cls._made(forward, vector, evaluation)
        return _KNOWN[evaluation]

    @classmethod
    def _made(
        cls, forward: ForwardMap, vector: Array, evaluation: Evaluation
    ) -> SimulatedFits | None:
        parts_and_rows = parts_of(forward, vector, len(evaluation.information))
        if parts_and_rows is None:
            return None
        parts, rows = parts_and_rows
        noise = [part.unknown for part in parts if part.unknown is not None]
        bound = bounds_touched(forward.problem, vector)
        if bound[noise].any():
            return None
        information = evaluation.information[rows]
        norms, effective = acting(information, sizes_at(forward.problem, vector))
        effective[noise] = False
        unknowns = np.flatnonzero(~bound & effective)
        if not len(unknowns):
            return None
        scaled = information[:, unknowns] / norms[unknowns]
        u, s, vt = np.linalg.svd(scaled, full_matrices=False)
        known = s > RANK_TOLERANCE * s[0]
        rank = int(known.sum())
        work = len(rows) * (ELEMENTWISE + rank**2)
        for part in parts:
            if part.chains is not None:
                work += len(part.rows) * len(part.chains.times) * (4 + rank)
        samples = BLOCK * (min(SAMPLES, int(MOST_WORK / work)) // BLOCK)
        leverages = np.sum(u[:, known] ** 2, axis=1)
        spare = [len(p.rows) - leverages[p.rows].sum() for p in parts if p.unknown is not None]
        if samples < LEAST_SAMPLES or min(spare, default=math.inf) < 1:
            return None
        design = u[:, known]
        for part in parts:
            design[part.rows] /= part.root_information
            if part.chains is not None:  # whose rows are those of innovations
                design[part.rows] = part.chains.noise(design[part.rows].T).T
        to_coordinates = vt[known].T / s[known] / norms[unknowns][:, None]
        fits = cls(tuple(parts), unknowns, to_coordinates, design, samples)
        return fits._at_corrected_times() if fits.correlated else fits

    def _at_corrected_times(self) -> SimulatedFits:
        """Return simulations with correlation times whose fits average to the estimate.

        Fitted times are too short, because the unknowns follow part of the correlated noise.
        """
        pilot = replace(self, samples=min(PILOT, self.samples))
        parts = list(self.parts)
        for position, part in enumerate(parts):
            if (chains := part.chains) is not None and chains.unknown is not None:
                missing = chains.true - int(np.median(pilot._fitted.times[:, position]))
                true = chains.true + int(np.clip(missing, 0, MOST_STEPS))
                true = min(true, len(chains.times) - 1)
                parts[position] = replace(part, chains=replace(chains, true=true))
        return replace(self, parts=tuple(parts))

    @property
    def normal(self) -> bool:
        """True if all noise is normal."""
        return all(part.law.normal for part in self.parts)

    @property
    def correlated(self) -> bool:
        """True if a correlation time is estimated."""
        return any(part.chains is not None for part in self.parts)

    # Derived quantities ------------------------------------------------------------------------

    def errors(self, gradients: Array) -> Array:
        """Return standard errors of linear combinations of the unknowns, shape (k,).

        `gradients` are the derivatives of the combinations by all unknowns, shape (k, n).
        """
        factors = self._factors(gradients)
        return np.asarray(np.sqrt(np.einsum("ki,ij,kj->k", factors, self._scatter, factors)))

    def covariance(self, gradients: Array) -> Array:
        """Return the covariance of linear combinations, shape (k, k), see :meth:`errors`."""
        factors = self._factors(gradients)
        return np.asarray(factors @ self._scatter @ factors.T)

    def half_widths(self, gradients: Array, level: float) -> Array:
        """Return half-widths of intervals of linear combinations, shape (k,)."""
        directions = self._directions(gradients)
        widths = self._standard_errors(directions)
        with np.errstate(divide="ignore", invalid="ignore"):
            pivots = np.abs(self._fitted.coordinates @ directions.T) / widths
        sizes = np.linalg.norm(directions, axis=1)
        return np.where(sizes > 0, sizes * np.quantile(pivots, level, axis=0), 0.0)

    def scales(self, level: float) -> dict[int, tuple[float, float, float, float]]:
        """Return factors of estimated scales and correlation times, by number of the unknown.

        For each they are the factor that corrects the estimate, the factors of the ends of its
        interval, and the standard deviation of the estimate's logarithm.
        """
        scales_found = {}
        for position, part in enumerate(self.parts):
            if part.unknown is not None:
                logs = np.log(self._fitted.scales[:, position])
                high, low = np.quantile(logs, [0.5 + level / 2, 0.5 - level / 2])
                factors = math.exp(-logs.mean()), math.exp(-high), math.exp(-low)
                scales_found[part.unknown] = (*factors, float(logs.std(ddof=1)))
            if (chains := part.chains) is not None and chains.unknown is not None:
                logs = self._logs_of_times(position, chains)
                high, low = np.quantile(logs, [0.5 + level / 2, 0.5 - level / 2])
                factors = math.exp(-np.median(logs)), math.exp(-high), math.exp(-low)
                spread = 0.5 * float(np.subtract(*np.quantile(logs, [0.8413, 0.1587])))
                scales_found[chains.unknown] = (*factors, spread)
        return scales_found

    def _logs_of_times(self, position: int, chains: Chains) -> Array:
        """Return the logarithms of the ratio of fitted to true correlation times."""
        logs = chains.times[self._fitted.times[:, position]]
        return np.asarray(np.log(logs / chains.times[chains.true]))

    def limit(self, level: float) -> float:
        """Return the limit of the deviance of an unknown or of any combination of them.

        Each direction of a random basis is held at its true value in a share of the fits.
        """
        rank, blocks = self.design.shape[1], self._blocks
        differences = []
        for column in range(min(rank, len(blocks))):
            draws = blocks[column::rank]
            held = self._fits(_complement(self._random_basis[:, [column]].T), draws)
            free = self._fitted.costs.reshape(-1, BLOCK)[draws].ravel()
            differences.append(held.costs - free)
        return float(np.quantile(2 * np.concatenate(differences), level))

    def deviances(self, gradients: Array) -> Array:
        """Return how much worse data sets fit if combinations have their true values.

        `gradients`, shape (k, n), are as in :meth:`errors`; all k are held at once.
        """
        directions = self._directions(gradients)
        held = self._fits(_complement(directions), self._blocks)
        return np.asarray(2 * np.maximum(held.costs - self._fitted.costs, 0.0))

    def limits_of_scales(self, level: float) -> dict[int, tuple[float, float]]:
        """Return the limits of the deviance below and above estimated scales, by unknown.

        Correlation times are among them.
        """
        limits = {}
        for position, part in enumerate(self.parts):
            if part.unknown is not None:
                held = self._fits(None, self._blocks, fixed=position)
                signs = np.sign(self._fitted.scales[:, position] - 1)
                limits[part.unknown] = self._two_sided(held, signs, level)
            if (chains := part.chains) is not None and chains.unknown is not None:
                held = self._fits(None, self._blocks, fixed_time=position)
                signs = np.sign(self._logs_of_times(position, chains))
                limits[chains.unknown] = self._two_sided(held, signs, level)
        return limits

    def _two_sided(self, held: Fitted, signs: Array, level: float) -> tuple[float, float]:
        """Return limits below and above an estimate from fits in which it has its true value."""
        deviance = 2 * np.maximum(held.costs - self._fitted.costs, 0.0)
        signed = signs * np.sqrt(deviance)
        high, low = np.quantile(signed, [0.5 + level / 2, 0.5 - level / 2])
        # The truth is below the estimate where the estimate is too large.
        return float(max(high, 0.0) ** 2), float(max(-low, 0.0) ** 2)

    # The simulation ---------------------------------------------------------------------------

    @cached_property
    def _fitted(self) -> Fitted:
        return self._fits(None, self._blocks)

    @property
    def _blocks(self) -> IntArray:
        return np.arange(self.samples // BLOCK)

    @cached_property
    def _random_basis(self) -> Array:
        rank = self.design.shape[1]
        return np.linalg.qr(np.random.default_rng(SEED).standard_normal((rank, rank)))[0]

    def _fits(
        self,
        basis: Array | None,
        blocks: IntArray,
        fixed: int | None = None,
        fixed_time: int | None = None,
    ) -> Fitted:
        """Return the fits of some blocks of the simulated data sets to the design times a basis."""
        if self.correlated:
            return self._correlated_fits(basis, blocks, fixed, fixed_time)
        design = self.design if basis is None else self.design @ basis
        return Fitted.joined(
            [fit_all(design, self.parts, self._noise(int(b)), fixed) for b in blocks]
        )

    def _correlated_fits(
        self, basis: Array | None, blocks: IntArray, fixed: int | None, fixed_time: int | None
    ) -> Fitted:
        fits = (BLOCK * blocks[:, None] + np.arange(BLOCK)).ravel()
        chosen, first = [], np.zeros(len(self.parts), dtype=np.intp)
        for position, (part, products) in enumerate(zip(self.parts, self._products, strict=True)):
            only = None
            if position == fixed_time and part.chains is not None:
                only = first[position] = part.chains.true
            known = position == fixed
            chosen.append(products.part(basis, fits, known_scale=known, only=only))
        coordinates, scales, times, costs = fit_products(chosen)
        return Fitted(coordinates, scales, costs, times + first)

    @cached_property
    def _products(self) -> list[Products]:
        """The products of design and simulated values of each part, for all correlation times."""
        values = np.concatenate([self._noise(int(b)) for b in self._blocks])
        return [
            Products.of(self.design[p.rows], values[:, p.rows], p.chains, p.unknown is None)
            for p in self.parts
        ]

    def _noise(self, block: int) -> Array:
        """Return simulated data sets: pure noise of unit scale, shape (BLOCK, m)."""
        random = np.random.default_rng([SEED, block])
        values = np.empty((BLOCK, len(self.design)))
        for part in self.parts:
            count = BLOCK * len(part.rows)
            drawn = part.law.standard_values(count, random)
            values[:, part.rows] = drawn.reshape(BLOCK, -1)
            if part.chains is not None:
                values[:, part.rows] = part.chains.noise(values[:, part.rows])
        return values

    @cached_property
    def _scatter(self) -> Array:
        """The covariance of the coordinates, shape (rank, rank)."""
        return np.atleast_2d(np.cov(self._fitted.coordinates, rowvar=False))

    def _factors(self, gradients: Array) -> Array:
        """Return directions enlarged where fitted scales are too small for them."""
        directions = self._directions(gradients)
        sizes = np.linalg.norm(directions, axis=1)
        errors = self._standard_errors(directions)
        with np.errstate(divide="ignore", invalid="ignore"):
            larger = np.exp(np.mean(np.log(sizes / errors), axis=0))
        return np.asarray(np.where(sizes > 0, larger, 1.0)[:, None] * directions)

    def _directions(self, gradients: Array) -> Array:
        return np.asarray(gradients[:, self.unknowns] @ self.to_coordinates)

    def _standard_errors(self, directions: Array) -> Array:
        """Return each fit's own standard errors of some directions."""
        sizes = np.linalg.norm(directions, axis=1)
        if all(part.unknown is None for part in self.parts) and not self.correlated:
            return np.asarray(np.broadcast_to(sizes, (self.samples, len(sizes))))
        if len(self.parts) == 1 and not self.correlated:
            return np.asarray(self._fitted.scales * sizes)
        rank = self.design.shape[1]
        matrices = np.zeros((self.samples, rank, rank))
        for position, part in enumerate(self.parts):
            rows = part.root_information * self.design[part.rows]
            scales = self._fitted.scales[:, position, None, None]
            if part.chains is None:
                matrices += (rows.T @ rows) / scales**2
                continue
            whitened = [part.chains.whitened(rows.T, k)[0] for k in range(len(part.chains.times))]
            by_time = np.array([w @ w.T for w in whitened])
            matrices += by_time[self._fitted.times[:, position]] / scales**2
        right = np.broadcast_to(directions.T, (self.samples, *directions.T.shape))
        solved = np.linalg.solve(matrices, right)
        return np.asarray(np.sqrt(np.einsum("kr,srk->sk", directions, solved)))


_KNOWN: WeakKeyDictionary[Evaluation, SimulatedFits | None] = WeakKeyDictionary()
"""Simulations by the evaluation at the solution, shared by several parts of the assessment."""


def _complement(directions: Array) -> Array:
    """Return an orthonormal basis of the complement of k directions, shape (rank, rank - k)."""
    return np.asarray(np.linalg.svd(directions)[2][len(directions) :].T)
