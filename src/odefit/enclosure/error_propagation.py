"""How errors of a Taylor model grow during a step: two bounds of a linear differential inequality.

The deviation e of the true solution from the polynomial obeys ``e' = A(s) e + g(s)``, with A a mean
of the Jacobian over what lies between, and |g| at most the defect.

1. Component by component, ``|e|' <= M |e| + |g|`` with the least upper bound of the diagonal and
   the magnitudes beside it (E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential
   Equations I, section I.10): nothing is lost where errors die down and feed each other with
   positive signs, as in compartment systems.
2. In a frame that moves with the flow at the middle of the box, ``e = Phi(s) w``: only what A
   varies over the box makes w grow, and the frame is made orthogonal again after each step (R. J.
   Lohner, Enclosing the solutions of ordinary initial and boundary value problems, 1987): nothing
   is lost where solutions rotate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.problem.arrays import Array, BoolArray, IntArray

MAX_STEP_NORM = 8.0
"""Norm of step times Jacobian up to which growth is computed; beyond, nothing is known."""

FRAME_ORDER = 12
"""Of the Taylor polynomial of the moving frame."""


@dataclass(frozen=True, eq=False)
class ErrorBound:
    """Where the deviation e is, in B boxes: both bounds hold.

    Attributes
    ----------
    sizes
        ``|e|`` by component, shape (B, n).
    frame, lengths
        ``e = frame w`` with ``|w| <= lengths``, shapes (B, n, n) and (B, n).
    """

    sizes: Array
    frame: Array
    lengths: Array

    @staticmethod
    def of(sizes: Array) -> ErrorBound:
        """Component by component, shape (B, n)."""
        count, n = sizes.shape
        return ErrorBound(sizes, np.broadcast_to(np.eye(n), (count, n, n)).copy(), sizes.copy())

    def take(self, boxes: IntArray) -> ErrorBound:
        """Those of some boxes."""
        return ErrorBound(self.sizes[boxes], self.frame[boxes], self.lengths[boxes])

    def forget(self, boxes: BoolArray) -> None:
        """Nothing is known of some boxes, a mask of shape (B,)."""
        self.sizes[boxes] = np.inf
        self.lengths[boxes] = np.inf

    def without(self, states: BoolArray) -> ErrorBound:
        """As if the deviation of some states were zero, a mask of shape (B, n)."""
        sizes = np.where(states, 0.0, self.sizes)
        frame, lengths = self.frame.copy(), self.lengths.copy()
        # Their share of the lengths is not known: the sizes alone say something of the others.
        anew = (states & (self.sizes != 0)).any(axis=1) & ~np.isfinite(lengths).all(axis=1)
        anew |= (states & (self.sizes != 0) & np.isfinite(self.sizes)).any(axis=1)
        frame[anew], lengths[anew] = np.eye(sizes.shape[1]), sizes[anew]
        return ErrorBound(sizes, frame, lengths)

    def unknown(self, states: BoolArray) -> ErrorBound:
        """The same where nothing is known of some states, a mask of shape (B, n)."""
        return ErrorBound(np.where(states, np.inf, self.sizes), self.frame, self.lengths)

    def put(self, boxes: IntArray, other: ErrorBound) -> None:
        """Replace those of some boxes."""
        self.sizes[boxes] = other.sizes
        self.frame[boxes] = other.frame
        self.lengths[boxes] = other.lengths


def exponential(matrix: Array, first: Array, steady: Array) -> tuple[Array, Array]:
    """Sums of ``N^k / k! first`` and ``N^k / (k + 1)! steady``, rounded upwards.

    Parameters
    ----------
    matrix
        N, nowhere negative, shape (B, n, n); rows that sum to more than :data:`MAX_STEP_NORM` give
        infinity.
    first, steady
        Not negative, shape (B, n).
    """
    norms = matrix.sum(axis=2).max(axis=1)
    fine = norms <= MAX_STEP_NORM
    small = np.where(fine[:, None, None], matrix, 0.0)
    reach = float(norms[fine].max(initial=0.0))
    last = int(12 + 4 * reach)
    v, w = first.copy(), steady.copy()
    start, drive = v.copy(), w.copy()
    for k in range(1, last):
        v = np.matmul(small, v[:, :, None])[:, :, 0] / k
        w = np.matmul(small, w[:, :, None])[:, :, 0] / (k + 1)
        start += v
        drive += w
    # The terms left out are a geometric series with ratio at most reach / last.
    rest = reach / last / (1.0 - reach / last)
    far = np.where(fine, 0.0, np.inf)[:, None]
    top = v.max(axis=1, keepdims=True) * rest, w.max(axis=1, keepdims=True) * rest
    return (start + top[0]) * ROUNDING_MARGIN + far, (drive + top[1]) * ROUNDING_MARGIN + far


def componentwise(upper: Array, sizes: Array, defect: Array) -> tuple[Array, Array]:
    """Sizes at the end of a step, and the largest during it, shapes (B, n).

    Parameters
    ----------
    upper
        Bounds of the Jacobian times the step: its diagonal from above, the rest in magnitude,
        shape (B, n, n).
    sizes
        At the beginning.
    defect
        Of the polynomial, times the step.
    """
    n = upper.shape[1]
    diagonal = np.arange(n)
    shift = np.maximum(-upper[:, diagonal, diagonal], 0.0).max(axis=1)
    shifted = upper.copy()
    shifted[:, diagonal, diagonal] += shift[:, None]
    start, drive = exponential(np.maximum(shifted, 0.0) * ROUNDING_MARGIN, sizes, defect)
    with np.errstate(invalid="ignore"):
        after = (np.exp(-shift)[:, None] * start + drive) * ROUNDING_MARGIN + UNDERFLOW
        return after, (start + drive) * ROUNDING_MARGIN + UNDERFLOW


def without(matrix: Array, states: BoolArray) -> Array:
    """With zeros in rows and columns of some states, shapes (..., B, n, n) and (B, n)."""
    if not states.any():
        return matrix
    return np.asarray(np.where(states[:, :, None] | states[:, None, :], 0.0, matrix))


class Frame:
    """The flow at the middle of the boxes during a step, ``Phi' = A_c(s) Phi``, approximately.

    Parameters
    ----------
    middle
        Coefficients of A_c times the step by order of s, shape (k, B, n, n).

    Attributes
    ----------
    end, ending
        Phi at the end of the step, rounded, and a bound of the rounding.
    sup, inverse
        Bounds of |Phi| and of |Phi^-1| during the step.
    defect
        Bound of |A_c Phi - Phi'|, for the polynomial Phi that is meant exactly.
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
        self.ending: Array = 2 * (FRAME_ORDER + 1) * UNIT_ROUNDOFF * self.sup + UNDERFLOW
        inverse = np.sum([np.abs(p) for p in psi], axis=0) * ROUNDING_MARGIN
        self.defect = self._defect(phi, self.sup, lambda a, p: a @ p)
        # psi phi = 1 + residue, whose derivative is what the equations of both leave.
        of_psi = self._defect(psi, inverse, lambda a, p: p @ a)
        residue = (of_psi @ self.sup + inverse @ self.defect) * ROUNDING_MARGIN
        total = inverse.sum(axis=1, keepdims=True)
        self.inverse: Array = (inverse + _excess(residue)[:, None, None] * total) * ROUNDING_MARGIN

    def _defect(
        self, series: list[Array], sup: Array, product: Callable[[Array, Array], Array]
    ) -> Array:
        """Bound of what a series lacks: orders beyond the last, and rounding of the others."""
        sizes = np.abs(self._middle)
        found: Array = np.full_like(self.end, UNDERFLOW)
        for j in range(len(sizes)):
            for i in range(max(FRAME_ORDER - j, 0), FRAME_ORDER + 1):
                found += product(sizes[j], np.abs(series[i]))
        rounding = 8 * found.shape[1] * (FRAME_ORDER + 1) * UNIT_ROUNDOFF
        return np.asarray((found + rounding * product(sizes.sum(0), sup)) * ROUNDING_MARGIN)


