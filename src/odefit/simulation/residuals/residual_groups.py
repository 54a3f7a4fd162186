"""Measurements whose residuals are evaluated together, as whole arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import DERIVATIVES, NUMPY
from odefit.expressions.gradients import Gradient
from odefit.problem.noise_distributions.registry import Transform
from odefit.simulation.residuals.noise import Density
from odefit.simulation.residuals.observed_rows import (
    ObservedRows,
    RowValues,
    StackedTrajectories,
    keeping_zero,
)

Numbers = IntArray | slice
"""Some numbers: consecutive ones as a slice, which is several times faster to write to."""


def numbers(some: IntArray) -> Numbers:
    """Return numbers as a slice if they are consecutive."""
    if len(some) and np.array_equal(some, np.arange(some[0], some[0] + len(some))):
        return slice(int(some[0]), int(some[0]) + len(some))
    return some


def numbers_of(some: Numbers) -> IntArray:
    """Return numbers as an array."""
    return np.arange(some.start, some.stop) if isinstance(some, slice) else some


def both(rows: Numbers, columns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the index of all pairs of some rows and columns."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return rows[:, None], columns


class Out(NamedTuple):
    """The arrays to which groups of measurements write; derivatives are optional.

    The rows of `information` are those of the Jacobian, except for densities that are not normal:
    their squares are then the Fisher information. It is None if all are normal.
    """

    residuals: Array
    jacobian: Array
    derivatives: bool
    information: Array | None = None


class SeriesResiduals(NamedTuple):
    """Measurements with their predictions, all arrays of the shape (n,).

    Predictions are in natural units. Residuals are deviance residuals; for normal noise they are
    (predicted - measured) / sd on the scale of the noise model, and the innovations of these if it
    is correlated in time. Squares of Pearson residuals have the expectation one if noise explains
    them. Distances are (predicted - measured) / sd for any density.
    """

    rows: IntArray
    """Numbers of the residuals among all."""
    predicted: Array
    residuals: Array
    sds: Array
    pearson: Array
    distances: Array


class Sums(NamedTuple):
    """Squares, and logarithms of standard deviations that depend on unknowns or do not."""

    squares: float
    log_sds: float
    known_log_sds: float


class SumsAtPoints(NamedTuple):
    """Sums of squares and of logarithms of standard deviations at many vectors.

    Each has the shape (points,).
    """

    squares: Array
    log_sds: Array
    known_log_sds: Array


@dataclass(frozen=True, eq=False)
class PlainStates:
    """Measurements of plain states with known weights, copied with their sensitivities."""

    columns: Numbers
    """Unknowns of the sensitivities."""
    rows: IntArray
    """Row of the stack of each measurement, shape (R,)."""
    states: IntArray
    """Number of its state, shape (R,)."""
    out: Numbers
    """Numbers of the residuals."""
    measured: Array
    sds: Array
    weights: Array | None
    """Reciprocals of the standard deviations, shape (R,); None if all are one."""
    known_log_sds: float
    """Sum of the logarithms of the standard deviations."""

    def fill(self, vector: Array, stack: StackedTrajectories, out: Out) -> Sums:
        """Write residuals and Jacobian."""
        residuals = self._residuals(stack)
        out.residuals[self.out] = residuals
        if out.derivatives:
            by_unknown = stack.sensitivities[self.rows, self.states]
            if self.weights is not None:
                by_unknown *= self.weights[:, None]
            out.jacobian[both(self.out, self.columns)] = by_unknown
            if out.information is not None:
                out.information[both(self.out, self.columns)] = by_unknown
        return Sums(float(residuals @ residuals), 0.0, self.known_log_sds)

    def sums_at(self, points: Array, states: Array) -> SumsAtPoints:
        """Return the sums at many vectors, from the states of each, shape (points, k, n)."""
        residuals = states[:, self.rows, self.states] - self.measured
        if self.weights is not None:
            residuals *= self.weights
        squares = np.einsum("pr,pr->p", residuals, residuals)
        return SumsAtPoints(
            squares, np.zeros(len(points)), np.full(len(points), self.known_log_sds)
        )

    def _residuals(self, stack: StackedTrajectories) -> Array:
        residuals = stack.states[self.rows, self.states]
        residuals -= self.measured
        if self.weights is not None:
            residuals *= self.weights
        return residuals

    def compare(self, vector: Array, stack: StackedTrajectories) -> SeriesResiduals:
        """Return predictions with measurements."""
        residuals = self._residuals(stack)
        return SeriesResiduals(
            rows=numbers_of(self.out),
            predicted=stack.states[self.rows, self.states],
            residuals=residuals,
            sds=self.sds,
            pearson=residuals,
            distances=residuals,
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Measurements of one observable in several conditions, under one noise model."""

    rows: ObservedRows
    predicted: Gradient
    transform: Transform | None
    spread_observables: Mapping[str, Gradient]
    """Observables in the expression of the spread."""
    spread: Array | int | Gradient
    """The known spread, shape (R,); the number of the unknown spread; or an expression."""
    measured: Array
    """Measured values, transformed, shape (R,)."""
    out: Numbers
    """Numbers of the residuals."""
    spread_out: Numbers | None
    """Numbers of the residuals that spreads add if they depend on unknowns."""
    density: Density | None
    """The density of the measurements; None for the normal one."""

    def fill(self, vector: Array, stack: StackedTrajectories, out: Out) -> Sums:
        """Write residuals and Jacobian.

        By Fisher scoring: the gradient of r^2/2 + log(sd) is r r' + sd'/sd, its Fisher matrix
        h' h'/sd^2 + 2 (sd'/sd)^2, where r' holds h'/sd - r sd'/sd.
        """
        at = RowValues(self.rows, vector, stack, out.derivatives)
        predicted, jacobian = at.evaluate(self.predicted)
        if self.transform is not None:
            if out.derivatives:
                slope = DERIVATIVES[self.transform](predicted, predicted)
                jacobian = keeping_zero(np.asarray(slope)[:, None], jacobian)
            predicted = NUMPY.call(self.transform, [predicted])
        sd, by_sd = self._spread_at(at, vector)
        if self.density is not None:
            return self._fill_density(self.density, np.asarray(predicted), jacobian, sd, by_sd, out)
        residuals = (predicted - self.measured) / sd
        out.residuals[self.out] = residuals
        logarithms = np.log(sd)
        sds = float(np.sum(logarithms)) * (len(residuals) if np.ndim(sd) == 0 else 1)
        squares = float(residuals @ residuals)
        if out.derivatives:
            jacobian /= np.reshape(sd, (-1, 1))
            out.jacobian[self.out] = jacobian
            if out.information is not None:
                out.information[self.out] = jacobian
        if self.spread_out is None:
            return Sums(squares, 0.0, sds)
        out.residuals[self.spread_out] = (1.0 - residuals**2) / math.sqrt(2.0)
        if out.derivatives and isinstance(self.spread, int):
            out.jacobian[self.spread_out, self.spread] = math.sqrt(2.0) / sd
        elif out.derivatives:
            out.jacobian[self.spread_out] = math.sqrt(2.0) * by_sd / np.reshape(sd, (-1, 1))
        if out.information is not None:
            out.information[self.spread_out] = out.jacobian[self.spread_out]
        return Sums(squares, sds, 0.0)

    def sums_at(self, points: Array, states: Array) -> SumsAtPoints | None:
        """Return the sums at many vectors, from the states of each, shape (points, k, n).

        None is returned if each vector has to be evaluated alone.
        """
        values = self.rows.values(points, states)
        if values is None or self.density is not None or isinstance(self.spread, Gradient):
            return None
        predicted = self.predicted.value(values)
        if self.transform is not None:
            predicted = NUMPY.call(self.transform, [predicted])
        sd = points[:, [self.spread]] if isinstance(self.spread, int) else self.spread
        shape = len(points), len(self.measured)
        residuals = np.broadcast_to((predicted - self.measured) / sd, shape)
        squares = np.einsum("pr,pr->p", residuals, residuals)
        logarithms = np.broadcast_to(np.log(sd), shape).sum(axis=1)
        nothing = np.zeros(len(points))
        if self.spread_out is None:
            return SumsAtPoints(squares, nothing, logarithms)
        return SumsAtPoints(squares, logarithms, nothing)

    def compare(self, vector: Array, stack: StackedTrajectories) -> SeriesResiduals:
        """Return predictions with measurements."""
        at = RowValues(self.rows, vector, stack, False)
        natural, _ = at.evaluate(self.predicted)
        predicted = natural if self.transform is None else NUMPY.call(self.transform, [natural])
        spread, _ = self._spread_at(at, vector)
        spreads = spread * np.ones(len(self.measured))
        distances = (predicted - self.measured) / spread
        residuals = pearson = distances
        sds = spreads
        if self.density is not None:
            terms = self.density.terms(predicted, self.measured, spreads)
            residuals, pearson = terms.residuals, terms.pearson
            sds = self.density.law.sds(predicted, spreads)
            distances = distances if self.density.law.located else pearson
        return SeriesResiduals(
            rows=numbers_of(self.out),
            predicted=natural,
            residuals=residuals,
            sds=sds,
            pearson=pearson,
            distances=distances,
        )

    def _spread_at(self, at: RowValues, vector: Array) -> tuple[Any, Any]:
        """Return the spread, and its Jacobian if it is an expression."""
        if not isinstance(self.spread, Gradient):
            return (vector[self.spread] if isinstance(self.spread, int) else self.spread), None
        evaluated = {
            name: at.evaluate(gradient) for name, gradient in self.spread_observables.items()
        }
        for name, (value, jacobian) in evaluated.items():
            at.give(name, value, jacobian)
        return at.evaluate(self.spread)

    def _fill_density(
        self, density: Density, predicted: Array, jacobian: Any, sd: Any, by_sd: Any, out: Out
    ) -> Sums:
        """Write residuals and Jacobian for a density other than the normal one.

        A residual has derivatives with respect to the prediction alone; the contribution of the
        scale to the likelihood is in separate rows, as with normal noise.
        """
        scale = sd * np.ones(len(self.measured))
        terms = density.terms(predicted * np.ones(len(scale)), self.measured, scale)
        out.residuals[self.out] = terms.residuals
        squares = float(terms.residuals @ terms.residuals)
        if out.derivatives:
            out.jacobian[self.out] = terms.slopes[:, None] * jacobian
        information = np.zeros((0, 3))
        if out.information is not None:
            information = density.information(predicted * np.ones(len(scale)), scale)
            out.information[self.out] = information[:, [0]] * jacobian
        scale_terms, constants = float(terms.scale_terms.sum()), float(terms.constants.sum())
        if self.spread_out is None:
            return Sums(squares, 0.0, scale_terms + constants)
        steps = np.where(terms.scale_steps > 0, terms.scale_steps, 1.0)
        out.residuals[self.spread_out] = terms.scale_slopes / steps
        if out.derivatives:
            if isinstance(self.spread, int):
                by_scale = np.zeros((len(scale), out.jacobian.shape[1]))
                by_scale[:, self.spread] = 1.0
            else:
                by_scale = by_sd * np.ones((len(scale), 1))
            out.jacobian[self.spread_out] = terms.scale_steps[:, None] * by_scale
            if out.information is not None:
                out.information[self.out] += information[:, [1]] * by_scale
                out.information[self.spread_out] = information[:, [2]] * by_scale
        return Sums(squares, scale_terms, constants)
