"""The structural solutions at a point, without all solutions of the square system.

Agreement in all derivatives is an equivalence, so that the d solutions of a square system form
blocks of k *partners*, which monodromy permutes.

k can therefore be found without finding all d. Random solutions (each the end of a path from a
random point) meet blocks that were met before as soon as there are about the square root of d/k
of them. A meeting of two solutions of one block is carried to the block of the reference point,
along a path on which they stay partners: there it is a known partner, or a new one. If c are known
and there is another, a meeting shows a new one with probability 1/(c + 1) or more, as long as
solutions are drawn without preference within their block. N meetings that show nothing new leave
a doubt of (1 - 1/(c + 1))^N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from odefit.problem.arrays import Array, ComplexArray, IntArray
from odefit.structure.comparison import Comparison
from odefit.structure.counting import index_of
from odefit.structure.homotopy.monodromy import DOUBT, doubt
from odefit.structure.homotopy.tracker import Tracking, track
from odefit.structure.jets import random_complex
from odefit.structure.square import Between, SquareSystem

BATCH = 48
"""Random solutions drawn at once, at least."""

ATTEMPTS = 3
"""Paths on which a meeting is carried to the reference point, at most."""

TRACKING = Tracking(steps=600)


@dataclass(frozen=True, eq=False)
class Partners:
    """The structural solutions at one point.

    Attributes
    ----------
    solutions
        Shape (k, n), the reference point first.
    parameters
        Of the square system there, shape (parameters,).
    meetings
        Of solutions in one block, since the last new partner.
    drawn, failed
        Random solutions, and paths that did not arrive.
    """

    solutions: ComplexArray
    parameters: ComplexArray
    meetings: int
    drawn: int
    failed: int

    @property
    def doubt(self) -> float:
        """Probability that there are more, as the module's text explains."""
        return doubt(len(self.solutions), self.meetings)

    @property
    def complete(self) -> bool:
        """The search ended by itself."""
        return self.doubt <= DOUBT


def find_partners(
    square: SquareSystem,
    point: ComplexArray,
    parameters: ComplexArray,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Partners:
    """All structural solutions that agree with `point`, shape (n,), a solution at `parameters`.

    Parameters
    ----------
    seed
        Of the random solutions.
    stop
        Asked now and then whether to end early.
    """
    search = _Meetings(square, point, parameters, seed, stop)
    while doubt(len(search.partners), search.meetings) > DOUBT and not stop():
        search.draw()
    return Partners(
        np.array(search.partners), parameters, search.meetings, search.drawn, search.failed
    )


class Along:
    """The homotopy on which partners stay partners: the targets are those of a moving point.

    Parameters
    ----------
    square
        The equations.
    parameters
        All but the targets stay what they are here, shape (parameters,).
    start, end
        Of the moving point, by path, shape (paths, n).
    bend
        By path and unknown, how far from straight the way is, shape (paths, n).
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
        self, paths: IntArray, points: ComplexArray, remaining: Array
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :class:`odefit.structure.homotopy.tracker.Homotopy`."""
        r, count = remaining[:, None], len(paths)
        change = self.start[paths] - self.end[paths]
        moving = self.end[paths] + r * change + r * (1 - r) * self.bend[paths]
        speed = change + (1 - 2 * r) * self.bend[paths]
        both = np.concatenate([points, moving])
        at = np.broadcast_to(self.parameters, (2 * count, len(self.parameters)))
        left, jacobian, _ = self.square.values(both, np.asarray(at))
        by_remaining = -np.einsum("bij,bj->bi", jacobian[count:], speed)
        return left[:count] - left[count:], jacobian[:count], by_remaining


@dataclass(eq=False)
class _Seen:
    """A block that was met: coefficients, and one solution in it."""

    jets: ComplexArray
    solution: ComplexArray
    others: list[ComplexArray] = field(default_factory=list)


class _Meetings:
    """The search of :func:`find_partners`."""

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
        self.compare = Comparison(square, parameters, seed)
        self.partners = [point]
        self.seen = [_Seen(self.compare.jets(point[None])[0], point)]
        self.meetings = self.drawn = self.failed = 0

    def draw(self) -> None:
        """Draw random solutions, and look at their meetings."""
        count = int(np.clip(len(self.seen), BATCH, 4 * BATCH))
        fresh = [self.square.generic(self.rng) for _ in range(count)]
        points = np.array([p for p, _ in fresh])
        start = np.array([y for _, y in fresh])
        end = np.repeat(self.parameters[None], count, axis=0)
        detours = np.exp(1j * self.rng.uniform(-np.pi, np.pi, count))
        tracked = track(Between(self.square, start, end, detours), points, TRACKING, self.stop)
        self.drawn += count
        self.failed += int(count - tracked.reached.sum())
        arrived = self.compare.refined(tracked.ends[tracked.reached])
        if not len(arrived):
            return
        for solution, jets in zip(arrived, self.compare.jets(arrived), strict=True):
            if np.isfinite(jets).all():
                self._place(solution, jets)

    def _place(self, solution: ComplexArray, jets: ComplexArray) -> None:
        known = np.array([s.jets for s in self.seen])
        found = np.flatnonzero(self.compare.equal(jets, known))
        if not len(found):
            self.seen.append(_Seen(jets, solution))
            return
        block = self.seen[int(found[0])]
        if index_of(solution, [block.solution, *block.others]) is not None:
            self.meetings += 1
            return
        partner = solution if found[0] == 0 else self._carried(block.solution, solution)
        if partner is None:
            return
        block.others.append(solution)
        if index_of(partner, self.partners) is None:
            self.partners.append(partner)
            self.meetings = 0
        else:
            self.meetings += 1

    def _carried(self, one: ComplexArray, other: ComplexArray) -> ComplexArray | None:
        """The partner of the reference point that corresponds to `other` beside `one`."""
        reference = self.partners[0]
        for _ in range(ATTEMPTS):
            size = np.abs(one) + np.abs(reference)
            bend = (size * random_complex(self.rng, len(one)))[None]
            way = Along(self.square, self.parameters, one[None], reference[None], bend)
            tracked = track(way, other[None], TRACKING, self.stop)
            if tracked.reached[0]:
                end = self.compare.refined(tracked.ends)
                if self.compare.equal(self.seen[0].jets, self.compare.jets(end))[0]:
                    return np.asarray(end[0])
        self.failed += 1
        return None
