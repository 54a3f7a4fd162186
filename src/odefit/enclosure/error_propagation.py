"""Propagation of the error of a Taylor model during a step: two bounds of its growth.

The error e, the distance of the true solution from the polynomial, obeys ``e' = A(s) e + g(s)``. A
is a mean of the Jacobian over the values between both, and |g| is at most the defect.

1. Component by component, ``|e|' <= M |e| + |g|`` with the least upper bound of the diagonal and
   the magnitudes beside it (E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential
   Equations I, section I.10): nothing is lost where errors die down and feed each other with
   positive signs, as in compartment systems.
2. In a frame that moves with the flow at the middle of the box, ``e = Phi(s) w``: w grows by the
   variation of A over the box alone, and the frame is made orthogonal again after each step (R. J.
   Lohner, Enclosing the solutions of ordinary initial and boundary value problems, 1987): nothing
   is lost where solutions rotate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF

MAX_GROWTH_NORM = 8.0
"""Norm of step times Jacobian up to which growth is bounded; beyond, it is unknown."""

FRAME_ORDER = 12
"""Order of the Taylor polynomial of the moving frame."""


@dataclass(frozen=True, eq=False)
class ErrorBound:
    """Two bounds of the error e in B boxes, which both hold.

    One is ``|e| <= sizes``, shape (B, n), the other ``e = frame w`` with ``|w| <= lengths``, shapes
    (B, n, n) and (B, n).
    """

    sizes: Array
    frame: Array
    lengths: Array

    @staticmethod
    def of(sizes: Array) -> ErrorBound:
        """Return the bound of an error that is known component by component, shape (B, n)."""
        count, n = sizes.shape
        return ErrorBound(sizes, np.broadcast_to(np.eye(n), (count, n, n)).copy(), sizes.copy())

    def take(self, boxes: IntArray) -> ErrorBound:
        """Return the bounds in the selected boxes."""
        return ErrorBound(self.sizes[boxes], self.frame[boxes], self.lengths[boxes])

    def put(self, boxes: IntArray, other: ErrorBound) -> None:
        """Replace the bounds in the selected boxes."""
        self.sizes[boxes] = other.sizes
        self.frame[boxes] = other.frame
        self.lengths[boxes] = other.lengths

    def forget(self, boxes: BoolArray) -> None:
        """Mark the error as unknown in some boxes, a mask of shape (B,)."""
        self.sizes[boxes] = np.inf
        self.lengths[boxes] = np.inf

    def unknown(self, states: BoolArray) -> ErrorBound:
        """Return the bound with an unknown error of some states, a mask of shape (B, n)."""
        return ErrorBound(np.where(states, np.inf, self.sizes), self.frame, self.lengths)

    def without(self, states: BoolArray) -> ErrorBound:
        """Return the bound as if the error of some states were zero, a mask of shape (B, n)."""
        sizes = np.where(states, 0.0, self.sizes)
        frame, lengths = self.frame.copy(), self.lengths.copy()
        # The share of these states in the lengths is unknown: only the sizes of the others remain.
        anew = (states & (self.sizes != 0)).any(axis=1) & ~np.isfinite(lengths).all(axis=1)
        anew |= (states & (self.sizes != 0) & np.isfinite(self.sizes)).any(axis=1)
        frame[anew], lengths[anew] = np.eye(sizes.shape[1]), sizes[anew]
        return ErrorBound(sizes, frame, lengths)


def exponential_sums(matrix: Array, first: Array, steady: Array) -> tuple[Array, Array]:
    """Return the sums of ``N^k / k! first`` and ``N^k / (k + 1)! steady``, rounded upwards.

    N, shape (B, n, n), and the vectors are nonnegative. The sums are infinite if a row of N sums to
    more than :data:`MAX_GROWTH_NORM`.
    """
    norms = matrix.sum(axis=2).max(axis=1)
    usable = norms <= MAX_GROWTH_NORM
    small = np.where(usable[:, None, None], matrix, 0.0)
    largest = float(norms[usable].max(initial=0.0))
    last = int(12 + 4 * largest)
    v, w = first.copy(), steady.copy()
    start, drive = v.copy(), w.copy()
    for k in range(1, last):
        v = _times(small, v) / k
        w = _times(small, w) / (k + 1)
        start += v
        drive += w
    # The omitted terms are at most a geometric series with the ratio largest / last.
    rest = largest / last / (1.0 - largest / last)
    beyond = np.where(usable, 0.0, np.inf)[:, None]
    top = v.max(axis=1, keepdims=True) * rest, w.max(axis=1, keepdims=True) * rest
    return (start + top[0]) * ROUNDING_MARGIN + beyond, (drive + top[1]) * ROUNDING_MARGIN + beyond


def propagate_componentwise(upper: Array, sizes: Array, defect: Array) -> tuple[Array, Array]:
    """Return bounds of |e| at the end of a step and during all of it, shapes (B, n).

    `upper`, shape (B, n, n), bounds the Jacobian times the step, its diagonal from above, the rest
    in magnitude. `sizes` bound |e| at the beginning, `defect` the polynomial's, times the step.
    """
    n = upper.shape[1]
    diagonal = np.arange(n)
    shift = np.maximum(-upper[:, diagonal, diagonal], 0.0).max(axis=1)
    shifted = upper.copy()
    shifted[:, diagonal, diagonal] += shift[:, None]
    start, drive = exponential_sums(np.maximum(shifted, 0.0) * ROUNDING_MARGIN, sizes, defect)
    with np.errstate(invalid="ignore"):
        after = (np.exp(-shift)[:, None] * start + drive) * ROUNDING_MARGIN + UNDERFLOW
        return after, (start + drive) * ROUNDING_MARGIN + UNDERFLOW


def zeroed(matrix: Array, states: BoolArray) -> Array:
    """Return a matrix, shape (..., B, n, n), without rows and columns of some states, (B, n)."""
    if not states.any():
        return matrix
    return np.asarray(np.where(states[:, :, None] | states[:, None, :], 0.0, matrix))


class MovingFrame:
    """The flow at the middle of the boxes during a step, ``Phi' = A_c(s) Phi``, approximately.

    `middle` are the coefficients of A_c times the step by order of s, shape (k, B, n, n). The
    others have shape (B, n, n): Phi at the end, rounded, and a bound of the rounding. `sup` and
    `inverse` bound |Phi| and |Phi^-1| during the step. `defect` is a bound of |A_c Phi - Phi'| for
    the polynomial Phi without any rounding.
    """

    def __init__(self, middle: Array) -> None:
        count, boxes, n, _ = middle.shape
        phi = [np.broadcast_to(np.eye(n), (boxes, n, n))]
        psi = [phi[0]]
        for k in range(FRAME_ORDER):
            terms = range(min(k + 1, count))
            phi.append(sum(middle[j] @ phi[k - j] for j in terms) / (k + 1))
            psi.append(-sum(psi[k - j] @ middle[j] for j in terms) / (k + 1))
        self._middle = middle
        self.end: Array = np.sum(phi, axis=0)
        self.sup: Array = np.sum([np.abs(p) for p in phi], axis=0) * ROUNDING_MARGIN
        self.rounding: Array = 2 * (FRAME_ORDER + 1) * UNIT_ROUNDOFF * self.sup + UNDERFLOW
        inverse = np.sum([np.abs(p) for p in psi], axis=0) * ROUNDING_MARGIN
        self.defect = self._defect(phi, self.sup, lambda a, p: a @ p)
        # psi phi = 1 + residue, and the residue's derivative follows from the defects of both.
        of_psi = self._defect(psi, inverse, lambda a, p: p @ a)
        residue = (of_psi @ self.sup + inverse @ self.defect) * ROUNDING_MARGIN
        total = inverse.sum(axis=1, keepdims=True)
        excess = _inverse_excess(residue)[:, None, None]
        self.inverse: Array = (inverse + excess * total) * ROUNDING_MARGIN

    def _defect(
        self, series: list[Array], sup: Array, product: Callable[[Array, Array], Array]
    ) -> Array:
        """Return a bound of a series' defect: orders beyond its last one, and all rounding."""
        sizes = np.abs(self._middle)
        defect: Array = np.full_like(self.end, UNDERFLOW)
        for j in range(len(sizes)):
            for i in range(max(FRAME_ORDER - j, 0), FRAME_ORDER + 1):
                defect += product(sizes[j], np.abs(series[i]))
        rounding = 8 * defect.shape[1] * (FRAME_ORDER + 1) * UNIT_ROUNDOFF
        return np.asarray((defect + rounding * product(sizes.sum(0), sup)) * ROUNDING_MARGIN)


