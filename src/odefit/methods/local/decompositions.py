"""Matrix decompositions that do not fail."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array

MAX_LATE_WORK = 5e8
"""Operations of a factorisation of the Jacobian above which it is skipped after a time limit:
several factorisations would take more than a second."""


def singular_value_decomposition(matrix: Array) -> tuple[Array, Array, Array]:
    """Return u, s and vt of a finite matrix, shapes (r, k), (k,) and (k, n), k the smaller of both.

    LAPACK's faster method, divide and conquer, does not converge on a few matrices with entries of
    very different sizes; its older method, by QR steps, does. Such a matrix occurred in the
    published model of Raia et al.
    """
    try:
        return np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        u, s, vt = svd(matrix, full_matrices=False, lapack_driver="gesvd")
        return u, s, vt