def framed(frame: Frame, variation: Array, spread: ErrorBound, defect: Array) -> ErrorBound:
    """Return the deviation at the end of a step, by the moving frame alone.

    Parameters
    ----------
    variation
        Bound of |A - A_c| times the step, shape (B, n, n).
    defect
        Of the polynomial, times the step, shape (B, n).
    """
    growth = frame.inverse @ (variation @ frame.sup + frame.defect) * ROUNDING_MARGIN
    drive = np.matmul(frame.inverse, defect[:, :, None])[:, :, 0] * ROUNDING_MARGIN
    begin = np.minimum(
        spread.sizes,
        np.matmul(np.abs(spread.frame), spread.lengths[:, :, None])[:, :, 0] * ROUNDING_MARGIN,
    )
    start, driven = exponential(growth, begin, drive)
    with np.errstate(invalid="ignore"):
        moved = np.maximum(start - begin, 0.0) + driven + 4 * UNIT_ROUNDOFF * start + UNDERFLOW
    return mapped(spread, (frame.end, frame.ending), moved, (frame.end, frame.ending))


def mapped(
    spread: ErrorBound,
    matrix: tuple[Array, Array | float],
    added: Array,
    added_matrix: tuple[Array, Array | float],
) -> ErrorBound:
    """Return where ``P e + R a`` is, in an orthogonal frame that follows P (Lohner).

    Parameters
    ----------
    spread
        Where e is.
    matrix, added_matrix
        P and R, shape (B, n, n), and bounds of their errors, of the same shape or zero.
    added
        Bound of |a|, shape (B, n).
    """
    (through, error), (beside, beside_error) = matrix, added_matrix
    n = through.shape[1]
    finite: BoolArray = np.all(np.isfinite(through), axis=(1, 2))
    finite &= np.isfinite(added).all(axis=1) & np.isfinite(spread.lengths).all(axis=1)
    through = np.where(finite[:, None, None], through, 0.0)
    carried = through @ spread.frame
    scaled = carried * np.where(finite[:, None], spread.lengths, 0.0)[:, None, :]
    # Where there is no direction to follow, the frame is that of the states.
    plain: BoolArray = ~np.all(np.isfinite(scaled), axis=(1, 2))
    plain |= ~np.any(scaled, axis=(1, 2))
    turned = orthogonal(np.where(plain[:, None, None], np.eye(n), scaled))
    back = np.swapaxes(turned, 1, 2)
    rounding = 4 * n * UNIT_ROUNDOFF
    outer = np.abs(back @ beside) + np.abs(back) @ (beside_error + rounding * np.abs(beside))
    inner = np.abs(back @ carried) + np.abs(back) @ (
        rounding * np.abs(carried) + (error + rounding * np.abs(through)) @ np.abs(spread.frame)
    )
    with np.errstate(invalid="ignore"):
        lengths = np.matmul(inner * ROUNDING_MARGIN, spread.lengths[:, :, None])[:, :, 0]
        lengths = (
            lengths + np.matmul(outer * ROUNDING_MARGIN, added[:, :, None])[:, :, 0] + UNDERFLOW
        )
        lengths = coordinates(turned, lengths * ROUNDING_MARGIN)
    lengths = np.where(finite[:, None], lengths, np.inf)
    sizes = np.full_like(lengths, np.inf)
    sizes[finite] = (
        np.matmul(np.abs(turned[finite]), lengths[finite][:, :, None])[:, :, 0] * ROUNDING_MARGIN
    )
    return ErrorBound(sizes, turned, lengths)


