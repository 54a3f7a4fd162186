"""Shares of effort among candidates, and their distance from the optimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.designs.criteria import Aim

Aims = Sequence[Aim]
"""The aim at each vector of unknowns, as quantities may have different derivatives there."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """Candidates and the information in each of them.

    Attributes
    ----------
    rows
        Rows whose squares are the information of each of m candidates, for each of S vectors of
        unknowns, shape (S, m, q, n).
    costs
        The cost of each, shape (m,).
    prior
        The existing information, shape (S, n, n).
    series
        Number of the series of each candidate, shape (m,): those of one run and observable, in the
        order of time.
    """

    rows: Array
    costs: Array
    prior: Array
    series: IntArray

    @property
    def count(self) -> int:
        """The number of candidates."""
        return int(self.rows.shape[1])

    def part(self, places: IntArray) -> Atoms:
        """Return some of the candidates."""
        return Atoms(self.rows[:, places], self.costs[places], self.prior, self.series[places])

    def information(self, numbers: Array) -> Array:
        """Return the information of a number of measurements of each, shape (S, n, n)."""
        used = np.flatnonzero(numbers)
        rows = self.rows[:, used] * np.sqrt(numbers[used])[None, :, None, None]
        flat = rows.reshape(len(rows), -1, rows.shape[-1])
        return np.asarray(self.prior + np.swapaxes(flat, 1, 2) @ flat)

    def derivatives(self, gradients: Array) -> Array:
        """Return the derivatives of a criterion by the number of each candidate, shape (m,).

        `gradients`, shape (S, n, n), are those with respect to the information.
        """
        sums = np.einsum("smqi,sij,smqj->m", self.rows, gradients, self.rows, optimize=True)
        return np.asarray(sums / len(self.rows))


@dataclass(frozen=True, eq=False)
class Kink:
    """The derivative at a kink of a criterion that proves the optimum.

    Attributes
    ----------
    gradient
        The derivative of the criterion by the information, shape (n, n), relative to its value.
    level
        The mean of the derivatives by the shares of effort, if the design were optimal.
    bound
        The value that the criterion cannot exceed over the candidates of the proof.
    """

    gradient: Array
    level: float
    bound: float


@dataclass(frozen=True, eq=False)
class Weights:
    """A continuous design: candidates in its support, their weights, and its quality."""

    support: IntArray
    weights: Array
    value: float
    excess: float
    derivatives: Array  # of all candidates by their share of the effort, shape (m,)
    mean: float  # of the derivatives over the design
    kink: Kink | None = None  # if the criterion is not differentiable there


def judged(
    atoms: Atoms,
    aims: Aims,
    effort: float,
    support: IntArray,
    weights: Array,
    kink: Kink | None = None,
) -> Weights:
    """Return a continuous design with its derivatives over all candidates."""
    numbers = np.zeros(atoms.count)
    np.add.at(numbers, support, weights * effort / atoms.costs[support])
    value, gradients = mean_value(aims, atoms.information(numbers))
    if kink is not None:
        value = float(aims[0].values(atoms.information(numbers))[0])
        gradients = kink.gradient[None]
    derivatives = atoms.derivatives(gradients) * effort / atoms.costs
    if kink is None:
        mean = float(weights @ derivatives[support])
        return Weights(support, weights, value, float(derivatives.max()) - mean, derivatives, mean)
    gap = math.expm1(min(max(kink.bound - value, 0.0), 50.0))
    excess = max(float(derivatives.max()) - kink.level, 0.0) + gap
    return Weights(support, weights, value, excess, derivatives, kink.level, kink)


def mean_value(aims: Aims, matrices: Array) -> tuple[float, Array]:
    """Return the mean criterion over the samples, and its gradients, shape (S, n, n)."""
    values = [a.smooth_value(m) for a, m in zip(aims, matrices, strict=True)]
    return float(np.mean([v for v, _ in values])), np.array([g for _, g in values])
