"""The division of boxes, and their contraction to the part that a search needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.rounding import UNDERFLOW
from odefit.methods.branch_and_bound.leaf_log import LeafLog
from odefit.methods.branch_and_bound.node_bounds import NodeBounds
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure

CONTRACTION_RATIO = 0.6
"""Ratio of widths: a box that shrinks below this share in some direction is evaluated again,
undivided."""

DECADES_FROM_ZERO = 9.0
"""Number of decades below its upper bound that a box with the lower bound zero is assumed to
span."""

GEOMETRIC_RATIO = 2.0
"""Ratio of bounds above which a box is divided at their geometric mean."""

SPLIT_FROM_ZERO = 0.1
"""Share of its upper bound at which a box with the lower bound zero is divided."""

LINEAR_WEIGHT = 0.1
"""Weight of a direction in which all enclosed residuals are linear, compared with 1 for the most
nonlinear one."""

REMAINDER_RATIO = 100.0
"""Ratio of the largest remainder to the radius above which the polynomials carry no information: a
box is then divided in a wide direction that acts on the remainders."""

MIN_WIDTH = 1e-13
"""Width, relative to the bounds of the unknown, below which a box is not divided further."""


class Part(NamedTuple):
    """A part of an evaluated box that has not been fathomed, with corners of shape (n,).

    `norm` bounds the residual norm over it from below. It may be `too_small` to be divided.
    """

    norm: float
    lower: Array
    upper: Array
    too_small: bool


class Division:
    """The division of boxes within the bounds of the unknowns, shape (n,)."""

    def __init__(self, enclosure: ResidualEnclosure, lower: Array, upper: Array) -> None:
        self._enclosure = enclosure
        self._scale = np.maximum(np.abs(lower), np.abs(upper))
        self.span = np.where(upper > lower, upper - lower, 1.0)

    @property
    def dimension(self) -> int:
        """Number of unknowns n."""
        return len(self._scale)

    def parts(
        self,
        bounds: NodeBounds,
        norms: Array,
        lower: Array,
        upper: Array,
        radius: float,
        leaves: LeafLog | None,
    ) -> Iterator[Part]:
        """Fathom, contract or divide evaluated boxes; yield the parts that are left.

        The corners have shape (B, n), `norms`, shape (B,), bound the residual norm, and points with
        a norm above `radius` are not sought. Boxes that are fathomed or cut off are added to the
        leaves, if these are kept.
        """
        smaller, larger = _contracted(bounds, lower, upper)
        open_boxes = (norms < radius) & (smaller <= larger).all(axis=1)
        if leaves is not None:
            for b in np.flatnonzero(~open_boxes).tolist():
                leaves.add(lower[b], upper[b], max(float(norms[b]), radius) ** 2, "bounded")
        for b in np.flatnonzero(open_boxes).tolist():
            if leaves is not None:
                leaves.cut_off(lower[b], upper[b], smaller[b], larger[b], radius**2)
            norm, low, high = float(norms[b]), smaller[b], larger[b]
            before, after = self.widths(lower[b], upper[b]), self.widths(low, high)
            if (after < CONTRACTION_RATIO * before).any():
                yield Part(norm, low, high, False)
                continue
            score = self._scores(bounds, b, before, after, radius)
            score = score if score.any() else after
            yield from self._halves(norm, low, high, np.where(after > 0, score, -1.0))

    def _halves(self, norm: float, lower: Array, upper: Array, score: Array) -> Iterator[Part]:
        """Divide a box in the direction with the largest score, unless it is too small."""
        k = int(np.argmax(score))
        low, high = float(lower[k]), float(upper[k])
        if high - low <= MIN_WIDTH * float(self._scale[k]):
            yield Part(norm, lower, upper, True)
            return
        left, right = upper.copy(), lower.copy()
        left[k] = right[k] = _branching_point(low, high)
        yield Part(norm, lower, left, False)
        yield Part(norm, right, upper, False)

    def _scores(
        self, bounds: NodeBounds, b: int, before: Array, after: Array, radius: float
    ) -> Array:
        """Return the expected benefit of dividing a box in each direction, shape (n,).

        Box `b` has the widths `before` and `after` contraction, shape (n,).
        """
        influence, enclosed = self._enclosure.influence, bounds.enclosed[b]
        nonlinearity = bounds.nonlinearity[b]
        if enclosed.all():
            remainder = bounds.remainder[b]
            if remainder.max(initial=0.0) > REMAINDER_RATIO * radius:
                return _shared(remainder, influence * after)
            score = nonlinearity * (after / np.where(before > 0, before, 1.0))
            rows = self._enclosure.composed
            if rows.any():
                score = score + _shared(remainder[rows], influence[rows] * after)
            return np.asarray(score)
        # Of the residuals that are not enclosed, take the one on which fewest directions act, and
        # those directions. Prefer among them the nonlinear directions of the enclosed residuals, if
        # these include all.
        rows = influence[~enclosed]
        acting = rows[np.argmin(rows.sum(axis=1))]
        score = after * acting
        if (influence[enclosed].any(axis=0) >= acting).all():
            score *= LINEAR_WEIGHT + nonlinearity / max(float(nonlinearity.max()), UNDERFLOW)
        return np.asarray(score)

    def widths(self, lower: Array, upper: Array) -> Array:
        """Return the widths of a box, shape (n,), in logarithms if both bounds have one sign."""
        least = self._scale * 10.0**-DECADES_FROM_ZERO
        low, high = np.abs(lower), np.abs(upper)
        small, large = np.minimum(low, high) + least, np.maximum(low, high) + least
        with np.errstate(all="ignore"):
            ratio = np.log(large / small)
        across = (upper - lower) / self.span * DECADES_FROM_ZERO * math.log(10.0)
        widths: Array = np.where(lower * upper < 0, across, ratio)
        return np.where(upper > lower, widths, 0.0)


def _shared(remainder: Array, acting: Array) -> Array:
    """Return remainders, shape (R,), shared out among directions that act on them, (R, n)."""
    total = acting.sum(axis=1)
    return np.asarray((remainder / np.where(total > 0, total, 1.0)) @ acting)


def _contracted(bounds: NodeBounds, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the corners of the contracted boxes, with a margin for rounding."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    margin = 1e-12 * half + 4e-16 * np.abs(middle)
    smaller = np.maximum(lower, middle + half * bounds.lower - margin)
    larger = np.minimum(upper, middle + half * bounds.upper + margin)
    smaller = np.where(bounds.lower > -1, smaller, lower)
    larger = np.where(bounds.upper < 1, larger, upper)
    return smaller, larger


def _branching_point(low: float, high: float) -> float:
    """Return the point that divides an interval: geometric if it spans much on one side of zero."""
    if low > 0 and high > GEOMETRIC_RATIO * low:
        return math.sqrt(low) * math.sqrt(high)
    if high < 0 and low < GEOMETRIC_RATIO * high:
        return -math.sqrt(-low) * math.sqrt(-high)
    if low == 0:
        return SPLIT_FROM_ZERO * high
    if high == 0:
        return SPLIT_FROM_ZERO * low
    return (low + high) / 2
