"""One side of a profile of which the best fits are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.families import Point
from odefit.assessment.profiles.parts import Side
from odefit.assessment.profiles.tracing import trace
from odefit.common.arrays import Array
from odefit.simulation.engines.engine_choice import UNDECIDED

LIMIT = 4.0
DEVIANCE = Deviance(0.0, 1.0, math.inf, 0)


class TwoBranches:
    """The best fits from 10 on: a long step ends on a branch that is worse."""

    evaluations = minimisations = 0
    lower, upper, exact = -math.inf, math.inf, True

    def first(self) -> Point:
        return self.on_lower(10.0)

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point:
        self.evaluations += 1
        return self.on_upper(at) if at - near[-1].at > 6 else self.on_lower(at)

    def on_lower(self, at: float) -> Point:
        s = (at - 10) / 20
        return made(at, LIMIT * s**4, LIMIT * 4 * s**3 / 20, LIMIT * 12 * s**2 / 400)

    def on_upper(self, at: float) -> Point:
        root = 0.9 + 0.01 * (at - 10)
        return made(at, LIMIT * root**2, LIMIT * 2 * root * 0.01, LIMIT * 2e-4)


def made(at: float, deviance: float, slope: float, curvature: float) -> Point:
    one, none = np.ones(1), np.zeros(0)
    return Point(
        at,
        0.5 * deviance,
        0.5 * slope,
        0.5 * curvature,
        at * one,
        one,
        one,
        none,
        np.zeros((0, 1)),
        UNDECIDED,
    )


def test_a_step_to_a_worse_branch_is_made_shorter() -> None:
    family = TwoBranches()
    side = trace(family, family.first(), 1, DEVIANCE, LIMIT, False, lambda: False)
    assert side.end == "limit"
    assert side.limit == pytest.approx(30.0, rel=1e-3)  # the worse branch meets it at 20


def test_the_work_of_a_side_excludes_the_first_point() -> None:
    family = TwoBranches()
    first = family.first()
    family.evaluations = 50
    side = trace(family, first, 1, DEVIANCE, LIMIT, False, lambda: False, most=40)
    assert side.end == "limit"
    few = trace(TwoBranches(), first, 1, DEVIANCE, LIMIT, False, lambda: False, most=1)
    assert few.end == "points"


def test_a_side_ends_at_an_edge_within_the_bounds() -> None:
    family = TwoBranches()
    side = trace(family, family.first(), 1, DEVIANCE, LIMIT, False, lambda: False, edge=20.0)
    assert side.end == "bound"
    assert side.at[-1] == 20.0
    assert side.deviances[-1] == pytest.approx(LIMIT / 16)


def test_a_side_whose_first_point_is_above_the_limit_is_not_found() -> None:
    """So it is where the fit at the estimate itself is known to rounding errors alone."""
    family = TwoBranches()
    first = replace(family.first(), cost=2 * LIMIT)
    side = trace(family, first, 1, DEVIANCE, LIMIT, False, lambda: False)
    assert side.end == "failed"
    assert math.isnan(side.limit)
    assert "its first point is above the limit already" in side.reason


class Known:
    """The best fits from 10 on whose deviances are known, but for those within a gap."""

    evaluations = minimisations = 0
    lower, upper, exact = -math.inf, math.inf, True

    def __init__(self, gap: tuple[float, float] = (0.0, 0.0)) -> None:
        self.gap = gap

    def first(self) -> Point:
        return self.made(10.0)

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point | str:
        self.evaluations += 1
        return "it does not converge" if self.gap[0] < at < self.gap[1] else self.made(at)

    def made(self, at: float) -> Point:
        h = 1e-4
        low, here, high = (float(self.deviance(np.array([x]))[0]) for x in (at - h, at, at + h))
        bend = max((low - 2 * here + high) / h**2, 0.0)
        return made(at, here, (high - low) / (2 * h), bend)

    def deviance(self, at: Array) -> Array:
        raise NotImplementedError


class Shoulder(Known):
    """The deviance rises to half the limit, where it stays until it rises again."""

    def deviance(self, at: Array) -> Array:
        return np.asarray(0.5 * LIMIT * (1 - np.exp(-3 * (at - 10) ** 2) + (at / 10 - 1) ** 8))


class Quartic(Known):
    """A deviance that cubics follow."""

    def deviance(self, at: Array) -> Array:
        return np.asarray(LIMIT * (0.9 * (at / 10 - 1) ** 2 + 0.1 * (at / 10 - 1) ** 4))


def traced(family: Known) -> Side:
    return trace(family, family.first(), 1, DEVIANCE, LIMIT, False, lambda: False)


def largest_error(family: Known, side: Side) -> float:
    """How far the cubics through the points of a side are off, relative to the limit."""
    curve = CubicHermiteSpline(
        np.append(10.0, side.at), np.append(0.0, side.deviances), np.append(0.0, side.slopes)
    )
    at = np.linspace(10.0, side.limit, 1001)
    return float(np.abs(curve(at) - family.deviance(at)).max()) / LIMIT


def test_an_uncertain_cubic_gets_fits_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled = traced(Shoulder())
    assert largest_error(Shoulder(), filled) < 0.01
    monkeypatch.setattr("odefit.assessment.profiles.tracing.MAX_BETWEEN", 0)
    without = traced(Shoulder())
    assert largest_error(Shoulder(), without) > 0.02
    assert filled.limit == without.limit
    assert (np.diff(filled.at) > 0).all()


def test_cubics_that_follow_the_curve_need_no_more_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = traced(Quartic())
    monkeypatch.setattr("odefit.assessment.profiles.tracing.MAX_BETWEEN", 0)
    assert traced(Quartic()).at.tolist() == filled.at.tolist()


def test_a_fit_in_between_that_does_not_converge_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odefit.assessment.profiles.tracing.MAX_BETWEEN", 0)
    points = traced(Shoulder()).at
    monkeypatch.undo()
    k = int(np.argmax(np.diff(points)))
    found = traced(Shoulder(gap=(points[k], points[k + 1])))
    assert found.end == "limit"
    assert not ((found.at > points[k]) & (found.at < points[k + 1])).any()
    assert len(found.at) > len(points)  # the others are there all the same


class Walled:
    """A flat profile whose fits fail beyond a wall, where the model has no solution any more."""

    evaluations = minimisations = 0
    lower, upper, exact = -math.inf, 1e6, True

    def first(self) -> Point:
        return made(10.0, 0.0, 0.0, 0.0)

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point | str:
        self.evaluations += 1
        # Steps must become shorter in proportion to the distance from the wall, and never meet it.
        longest = 0.5 * (20.0 - near[-1].at)
        return "no solution" if at - near[-1].at > longest else made(at, 0.01, 1e-9, 0.0)


def test_a_side_ends_where_its_points_hardly_advance_any_more() -> None:
    family = Walled()
    side = trace(family, family.first(), 1, DEVIANCE, LIMIT, False, lambda: False)
    assert side.end == "points"
    assert "have advanced by less than" in side.reason
    assert math.isnan(side.limit)
    assert side.at[-1] == pytest.approx(20.0, rel=0.05)
    assert family.evaluations < 100
