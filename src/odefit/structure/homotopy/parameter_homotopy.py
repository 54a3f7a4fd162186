"""The homotopy of a square system between two vectors of its parameters."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.structure.homotopy.square import SquareSystem

DIFFERENCE_STEP = 1e-6
"""Step of the finite differences by known functions, relative to the change of the parameters
with t; these differences are used for predictions alone."""


class ParameterHomotopy:
    """The parameter homotopy on an arc from `start` to `end`, with the gamma trick.

    The parameters, shape (paths, parameters), are a weighted mean of start and end. The weight of
    the start is ``t / (gamma - (gamma - 1) t)``, t going from 1 to 0 (A. Sommese and C. Wampler,
    The Numerical Solution of Systems of Polynomials, section 7.1): each path's `gamma`, of modulus
    1, is another way around the parameters at which solutions are singular.
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, gamma: ComplexArray
    ) -> None:
        self.square = square
        self.start = start
        self.end = end
        self.gamma = gamma
        self._knowns_change = bool(np.any((start != end)[:, square.active_parameters]))

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :meth:`odefit.structure.homotopy.tracker.Homotopy.evaluate`."""
        square, n = self.square, self.square.size
        gamma = self.gamma[paths]
        scale = gamma - (gamma - 1) * t
        at, by_t = self.parameters_at(paths, (t / scale)[:, None], (gamma / scale**2)[:, None])
        left, jacobian, by_held = square.values(points, at)
        left_by_t = -by_t[:, :n]
        held = slice(n, n + len(square.held))
        if len(square.held):
            left_by_t = left_by_t + np.einsum("bij,bj->bi", by_held, by_t[:, held])
        if self._knowns_change:
            moved = at.copy()
            moved[:, held.stop :] += DIFFERENCE_STEP * by_t[:, held.stop :]
            other, _, _ = square.values(points, moved, derivatives=False)
            left_by_t = left_by_t + (other - left) / DIFFERENCE_STEP
        return left - at[:, :n], jacobian, left_by_t

    def parameters_at(
        self, paths: IntArray, weight: ComplexArray, weight_by_t: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """Return the parameters where the start has `weight`, and their derivatives by t."""
        change = self.start[paths] - self.end[paths]
        return self.end[paths] + weight * change, weight_by_t * change
