"""The indistinguishable solutions at a point, without all solutions of the square system.

Two solutions of a square system are indistinguishable if all derivatives of all outputs agree, so
that no measurement of the outputs can distinguish them. This is an equivalence: the d solutions
fall into classes of k, which monodromy permutes.

So k can be found without finding all d. Random solutions are the ends of paths from random points.
About the square root of d/k of them suffice for two to fall into one class (the birthday paradox).
Such a collision of two solutions in one class is carried to the class of the reference point, along
a path on which they stay indistinguishable. There it gives a known solution, or a new one. If c are
known and there is another, a collision gives a new one with probability at least 1/(c + 1). This
holds as long as solutions are drawn without preference within their class. So after N collisions
without a new solution, the probability of a missed solution is at most (1 - 1/(c + 1))^N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.structure.homotopy.monodromy import MISS_PROBABILITY, miss_probability
from odefit.structure.homotopy.square import DIFFERENCE_STEP, ParameterHomotopy, SquareSystem
from odefit.structure.homotopy.tracker import TrackerOptions, index_of, track
from odefit.structure.series.deadline import UnfinishedError
from odefit.structure.series.expansion import random_complex
from odefit.structure.solutions.comparison import OutputComparison

MIN_BATCH = 48
"""Smallest number of random solutions drawn at once; the largest is four times that."""

BATCH_IF_COUNTED = 16
"""Number of random solutions drawn at once if the number of solutions is known."""

MAX_TRANSPORTS = 3
"""Largest number of paths on which a collision is carried to the reference point."""

TRACKER = TrackerOptions(max_steps=600)
"""Options of tracking."""

CARRIER = TrackerOptions(max_steps=600, min_step=1e-5)
"""Options of the paths to answers: a path that comes near a singular point takes hundreds of tiny
steps, while another way around it takes sixty."""

MAX_WAYS = 6
"""Largest number of ways tried from the known solutions to an answer."""


@dataclass(frozen=True, eq=False)
class IndistinguishableSolutions:
    """The solutions, shape (k, n), that are indistinguishable from the first of them.

    `collisions` counts the collisions since the last new solution, `drawn` the random solutions,
    `failed` the lost paths; `expected` is the number of solutions if it was known in advance.
    """

    solutions: ComplexArray
    parameters: ComplexArray
    collisions: int
    drawn: int
    failed: int
    expected: int | None = None

    @property
    def miss_probability(self) -> float:
        """Probability of a missed solution, as explained in the module's docstring.

        It is 0 if the expected number is found, and 1 if there are fewer, or more: then rounding
        has produced points that are not solutions.
        """
        if self.expected is not None:
            return float(len(self.solutions) != self.expected)
        return miss_probability(len(self.solutions), self.collisions)

    @property
    def complete(self) -> bool:
        """True if the search ended by itself, with the expected number of solutions."""
        return self.miss_probability <= MISS_PROBABILITY


def find_indistinguishable(
    square: SquareSystem,
    point: ComplexArray,
    parameters: ComplexArray,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
    expected: int | None = None,
) -> IndistinguishableSolutions:
    """Find all solutions that are indistinguishable from `point`, shape (n,), at `parameters`.

    The search ends as soon as `expected` are found, or when `stop` returns True.
    """
    search = _CollisionSearch(square, point, parameters, seed, stop)
    least = MIN_BATCH if expected is None else BATCH_IF_COUNTED
    while miss_probability(len(search.points), search.collisions) > MISS_PROBABILITY and not stop():
        if expected is not None and len(search.points) >= expected:
            break
        try:
            search.draw(least)
        except UnfinishedError:
            break
    return IndistinguishableSolutions(
        np.array(search.points),
        parameters,
        search.collisions,
        search.drawn,
        search.failed,
        expected,
    )


class MovingPointHomotopy:
    """The homotopy on which indistinguishable solutions remain indistinguishable.

    Its targets are the outputs at a moving point. Each path's point moves from `start` to `end`,
    shape (paths, n), on a way that `bend` makes curved; all parameters but the targets are
    constant.
    """

    def __init__(
        self,
        square: SquareSystem,
        parameters: ComplexArray,
        start: ComplexArray,
        end: ComplexArray,
        bend: ComplexArray,
    ) -> None:
        self.square = square
        self.parameters = parameters
        self.start = start
        self.end = end
        self.bend = bend

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :meth:`odefit.structure.homotopy.tracker.Homotopy.evaluate`."""
        t, count = t[:, None], len(paths)
        change = self.start[paths] - self.end[paths]
        moving = self.end[paths] + t * change + t * (1 - t) * self.bend[paths]
        moving_by_t = change + (1 - 2 * t) * self.bend[paths]
        both = np.concatenate([points, moving])
        at = np.broadcast_to(self.parameters, (2 * count, len(self.parameters)))
        left, jacobian, _ = self.square.values(both, np.asarray(at))
        left_by_t = -np.einsum("bij,bj->bi", jacobian[count:], moving_by_t)
        return left[:count] - left[count:], jacobian[:count], left_by_t


