"""A curve over time as piecewise Chebyshev polynomials, as accurate as the integration.

Extrema, zeros and integrals of the curve then follow from the polynomials without a grid (Z.
Battles and L. N. Trefethen, An extension of MATLAB to continuous functions and operators, SIAM J.
Sci. Comput. 25, 2004). Pieces end at events and at corners of inputs, and are halved until the last
coefficients vanish. The nodes are inside the pieces, so that a jump at an event belongs to neither
side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from odefit.common.arrays import Array, BoolArray

NODES = 16
"""Number of nodes, and so of coefficients, of a piece."""

FIRST_PIECES = 16
"""Smallest number of pieces of a window, so that no feature of a sixteenth of it is missed."""

MOST_PIECES = 4000
"""Number of pieces beyond which none is halved: the rest is integration error."""

NARROWEST = 1e-11
"""Width of a piece, relative to the window, that is not halved: it contains a kink or a jump."""

EDGE = 1e-7
"""Distance beyond the ends of a piece, relative to half its width, at which zeros still count."""

Curve = Callable[[Array], tuple[Array, Array] | None]
"""Values, shape (k,), and derivatives by the unknowns, shape (k, n), at times; None on failure."""

POINTS = np.cos(np.pi * (np.arange(NODES)[::-1] + 0.5) / NODES)
INVERSE = np.linalg.inv(chebyshev.chebvander(POINTS, NODES - 1))
EVEN = np.arange(0, NODES, 2)
MOMENTS = np.zeros(NODES)
MOMENTS[EVEN] = 2.0 / (1.0 - EVEN.astype(float) ** 2)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Polynomials on the pieces between `edges`, shape (p + 1,).

    `values` holds the coefficients of the curve, shape (p, m), `gradients` those of its derivatives
    by the unknowns, shape (p, m, n). `jumps` is true for edges at which the curve may jump at a
    known time, shape (p + 1,).
    """

    edges: Array
    values: Array
    gradients: Array
    jumps: BoolArray

    def integral(self) -> tuple[float, Array]:
        """Return the integral, and its derivatives by the unknowns, shape (n,)."""
        halves = 0.5 * np.diff(self.edges)
        value = float(halves @ (self.values @ MOMENTS))
        return value, np.einsum("p,pmn,m->n", halves, self.gradients, MOMENTS)

    def maximum(self) -> tuple[float, Array, float, Array]:
        """Return the largest value and its time, each with its derivatives by the unknowns.

        At the ends of the window and at known jumps, the time does not depend on the unknowns.
        """
        ends = np.stack([chebyshev.chebval(x, self.values.T) for x in (-1.0, 1.0)], axis=1)
        best = float(ends.max())
        bounds = np.abs(self.values).sum(axis=1) - np.abs(self.values[:, 0]) + self.values[:, 0]
        place, at = np.unravel_index(int(np.argmax(ends)), ends.shape)
        x, inside = 2.0 * float(at) - 1.0, False
        for p in np.argsort(-bounds):
            if bounds[p] < best:
                break
            for root in self._roots(chebyshev.chebder(self.values[p])):
                value = float(chebyshev.chebval(root, self.values[p]))
                # A flat end is an extremum inside as well as at the end.
                if value >= best - 1e-14 * abs(best):
                    best, place, x, inside = max(value, best), p, root, True
        gradient = self._gradient(int(place), x)
        time = self._time(int(place), x)
        moved = np.zeros_like(gradient)
        if inside:
            second = self._rate(int(place), x, 2)
            if second != 0:
                moved = -self._gradient_rate(int(place), x) / second
        return best, gradient, time, moved

    def crossings(self) -> tuple[bool, list[tuple[float, Array]]]:
        """Return whether the curve is positive at first, and the times of its sign changes.

        Each time comes with its derivatives by the unknowns.
        """
        positive = first = bool(chebyshev.chebval(-1.0, self.values[0]) > 0)
        times: list[tuple[float, Array]] = []
        none = np.zeros(self.gradients.shape[2])
        for p in range(len(self.values)):
            if bool(chebyshev.chebval(-1.0 + EDGE, self.values[p]) > 0) != positive:
                times.append((float(self.edges[p]), none))
                positive = not positive
            rest = np.abs(self.values[p, 1:]).sum()
            if rest < abs(self.values[p, 0]):
                continue
            roots = [r for r in self._roots(self.values[p]) if abs(r) < 1.0 - EDGE]
            stops = [*roots, 1.0]
            for root, after in zip(roots, stops[1:], strict=True):
                sign = bool(chebyshev.chebval(0.5 * (root + after), self.values[p]) > 0)
                if sign == positive:
                    continue
                rate = self._rate(p, root, 1)
                moved = -self._gradient(p, root) / rate if rate != 0 else none * np.nan
                times.append((self._time(p, root), moved))
                positive = sign
        return first, times

    @staticmethod
    def _roots(coefficients: Array) -> list[float]:
        """Return the zeros of a series within its piece, in their order."""
        size = np.abs(coefficients).max(initial=0.0)
        significant = np.flatnonzero(np.abs(coefficients) > 1e-15 * size)
        if size == 0 or not len(significant) or significant[-1] == 0:
            return []
        roots = chebyshev.chebroots(coefficients[: significant[-1] + 1])
        real = roots[np.abs(roots.imag) < 1e-8].real
        return sorted(np.clip(real[np.abs(real) <= 1.0 + EDGE], -1.0, 1.0).tolist())

    def _time(self, p: int, x: float) -> float:
        left, right = self.edges[p : p + 2]
        return float(0.5 * (left + right) + 0.5 * (right - left) * x)

    def _rate(self, p: int, x: float, order: int) -> float:
        half = 0.5 * (self.edges[p + 1] - self.edges[p])
        series = chebyshev.chebder(self.values[p], order)
        return float(chebyshev.chebval(x, series) / half**order)

    def _gradient(self, p: int, x: float) -> Array:
        return np.asarray(chebyshev.chebval(x, self.gradients[p]))

    def _gradient_rate(self, p: int, x: float) -> Array:
        half = 0.5 * (self.edges[p + 1] - self.edges[p])
        return np.asarray(chebyshev.chebval(x, chebyshev.chebder(self.gradients[p])) / half)


