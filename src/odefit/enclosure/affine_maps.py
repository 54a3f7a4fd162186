"""Affine maps over boxes, and their powers: many equal steps of a linear motion at once.

Where the equations are linear in the states and do not depend on time, a step is an affine map of
the states, and equal steps are its powers: by repeated squaring of the map over the box, a thousand
steps cost ten products of matrices. Deviations meet few operations that way, so that no frame has
to follow them; in the basis of its eigenvectors in the middle of the box, the map of what decays is
seen to decay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.system import Mode, System
from odefit.enclosure.taylor_evaluation import TapeProgram
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.structure.tape import Tape, Term

WORST = 1e4
"""Condition number of eigenvectors above which they are not used."""


def affine(system: System, motion: Mode) -> bool:
    """Whether a motion is linear in the states and the same at all times."""
    tape = system.tape
    changing = {*system.states, *system.inputs.values(), system.time}
    return not any(tape.depends(term) & changing for term in motion.slopes.terms) and not any(
        tape.depends(term) & (changing - set(system.states)) for term in motion.rates.terms
    )


class Composition:
    """Programs that compose affine maps of n states, and apply them.

    Parameters
    ----------
    groups, reach
        Of the states, see :meth:`odefit.enclosure.system.Motion.order`.

    Attributes
    ----------
    pairs
        Entries of a matrix that may not be zero.
    """

    def __init__(self, groups: Sequence[Sequence[int]], reach: Array) -> None:
        n = len(reach)
        self.groups, self.states = groups, n
        tape = Tape()
        pairs = [(i, j) for i in range(n) for j in range(n) if reach[i, j]]
        outer = {p: tape.variable(f"outer {p}") for p in pairs}
        inner = {p: tape.variable(f"inner {p}") for p in pairs}
        shift = [tape.variable(f"outer shift {i}") for i in range(n)]
        start = [tape.variable(f"start {i}") for i in range(n)]

        def total(parts: Sequence[Term]) -> Term:
            found = parts[0]
            for part in parts[1:]:
                found = found + part
            return found

        product = [
            total(
                [outer[i, k] * inner[k, j] for k in range(n) if (i, k) in outer and (k, j) in inner]
            )
            for i, j in pairs
        ]
        image = [
            total([*(outer[i, j] * start[j] for j in range(n) if (i, j) in outer), shift[i]])
            for i in range(n)
        ]
        self.pairs = pairs
        self._outer = [outer[p].index for p in pairs]
        self._inner = [inner[p].index for p in pairs]
        self._shift, self._start = [t.index for t in shift], [t.index for t in start]
        self._product, self._image = (
            TapeProgram(tape, product),
            TapeProgram(tape, image),
        )

    def applied(
        self,
        matrix: Sequence[TaylorModel],
        shift: Sequence[TaylorModel],
        start: Sequence[TaylorModel],
        m: Monomials,
    ) -> list[TaylorModel]:
        """``P x + g``; entries of P in the order of `pairs`."""
        known = dict(zip(self._outer, matrix, strict=True))
        known |= dict(zip(self._shift, shift, strict=True))
        known |= dict(zip(self._start, start, strict=True))
        found = self._image.static(m, known, len(start[0].remainder))
        return [found[term.index] for term in self._image.terms]

    def product(
        self, outer: Sequence[TaylorModel], inner: Sequence[TaylorModel], m: Monomials
    ) -> list[TaylorModel]:
        """Of two matrices."""
        known = dict(zip(self._outer, outer, strict=True))
        known |= dict(zip(self._inner, inner, strict=True))
        found = self._product.static(m, known, len(outer[0].remainder))
        return [found[term.index] for term in self._product.terms]


class Powers:
    """Powers of an affine map ``x -> P x + g``, in B boxes.

    Parameters
    ----------
    composition
        Of maps of so many states.
    monomials
        In the unknowns.
    matrix, shift
        P, entries in the order of `composition.pairs`, and g.
    """

    def __init__(
        self,
        composition: Composition,
        monomials: Monomials,
        matrix: Sequence[TaylorModel],
        shift: Sequence[TaylorModel],
    ) -> None:
        self._composition, self._monomials = composition, monomials
        self._basis = _basis(composition, monomials, matrix)
        if self._basis is not None:
            into, back = self._basis
            matrix = composition.product(into, matrix, monomials)
            matrix = composition.product(matrix, back, monomials)
            shift = self._mapped(into, shift)
        self._powers = [(matrix, shift)]

    def __call__(self, x: Sequence[TaylorModel], count: int) -> list[TaylorModel]:
        """The map, `count` times."""
        x = list(x)
        if self._basis is not None:
            x = self._mapped(self._basis[0], x)
        power = 0
        while count >> power:
            if power == len(self._powers):
                matrix, shift = self._powers[-1]
                again = self._composition.applied(matrix, shift, shift, self._monomials)
                square = self._composition.product(matrix, matrix, self._monomials)
                self._powers.append((square, again))
            if count >> power & 1:
                x = self._composition.applied(*self._powers[power], x, self._monomials)
            power += 1
        if self._basis is not None:
            x = self._mapped(self._basis[1], x)
        return x

    def _mapped(self, matrix: Sequence[TaylorModel], x: Sequence[TaylorModel]) -> list[TaylorModel]:
        zero = TaylorModel.constant(self._monomials, np.zeros(len(x[0].remainder)))
        return self._composition.applied(matrix, [zero] * len(x), x, self._monomials)

    def take(self, boxes: IntArray) -> Powers:
        """In some of the boxes."""
        found = object.__new__(Powers)
        found._composition, found._monomials = self._composition, self._monomials
        found._basis = None
        if self._basis is not None:
            into, back = self._basis
            found._basis = [m.take(boxes) for m in into], [m.take(boxes) for m in back]
        found._powers = [
            ([m.take(boxes) for m in matrix], [m.take(boxes) for m in shift])
            for matrix, shift in self._powers
        ]
        return found


def _basis(
    composition: Composition, monomials: Monomials, matrix: Sequence[TaylorModel]
) -> tuple[list[TaylorModel], list[TaylorModel]] | None:
    """In which the map is nearly diagonal in the middle of each box, and its inverse.

    What decays is then seen to decay: bounds of an entry of a power are no sums over modes. Only
    states that act on each other are mixed.
    """
    boxes, n = len(matrix[0].remainder), composition.states
    groups = [g for g in composition.groups if len(g) > 1]
    if not groups:
        return None
    middle = np.zeros((boxes, n, n))
    for (i, j), model in zip(composition.pairs, matrix, strict=True):
        middle[:, i, j] = model.c[0, 0]
    into = np.zeros((boxes, n, n)) + np.eye(n)
    back = into.copy()
    for group in groups:
        mine = np.array(group)
        own = np.ix_(np.arange(boxes), mine, mine)
        vectors = _vectors(middle[own])
        back[own], into[own] = vectors, np.linalg.inv(vectors)
    # back (1 - e) is the inverse of `into`, with a small e.
    product = into @ back
    rough = 4 * n * UNIT_ROUNDOFF * (np.abs(into) @ np.abs(back))
    lacking = np.abs(np.eye(n) - product) + rough
    size = lacking.sum(axis=2).max(axis=1)
    share = np.where(size < 0.5, 2.0 * size, np.inf)
    doubt = np.abs(back).max(axis=(1, 2)) * n * share * ROUNDING_MARGIN
    nothing = np.zeros(boxes)
    first, second = [], []
    for i, j in composition.pairs:
        same = any(i in g and j in g for g in composition.groups)
        first.append(TaylorModel.constant(monomials, into[:, i, j]))
        inverse = TaylorModel.constant(monomials, back[:, i, j])
        mixed = (same and i != j) or (any(i in g for g in groups) and i == j)
        inverse.remainder = doubt if mixed else nothing
        second.append(inverse)
    return first, second


def _vectors(matrices: Array) -> Array:
    """Eigenvectors as columns, real and imaginary parts; unit vectors where these will not do."""
    n = matrices.shape[1]
    fine: BoolArray = np.all(np.isfinite(matrices), axis=(1, 2))
    values, vectors = np.linalg.eig(np.where(fine[:, None, None], matrices, np.eye(n)))
    # Of a pair, the first column is the real part and the second one the imaginary part.
    real = np.where(np.imag(values)[:, None, :] < 0, np.imag(vectors), np.real(vectors))
    real = real / np.maximum(np.abs(real).max(axis=1, keepdims=True), UNDERFLOW)
    fine &= np.isfinite(real).all(axis=(1, 2))
    real = np.where(fine[:, None, None], real, np.eye(n))
    fine &= np.linalg.cond(real) < WORST
    found: Array = np.where(fine[:, None, None], real, np.eye(n))
    return found