class MovingProblemHomotopy:
    """A homotopy in which the known numbers and functions of a problem move as well.

    All paths begin at one point with its parameters, and each has its own end, shapes (paths, n)
    and (paths, parameters).
    """

    def __init__(
        self,
        square: SquareSystem,
        start: tuple[ComplexArray, ComplexArray],
        end: tuple[ComplexArray, ComplexArray],
        bends: ComplexArray,
    ) -> None:
        self.square = square
        self.start = start
        self.end = end
        self.bends = bends

    def evaluate(
        self, paths: IntArray, points: ComplexArray, t: Array, by_t: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :meth:`odefit.structure.homotopy.tracker.Homotopy.evaluate`."""
        count = len(paths)
        # One evaluation of all takes little longer than one of the points alone.
        parts = [(points, t), (self._moving(paths, t), t)]
        if by_t:
            later = t + DIFFERENCE_STEP
            parts += [(points, later), (self._moving(paths, later), later)]
        at = [self._parameters(paths, time) for _, time in parts]
        left, jacobian, _ = self.square.values(
            np.concatenate([point for point, _ in parts]), np.concatenate(at), leading=count
        )
        here, moved, *after = np.split(left, len(parts))
        values = here - moved
        if not by_t:
            return values, jacobian, np.zeros_like(values)
        return values, jacobian, (after[0] - after[1] - values) / DIFFERENCE_STEP

    def _moving(self, paths: IntArray, t: Array) -> ComplexArray:
        """Return the moving points at t, shape (paths, n)."""
        first, last, t = self.start[0], self.end[0][paths], t[:, None]
        return np.asarray(last + t * (first - last) + t * (1 - t) * self.bends[paths])

    def _parameters(self, paths: IntArray, t: Array) -> ComplexArray:
        """Return the parameters at t, shape (paths, parameters)."""
        values = self.end[1][paths]
        return np.asarray(values + t[:, None] * (self.start[1] - values))


def carried(
    square: SquareSystem,
    known: IndistinguishableSolutions,
    points: ComplexArray,
    parameters: ComplexArray,
    rng: np.random.Generator,
    stop: Callable[[], bool] = lambda: False,
) -> list[ComplexArray]:
    """Return the solutions indistinguishable from each point, without it, (m, n) each.

    They are the ends of paths from the `known` ones at another point. There are several `points`,
    shape (k, n), with their `parameters`, shape (k, parameters); the paths to all of them are
    followed together.
    """
    compare = [OutputComparison(square, known_values) for known_values in parameters]
    outputs = [c.coefficients(p[None])[0] for c, p in zip(compare, points, strict=True)]
    solutions = [[point] for point in points]
    others = known.solutions[1:]
    for _ in range(MAX_WAYS):
        missing = [k for k, have in enumerate(solutions) if len(have) < len(known.solutions)]
        if not missing or stop():
            break
        direction = random_complex(rng, points.shape[1])
        bends = (np.abs(known.solutions[0]) + np.abs(points[missing])) * direction
        each = np.repeat(missing, len(others))
        homotopy = MovingProblemHomotopy(
            square,
            (known.solutions[0], known.parameters),
            (points[each], parameters[each]),
            np.repeat(bends, len(others), axis=0),
        )
        tracked = track(homotopy, np.tile(others, (len(missing), 1)), CARRIER, stop)
        for k in missing:
            arrived = tracked.ends[tracked.reached & (each == k)]
            if not len(arrived):
                continue
            arrived = compare[k].refined(arrived)
            agree = compare[k].equal(outputs[k], compare[k].coefficients(arrived))
            solutions[k] += [one for one in arrived[agree] if index_of(one, solutions[k]) is None]
    return [np.array(have[1:]).reshape(-1, points.shape[1]) for have in solutions]


@dataclass(eq=False)
class _Class:
    """A class of indistinguishable solutions, as far as it is known."""

    coefficients: ComplexArray
    solution: ComplexArray
    others: list[ComplexArray] = field(default_factory=list)


class _CollisionSearch:
    """The search of :func:`find_indistinguishable`."""

    def __init__(
        self,
        square: SquareSystem,
        point: ComplexArray,
        parameters: ComplexArray,
        seed: int,
        stop: Callable[[], bool],
    ) -> None:
        self.square = square
        self.stop = stop
        self.parameters = parameters
        self.rng = np.random.default_rng([seed, 1])
        self.compare = OutputComparison(square, parameters, seed)
        self.points = [point]
        self.classes = [_Class(self.compare.coefficients(point[None])[0], point)]
        self.collisions = self.drawn = self.failed = 0

    def draw(self, least: int = MIN_BATCH) -> None:
        """Draw random solutions, at least `least`, and examine their collisions."""
        count = int(np.clip(len(self.classes), least, 4 * MIN_BATCH))
        fresh = [self.square.generic_point(self.rng) for _ in range(count)]
        points = np.array([p for p, _ in fresh])
        start = np.array([y for _, y in fresh])
        end = np.repeat(self.parameters[None], count, axis=0)
        gamma = np.exp(1j * self.rng.uniform(-np.pi, np.pi, count))
        homotopy = ParameterHomotopy(self.square, start, end, gamma)
        tracked = track(homotopy, points, TRACKER, self.stop)
        self.drawn += count
        self.failed += int(count - tracked.reached.sum())
        if not tracked.reached.any():
            return
        arrived = self.compare.refined(tracked.ends[tracked.reached])
        for solution, coefficients in zip(arrived, self.compare.coefficients(arrived), strict=True):
            if np.isfinite(coefficients).all():
                self._classify(solution, coefficients)

    def _classify(self, solution: ComplexArray, coefficients: ComplexArray) -> None:
        known = np.array([c.coefficients for c in self.classes])
        matches = np.flatnonzero(self.compare.equal(coefficients, known))
        if not len(matches):
            self.classes.append(_Class(coefficients, solution))
            return
        met = self.classes[int(matches[0])]
        if index_of(solution, [met.solution, *met.others]) is not None:
            self.collisions += 1
            return
        image = solution if matches[0] == 0 else self._transported(met.solution, solution)
        if image is None:
            return
        met.others.append(solution)
        if index_of(image, self.points) is None:
            self.points.append(image)
            self.collisions = 0
        else:
            self.collisions += 1

    def _transported(self, one: ComplexArray, other: ComplexArray) -> ComplexArray | None:
        """Return the solution related to the reference point as `other` is to `one`."""
        reference = self.points[0]
        for _ in range(MAX_TRANSPORTS):
            size = np.abs(one) + np.abs(reference)
            bend = (size * random_complex(self.rng, len(one)))[None]
            homotopy = MovingPointHomotopy(
                self.square, self.parameters, one[None], reference[None], bend
            )
            tracked = track(homotopy, other[None], TRACKER, self.stop)
            if tracked.reached[0]:
                end = self.compare.refined(tracked.ends)
                coefficients = self.compare.coefficients(end)
                if self.compare.equal(self.classes[0].coefficients, coefficients)[0]:
                    return np.asarray(end[0])
        self.failed += 1
        return None