def pieces_of(
    curve: Curve, window: tuple[float, float], breaks: Array, tolerance: float
) -> Pieces | None:
    """Return a curve over a window as pieces; None if it cannot be computed.

    `breaks` are times of possible corners or jumps; `tolerance` is relative to the largest value.
    """
    start, end = window
    inner = breaks[(breaks > start) & (breaks < end)]
    first = np.linspace(start, end, FIRST_PIECES + 1)
    close = NARROWEST * (end - start)
    far = [t for t in first[1:-1] if not len(inner) or np.abs(inner - t).min() > close]
    edges = np.unique(np.concatenate([[start, end], inner, far]))
    todo = np.stack([edges[:-1], edges[1:]], axis=1)
    done: list[tuple[float, float, Array, Array]] = []
    largest = 0.0
    while len(todo):
        times = (todo.mean(axis=1)[:, None] + 0.5 * np.diff(todo, axis=1) * POINTS).ravel()
        unique, places = np.unique(times, return_inverse=True)
        at_nodes = curve(unique)
        if at_nodes is None or not np.isfinite(at_nodes[0]).all():
            return None
        values = at_nodes[0][places].reshape(len(todo), NODES) @ INVERSE.T
        shape = (len(todo), NODES, at_nodes[1].shape[1])
        gradients = np.einsum("km,pmn->pkn", INVERSE, at_nodes[1][places].reshape(shape))
        largest = max(largest, float(np.abs(at_nodes[0]).max()))
        tail = np.abs(values[:, -2:]).max(axis=1)
        wide = np.diff(todo, axis=1)[:, 0] > NARROWEST * (end - start)
        again = (tail > tolerance * largest) & wide & (len(done) + len(todo) < MOST_PIECES)
        done += [
            (float(low), float(high), v, g)
            for (low, high), v, g in zip(
                todo[~again], values[~again], gradients[~again], strict=True
            )
        ]
        halved = todo[again]
        middle = halved.mean(axis=1)
        todo = np.concatenate(
            [np.stack([halved[:, 0], middle], axis=1), np.stack([middle, halved[:, 1]], axis=1)]
        )
    done.sort(key=lambda piece: piece[0])
    all_edges = np.array([*(piece[0] for piece in done), end])
    return Pieces(
        all_edges,
        np.array([piece[2] for piece in done]),
        np.array([piece[3] for piece in done]),
        np.isin(all_edges, inner),
    )
