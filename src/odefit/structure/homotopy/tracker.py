"""Path tracking, for many paths at once: predictor, corrector, adaptive steps.

The predictor is the Hermite polynomial through the last three points and their tangents, the
corrector two Newton steps. A step is accepted if Newton's method contracts quadratically from the
prediction. This, with predictions within a hundredth of the corrected point, prevents a path from
jumping to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray, ComplexArray, IntArray


class PathStatus(Enum):
    """The end of a path, or that it is still being tracked."""

    RUNNING = "running"
    REACHED = "reached"
    INFINITY = "at infinity"
    SINGULAR = "singular"
    TOO_LONG = "too many steps"


class Homotopy(Protocol):
    """Equations that change with t, from 1 (with known solutions) to 0 (with unknown ones)."""

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """Return values (b, n), Jacobians (b, n, n) and derivatives by t (b, n) of the paths.

        Without `by_t` the last need not be right: only predictions need them.
        """


@dataclass(frozen=True)
class TrackerOptions:
    """Options of path tracking.

    Attributes
    ----------
    initial_step
        Length of the first step; the whole path has length 1.
    target_error, max_error
        Target and largest accepted relative error of the prediction.
    contraction
        Largest ratio of the second Newton step to the first.
    max_steps
        Largest number of steps of a path.
    min_step
        Step, relative to the remaining t, below which a path counts as singular.
    infinity
        Size, relative to that at the start, above which a path counts as diverged.
    """

    initial_step: float = 0.02
    target_error: float = 5e-3
    max_error: float = 0.1
    contraction: float = 0.2
    max_steps: int = 400
    min_step: float = 1e-9
    infinity: float = 1e10


@dataclass(frozen=True, eq=False)
class TrackedPaths:
    """The end of each path, shape (paths, n), its status, its t (0 at the end) and its steps."""

    ends: ComplexArray
    statuses: tuple[PathStatus, ...]
    t: Array
    steps: IntArray

    @property
    def reached(self) -> BoolArray:
        """The paths that reached their ends, as booleans, shape (paths,)."""
        return np.array([s is PathStatus.REACHED for s in self.statuses], dtype=bool)


ROUNDED_STEP = 1e-7
"""Relative size of Newton steps that rounding alone may cause for badly conditioned solutions
(derivatives of order five determine them to about seven digits)."""

MEMORY = 3
"""Number of last points of a path that a prediction uses."""

ROUNDED_PREDICTION = 1e-8
"""Relative error of a prediction below which its correction may be mere rounding."""


def track(
    homotopy: Homotopy,
    starts: ComplexArray,
    options: TrackerOptions | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> TrackedPaths:
    """Track paths from `starts`, the solutions at t = 1, shape (paths, n).

    The paths stop where they are when `stop`, called at every step, returns True.
    """
    with np.errstate(all="ignore"):
        return _Paths(homotopy, starts, options or TrackerOptions()).track(stop)


class _Paths:
    """The state of all paths."""

    def __init__(self, homotopy: Homotopy, starts: ComplexArray, options: TrackerOptions) -> None:
        count, n = starts.shape
        self.homotopy = homotopy
        self.options = options
        self.t = np.ones(count)
        self.step = np.full(count, options.initial_step)
        self.taken = np.zeros(count, dtype=np.intp)
        self.statuses = np.full(count, PathStatus.RUNNING, dtype=object)
        self.remembered = np.ones(count, dtype=np.intp)  # points in the memory, the newest first
        self.at = np.ones((count, MEMORY))
        self.points = np.zeros((count, MEMORY, n), dtype=complex)
        self.tangents = np.zeros((count, MEMORY, n), dtype=complex)
        values, jacobians, by_t = homotopy.evaluate(np.arange(count), starts, self.t)
        both = solve(jacobians, np.stack([-values, -by_t], axis=2))
        self.points[:, 0] = starts + both[:, :, 0]
        self.tangents[:, 0] = both[:, :, 1]
        self.sizes = np.abs(self.points[:, 0]) + 1e-12
        self.first_size = self.sizes.max(axis=1, initial=0.0)
        lost = ~np.isfinite(self.points[:, 0]).all(axis=1)
        self.statuses[lost] = PathStatus.SINGULAR

    def track(self, stop: Callable[[], bool]) -> TrackedPaths:
        """Advance all paths until they end."""
        running = np.flatnonzero(self.statuses == PathStatus.RUNNING)
        while len(running) and not stop():
            self._advance(running)
            running = running[self.statuses[running] == PathStatus.RUNNING]
        return TrackedPaths(self.points[:, 0], tuple(self.statuses), self.t, self.taken)

    def _advance(self, paths: IntArray) -> None:
        """Try one step of each of `paths`; each is accepted or rejected."""
        o = self.options
        length = np.minimum(self.step[paths], self.t[paths])
        target = self.t[paths] - length
        target[target < 1e-15] = 0.0
        predicted = np.empty((len(paths), self.points.shape[2]), dtype=complex)
        for count in range(1, MEMORY + 1):
            some = np.flatnonzero(self.remembered[paths] == count)
            if len(some):
                predicted[some] = self._predict(paths[some], count, target[some])
        values, jacobians, _ = self.homotopy.evaluate(paths, predicted, target, False)
        first = solve(jacobians, -values[:, :, None])[:, :, 0]
        nearer = predicted + first
        values, jacobians, by_t = self.homotopy.evaluate(paths, nearer, target)
        both = solve(jacobians, np.stack([-values, -by_t], axis=2))
        corrected = nearer + both[:, :, 0]
        error = self._relative_size(first, nearer, paths)
        left = self._relative_size(both[:, :, 0], corrected, paths)
        accepted = (
            (error < o.max_error)
            & (left <= np.maximum(o.contraction * error, 1e-10))
            & (left < 1e-4)
        )
        self._accept(paths[accepted], target[accepted], corrected[accepted], both[accepted, :, 1])
        self.taken[paths] += 1
        self._adapt(paths, length, accepted, error, left)

    def _predict(self, paths: IntArray, count: int, target: Array) -> ComplexArray:
        """Return the predictions at `target` from the last `count` points of each path."""
        return _hermite(
            self.at[paths, :count], self.points[paths, :count], self.tangents[paths, :count], target
        )

    def _relative_size(self, change: ComplexArray, point: ComplexArray, paths: IntArray) -> Array:
        """Return the largest relative change of any coordinate, for each path.

        Sizes are remembered for some steps, so that a coordinate that passes close to zero does not
        stop the path.
        """
        relative = np.abs(change) / np.maximum(np.abs(point), self.sizes[paths])
        worst = relative.max(axis=1, initial=0.0)
        return np.where(np.isfinite(worst), worst, np.inf)

    def _accept(
        self, paths: IntArray, target: Array, points: ComplexArray, tangents: ComplexArray
    ) -> None:
        for memory, newest in (
            (self.at, target),
            (self.points, points),
            (self.tangents, tangents),
        ):
            memory[paths, 1:] = memory[paths, :-1]
            memory[paths, 0] = newest
        self.remembered[paths] = np.minimum(self.remembered[paths] + 1, MEMORY)
        self.t[paths] = target
        self.sizes[paths] = np.maximum(np.abs(points), 0.7 * self.sizes[paths])

    def _adapt(
        self, paths: IntArray, length: Array, accepted: BoolArray, error: Array, left: Array
    ) -> None:
        """Choose the next steps, and return which paths end here."""
        o = self.options
        # Newton's second step is the square of its first, up to a constant.
        excess = np.maximum(error, np.sqrt(np.maximum(left, 1e-20))) / o.target_error
        # If that constant is large, contraction limits the step. The target leaves a margin, or
        # every other step would be rejected; rounding makes contraction look bad as well.
        contraction = left / np.maximum(error, ROUNDED_PREDICTION)
        excess = np.maximum(excess, contraction / (o.contraction / 4))
        factor = np.clip(0.9 * excess ** (-0.5 / self.remembered[paths]), 0.2, 2.0)
        factor = np.where(np.isfinite(error) & np.isfinite(left), factor, 0.25)
        self.step[paths] = length * np.where(accepted, factor, np.minimum(factor, 0.5))
        size = np.abs(self.points[paths, 0]).max(axis=1, initial=0.0)
        for status, which in (
            (PathStatus.TOO_LONG, self.taken[paths] >= o.max_steps),
            (PathStatus.SINGULAR, self.step[paths] < o.min_step * self.t[paths]),
            (PathStatus.INFINITY, size > o.infinity * self.first_size[paths]),
            (PathStatus.REACHED, self.t[paths] == 0.0),
        ):
            self.statuses[paths[which]] = status


def refine_ends(homotopy: Homotopy, points: ComplexArray) -> tuple[ComplexArray, BoolArray]:
    """Refine the ends of all paths by Newton's method, and test whether each is regular.

    At a regular solution each step is about the square of the previous one, until rounding. The
    steps do not shrink this way at the end of a path that ran into a singular solution or missed
    any solution.
    """
    paths, end = np.arange(len(points)), np.zeros(len(points))
    steps = []
    with np.errstate(all="ignore"):
        for _ in range(3):
            values, jacobians, _ = homotopy.evaluate(paths, points, end, False)
            change = solve(jacobians, -values[:, :, None])[:, :, 0]
            points = points + change
            size = np.abs(change) / (np.abs(points) + 1e-8 * np.abs(points).max(axis=1)[:, None])
            steps.append(size.max(axis=1, initial=0.0))
    first, second, third = steps
    quadratic = (second <= np.maximum(0.1 * first, ROUNDED_STEP)) & (third <= ROUNDED_STEP)
    return points, quadratic & np.isfinite(points).all(axis=1)


def solve(matrices: ComplexArray, sides: ComplexArray) -> ComplexArray:
    """Solve linear systems of shapes (b, n, n) and (b, n, k); singular ones give NaN."""
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
    """Interpolate points and tangents by confluent divided differences, and evaluate at `target`.

    The shapes are (b, m) of `at`, (b, m, n) of `points` and `tangents`, and (b,) of `target`.
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


SAME_SOLUTION = 1e-6
"""Relative difference up to which two solutions, or two values of an unknown, are the same."""


def index_of(point: ComplexArray, known: Sequence[ComplexArray]) -> int | None:
    """Return the number of the known solution that `point` is, or None if it is a new one."""
    if not len(known):
        return None
    every = np.array(known)
    scale = np.maximum(np.abs(every), np.abs(point)) + 1e-10
    difference = (np.abs(every - point) / scale).max(axis=1)
    nearest = int(difference.argmin())
    return nearest if difference[nearest] < SAME_SOLUTION else None


def distinct_rows(points: ComplexArray) -> int:
    """Return the number of distinct rows."""
    seen: list[ComplexArray] = []
    for point in points:
        if index_of(point, seen) is None:
            seen.append(point)
    return len(seen)
