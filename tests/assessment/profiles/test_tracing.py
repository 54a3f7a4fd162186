"""One side of a profile of which the best fits are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from odefit.assessment.deviance import Deviance
from odefit.assessment.profiles.families import Point
from odefit.assessment.profiles.tracing import trace
from odefit.simulation.engine_choice import UNDECIDED

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


def test_what_the_first_point_has_taken_is_not_counted_as_work_of_the_side() -> None:
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
