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
from odefit.problem.noise import Transform
from odefit.simulation.residuals.densities import Density
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


def both(rows: Numbers, columns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the index of all pairs of some rows and columns."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return rows[:, None], columns


class Out(NamedTuple):
    """The arrays that groups of measurements write to, and whether derivatives are wanted.

    The rows of `information` are those of the Jacobian, unless the density is not normal: their
    squares then are the Fisher information. It is None where all are normal.
    """

    residuals: Array
    jacobian: Array
    derivatives: bool
    information: Array | None = None


class Sums(NamedTuple):
    """Squares, and logarithms of the standard deviations that depend on unknowns or do not."""

    squares: float
    log_sds: float
    known_log_sds: float


@dataclass(frozen=True, eq=False)
class PlainStates:
    """Measurements of plain states whose weights are known: copied with their sensitivities.

    Attributes
    ----------
    columns
        Unknowns by which they have sensitivities.
    rows, states
        Row of the stack and number of the state of each measurement, shape (R,).
    out
        Numbers of the residuals.
    measured, weights
        Measured values and the reciprocals of their standard deviations, shape (R,); None where
        all weights are one.
    known_log_sds
        Sum of the logarithms of the standard deviations.
    """

    columns: Numbers
    rows: IntArray
    states: IntArray
    out: Numbers
    measured: Array
    weights: Array | None
    known_log_sds: float

    def fill(self, vector: Array, stack: StackedTrajectories, out: Out) -> Sums:
        """Write residuals and Jacobian."""
        residuals = stack.states[self.rows, self.states]
        residuals -= self.measured
        if self.weights is not None:
            residuals *= self.weights
        out.residuals[self.out] = residuals
        if out.derivatives:
            by_unknown = stack.sensitivities[self.rows, self.states]
            if self.weights is not None:
                by_unknown *= self.weights[:, None]
            out.jacobian[both(self.out, self.columns)] = by_unknown
            if out.information is not None:
                out.information[both(self.out, self.columns)] = by_unknown
        return Sums(float(residuals @ residuals), 0.0, self.known_log_sds)


@dataclass(frozen=True, eq=False)
class Group:
    """Measurements of one observable in several conditions, under one noise model.

    Attributes
    ----------
    rows
        The measured rows.
    predicted
        The observable.
    transform
        The function that is taken of it, if any.
    given
        Observables in the expression of the standard deviation.
    sd
        The standard deviation: known, shape (R,); the number of the unknown that it is; or an
        expression.
    measured
        Measured values, transformed, shape (R,).
    out, sd_out
        Numbers of the residuals, and of those that standard deviations add where they depend on
        unknowns.
    density
        The density of the measurements; None for the normal one.
    """

    rows: ObservedRows
    predicted: Gradient
    transform: Transform | None
    given: Mapping[str, Gradient]
    sd: Array | int | Gradient
    measured: Array
    out: Numbers
    sd_out: Numbers | None
    density: Density | None

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
        sd: Any
        by_sd: Any = None
        if isinstance(self.sd, Gradient):
            given = {name: at.evaluate(gradient) for name, gradient in self.given.items()}
            for name, found in given.items():
                at.give(name, *found)
            sd, by_sd = at.evaluate(self.sd)
        else:
            sd = vector[self.sd] if isinstance(self.sd, int) else self.sd
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
        if self.sd_out is None:
            return Sums(squares, 0.0, sds)
        out.residuals[self.sd_out] = (1.0 - residuals**2) / math.sqrt(2.0)
        if out.derivatives and isinstance(self.sd, int):
            out.jacobian[self.sd_out, self.sd] = math.sqrt(2.0) / sd
        elif out.derivatives:
            out.jacobian[self.sd_out] = math.sqrt(2.0) * by_sd / np.reshape(sd, (-1, 1))
        if out.information is not None:
            out.information[self.sd_out] = out.jacobian[self.sd_out]
        return Sums(squares, sds, 0.0)

    def _fill_density(
        self, density: Density, predicted: Array, jacobian: Any, sd: Any, by_sd: Any, out: Out
    ) -> Sums:
        """Write residuals and Jacobian under another density than the normal one.

        A residual has its derivatives by the prediction alone; what the likelihood has from the
        scale is in rows of its own, as with normal noise.
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
        own, constants = float(terms.scale_terms.sum()), float(terms.constants.sum())
        if self.sd_out is None:
            return Sums(squares, 0.0, own + constants)
        steps = np.where(terms.scale_steps > 0, terms.scale_steps, 1.0)
        out.residuals[self.sd_out] = terms.scale_slopes / steps
        if out.derivatives:
            if isinstance(self.sd, int):
                by_scale = np.zeros((len(scale), out.jacobian.shape[1]))
                by_scale[:, self.sd] = 1.0
            else:
                by_scale = by_sd * np.ones((len(scale), 1))
            out.jacobian[self.sd_out] = terms.scale_steps[:, None] * by_scale
            if out.information is not None:
                out.information[self.out] += information[:, [1]] * by_scale
                out.information[self.sd_out] = information[:, [2]] * by_scale
        return Sums(squares, own, constants)
