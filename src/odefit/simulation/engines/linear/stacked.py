"""Closed forms of linear equations with several matrices at once.

They are those of :mod:`odefit.simulation.engines.linear.closed_form`, with arrays whose first axis
is the number of a matrix. The results for a matrix do not depend on the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.simulation.engines.linear.closed_form import (
    CLOSE,
    FASTEST,
    MOST_LOST,
    Complex,
    differences_of_integrals,
    phi,
)


class Functions(NamedTuple):
    """Functions of the eigenvalues at times, and their divided differences over pairs.

    g and its differences are missing if the equations have no b.
    """

    exponentials: Complex  # shape (c, k, n)
    of_exponentials: Complex  # shape (c, k, n, n)
    integrals: Complex | None  # g, shape (c, k, n)
    of_integrals: Complex | None  # shape (c, k, n, n)

    def part(self, times: slice) -> Functions:
        """Return the functions at some of the times."""
        return Functions(*(None if each is None else each[:, times] for each in self))


class Coefficients(NamedTuple):
    """Matrices and vectors of x' = A x + b, with their changes along directions."""

    a: Array  # shape (c, n, n)
    b: Array  # shape (c, n)
    along: Array  # changes of A, shape (c, n, n, m)
    b_along: Array  # shape (c, n, m)

    def part(self, chosen: IntArray | BoolArray | slice) -> Coefficients:
        """Return some of them."""
        return Coefficients(*(each[chosen] for each in self))

    @property
    def finite(self) -> BoolArray:
        """True for each matrix with finite numbers alone, shape (c,)."""
        sums = [np.abs(each).reshape(len(each), -1).sum(axis=1) for each in self]
        return np.asarray(np.isfinite(sum(sums)))


class Stacked(NamedTuple):
    """The eigenvectors of matrices A, with b and all changes in their coordinates."""

    values: Complex  # eigenvalues by falling real parts, shape (c, n)
    vectors: Complex  # shape (c, n, n)
    inverse: Complex  # shape (c, n, n)
    constant: Complex  # b, shape (c, n)
    constant_along: Complex  # shape (c, n, m)
    along: Complex  # changes of A, shape (c, n, n, m)
    forced: bool  # whether the equations have a b

    @classmethod
    def of(
        cls, values: Complex, vectors: Complex, coefficients: Coefficients, *, forced: bool
    ) -> Stacked:
        """Return these matrices with their eigenvectors; raises LinAlgError if one has too few."""
        order = np.argsort(-values.real, axis=1, kind="stable")
        values = np.take_along_axis(values, order, 1)
        vectors = np.take_along_axis(vectors, order[:, None], 2)
        inverse = np.linalg.inv(vectors)
        _, b, along, b_along = coefficients
        turned = inverse[:, None] @ along.transpose(0, 3, 1, 2) @ vectors[:, None]
        return cls(
            values,
            vectors,
            inverse,
            (inverse @ b[:, :, None])[:, :, 0],
            inverse @ b_along,
            np.ascontiguousarray(turned.transpose(0, 2, 3, 1)),
            forced,
        )

    def can_reach(self, time: Array) -> BoolArray:
        """Return whether rounding of the eigenvalues leaves enough digits up to times (c,)."""
        return np.asarray(np.abs(self.values).max(axis=1) * time <= FASTEST)

    def functions(self, times: Array) -> Functions:
        """Return the functions at times, shape (c, k)."""
        t, each = times[:, :, None], self.values[:, None]
        exponentials = np.exp(each * t)
        integrals = t * phi(each * t) if self.forced else None
        t, one, other = t[..., None], each[..., :, None], each[..., None, :]
        difference = other - one
        pairs = np.arange(self.values.shape[1])
        later = pairs[None, :] > pairs[:, None]
        far = exponentials[..., None, :] - exponentials[..., :, None]
        far = far / np.where(difference == 0.0, 1.0, difference)
        first = np.where(later, exponentials[..., :, None], exponentials[..., None, :])
        near = t * first * phi(np.where(later, difference, -difference) * t)
        of_exponentials = np.where(np.abs(difference) * t < CLOSE, near, far)
        if integrals is None:
            return Functions(exponentials, of_exponentials, None, None)
        g = integrals[..., :, None], integrals[..., None, :]
        of_integrals = differences_of_integrals(one, other, t, g, of_exponentials)
        return Functions(exponentials, of_exponentials, integrals, of_integrals)

    def moved(self, f: Functions, y: Complex, r: Complex) -> tuple[Complex, Complex]:
        """Return the coordinates after times, shapes (c, k, n) and (c, k, n, m)."""
        after, after_along = f.exponentials * y, f.exponentials[..., None] * r
        weights = f.of_exponentials * y[..., None, :]
        if f.integrals is not None and f.of_integrals is not None:
            constant = self.constant[:, None]
            after = after + f.integrals * constant
            after_along = after_along + f.integrals[..., None] * self.constant_along[:, None]
            weights = weights + f.of_integrals * constant[..., None, :]
        along = np.ascontiguousarray(weights.transpose(0, 2, 1, 3)) @ self.along
        return after, after_along + along.transpose(0, 2, 1, 3)

    def rates(self, y: Complex) -> Complex:
        """Return the rates at coordinates, shape (c, n)."""
        return self.values * y + self.constant

    def summed(self, y: Complex, r: Complex) -> tuple[Array, Array, BoolArray]:
        """Return states and sensitivities at coordinates, and which matrices kept their digits.

        Shapes are (c, k, n), (c, k, n, m) and (c,). The digits are counted as in
        :func:`odefit.simulation.engines.linear.closed_form.summed`.
        """
        vectors, magnitudes = self.vectors[:, None], np.abs(self.vectors)
        states, along = (vectors @ y[..., None])[..., 0].real, (vectors @ r).real
        size, size_along = np.abs(states).max(axis=1), np.abs(along).max(axis=1)
        lost = (magnitudes[:, None] @ np.abs(y)[..., None])[..., 0].max(axis=1)
        lost_along = magnitudes @ np.abs(r).max(axis=1)
        enough = np.maximum(MOST_LOST * size[..., None], MOST_LOST**2 * size_along)
        # Comparisons with NaN are false.
        good = (lost <= MOST_LOST * size).all(axis=1) & (lost_along <= enough).all(axis=(1, 2))
        return states, along, good
