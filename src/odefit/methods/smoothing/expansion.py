"""Fits that are linear in coefficients of basis functions, with the coefficients' covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array


class Basis(Protocol):
    """Functions phi_1 ... phi_m."""

    def values(self, x: Array) -> Array:
        """Return phi_j(x_i), shape (n, m)."""

    def taylor(self, at: float, order: int) -> Array:
        """Return phi_j^(k)(at) / k!, shape (order + 1, m)."""


@dataclass(frozen=True)
class ChebyshevBasis:
    """Chebyshev polynomials T_0 ... T_(m-1)."""

    size: int  # number of polynomials, m

    def values(self, x: Array) -> Array:
        """Return the values at `x`, shape (n, m)."""
        return np.asarray(np.polynomial.chebyshev.chebvander(x, self.size - 1), dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1, m), by the three-term recurrence."""
        result = np.zeros((order + 1, self.size))
        result[0, 0] = 1.0
        for j in range(1, self.size):
            before = result[:, j - 1]
            result[:, j] = at * before
            result[1:, j] += before[:-1]
            if j > 1:
                result[:, j] *= 2
                result[:, j] -= result[:, j - 2]
        return result


NEGLIGIBLE_WEIGHT = 1e-4  # posterior weight below which a hyperparameter's value is omitted


@dataclass(frozen=True, eq=False)
class Expansion:
    """sum_j c_j phi_j(x), where the coefficients c have a covariance."""

    basis: Basis  # m functions phi
    coefficients: Array  # mean of c, shape (m,)
    root: Array  # root of the covariance of c, which is ``root @ root.T``, shape (m, r)
    sd: float  # estimated standard deviation of the noise

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`, in the shape of `times`."""
        flat = np.asarray(times, dtype=float).ravel()
        return (self.basis.values(flat) @ self.coefficients).reshape(np.shape(times))

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,)."""
        return self.basis.taylor(at, order) @ self.coefficients

    def errors(self, at: float, order: int) -> Array:
        """Return standard deviations; they are infinite for derivatives that no phi has."""
        rows = self.basis.taylor(at, order)
        sds = np.linalg.norm(rows @ self.root, axis=1)
        return np.where((rows == 0).all(axis=1), np.inf, sds)


def posterior_weights(scores: Array, widths: Array) -> tuple[Array, Array]:
    """Return the relevant values of a hyperparameter, the most likely first, and their weights.

    `scores` are -2 log(likelihood) of the values, shape (n,), and `widths` the parts of the
    hyperparameter's range that they represent. The weights sum to 1.
    """
    weights = widths * np.exp(-(scores - scores.min()) / 2)
    weights /= weights.sum()
    order = np.argsort(-weights)
    order = order[weights[order] > NEGLIGIBLE_WEIGHT]
    return order, weights[order] / weights[order].sum()


def average(members: Sequence[Expansion], weights: Array) -> Expansion:
    """Return the mean of fits in one basis, whose differences become part of the covariance.

    Quantities that depend on a hyperparameter share its uncertainty: its best value alone would
    suggest that the data determine high derivatives when they do not.
    """
    mean = sum(w * m.coefficients for w, m in zip(weights, members, strict=True))
    assert isinstance(mean, np.ndarray)
    columns = [np.sqrt(w) * m.root for w, m in zip(weights, members, strict=True)]
    columns += [
        np.sqrt(w) * (m.coefficients - mean)[:, None] for w, m in zip(weights, members, strict=True)
    ]
    sd = float(np.sqrt(sum(w * m.sd**2 for w, m in zip(weights, members, strict=True))))
    return Expansion(members[0].basis, mean, np.hstack(columns), sd)