def propagate_in_frame(
    frame: MovingFrame, variation: Array, error: ErrorBound, defect: Array
) -> ErrorBound:
    """Return the error at the end of a step, by the moving frame alone.

    `variation`, shape (B, n, n), bounds |A - A_c| times the step, `defect`, shape (B, n), the
    polynomial's defect times the step.
    """
    growth = frame.inverse @ (variation @ frame.sup + frame.defect) * ROUNDING_MARGIN
    drive = _times(frame.inverse, defect) * ROUNDING_MARGIN
    in_frame = _times(np.abs(error.frame), error.lengths) * ROUNDING_MARGIN
    begin = np.minimum(error.sizes, in_frame)
    start, driven = exponential_sums(growth, begin, drive)
    with np.errstate(invalid="ignore"):
        moved = np.maximum(start - begin, 0.0) + driven + 4 * UNIT_ROUNDOFF * start + UNDERFLOW
    end = frame.end, frame.rounding
    return mapped_error(error, end, moved, end)


def mapped_error(
    error: ErrorBound,
    matrix: tuple[Array, Array | float],
    added: Array,
    added_matrix: tuple[Array, Array | float],
) -> ErrorBound:
    """Return a bound of ``P e + R a`` in an orthogonal frame that follows P (Lohner).

    P and R, shape (B, n, n), come with bounds of their errors; `added`, shape (B, n), bounds |a|.
    """
    (p, p_error), (r, r_error) = matrix, added_matrix
    n = p.shape[1]
    finite: BoolArray = np.all(np.isfinite(p), axis=(1, 2))
    finite &= np.isfinite(added).all(axis=1) & np.isfinite(error.lengths).all(axis=1)
    p = np.where(finite[:, None, None], p, 0.0)
    carried = p @ error.frame
    scaled = carried * np.where(finite[:, None], error.lengths, 0.0)[:, None, :]
    # Without a direction to follow, the frame is that of the states.
    plain: BoolArray = ~np.all(np.isfinite(scaled), axis=(1, 2))
    plain |= ~np.any(scaled, axis=(1, 2))
    turned = orthogonal_factors(np.where(plain[:, None, None], np.eye(n), scaled))
    back = np.swapaxes(turned, 1, 2)
    rounding = 4 * n * UNIT_ROUNDOFF
    outer = np.abs(back @ r) + np.abs(back) @ (r_error + rounding * np.abs(r))
    inner = np.abs(back @ carried) + np.abs(back) @ (
        rounding * np.abs(carried) + (p_error + rounding * np.abs(p)) @ np.abs(error.frame)
    )
    with np.errstate(invalid="ignore"):
        lengths = _times(inner * ROUNDING_MARGIN, error.lengths)
        lengths = lengths + _times(outer * ROUNDING_MARGIN, added) + UNDERFLOW
        lengths = in_frame_coordinates(turned, lengths * ROUNDING_MARGIN)
        sizes = _times(np.abs(turned), lengths) * ROUNDING_MARGIN
    known = finite[:, None]
    return ErrorBound(np.where(known, sizes, np.inf), turned, np.where(known, lengths, np.inf))


