"""Exponentials of many small matrices at once, and their action on a few columns.

A step of the Local Linearization method is one block exponential (Van Loan, 1978),

    exp [[Z, R], [0, 0]] = [[exp(Z), phi(Z) R], [0, I]],   phi(z) = (exp(z) - 1)/z,

of which only the upper rows are needed. The Pade approximation and its squarings are therefore
computed for these rows alone. Their order depends on the norm of Z, not on that of R, so that large
columns R need no extra squarings.

If the norm of Z is small, or Z is large and R has few columns, the Taylor series of phi(Z) R takes
fewer operations. It has products with R only, and no matrix is inverted. In NumPy a batched
solution of 3 by 3 systems takes as long as a dozen batched products.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array

_PADE: tuple[tuple[float, tuple[float, ...]], ...] = (
    # largest 1-norm, coefficients: Higham, SIAM J. Matrix Anal. Appl. 26 (2005) 1179
    (1.495585217958292e-2, (120.0, 60.0, 12.0, 1.0)),
    (2.539398330063230e-1, (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0)),
    (
        9.504178996162932e-1,
        (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    ),
    (
        2.097847961257068,
        (
            17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0,
            2162160.0, 110880.0, 3960.0, 90.0, 1.0,
        ),
    ),
    (
        5.371920351148152,
        (
            64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
            129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0,
            1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
        ),
    ),
)  # fmt: skip

_MAX_TERMS = 30  # largest number of terms of the Taylor series

_SERIES_NORMS = [0.0] + [
    (2.0**-53 * math.factorial(d + 2)) ** (1.0 / (d + 1)) for d in range(_MAX_TERMS)
]
"""The norm, by number of terms, up to which the first omitted term is below rounding."""

SERIES_NORM = 2.0
"""1-norm up to which the series is summed in one piece: its terms hardly cancel yet."""

MAX_SERIES_TERMS = (8, 60)
"""Numbers of terms of the series that take as long as Pade's approximation in NumPy: a number for
each row, and a largest number. They were measured for matrices of up to 60 rows. For larger
matrices operations are counted.
"""

MAX_SERIES_NORM = 0.5  # norm of hJ up to which the estimate of the error needs no linear system


def exponential(matrices: Array) -> Array:
    """Return exponentials of a stack of matrices, by Pade approximation, scaling and squaring.

    Matrices have the shape (k, n, N) with N >= n. They are the first n rows of N by N matrices
    whose other rows are zero, and so is the result. It is NaN where the input is not finite.
    """
    count, n, _ = matrices.shape
    Z = matrices[:, :, :n]
    norms = _norms(Z)
    finite = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(norms)
    if not finite.all():
        result = np.full(matrices.shape, np.nan)
        if finite.any():
            result[finite] = exponential(matrices[finite])
        return result
    largest = float(norms.max(initial=0.0))
    coefficients = next((b for limit, b in _PADE if largest <= limit), _PADE[-1][1])
    # largest = m 2^e with m in [1/2, 1): the scaled norm is at most the limit.
    squarings = np.maximum(np.frexp(norms / _PADE[-1][0])[1], 0)
    if squarings.any():
        scale = np.ldexp(1.0, -squarings)[:, None, None]
        matrices = matrices * scale
        Z = matrices[:, :, :n]
    identity = np.eye(n)
    square = Z @ Z
    even, odd = _halves(coefficients, square, identity)
    Zodd = Z @ odd
    # q(A) (exp(A) - I) = 2 U with A = [[Z, R], [0, 0]], and U has the upper rows odd(Z^2) A.
    rows = np.linalg.solve(even - Zodd, 2.0 * (odd @ matrices))
    rows[:, :, :n] += identity
    for i in range(int(squarings.max(initial=0))):
        chosen = np.flatnonzero(squarings > i)
        part = rows if len(chosen) == count else rows[chosen]
        doubled = part[:, :, :n] @ part
        doubled[:, :, n:] += part[:, :, n:]
        rows[chosen] = doubled
    return np.asarray(rows)


def phi_product(matrices: Array, columns: Array) -> Array:
    """Return phi(Z) R for stacks of matrices Z and columns R, phi(z) = (exp(z) - 1)/z.

    Z has the shape (k, n, n), R and the result (k, n, c); the result is NaN where the input is not
    finite. The norm of each matrix decides its algorithm.
    """
    norms = _norms(matrices)
    if (norms <= 0.5 * SERIES_NORM).all():
        return _series(matrices, columns, norms)
    pieces = _pieces(norms, matrices.shape[-1], columns.shape[-1])
    if (pieces == 1).all():
        return _series(matrices, columns, norms)
    result = np.empty_like(columns)
    dense = np.flatnonzero(pieces == 0)
    if len(dense):
        rows = np.concatenate([matrices[dense], columns[dense]], axis=2)
        result[dense] = exponential(rows)[:, :, matrices.shape[-1] :]
    for number in np.unique(pieces[pieces > 0]):
        chosen = np.flatnonzero(pieces == number)
        Z, R = matrices[chosen] / number, columns[chosen] / number
        # y' = Z y + R from y = 0 in equal pieces: y(1) = phi(Z) R.
        y = part = _series(Z, R, norms[chosen] / number)
        for _ in range(1, number):
            part = part + _series(Z, Z @ part, norms[chosen] / number)
            y = y + part
        result[chosen] = y
    return result


def damped(hJ: Array, columns: Array) -> Array:
    """Return about (1 - hJ/4)^-1 applied to columns, shapes (k, n, n) and (k, n, c).

    6 phi_3(z) = 1 + z/4 + z^2/20 + ... turns a third of h times the defect at the end of a step,
    which grows quadratically over it, into its effect on the states. For large hJ the inverse damps
    it as phi_3 does: stiff components are not overestimated.
    """
    small = np.abs(hJ).sum(axis=1).max(axis=1, initial=0.0) <= MAX_SERIES_NORM
    if small.all():
        first = hJ @ columns
        return np.asarray(columns + first / 4 + (hJ @ first) / 20)
    result = np.empty_like(columns)
    if small.any():
        result[small] = damped(hJ[small], columns[small])
    stiff = ~small
    matrices = np.eye(hJ.shape[1]) - hJ[stiff] / 4
    usable = np.isfinite(matrices).all(axis=(1, 2))
    matrices[~usable] = np.eye(hJ.shape[1])
    try:
        solved = np.linalg.solve(matrices, columns[stiff])
    except np.linalg.LinAlgError:  # an eigenvalue of hJ is 4: growth, which needs no damping
        solved = columns[stiff]
    solved[~usable] = np.nan
    result[stiff] = solved
    return result


def _series(matrices: Array, columns: Array, norms: Array) -> Array:
    """Return phi(Z) R by its Taylor series, with as many terms as the largest norm needs."""
    terms = int(np.searchsorted(_SERIES_NORMS, float(norms.max(initial=0.0))))
    total = columns
    for k in range(2, 2 + terms):
        columns = (matrices @ columns) * (1.0 / k)
        total = total + columns
    return total


def _pieces(norms: Array, n: int, c: int) -> npt.NDArray[np.intp]:
    """Return the number of pieces of the series for each matrix; 0 if Pade is better."""
    usable = np.where(np.isfinite(norms), norms, 1e9)
    pieces = np.maximum(np.ceil(usable / SERIES_NORM), 1.0)
    terms = pieces * np.searchsorted(_SERIES_NORMS, usable / pieces)
    # In products of n by n matrices: powers and polynomials, the solution, the squarings.
    squarings = np.maximum(np.log2(np.maximum(usable, 1.0) / _PADE[-1][0]), 0.0)
    operations = 6.0 + (1.0 + c / n) * (1.0 + squarings)
    per_row, most = MAX_SERIES_TERMS
    affordable = np.maximum(min(per_row * n, most), operations * n / max(c, 1))
    if n <= most:
        affordable = np.minimum(affordable, most)
    return np.where(terms <= affordable, pieces, 0).astype(np.intp)


def _norms(matrices: Array) -> Array:
    """Return the 1-norms of the matrices, shape (k,)."""
    return np.asarray(np.abs(matrices).sum(axis=1).max(axis=1, initial=0.0))


def _halves(b: tuple[float, ...], square: Array, identity: Array) -> tuple[Array, Array]:
    """Return the sums over even powers of A with coefficients b0, b2, ... and b1, b3, ..."""
    if len(b) < 14:
        even, odd = b[0] * identity, b[1] * identity
        power = square
        for k in range(2, len(b), 2):
            even = even + b[k] * power
            odd = odd + b[k + 1] * power
            if k + 2 < len(b):
                power = power @ square
        return even, odd
    fourth = square @ square
    sixth = fourth @ square
    low = (b[6] * sixth + b[4] * fourth + b[2] * square) + b[0] * identity
    even = sixth @ (b[12] * sixth + b[10] * fourth + b[8] * square) + low
    low = (b[7] * sixth + b[5] * fourth + b[3] * square) + b[1] * identity
    odd = sixth @ (b[13] * sixth + b[11] * fourth + b[9] * square) + low
    return even, odd
