"""Affine maps over boxes, and their powers: many equal steps of a linear ODE at once.

Where the equations are linear in the states and do not depend on time, a step is an affine map of
the states, and equal steps are its powers: by repeated squaring of the map over the box, a thousand
steps cost ten products of matrices. Errors are propagated by few operations that way, so that no
frame has to follow them; in the basis of the map's eigenvectors in the middle of the box, powers
of decaying components decay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.monomials import Monomials
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.enclosure.system import Mode, System

MAX_CONDITION_NUMBER = 1e4
"""Condition number of eigenvectors above which they are not used as a basis."""

Matrix = Mapping[tuple[int, int], TaylorModel]
"""The entries of a square matrix that may not be zero, by row and column.

The pattern of entries is that of dependences between states: it is transitive, and has the
diagonal, so that products have the same pattern."""


def is_autonomous_affine(system: System, mode: Mode) -> bool:
    """Return whether a mode's equations are linear in the states and the same at all times."""
    tape = system.tape
    others = {*system.inputs.values(), system.time}
    changing = {*system.states, *others}
    return not any(tape.depends(term) & changing for term in mode.jacobian.terms) and not any(
        tape.depends(term) & others for term in mode.right_hand_sides.terms
    )


def product(left: Matrix, right: Matrix) -> dict[tuple[int, int], TaylorModel]:
    """Return the product of two matrices of the same pattern."""
    inner = sorted({j for _, j in left})
    return {
        (i, j): reduce(
            add,
            [left[i, k] * right[k, j] for k in inner if (i, k) in left and (k, j) in right],
        )
        for i, j in left
    }


def image(
    matrix: Matrix, x: Sequence[TaylorModel], shift: Sequence[TaylorModel] | None = None
) -> list[TaylorModel]:
    """Return ``matrix x + shift``, or ``matrix x``."""
    found = []
    for i in range(len(x)):
        terms = [matrix[i, j] * x[j] for j in range(len(x)) if (i, j) in matrix]
        found.append(reduce(add, terms if shift is None else [*terms, shift[i]]))
    return found


@dataclass(frozen=True, eq=False)
class AffinePowers:
    """Powers of an affine map ``x -> P x + g``, in B boxes, in a basis (None for the states' own).

    `powers` holds matrix and shift of those with exponents 1, 2, 4 ..., as far as they are known.
    """

    basis: tuple[Matrix, Matrix] | None
    powers: list[tuple[Matrix, Sequence[TaylorModel]]]

    @staticmethod
    def of(
        groups: Sequence[Sequence[int]], matrix: Matrix, shift: Sequence[TaylorModel]
    ) -> AffinePowers:
        """Return the powers of the map; states of a group depend on each other."""
        basis = _eigenbasis(groups, matrix)
        if basis is not None:
            into, back = basis
            matrix = product(product(into, matrix), back)
            shift = image(into, shift)
        return AffinePowers(basis, [(matrix, shift)])

    @property
    def monomials(self) -> Monomials:
        """The monomials in the unknowns."""
        return self.powers[0][1][0].monomials

    def __call__(self, x: Sequence[TaylorModel], count: int) -> list[TaylorModel]:
        """Return the image of x under `count` applications of the map."""
        x = list(x) if self.basis is None else image(self.basis[0], x)
        for power in range(count.bit_length()):
            if power == len(self.powers):
                matrix, shift = self.powers[-1]
                self.powers.append((product(matrix, matrix), image(matrix, shift, shift)))
            if count >> power & 1:
                matrix, shift = self.powers[power]
                x = image(matrix, x, shift)
        return x if self.basis is None else image(self.basis[1], x)

    def take(self, boxes: IntArray) -> AffinePowers:
        """Return the powers in the selected boxes."""
        basis = None
        if self.basis is not None:
            basis = taken(self.basis[0], boxes), taken(self.basis[1], boxes)
        powers: list[tuple[Matrix, Sequence[TaylorModel]]] = [
            (taken(matrix, boxes), [g.take(boxes) for g in shift]) for matrix, shift in self.powers
        ]
        return AffinePowers(basis, powers)


def taken(matrix: Matrix, boxes: IntArray) -> Matrix:
    """Return a matrix in the selected boxes."""
    return {place: entry.take(boxes) for place, entry in matrix.items()}


def _eigenbasis(groups: Sequence[Sequence[int]], matrix: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return the matrix into a basis in which the map is nearly diagonal, and its inverse, or None.

    The basis is that of the eigenvectors in the middle of each box, in which bounds of the entries
    of a power are no sums over eigenvalues. Only states that depend on each other are mixed.
    """
    coupled = [g for g in groups if len(g) > 1]
    if not coupled:
        return None
    some = matrix[0, 0]
    boxes, n = len(some.remainder), sum(map(len, groups))
    middle = np.zeros((boxes, n, n))
    for (i, j), entry in matrix.items():
        middle[:, i, j] = entry.c[0, 0]
    into = np.zeros((boxes, n, n)) + np.eye(n)
    back = into.copy()
    mixed = np.zeros((n, n), dtype=bool)
    for group in coupled:
        own = np.ix_(np.arange(boxes), np.array(group), np.array(group))
        vectors = _eigenvectors(middle[own])
        back[own], into[own] = vectors, np.linalg.inv(vectors)
        mixed[np.ix_(group, group)] = True
    # back (1 - e) is the inverse of `into`, with a small e.
    rounding = 4 * n * UNIT_ROUNDOFF * (np.abs(into) @ np.abs(back))
    lacking = np.abs(np.eye(n) - into @ back) + rounding
    size = lacking.sum(axis=2).max(axis=1)
    share = np.where(size < 0.5, 2.0 * size, np.inf)
    error = np.abs(back).max(axis=(1, 2)) * n * share * ROUNDING_MARGIN
    first, second = {}, {}
    for i, j in matrix:
        first[i, j] = TaylorModel.constant(some.monomials, into[:, i, j])
        second[i, j] = TaylorModel.constant(some.monomials, back[:, i, j])
        if mixed[i, j]:
            second[i, j].remainder = error
    return first, second


def _eigenvectors(matrices: Array) -> Array:
    """Return real and imaginary parts of eigenvectors as columns, or unit vectors.

    Unit vectors take the place of eigenvectors that are not finite or nearly dependent.
    """
    n = matrices.shape[1]
    usable: BoolArray = np.all(np.isfinite(matrices), axis=(1, 2))
    values, vectors = np.linalg.eig(np.where(usable[:, None, None], matrices, np.eye(n)))
    # Of a pair, the first column is the real part and the second one the imaginary part.
    real = np.where(np.imag(values)[:, None, :] < 0, np.imag(vectors), np.real(vectors))
    real = real / np.maximum(np.abs(real).max(axis=1, keepdims=True), UNDERFLOW)
    usable &= np.isfinite(real).all(axis=(1, 2))
    real = np.where(usable[:, None, None], real, np.eye(n))
    usable &= np.linalg.cond(real) < MAX_CONDITION_NUMBER
    found: Array = np.where(usable[:, None, None], real, np.eye(n))
    return found
