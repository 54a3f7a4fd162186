"""Boxes of unknowns, the least promising ones refuted, until nothing better can be left."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odefit.enclosure.rounding import UNDERFLOW
from odefit.methods.branch_and_bound.examination import CHUNK, Enclosed, Examined, Examiners
from odefit.problem.arrays import Array

BATCH = 2 * CHUNK
"""Boxes that are taken at once, the most promising ones: two chunks, for two workers."""

SHRUNK = 0.6
"""A box whose width in some direction falls below this share is looked at again, undivided."""

DECADES = 9.0
"""Magnitudes, in powers of ten below the upper bound, that a box from zero on is taken to span."""

GEOMETRIC = 2.0
"""Ratio of bounds above which a box is divided at their geometric mean."""

FROM_ZERO = 0.1
"""Where a box that begins at zero is divided, as a share of its upper bound."""

FAINT = 0.1
"""Weight of a direction that bends no residual of which something is known, when others do."""

HOPELESS = 100.0
"""Ratio of the largest remainder to the norm that is looked for, above which a box is divided
where those unknowns are wide that act on remainders."""

ULP = 1e-15
"""Covers the rounding of a root and its square."""

FINEST = 1e-13
"""Relative width below which a box is not divided any more."""


@dataclass(order=True)
class Box:
    """A box that may hold something better.

    Attributes
    ----------
    norm
        Lower bound of the norm of the residuals in it.
    number
        Order of creation.
    lower, upper
        Its corners, shape (n,).
    """

    norm: float
    number: int
    lower: Array = field(compare=False)
    upper: Array = field(compare=False)


class Tree:
    """Branch and bound over boxes of unknowns.

    Parameters
    ----------
    enclosure
        Of the residuals.
    lower, upper
        Of the unknowns, finite, shape (n,).
    upper_bound
        An objective that is reached.
    target
        The objective below which something is looked for; no more than `upper_bound`.
    examiners
        Who looks at boxes; by default this process alone.

    Attributes
    ----------
    boxes
        Looked at so far.
    best
        The middle of a box that was found to be better than `upper_bound`, if any.
    """

    def __init__(
        self,
        enclosure: Enclosed,
        lower: Array,
        upper: Array,
        upper_bound: float,
        target: float,
        examiners: Examiners | None = None,
    ) -> None:
        self._enclosure = enclosure
        self._examiners = examiners or Examiners(enclosure)
        self._scale = np.maximum(np.abs(lower), np.abs(upper))
        self._whole = np.where(upper > lower, upper - lower, 1.0)
        self._open = [Box(0.0, 0, lower.copy(), upper.copy())]
        self._count = 1
        self._closed = math.inf  # least bound of boxes that cannot be divided
        self.target = target
        self.upper_bound = upper_bound
        self.boxes = 0
        self.best: Array | None = None

    @property
    def left(self) -> int:
        """Boxes that wait."""
        return len(self._open)

    @property
    def lower_bound(self) -> float:
        """Of the objective everywhere."""
        least = self._open[0].norm if self._open else math.inf
        least = min(least, self._closed)
        return max(min(self.target, least**2 * (1 - ULP)), self._enclosure.floor)

    def state(self) -> dict[str, Any]:
        """All that :meth:`resume` needs, as numbers in lists."""
        return {
            "target": self.target,
            "boxes": self.boxes,
            "closed": self._closed,
            "open": [[b.norm, *b.lower.tolist(), *b.upper.tolist()] for b in sorted(self._open)],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state` was."""
        n = len(self._scale)
        self.target = min(self.target, float(state["target"]))
        self.boxes, self._closed = int(state["boxes"]), float(state["closed"])
        rows = [np.array(row, dtype=float) for row in state["open"]]
        self._open = [Box(float(r[0]), i, r[1 : n + 1], r[n + 1 :]) for i, r in enumerate(rows)]
        heapq.heapify(self._open)
        self._count = len(self._open)

    def aim(self, upper_bound: float, target: float) -> None:
        """Something better was found: look for less."""
        self.upper_bound, self.target = upper_bound, min(target, self.target)

    def run(self, stop: Callable[[], bool]) -> Iterator[None]:
        """Look at batches of boxes, until none is left or `stop` says so."""
        while self._open and not stop():
            batch = [heapq.heappop(self._open) for _ in range(min(BATCH, len(self._open)))]
            # Rounded upwards: a box is dropped for what its norm is above.
            radius = math.sqrt(self.target) * (1 + ULP) if self.target > 0 else 0.0
            waiting = [box for box in batch if box.norm < radius]
            try:
                self._look(waiting, radius, stop)
            finally:
                # What was not looked at is not refuted.
                for box in waiting:
                    heapq.heappush(self._open, box)
            yield

    def _look(self, waiting: list[Box], radius: float, stop: Callable[[], bool]) -> None:
        """Look at boxes and take them from those that wait."""
        if not waiting:
            return
        lower = np.array([box.lower for box in waiting])
        upper = np.array([box.upper for box in waiting])
        for begin, found in self._examiners(lower, upper, radius, stop):
            own = slice(begin, begin + len(found.middle))
            known = np.array([box.norm for box in waiting[: len(found.middle)]])
            self._settle(found, known, lower[own], upper[own], radius)
            del waiting[: len(found.middle)]

    def _settle(
        self, found: Examined, known: Array, lower: Array, upper: Array, radius: float
    ) -> None:
        """Discard, shrink or divide boxes that have been looked at."""
        b = int(np.argmin(found.middle))
        if found.middle[b] < self.upper_bound:
            self.best = (lower[b] + upper[b]) / 2
        verdict = found.verdict
        norms = np.maximum(verdict.norm, known)
        # Shrunk, with room for rounding.
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        room = 1e-12 * half + 4e-16 * np.abs(middle)
        smaller = np.maximum(lower, middle + half * verdict.lower - room)
        larger = np.minimum(upper, middle + half * verdict.upper + room)
        smaller = np.where(verdict.lower > -1, smaller, lower)
        larger = np.where(verdict.upper < 1, larger, upper)
        self.boxes += len(norms)
        new: list[tuple[float, Array, Array]] = []
        for b in np.flatnonzero((norms < radius) & (smaller <= larger).all(axis=1)).tolist():
            before = self._widths(lower[b], upper[b])
            after = self._widths(smaller[b], larger[b])
            own = (float(norms[b]), smaller[b], larger[b])
            if (after < SHRUNK * before).any():
                new.append(own)
                continue
            shares = after / np.where(before > 0, before, 1.0)
            spread = verdict.spread[b]
            if verdict.known[b].all():
                weight = spread * shares
                loose = verdict.loose[b]
                if loose.max(initial=0.0) > HOPELESS * radius:
                    # Polynomials that say nothing cannot tell which direction is to blame.
                    acting = self._enclosure.influence * after
                    total = acting.sum(axis=1)
                    weight = (loose / np.where(total > 0, total, 1.0)) @ acting
            else:
                # What acts on the unknown residual that fewest unknowns act on; of that, what
                # bends those that are known, if these can tell.
                told = verdict.known[b]
                rows = self._enclosure.influence[~told]
                acting = rows[np.argmin(rows.sum(axis=1))]
                weight = after * acting
                if (self._enclosure.influence[told].any(axis=0) >= acting).all():
                    weight *= FAINT + spread / max(float(spread.max()), UNDERFLOW)
            if not weight.any():
                weight = after
            new += self._divided(*own, np.where(after > 0, weight, -1.0))
        for norm, low, high in new:
            heapq.heappush(self._open, Box(norm, self._count, low, high))
            self._count += 1

    def _widths(self, lower: Array, upper: Array) -> Array:
        """Of a box, in natural logarithms where its bounds have one sign, shape (n,)."""
        floor = self._scale * 10.0**-DECADES
        low, high = np.abs(lower), np.abs(upper)
        small, large = np.minimum(low, high) + floor, np.maximum(low, high) + floor
        with np.errstate(all="ignore"):
            ratio = np.log(large / small)
        across = (upper - lower) / self._whole * DECADES * math.log(10.0)
        found: Array = np.where(lower * upper < 0, across, ratio)
        return np.where(upper > lower, found, 0.0)

    def _divided(
        self, norm: float, lower: Array, upper: Array, weight: Array
    ) -> list[tuple[float, Array, Array]]:
        k = int(np.argmax(weight))
        low, high = float(lower[k]), float(upper[k])
        if high - low <= FINEST * self._scale[k]:
            self._closed = min(self._closed, norm)
            return []
        if low > 0 and high > GEOMETRIC * low:
            cut = math.sqrt(low) * math.sqrt(high)
        elif high < 0 and low < GEOMETRIC * high:
            cut = -math.sqrt(-low) * math.sqrt(-high)
        elif low == 0:
            cut = FROM_ZERO * high
        elif high == 0:
            cut = FROM_ZERO * low
        else:
            cut = (low + high) / 2
        left, right = upper.copy(), lower.copy()
        left[k] = right[k] = cut
        return [(norm, lower, left), (norm, right, upper)]
