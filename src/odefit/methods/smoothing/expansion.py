"""Fits that are linear in coefficients, with the covariance of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.basis import Basis
from odefit.problem.arrays import Array

NEGLIGIBLE = 1e-4
"""Weight below which a member of a mixture is left out."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """sum_j c_j phi_j(x), where c is known with a covariance.

    Attributes
    ----------
    basis
        phi, m functions.
    coefficients
        c, shape (m,).
    root
        Covariance of c is ``root @ root.T``, shape (m, r).
    sd
        Estimated noise.
    """

    basis: Basis
    coefficients: Array
    root: Array
    sd: float

    def __call__(self, times: Array) -> Array:
        """Values at `times`, shape of `times`."""
        flat = np.asarray(times, dtype=float).ravel()
        return (self.basis.values(flat) @ self.coefficients).reshape(np.shape(times))

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,)."""
        return self.basis.taylor(at, order) @ self.coefficients

    def errors(self, at: float, order: int) -> Array:
        """Standard deviations; inf for derivatives that no function of the basis has."""
        rows = self.basis.taylor(at, order)
        spread = np.linalg.norm(rows @ self.root, axis=1)
        return np.where((rows == 0).all(axis=1), np.inf, spread)


def members(scores: Array, widths: Array) -> tuple[Array, Array]:
    """Which values of a hyperparameter count, and how much.

    `scores` are -2 log(likelihood) and `widths` the parts of the hyperparameter's range that the
    values stand for. Returns indices, the most likely first, and weights with sum 1.
    """
    weights = widths * np.exp(-(scores - scores.min()) / 2)
    weights /= weights.sum()
    order = np.argsort(-weights)
    order = order[weights[order] > NEGLIGIBLE]
    return order, weights[order] / weights[order].sum()


def mixture(parts: Sequence[Expansion], weights: Array) -> Expansion:
    """The mean of several fits in one basis, their differences part of its covariance.

    What depends on a hyperparameter is as uncertain as that is: the best value alone would claim
    to know high derivatives of which the data say nothing.
    """
    mean = sum(w * p.coefficients for w, p in zip(weights, parts, strict=True))
    assert isinstance(mean, np.ndarray)
    columns = [np.sqrt(w) * p.root for w, p in zip(weights, parts, strict=True)]
    columns += [
        np.sqrt(w) * (p.coefficients - mean)[:, None] for w, p in zip(weights, parts, strict=True)
    ]
    sd = float(np.sqrt(sum(w * p.sd**2 for w, p in zip(weights, parts, strict=True))))
    return Expansion(parts[0].basis, mean, np.hstack(columns), sd)
