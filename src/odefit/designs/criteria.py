"""Criteria of designs as information: functions of the Fisher matrix, with their gradients.

Each is the logarithm of a function that is positive, homogeneous and, except for the modified E,
concave in the information (F. Pukelsheim, Optimal Design of Experiments, 1993, chapter 5): so a
gradient bounds the distance of a design from the best one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.designs.parts import Criterion

RIDGE = 1e-13
"""Information, relative to the largest, that keeps matrices from being singular."""

SMALL = 1e-60
"""Information assigned where measurements give no information at all."""

HUGE = 1e100
"""The variance of undetermined quantities."""

SINGULAR = 1e-11
"""Smallest eigenvalue of an information matrix, relative to the largest, below which some direction
is undetermined."""

UNDETERMINED = 1e4
"""Factor by which an undetermined modified criterion E is worse than any other."""

SMOOTH_POWERS = (30.0, 300.0, 3000.0)
"""Powers of the norms that approximate the largest eigenvalue, one after the other."""


@dataclass(frozen=True, eq=False)
class Aim:
    """A criterion of some quantities.

    `selector`, shape (n, s), has their derivatives with respect to the unknowns as columns, in the
    units of the information. `power` is that of the norm which approximates the largest eigenvalue.
    """

    criterion: Criterion
    selector: Array
    power: float = SMOOTH_POWERS[-1]

    @property
    def smooth(self) -> bool:
        """True if the criterion is differentiable everywhere."""
        return self.criterion is not Criterion.E

    @property
    def by_cutting_planes(self) -> bool:
        """True if linear programs find the optimum of the criterion."""
        return self.criterion is Criterion.E

    def values(self, matrices: Array) -> Array:
        """Return the criterion of information matrices, shape (m, n, n), as m numbers."""
        inverse = np.linalg.inv(regular(matrices))
        variances = self.selector.T @ inverse @ self.selector
        with np.errstate(all="ignore"):
            if self.criterion in (Criterion.D, Criterion.DS):
                return np.asarray(-np.linalg.slogdet(variances)[1] / self.selector.shape[1])
            if self.criterion in (Criterion.A, Criterion.C):
                trace = np.trace(variances, axis1=-2, axis2=-1)
                return np.asarray(-np.log(trace / self.selector.shape[1]))
            finite = np.asarray(np.isfinite(variances).all(axis=(-2, -1)))
            usable = np.where(
                finite[..., None, None], variances, HUGE * np.eye(variances.shape[-1])
            )
            eigenvalues = np.linalg.eigvalsh(symmetric(usable))
            value = -np.log(eigenvalues[..., -1])
            if self.criterion is Criterion.MODIFIED_E:
                # Without information all axes are equally long, which is the worst case.
                spectrum = np.linalg.eigvalsh(symmetric(matrices))
                singular = spectrum[..., 0] <= SINGULAR * spectrum[..., -1]
                value = np.where(
                    singular, value - UNDETERMINED, value + np.log(eigenvalues[..., 0])
                )
            return np.asarray(np.where(np.isfinite(value), value, -np.inf))

    def smooth_value(self, matrix: Array) -> tuple[float, Array]:
        """Return the criterion and its gradient by the information, shape (n, n).

        The product of gradient and information has the trace 1. The modified E has no gradient
        here: its optimum is not sought among continuous designs.
        """
        inverse = np.linalg.inv(regular(matrix[None])[0])
        carried = inverse @ self.selector
        variances = symmetric(self.selector.T @ carried)
        count = self.selector.shape[1]
        if self.criterion in (Criterion.D, Criterion.DS):
            middle = np.linalg.inv(variances) / count
            return -float(np.linalg.slogdet(variances)[1]) / count, carried @ middle @ carried.T
        if self.criterion in (Criterion.A, Criterion.C):
            trace = float(np.trace(variances))
            return -float(np.log(trace / count)), carried @ carried.T / trace
        eigenvalues, vectors = np.linalg.eigh(variances)
        log = np.log(np.maximum(eigenvalues, 1e-300))
        value, shares = _norm(log, self.power)
        directions = carried @ vectors
        return -value, (directions * (shares / np.exp(log))) @ directions.T


def _norm(log: Array, power: float) -> tuple[float, Array]:
    """Return the logarithm of a norm of exp(`log`), and its derivatives by `log`."""
    top = float(log.max())
    terms = np.exp(power * (log - top))
    total = float(terms.sum())
    return top + float(np.log(total)) / power, terms / total


def regular(matrices: Array) -> Array:
    """Return information matrices with a tiny addition that makes them invertible."""
    n = matrices.shape[-1]
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    scale = np.maximum(diagonal.max(axis=-1, initial=0.0), SMALL)
    return np.asarray(matrices + RIDGE * scale[..., None, None] * np.eye(n))


def symmetric(matrices: Array) -> Array:
    """Return the symmetric part of matrices, shape (..., n, n)."""
    return np.asarray(0.5 * (matrices + np.swapaxes(matrices, -1, -2)))
