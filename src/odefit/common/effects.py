"""The effects of unknowns on the measurements, independent of their units."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, BoolArray

NO_EFFECT = 1e-12
"""Effect of an unknown's own size, relative to the largest effect, that may be rounding or the
error of an explicit engine."""

RANK_TOLERANCE = 1e-8
"""Singular value of the Jacobian with columns of unit length, relative to the largest, below
which a direction is not determined. Sensitivities are accurate to about 1e-9."""

FARTHEST = 1e3
"""Largest change of an unknown, relative to its size, by which it may follow residuals."""

PARTICIPATION = 1e-2
"""Part of an unknown in an undetermined direction, of columns of unit length, above which it counts
as moving along it."""


def column_norms(matrix: Array) -> Array:
    """Return the Euclidean norms of the columns of a matrix, whose squares may over- or underflow.

    Derivatives with respect to an unknown of 1e-200 are as large as its unit is small.
    """
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    units = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(np.linalg.norm(matrix / units, axis=0) * units)


def acting(jacobian: Array, sizes: Array) -> tuple[Array, BoolArray]:
    """Return the norms of the columns of a Jacobian, and which unknowns have an effect.

    The size of a derivative depends on the unit of its unknown. So the effect of a change of each
    unknown by its size matters, see :func:`odefit.problem.variants.sizes.sizes_at`.
    """
    norms = column_norms(jacobian)
    effects = norms * sizes
    return norms, (norms > 0) & (effects > NO_EFFECT * effects.max(initial=0.0))


def column_space(jacobian: Array, sizes: Array, noise: float = 0.0) -> Array:
    """Return an orthonormal basis of the column space of a Jacobian, shape (m, rank).

    The sum of squares of a row is the leverage of that residual. Directions are left out that would
    follow residuals of the size `noise` only if an unknown changed by more than :data:`FARTHEST`
    times its size. Such directions occur where the cost falls towards infinity.
    """
    norms, effective = acting(jacobian, sizes)
    if not effective.any():
        return np.zeros((len(jacobian), 0))
    u, s, rows = np.linalg.svd(jacobian[:, effective] / norms[effective], full_matrices=False)
    relative = np.abs(rows / (norms * sizes)[effective]).max(axis=1)
    followed = noise * relative <= FARTHEST * s
    return np.asarray(u[:, (s > RANK_TOLERANCE * s[0]) & followed])


def null_space(scaled: Array) -> Array:
    """Return an orthonormal basis of the null space of a matrix with columns of unit length.

    Its rows have the shape (n - rank, n).
    """
    wide = scaled.shape[0] < scaled.shape[1]  # a square matrix of the size of the data is huge
    _, s, rows = np.linalg.svd(scaled, full_matrices=wide)
    return np.asarray(rows[np.count_nonzero(s > RANK_TOLERANCE * s.max(initial=0.0)) :])


def undetermined(jacobian: Array, sizes: Array) -> BoolArray:
    """Return which unknowns change along directions that the data do not determine, shape (n,).

    They include unknowns without effect. Along such a direction all fits are equal, and count as
    one answer.
    """
    norms, effective = acting(jacobian, sizes)
    lost = ~effective
    if effective.any():
        null = null_space(jacobian[:, effective] / norms[effective])
        lost[effective] = np.linalg.norm(null, axis=0) > PARTICIPATION
    return np.asarray(lost)
