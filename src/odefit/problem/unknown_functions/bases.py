"""Bases of unknown functions as polynomial pieces, and the differences that measure roughness.

The B-splines' knots continue beyond both ends, as in Eilers and Marx (1996, Statistical Science 11,
89-121). So coefficients on a straight line give a straight line, and positive, monotone or convex
coefficients give a positive, monotone or convex function.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odefit.common.arrays import Array

DEGREES = {"constant": 0, "linear": 1, "spline": 3}


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of a relative coordinate u from 0 to 1.

    Attributes
    ----------
    knots
        The knots, shape (m + 1,), from 0 to 1.
    pieces
        Coefficients of the powers of u less the left knot, shape (m, n, degree + 1).
    sites
        The coordinates of the coefficients (Greville's abscissae), shape (n,).
    """

    knots: Array
    pieces: Array
    sites: Array

    def at_end(self) -> Array:
        """Return the values at u = 1, shape (n,)."""
        span = self.knots[-1] - self.knots[-2]
        return np.asarray(self.pieces[-1] @ span ** np.arange(self.pieces.shape[2]))

    def jumps(self) -> tuple[Array, Array]:
        """Return the basis as a line, and the addition at each knot in powers beyond the knot.

        Functions are straight beyond 0 and 1. The line has shape (2, n), the additions
        (m + 1, n, degree + 1): coefficients of the powers of ``max(u - knot, 0)``.
        """
        from scipy.special import binom

        count, n, powers = self.pieces.shape
        line = np.zeros((2, n))
        line[: min(powers, 2)] = self.pieces[0].T[:2]
        added = np.zeros((count + 1, n, powers))
        before = np.zeros((n, powers))
        before[:, :2] = self.pieces[0][:, :2]
        for m in range(count + 1):
            if m:
                span = self.knots[m] - self.knots[m - 1]
                left = self.pieces[m - 1]
                before = np.array(
                    [
                        sum(binom(q, p) * span ** (q - p) * left[:, q] for q in range(p, powers))
                        for p in range(powers)
                    ]
                ).T
            after = np.zeros((n, powers))
            after[:, :2] = before[:, :2]
            if m < count:
                after = self.pieces[m]
            added[m] = after - before
        added[np.abs(added) < 1e-12 * np.abs(added).max()] = 0.0
        return line, added


def basis(kind: str, places: tuple[float, ...]) -> Basis:
    """Return the basis of a kind (see :data:`DEGREES`) on knots from 0 to 1."""
    knots = np.array(places)
    degree = DEGREES[kind]
    if degree == 0:
        pieces = np.eye(len(knots) - 1)[:, :, None]
        return Basis(knots, pieces, (knots[1:] + knots[:-1]) / 2)
    from scipy.interpolate import BSpline, PPoly

    first, last = knots[1] - knots[0], knots[-1] - knots[-2]
    outside = np.arange(1, degree + 1)
    every = np.concatenate([-first * outside[::-1], knots, 1.0 + last * outside])
    n = len(every) - degree - 1
    one_by_one = [PPoly.from_spline(BSpline(every, row, degree).tck).c for row in np.eye(n)]
    pieces = np.moveaxis(np.array(one_by_one)[:, ::-1], 0, 2)
    inside = pieces[:, degree : degree + len(knots) - 1]
    sites = np.array([every[i + 1 : i + degree + 1].mean() for i in range(n)])
    return Basis(knots, np.moveaxis(inside, 0, 2), sites)


def bends(sites: Array) -> Array:
    """Return the matrix of second differences of coefficients at sites, shape (n - 2, n).

    They are divided differences times twice the square of the mean distance; for equal distances
    these are c[i] - 2 c[i+1] + c[i+2].
    """
    gaps = np.diff(sites)
    rows = np.zeros((len(sites) - 2, len(sites)))
    for i, (a, b) in enumerate(pairwise(gaps)):
        rows[i, i : i + 3] = 2 / (a * (a + b)), -2 / (a * b), 2 / (b * (a + b))
    return np.asarray(rows * gaps.mean() ** 2)
