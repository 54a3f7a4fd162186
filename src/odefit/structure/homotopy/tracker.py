"""Paths of solutions: predictor, corrector, adaptive steps; many paths at once.

The predictor is the Hermite polynomial through the last three points and their tangents, the
corrector two Newton steps. A step counts if Newton's method contracts quadratically from the
prediction; that, with predictions within a hundredth of the corrected point, is what keeps a path
from jumping to another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from odefit.problem.arrays import Array, BoolArray, ComplexArray, IntArray


class Ending(Enum):
    """How a path ended."""

    RUNNING = "running"
    REACHED = "reached"
    INFINITY = "at infinity"
    SINGULAR = "singular"
    TOO_LONG = "too many steps"


class Homotopy(Protocol):
    """Equations that change with r from 1 (solved) to 0 (wanted)."""

    def evaluate(
        self, paths: IntArray, points: ComplexArray, remaining: Array
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """Values, Jacobians and derivatives by r.

        Parameters
        ----------
        paths
            Numbers of the paths, shape (b,).
        points, remaining
            Shapes (b, n) and (b,).

        Returns
        -------
        values, jacobians, by_remaining
            Shapes (b, n), (b, n, n), (b, n).
        """


@dataclass(frozen=True)
class Tracking:
    """How paths are followed.

    Attributes
    ----------
    first
        Length of the first step; the whole path has length 1.
    wanted, most
        Relative error of the prediction that is aimed at, and that is still taken.
    contraction
        Of the second Newton step over the first, at most.
    steps
        At most, a path.
    shortest
        Step, relative to what remains, below which a path counts as singular.
    infinite
        Size, relative to that at the start, from which a path counts as gone to infinity.
    """

    first: float = 0.02
    wanted: float = 5e-3
    most: float = 0.1
    contraction: float = 0.2
    steps: int = 400
    shortest: float = 1e-9
    infinite: float = 1e10


@dataclass(frozen=True, eq=False)
class Tracked:
    """What became of the paths.

    Attributes
    ----------
    ends
        Shape (paths, n); where a path was left, if it did not reach its end.
    endings
        One a path.
    remaining
        What was left of each path, shape (paths,).
    steps
        Taken by each path, shape (paths,).
    """

    ends: ComplexArray
    endings: tuple[Ending, ...]
    remaining: Array
    steps: IntArray

    @property
    def reached(self) -> BoolArray:
        """Which paths arrived, shape (paths,)."""
        return np.array([e is Ending.REACHED for e in self.endings], dtype=bool)


LAST_DIGITS = 1e-7
"""Relative size of Newton steps that rounding alone explains where solutions are badly
conditioned (derivatives of order five know them to seven digits or so)."""

MEMORY = 3
"""Points that a prediction rests on."""

ROUNDING = 1e-8
"""Relative error of a prediction below which its correction may be mere rounding."""


def track(
    homotopy: Homotopy,
    starts: ComplexArray,
    tracking: Tracking | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Tracked:
    """Follow the paths from `starts`, shape (paths, n).

    Parameters
    ----------
    stop
        Asked at every step whether to leave the paths where they are.
    """
    t = tracking or Tracking()
    with np.errstate(all="ignore"):
        return _Paths(homotopy, starts, t).follow(stop)


class _Paths:
    """The state of all paths."""

    def __init__(self, homotopy: Homotopy, starts: ComplexArray, tracking: Tracking) -> None:
        count, n = starts.shape
        self.homotopy = homotopy
        self.tracking = tracking
        self.remaining = np.ones(count)
        self.step = np.full(count, tracking.first)
        self.taken = np.zeros(count, dtype=np.intp)
        self.endings = np.full(count, Ending.RUNNING, dtype=object)
        self.known = np.ones(count, dtype=np.intp)  # points in the memory, the newest first
        self.at = np.ones((count, MEMORY))
        self.points = np.zeros((count, MEMORY, n), dtype=complex)
        self.tangents = np.zeros((count, MEMORY, n), dtype=complex)
        self.points[:, 0] = starts
        everything = np.arange(count)
        values, jacobians, by_remaining = homotopy.evaluate(everything, starts, self.remaining)
        both = solve(jacobians, np.stack([-values, -by_remaining], axis=2))
        self.points[:, 0] += both[:, :, 0]
        self.tangents[:, 0] = both[:, :, 1]
        self.sizes = np.abs(self.points[:, 0]) + 1e-12
        self.at_first = self.sizes.max(axis=1, initial=0.0)
        lost = ~np.isfinite(self.points[:, 0]).all(axis=1)
        self.endings[lost] = Ending.SINGULAR

    def follow(self, stop: Callable[[], bool]) -> Tracked:
        running = np.flatnonzero(self.endings == Ending.RUNNING)
        while len(running) and not stop():
            self._advance(running)
            running = running[self.endings[running] == Ending.RUNNING]
        return Tracked(self.points[:, 0], tuple(self.endings), self.remaining, self.taken)

    def _advance(self, paths: IntArray) -> None:
        """One step of every path of `paths`, taken or refused."""
        t = self.tracking
        length = np.minimum(self.step[paths], self.remaining[paths])
        target = self.remaining[paths] - length
        target[target < 1e-15] = 0.0
        predicted = np.empty((len(paths), self.points.shape[2]), dtype=complex)
        for count in range(1, MEMORY + 1):
            some = np.flatnonzero(self.known[paths] == count)
            if len(some):
                predicted[some] = self._predict(paths[some], count, target[some])
        values, jacobians, _ = self.homotopy.evaluate(paths, predicted, target)
        first = solve(jacobians, -values[:, :, None])[:, :, 0]
        nearer = predicted + first
        values, jacobians, by_remaining = self.homotopy.evaluate(paths, nearer, target)
        both = solve(jacobians, np.stack([-values, -by_remaining], axis=2))
        corrected = nearer + both[:, :, 0]
        error = self._size(first, nearer, paths)
        left = self._size(both[:, :, 0], corrected, paths)
        good = (error < t.most) & (left <= np.maximum(t.contraction * error, 1e-10)) & (left < 1e-4)
        self._keep(paths[good], target[good], corrected[good], both[good, :, 1])
        self.taken[paths] += 1
        self._adapt(paths, length, good, error, left)

    def _predict(self, paths: IntArray, count: int, target: Array) -> ComplexArray:
        return _hermite(
            self.at[paths, :count], self.points[paths, :count], self.tangents[paths, :count], target
        )

    def _size(self, change: ComplexArray, point: ComplexArray, paths: IntArray) -> Array:
        """The largest relative change of any coordinate.

        Sizes are remembered for a while, so that a coordinate that passes close to zero does not
        stop the path.
        """
        relative = np.abs(change) / np.maximum(np.abs(point), self.sizes[paths])
        worst = relative.max(axis=1, initial=0.0)
        return np.where(np.isfinite(worst), worst, np.inf)

    def _keep(
        self, paths: IntArray, target: Array, points: ComplexArray, tangents: ComplexArray
    ) -> None:
        for memory, newest in (
            (self.at, target),
            (self.points, points),
            (self.tangents, tangents),
        ):
            memory[paths, 1:] = memory[paths, :-1]
            memory[paths, 0] = newest
        self.known[paths] = np.minimum(self.known[paths] + 1, MEMORY)
        self.remaining[paths] = target
        self.sizes[paths] = np.maximum(np.abs(points), 0.7 * self.sizes[paths])

    def _adapt(
        self,
        paths: IntArray,
        length: Array,
        good: BoolArray,
        error: Array,
        left: Array,
    ) -> None:
        """The next steps, and the paths that end here."""
        t = self.tracking
        # Newton's second step is the square of its first, but for a constant.
        excess = np.maximum(error, np.sqrt(np.maximum(left, 1e-20))) / t.wanted
        # Where that constant is large, contraction is what limits the step. It is aimed at with
        # room to spare, or every other step would be refused; rounding makes it look bad as well.
        contraction = left / np.maximum(error, ROUNDING)
        excess = np.maximum(excess, contraction / (t.contraction / 4))
        factor = np.clip(0.9 * excess ** (-0.5 / self.known[paths]), 0.2, 2.0)
        factor = np.where(np.isfinite(error) & np.isfinite(left), factor, 0.25)
        self.step[paths] = length * np.where(good, factor, np.minimum(factor, 0.5))
        size = np.abs(self.points[paths, 0]).max(axis=1, initial=0.0)
        for ending, which in (
            (Ending.TOO_LONG, self.taken[paths] >= t.steps),
            (Ending.SINGULAR, self.step[paths] < t.shortest * self.remaining[paths]),
            (Ending.INFINITY, size > t.infinite * self.at_first[paths]),
            (Ending.REACHED, self.remaining[paths] == 0.0),
        ):
            self.endings[paths[which]] = ending


def confirmed(homotopy: Homotopy, points: ComplexArray) -> tuple[ComplexArray, BoolArray]:
    """Ends of paths, improved by Newton's method, and whether it converges there as it should.

    At a regular solution each step is about the square of the one before, until rounding; the
    end of a path that ran into a singular solution, or that is none, shows by steps that do not
    shrink so.

    Parameters
    ----------
    points
        Shape (paths, n), ends of the paths of `homotopy` in their order.

    Returns
    -------
    points, regular
        Shapes (paths, n) and (paths,).
    """
    paths, end = np.arange(len(points)), np.zeros(len(points))
    steps = []
    with np.errstate(all="ignore"):
        for _ in range(3):
            values, jacobians, _ = homotopy.evaluate(paths, points, end)
            change = solve(jacobians, -values[:, :, None])[:, :, 0]
            points = points + change
            size = np.abs(change) / (np.abs(points) + 1e-8 * np.abs(points).max(axis=1)[:, None])
            steps.append(size.max(axis=1, initial=0.0))
    first, second, third = steps
    quadratic = (second <= np.maximum(0.1 * first, LAST_DIGITS)) & (third <= LAST_DIGITS)
    return points, quadratic & np.isfinite(points).all(axis=1)


def solve(matrices: ComplexArray, sides: ComplexArray) -> ComplexArray:
    """Solutions of linear systems, shapes (b, n, n) and (b, n, k); NaN where there is none."""
    result = np.full_like(sides, np.nan)
    fine = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(sides).all(axis=(1, 2))
    if fine.all():
        try:
            return np.asarray(np.linalg.solve(matrices, sides))
        except np.linalg.LinAlgError:
            pass
    for k in np.flatnonzero(fine):
        try:
            result[k] = np.linalg.solve(matrices[k], sides[k])
        except np.linalg.LinAlgError:
            continue
    return result


def _hermite(
    at: Array, points: ComplexArray, tangents: ComplexArray, target: Array
) -> ComplexArray:
    """Hermite interpolation by confluent divided differences, at `target`.

    Shapes: `at` (b, m), `points` and `tangents` (b, m, n), `target` (b,).
    """
    count = 2 * at.shape[1]
    nodes = np.repeat(at, 2, axis=1)
    values = np.repeat(points, 2, axis=1)
    column = np.empty((len(at), count - 1, points.shape[2]), dtype=complex)
    column[:, 0::2] = tangents
    column[:, 1::2] = (values[:, 2::2] - values[:, 1:-1:2]) / (nodes[:, 2::2] - nodes[:, 1:-1:2])[
        :, :, None
    ]
    coefficients = [values[:, 0], column[:, 0]]
    for level in range(2, count):
        width = (nodes[:, level:] - nodes[:, : count - level])[:, :, None]
        column = (column[:, 1:] - column[:, :-1]) / width
        coefficients.append(column[:, 0])
    result = coefficients[-1]
    for level in range(count - 2, -1, -1):
        result = coefficients[level] + result * (target - nodes[:, level])[:, None]
    return result