def coordinates(frame: Array, lengths: Array) -> Array:
    """Bound of ``frame^-1 e``, from one of ``frame' e``, for nearly orthogonal frames.

    Parameters
    ----------
    frame, lengths
        Shapes (B, n, n) and (B, n).
    """
    back, n = np.swapaxes(frame, 1, 2), frame.shape[1]
    residue = np.abs(back @ frame - np.eye(n)) + 4 * n * UNIT_ROUNDOFF * (
        np.abs(back) @ np.abs(frame)
    )
    mixed = _excess(residue)[:, None] * lengths.sum(axis=1, keepdims=True)
    return np.asarray((lengths + mixed) * ROUNDING_MARGIN)


def _excess(residue: Array) -> Array:
    """Bound of all entries of ``(1 + R)^-1 - 1`` for |R| at most `residue`, shape (B,)."""
    norm = residue.sum(axis=2).max(axis=1) * ROUNDING_MARGIN
    most = residue.max(axis=(1, 2)) * ROUNDING_MARGIN
    return np.where(norm < 0.5, most / (1 - np.minimum(norm, 0.5)), np.inf)


def orthogonal(matrices: Array) -> Array:
    """The orthogonal factors, with the longest columns first."""
    order = np.argsort(-np.linalg.norm(matrices, axis=1), axis=1)
    sorted_ = np.take_along_axis(matrices, order[:, None, :], axis=2)
    q, _ = np.linalg.qr(sorted_)
    return np.asarray(q)
