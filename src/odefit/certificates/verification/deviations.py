"""Bounds of the distance of true solutions from a guess, in moving coordinates.

The distance e is Q z, with a matrix Q and bounds of z. Over a step, s in [0, 1], e(s) = W(s) z + u.
The matrix W approximates the solution of the variational equation W' = J W, W(0) = Q, along the
middle of the box. Thus rotations do not enlarge the bounds: only u, which is of second order, is
bounded by absolute values. The next Q is the orthogonal factor of W(1) (R. Lohner, 1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.certificates.verification.balls import UNIT, ZERO, arb, arb_mat, arb_poly, growth
from odefit.certificates.verification.polynomials import ORDER, Model
from odefit.common.arrays import Array


@dataclass
class Deviation:
    """All Q z with ``|z| <= size``: `basis` is Q, shape (n, n)."""

    basis: Array
    size: list[arb]

    @classmethod
    def apart(cls, rest: Sequence[arb]) -> Deviation:
        """Return all deviations whose components have these bounds."""
        return cls(np.eye(len(rest)), list(rest))

    @property
    def rest(self) -> list[arb]:
        """Bounds of the components."""
        pairs = [zip(row, self.size, strict=True) for row in np.abs(self.basis).tolist()]
        return [sum((arb(q) * z for q, z in row), ZERO).abs_upper() for row in pairs]

    def after(
        self,
        jacobian: Sequence[Sequence[Model]],
        most: Sequence[Sequence[arb]],
        defects: Sequence[arb],
        rounding: Sequence[arb],
    ) -> Deviation | None:
        """Return the deviations after a step; None if the next basis has no inverse.

        `jacobian` encloses the Jacobians of the step, times its width, as polynomials of the time
        alone; `most` has bounds of their entries, absolute ones off the diagonal. The guess has
        `defects` during the step, and a `rounding` at its end.
        """
        n = len(self.size)
        guess = self._variations(jacobian)
        w = [[arb_poly(guess[:, i, k].tolist()) for k in range(n)] for i in range(n)]
        sizes = [[_size(entry) for entry in row] for row in w]
        other = []
        for row, slopes, defect in zip(jacobian, w, defects, strict=True):
            total = defect
            for k, z in enumerate(self.size):
                off = -slopes[k].derivative()
                for j, entry in enumerate(row):
                    off += entry.c[0] * w[j][k]
                    total += entry.rest * sizes[j][k] * z
                total += _size(off) * z
            other.append(total)
        rest = growth(most, [ZERO] * n, other)
        end = arb_mat([[entry(arb(1)) for entry in row] for row in w])
        basis = _orthogonal(guess.sum(axis=0) * np.array([float(z) for z in self.size]))
        try:
            inverse = arb_mat(basis.tolist()).inv()
        except ZeroDivisionError:
            return None
        turned = inverse * end
        sizes_after = []
        for i in range(n):
            size = ZERO
            for k, z in enumerate(self.size):
                size += turned[i, k].abs_upper() * z
                size += inverse[i, k].abs_upper() * (rest[k].abs_upper() + rounding[k])
            sizes_after.append(size.abs_upper())
        return Deviation(basis, sizes_after)

    def _variations(self, jacobian: Sequence[Sequence[Model]]) -> Array:
        """Return the coefficients of W, shape (ORDER + 1, n, n), in floating point."""
        n = len(self.size)
        j = np.zeros((ORDER, n, n))
        for i, row in enumerate(jacobian):
            for k, entry in enumerate(row):
                powers = [float(a.mid()) for a in entry.c[0].coeffs()[:ORDER]]
                j[: len(powers), i, k] = powers
        w = np.zeros((ORDER + 1, n, n))
        w[0] = self.basis
        for order in range(ORDER):
            w[order + 1] = np.einsum("pij,pjk->ik", j[: order + 1], w[order::-1]) / (order + 1)
        return w


def _size(polynomial: arb_poly) -> arb:
    """Return a bound of the absolute value over a step."""
    return polynomial(UNIT).abs_upper() if polynomial.length() else ZERO


def _orthogonal(columns: Array) -> Array:
    """Return an orthogonal matrix whose first column is along the longest of these, and so on."""
    longest = np.argsort(-np.linalg.norm(columns, axis=0), kind="stable")
    with np.errstate(all="ignore"):
        q, _ = np.linalg.qr(columns[:, longest])
    return q if np.isfinite(q).all() else np.eye(len(columns))
