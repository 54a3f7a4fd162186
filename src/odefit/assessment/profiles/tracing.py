"""One side of a profile: predictor and corrector from the optimum outwards, and its end.

The predictor follows the curve of best fits to second order: the tangent from the implicit function
theorem, and its change since the previous point. Steps are chosen so that the deviance rises by a
fraction of its limit. The end of the interval is where the cubic through the last two points, with
their exact derivatives, meets the limit; fits there are repeated until that end converges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.families import Family, Final, Point
from odefit.assessment.profiles.parts import End, Side
from odefit.common.arrays import Array
from odefit.common.cubics import crossing, departure

STEP = 0.35
"""Step of the root of the deviance, relative to the root of its limit."""

BEYOND = 1.1
"""Root of the deviance, relative to that of its limit, up to which a profile is drawn."""

GROWTH, SMALL_GROWTH = 4.0, 1.5
"""Largest ratio of a step to the previous one, if the prediction held and if it did not."""

EASY, HARD = 6, 25
"""Largest number of evaluations of an easy step, and smallest number of a hard one."""

HELD = 0.1
"""Deviance above the predicted one, relative to the limit, up to which a prediction held."""

FIRST_DECADES = 0.3
"""Largest first step of the coordinate of an unknown on a logarithmic scale."""

JUMP = 0.6
"""Increase of the root of the deviance, relative to that of its limit, above which a step with a
failed prediction is shortened and repeated."""

MAX_REPEATS = 8
"""Largest number of times that a step is shortened, at least by half."""

MAX_POINTS = 100
"""Largest number of points on one side."""

MAX_EVALUATIONS, MAX_ON_NODES = 3000, 5000
"""Numbers of evaluations of the model after which a side ends, in general and for fits on nodes."""

CREEPING, CREEP = 8, 0.02
"""Number of points after which a side ends if together they have advanced by less than this part of
the distance from the estimate. The root of the deviance must also have risen by less than this part
of that of its limit. Beyond them the model may have no solution.
"""

MAX_REFITS = 8
"""Largest number of fits for finding an end of the interval."""

END_ACCURACY = 5e-4
"""Error of an end of the interval, relative to its distance from the estimate."""

UNCERTAIN = 5e-3
"""Departure of the cubic through two points from a parabola, relative to the limit, above which a
fit is made in between. Smaller departures were seen to have smaller errors."""

MAX_BETWEEN = 8
"""Largest number of such fits on one side."""

ROUGH = 10.0
"""Gain below which such a fit ends, relative to that of others: no end of an interval depends on
it."""

SMALLER = 0.75
"""Departure, relative to that before a fit in between, above which another fit does not help."""

GAIN = 3e-4
"""Decrease of the deviance, relative to the limit, below which a fit ends."""

BETTER = 0.01
"""Deviance below that of the estimate, relative to the limit, that counts as a better optimum."""

FLAT = 0.01
"""Change of the deviance, relative to the limit, up to which a profile is flat."""

FLAT_DECADES = 3.0
"""Decades of the distance from the estimate over which it must be flat, if there is no bound."""

BEGINS_ABOVE = (
    "its first point is above the limit already; the noise may be no larger than rounding errors"
)
"""The reason why a side of a profile has no point."""


def trace(
    family: Family,
    first: Point,
    sign: int,
    deviance: Deviance,
    limit: float,
    logarithmic: bool,
    stop: Callable[[], bool],
    most: int | None = None,
    edge: float | None = None,
) -> Side:
    """Return one side of a profile, from the point `first` at the optimum.

    `sign` is 1 for the side of larger values, else -1. The side ends after `most` evaluations (None
    for the usual number), or at `edge`, which counts as the bound.
    """
    return _Tracer(family, first, sign, deviance, limit, logarithmic, stop, most, edge).side()


class _Tracer:
    def __init__(
        self,
        family: Family,
        first: Point,
        sign: int,
        deviance: Deviance,
        limit: float,
        logarithmic: bool,
        stop: Callable[[], bool],
        most: int | None = None,
        edge: float | None = None,
    ) -> None:
        self.family = family
        self.first = first
        self.sign = sign
        self.deviance = deviance
        self.limit = limit
        self.logarithmic = logarithmic
        self.stop = stop
        self.most = most
        bound = family.upper if sign > 0 else family.lower
        self.edge = bound if edge is None else edge
        # Costs are compared in units of the limit; without a variance all are infinitely far.
        self.gain = 0.5 * GAIN * limit * deviance.variance
        self.counts = family.evaluations, family.minimisations

    def side(self) -> Side:
        points = [self.first]
        if self.root(self.first) >= 1:
            return self.ended(points, None, "failed", BEGINS_ABOVE)
        step = math.inf
        growth = GROWTH
        while True:
            here = points[-1]
            if self.rise(here) < -BETTER:
                return self.ended(points, None, "better", better=here.vector)
            if self.root(here) >= 1:
                if len(points) == 1:
                    reason = "the refit at the estimate fits worse than the estimate itself"
                    return self.ended(points, None, "failed", reason)
                break
            if here.at == self.edge:
                return self.ended(points, None, "bound")
            if len(points) > MAX_POINTS:
                return self.ended(points, None, "points", f"it takes more than {MAX_POINTS} points")
            most = self.most or (MAX_EVALUATIONS if here.steps is None else MAX_ON_NODES)
            if self.family.evaluations - self.counts[0] > most:
                reason = f"it takes more than {most} evaluations of the model"
                return self.ended(points, None, "points", reason)
            if self.creeps(points):
                reason = f"the last {CREEPING} points have advanced by less than {CREEP:.0%}"
                return self.ended(points, None, "points", reason)
            if self.flat(points):
                return self.ended(points, None, "flat")
            if self.stop():
                return self.ended(points, None, "stopped")
            length = min(self.wanted_step(here), growth * step, self.first_step(step))
            before = self.family.evaluations
            point, step, held = self.advance(points, length)
            if isinstance(point, str):
                if self.stop():
                    return self.ended(points, None, "stopped")
                return self.ended(points, None, "failed", point)
            if self.blocked(here, point, step):
                return self.ended([*points, point], None, "bound")
            spent = self.family.evaluations - before
            growth = self.growth(held, spent if point.steps is None else point.steps)
            points.append(point)
        end, points = self.interval_end(points)
        if end is None:
            better = next((p for p in points if self.rise(p) < -BETTER), None)
            if better is not None:
                return self.ended(points, None, "better", better=better.vector)
            if self.stop():
                return self.ended(points, None, "stopped")
            return self.ended(
                points, None, "failed", "the end of the interval could not be refined"
            )
        return self.ended(points, end, "limit")

    # Steps ------------------------------------------------------------------------------------

    def rise(self, point: Point) -> float:
        """Return the deviance relative to its limit."""
        return self.deviance.at(point.cost) / self.limit

    def root(self, point: Point) -> float:
        return math.sqrt(max(self.rise(point), 0.0))

    def derivatives(self, point: Point) -> tuple[float, float]:
        """Return the first derivative of the rise outwards, and the second."""
        factor = 2 / (self.deviance.variance * self.limit)
        return self.sign * point.slope * factor, point.curvature * factor

    def wanted_step(self, here: Point) -> float:
        """Return the step after which the deviance will have risen enough."""
        root = self.root(here)
        target = root + STEP
        if target > 1 - 0.5 * STEP:
            target = BEYOND
        rise = target**2 - self.rise(here)
        slope, curvature = self.derivatives(here)
        # The positive root of slope h + curvature h^2/2 = rise.
        discriminant = slope**2 + 2 * curvature * rise
        bottom = slope + math.sqrt(max(discriminant, 0.0))
        if slope < 0 and 0.5 * slope**2 > BETTER * curvature > 0:
            return -slope / curvature  # to another minimum, which may be lower
        return 2 * rise / bottom if bottom > 0 else math.inf

    def growth(self, held: bool, evaluations: int) -> float:
        """Return the factor of the next step, after a step with a number of evaluations."""
        if held and evaluations <= EASY:
            return GROWTH
        return SMALL_GROWTH if evaluations <= HARD else 1.0

    def first_step(self, step: float) -> float:
        """Return the largest step before any step was made."""
        if math.isfinite(step):
            return math.inf
        if self.logarithmic:
            return FIRST_DECADES
        size = abs(self.first.at)
        width = self.family.upper - self.family.lower
        if math.isfinite(width):
            return min(size or math.inf, 0.1 * width)
        return size or 1.0

    def advance(self, points: list[Point], step: float) -> tuple[Point | str, float, bool]:
        """Return the next point, the step to it, and whether the prediction held."""
        here = points[-1]
        shorter = 1.0
        point: Point | str = ""
        for _ in range(MAX_REPEATS):
            at = here.at + self.sign * step * shorter
            if self.sign * (at - self.edge) >= -1e-3 * step * shorter:
                at = self.edge
            point = self.family.point(points[-2:], at, self.gain)
            if isinstance(point, Final):
                break
            if isinstance(point, str):
                shorter *= 0.25
            else:
                held = self.held(here, point)
                if held or self.root(point) - self.root(here) <= JUMP:
                    return point, abs(at - here.at), held
                # Perhaps another branch: repeat from the present point, then with a shorter step.
                still = replace(here, tangent=np.zeros_like(here.tangent))
                again = self.family.point([still], at, self.gain)
                if not isinstance(again, str) and again.cost < point.cost:
                    point = again
                if self.root(point) - self.root(here) <= JUMP:
                    return point, abs(at - here.at), False
                shorter *= max(0.25, min(0.5, STEP / (self.root(point) - self.root(here))))
            if self.stop():
                break
        return point, step * shorter, False

    def held(self, here: Point, point: Point) -> bool:
        """Return whether the deviance is at most as predicted from the previous point."""
        slope, curvature = self.derivatives(here)
        h = abs(point.at - here.at)
        expected = self.rise(here) + slope * h + 0.5 * curvature * h * h
        return self.rise(point) <= HELD + 1.25 * expected

    def blocked(self, here: Point, point: Point, step: float) -> bool:
        """Return whether a pulled quantity no longer moves, as bounds hold it."""
        return not self.family.exact and abs(point.at - here.at) < 0.01 * step

    def creeps(self, points: list[Point]) -> bool:
        """Return whether the last points have hardly advanced, as each longer step has failed."""
        if len(points) <= CREEPING + 1:
            return False
        before, last = points[-1 - CREEPING], points[-1]
        near = abs(last.at - before.at) < CREEP * abs(before.at - self.first.at)
        return near and abs(self.root(last) - self.root(before)) < CREEP

    def flat(self, points: list[Point]) -> bool:
        """Return whether a profile without a bound is flat over decades."""
        if math.isfinite(self.edge):
            return False
        unit = 1.0 if self.logarithmic else max(abs(self.first.at), 1e-300)
        distances = np.array([abs(p.at - self.first.at) for p in points]) / unit
        decades = distances if self.logarithmic else np.log10(np.maximum(distances, 1e-300))
        if not self.logarithmic and distances[-1] < 10**FLAT_DECADES:
            return False
        within = decades >= decades[-1] - FLAT_DECADES
        rises = np.array([self.rise(p) for p in points])
        enough = bool(decades[-1] - decades[0] >= FLAT_DECADES)
        return enough and float(np.ptp(rises[within])) <= FLAT

    # The end of the interval ------------------------------------------------------------------

    def interval_end(self, points: list[Point]) -> tuple[float | None, list[Point]]:
        """Return where the deviance meets its limit between the last two points."""
        *inside, outside = points
        low, high = inside[-1], outside
        fitting = [*inside]
        beyond = [outside]
        for _ in range(MAX_REFITS):
            at = self.crossing(low, high)
            nearer = [high, low] if abs(at - low.at) < abs(at - high.at) else [low, high]
            nearer_fit = self.family.point(nearer, at, 0.1 * self.gain)
            if isinstance(nearer_fit, str):
                return None, [*fitting, *beyond]
            slope, _ = self.derivatives(nearer_fit)
            (fitting if self.root(nearer_fit) < 1 else beyond).append(nearer_fit)
            if self.rise(nearer_fit) < -BETTER:
                return None, [*fitting, *beyond]
            shift = (1 - self.rise(nearer_fit)) / slope if slope > 0 else math.inf
            reach = abs(nearer_fit.at - self.first.at)
            if abs(shift) <= END_ACCURACY * reach:
                points = sorted([*fitting, *beyond], key=lambda p: self.sign * p.at)
                return nearer_fit.at + self.sign * shift, points
            if abs(high.at - low.at) <= END_ACCURACY * reach:
                # A step of the profile: the interval ends there.
                return high.at, sorted([*fitting, *beyond], key=lambda p: self.sign * p.at)
            if self.rise(nearer_fit) < 1:
                low = nearer_fit
            else:
                high = nearer_fit
            if self.stop():
                break
        return None, [*fitting, *beyond]

    def crossing(self, low: Point, high: Point) -> float:
        """Return where the cubic through two points meets the limit."""
        h = abs(high.at - low.at)
        rises = self.rise(low), self.rise(high)
        share = crossing(h, rises, (self.derivatives(low)[0], self.derivatives(high)[0]))
        return low.at + self.sign * h * min(max(share, 0.01), 0.99)

    # Between the points -----------------------------------------------------------------------

    def filled(self, points: list[Point]) -> list[Point]:
        """Return the points, with fits between those whose cubic is uncertain."""
        filled_points = sorted(points, key=lambda p: self.sign * p.at)
        most = {p.at: math.inf for p in filled_points}  # departures above which fits do not help
        for _ in range(MAX_BETWEEN):
            uncertain = [
                (departure, k)
                for k, (low, high) in enumerate(pairwise(filled_points))
                if UNCERTAIN < (departure := self.departure(low, high)) < most[low.at]
                and min(self.rise(low), self.rise(high)) < 1
            ]
            if not uncertain or self.stop():
                break
            departure, k = max(uncertain)
            low, high = filled_points[k : k + 2]
            middle = 0.5 * (low.at + high.at)
            point = self.family.point([low, high], middle, ROUGH * self.gain)
            if isinstance(point, str) or not (
                self.sign * low.at < self.sign * point.at < self.sign * high.at
            ):
                most[low.at] = 0.0
            else:
                filled_points.insert(k + 1, point)
                # By half at a kink, by more if the curve is smooth, and not at all at a jump.
                most[low.at] = most[point.at] = SMALLER * departure
        return filled_points

    def departure(self, low: Point, high: Point) -> float:
        """Return the largest possible departure of the cubic between two points from a parabola."""
        rises, slopes = zip(
            *((self.rise(p), self.derivatives(p)[0]) for p in (low, high)), strict=True
        )
        return departure(abs(high.at - low.at), rises, slopes)

    def ended(
        self,
        points: list[Point],
        limit: float | None,
        end: End,
        reason: str = "",
        better: Array | None = None,
    ) -> Side:
        if end not in ("better", "stopped"):
            points = self.filled(points)
            lowest = min(points, key=lambda p: p.cost)
            if self.rise(lowest) < -BETTER:
                limit, end, reason, better = None, "better", "", lowest.vector
        family, outward = self.family, points[1:]
        n = len(self.first.vector)
        factor = 2 / self.deviance.variance
        return Side(
            np.array([p.at for p in outward]),
            np.array([self.deviance.at(p.cost) for p in outward]),
            np.array([factor * p.slope for p in outward]),
            np.array([p.vector for p in outward]).reshape(len(outward), n),
            math.nan if limit is None else limit,
            end,
            reason,
            np.zeros(0) if better is None else better,
            family.evaluations - self.counts[0],
            family.minimisations - self.counts[1],
        )