def in_frame_coordinates(frame: Array, lengths: Array) -> Array:
    """Return a bound of ``frame^-1 e`` from one of ``frame' e``, for nearly orthogonal frames."""
    back, n = np.swapaxes(frame, 1, 2), frame.shape[1]
    rounding = 4 * n * UNIT_ROUNDOFF * (np.abs(back) @ np.abs(frame))
    residue = np.abs(back @ frame - np.eye(n)) + rounding
    mixed = _inverse_excess(residue)[:, None] * lengths.sum(axis=1, keepdims=True)
    return np.asarray((lengths + mixed) * ROUNDING_MARGIN)


def _inverse_excess(residue: Array) -> Array:
    """Return a bound of all entries of ``(1 + R)^-1 - 1`` for |R| at most `residue`, shape (B,)."""
    norm = residue.sum(axis=2).max(axis=1) * ROUNDING_MARGIN
    most = residue.max(axis=(1, 2)) * ROUNDING_MARGIN
    return np.where(norm < 0.5, most / (1 - np.minimum(norm, 0.5)), np.inf)


def orthogonal_factors(matrices: Array) -> Array:
    """Return the orthogonal factors of QR decompositions, with the longest columns first."""
    order = np.argsort(-np.linalg.norm(matrices, axis=1), axis=1)
    sorted_ = np.take_along_axis(matrices, order[:, None, :], axis=2)
    q, _ = np.linalg.qr(sorted_)
    return np.asarray(q)


def _times(matrix: Array, vector: Array) -> Array:
    """Return the products of matrices (B, i, j) and vectors (B, j)."""
    return np.asarray(np.matmul(matrix, vector[:, :, None])[:, :, 0])
