"""Profiles whose best fits lie in several valleys: the lowest of all curves is reported."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.parts import Profile, Side
from odefit.assessment.profiles.profiling import profile_all
from odefit.assessment.profiles.quantities import Quantity
from odefit.assessment.profiles.tasks import Optimum, Task
from odefit.assessment.profiles.valleys import (
    lowest_of,
    passages,
    starts_again,
    unchecked,
    with_points,
)
from odefit.common.arrays import Array
from odefit.methods.polish import POLISH
from odefit.methods.running.control import Control, Progress
from odefit.problem.problem import Problem
from odefit.reporting.profiles import profile_table, profile_text
from odefit.simulation import ForwardMap
from tests.assessment.profiles.narrow import (
    exact_optimum,
    threshold_problem,
    two_valleys,
    two_valleys_deviance,
    two_valleys_end,
)

LONG = 8.0
LIMIT = 4.0


def side(at: Array, deviances: Array, **ends: Any) -> Side:
    none = np.zeros(0)
    found = Side(at, deviances, 0 * at, at[:, None], math.nan, "failed", "", none, 1, 1)
    return replace(found, **ends)


OUT = np.array([0.5, 1.0, 1.5, 2.0, 2.2])
OWN = side(OUT, OUT**2, end="limit", limit=2.0)
"""The curve t^2 from the estimate at zero, which meets its limit at two."""

AWAY = np.array([0.1, 1.0, 2.0, 3.0, 4.2])
FLATTER = side(AWAY, 1 + AWAY**2 / 5, end="limit", limit=math.sqrt(15))
"""A worse optimum, from which the curve rises less: below the other from 1.118 on."""


def lowest(*sides: Side, sign: int = 1) -> Side:
    return lowest_of(sides, sign, 0.0, LIMIT)


def test_the_interval_ends_where_the_last_valley_meets_the_limit() -> None:
    found = lowest(OWN, FLATTER)
    assert found.end == "limit"
    assert found.limit == FLATTER.limit
    assert found.at.tolist() == [0.5, 1.0, 2.0, 3.0, 4.2]
    assert found.deviances[:2] == pytest.approx(OWN.deviances[:2])
    assert found.deviances[2:] == pytest.approx(FLATTER.deviances[2:])
    assert found.evaluations == 2


def test_a_lower_side_is_that_of_an_upper_one_reflected() -> None:
    def reflected(s: Side) -> Side:
        return replace(s, at=-s.at, limit=-s.limit, vectors=-s.vectors)

    found = lowest(reflected(OWN), reflected(FLATTER), sign=-1)
    assert found.limit == -FLATTER.limit
    assert found.at.tolist() == [-0.5, -1.0, -2.0, -3.0, -4.2]


def test_a_valley_that_is_worse_everywhere_changes_nothing() -> None:
    worse = side(AWAY, 2 + AWAY**2, end="limit", limit=math.sqrt(2))
    found = lowest(OWN, worse)
    assert found.limit == OWN.limit
    assert found.at.tolist() == OWN.at.tolist()


def test_a_valley_without_an_end_leaves_the_interval_open() -> None:
    bound = side(AWAY, 1 + AWAY / 5, end="bound")
    assert lowest(OWN, bound).end == "bound"


def test_a_valley_that_is_lost_while_it_is_the_lowest_leaves_the_end_unresolved() -> None:
    lost = side(AWAY[:3], 1 + AWAY[:3] ** 2 / 5, reason="lost")
    found = lowest(OWN, lost)
    assert (found.end, found.reason) == ("failed", "lost")
    assert math.isnan(found.limit)


def test_a_valley_that_is_lost_above_the_others_leaves_their_limit() -> None:
    lost = side(AWAY[:2], 1 + AWAY[:2] ** 2 / 5, reason="lost")
    assert lowest(OWN, lost).limit == OWN.limit


def test_a_lost_curve_that_is_the_same_between_other_points_leaves_the_limit() -> None:
    wide = np.array([0.2, 2.1])  # straight lines between these lie above t^2 by up to 0.9
    known = side(wide, wide**2, slopes=2 * wide, end="limit", limit=2.0)
    at = np.array([0.4, 1.1])
    lost = side(at, at**2, slopes=2 * at, reason="lost")
    assert lowest(known, lost).limit == 2.0
    below = side(at, at**2 - 0.2, slopes=2 * at, reason="lost")
    assert lowest(known, below).end == "failed"


def test_a_curve_back_to_the_estimate_has_points_but_no_end() -> None:
    in_between = np.array([1.9, 1.6, 1.3])
    back = side(in_between, 0.3 * in_between, end="limit", limit=1.0)
    found = lowest_of([OWN, FLATTER], 1, 0.0, LIMIT, [back])
    assert (found.end, found.limit) == ("limit", FLATTER.limit)
    assert found.at.tolist() == [0.5, 1.0, 1.3, 1.6, 1.9, 2.0, 3.0, 4.2]
    assert found.evaluations == 3


def test_a_curve_of_the_opposite_side_has_points_between_its_optimum_and_the_estimate() -> None:
    beyond = replace(FLATTER, at=AWAY[2:], deviances=1 + AWAY[2:] ** 2 / 5)
    at = np.array([2.0, 1.3, 0.6, -0.7])
    down = side(at, 1 + at**2 / 5, slopes=2 * at / 5, end="limit", limit=-math.sqrt(15))
    found = lowest_of([OWN, beyond], 1, 0.0, LIMIT, across=[down])
    assert (found.end, found.limit) == ("limit", FLATTER.limit)
    assert found.at.tolist() == [0.5, 1.0, 1.3, 2.0, 3.0, 4.2]  # the optimum at 2 once
    assert found.evaluations == 2


def test_a_limit_that_a_fit_inside_refutes_is_checked_from_the_valley_beyond_it() -> None:
    best = threshold()
    task = Task("c", 1, best.problem.keys.index("c"), None)
    fit, beyond, before = (vector(best, factor) for factor in (1.5, 2.0, 1.2))
    known = [task, replace(task, start=beyond), replace(task, start=before)]
    back = replace(task, start=beyond, inward=True)
    assert starts_again(best, known, {task: fit}) == [back]
    # Where that has not helped, the fit's own curve is followed.
    assert starts_again(best, [*known, back], {task: fit}) == [replace(task, start=fit)]
    assert starts_again(best, [*known, back, replace(task, start=fit)], {task: fit}) == []


def test_a_point_beyond_a_lower_side_is_below_it() -> None:
    best = threshold()
    task = Task("c", -1, best.problem.keys.index("c"), None)
    fit, beyond, before = (vector(best, factor) for factor in (0.7, 0.5, 0.9))
    known = [task, replace(task, start=beyond), replace(task, start=before)]
    again = starts_again(best, known, {task: fit})
    assert again == [replace(task, start=beyond, inward=True)]
    assert again[0].side == task


def threshold() -> Optimum:
    values = np.array(exact_optimum(LONG))
    return Optimum(threshold_problem(LONG), values, Deviance(0.0, 1.0, math.inf, 0), LIMIT, {})


def vector(best: Optimum, factor: float) -> tuple[float, ...]:
    return tuple(map(float, factor * best.vector))


@pytest.mark.slow
def test_an_end_in_another_valley_is_found_by_way_of_another_profile() -> None:
    profile = long_profile_of_m()
    end = two_valleys_end()
    assert profile.ends == ("limit", "limit")
    assert profile.unchecked == (False, False)
    assert "other optima" not in profile.sentence
    assert profile.lower == pytest.approx(-end, abs=0.001 * end)
    assert profile.upper == pytest.approx(end, abs=0.001 * end)


@pytest.mark.parametrize("complete", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_limit_left_unchecked_for_lack_of_time_says_so(complete: int) -> None:
    """Time ends after the lower side of m, or after both, before the valley of k = -1 is tried."""
    problem = two_valleys(LONG)
    guesses = np.array([u.parameter.guess for u in problem.unknowns])
    vector = POLISH.run(ForwardMap(problem), 0, guesses, Control()).vector

    def report(progress: Progress) -> None:
        if progress.done == complete:
            control.interrupted.set()

    control = Control(jobs=1, report=report)
    found = profile_all(problem, vector, 0.95, control, keys=["k", "m"])
    profile = found.profiles[1]
    lower_alone = complete == 3
    assert profile.ends == ("limit", "stopped" if lower_alone else "limit")
    assert profile.lower > -0.9 * two_valleys_end()  # it is the limit of the other valley
    assert profile.unchecked == (True, not lower_alone)
    names = "lower limit was" if lower_alone else "lower and upper limits were"
    said = f"The {names} not compared with other optima, as time ended before."
    assert said in profile.sentence
    assert said in profile_text(found)
    assert said in str(profile_table(found).loc["m", "note"])


def test_only_limits_whose_comparison_is_missing_are_unchecked() -> None:
    tasks = [Task(key, sign, number, None) for number, key in enumerate("km") for sign in (-1, 1)]
    quantity = Task("k*m", 1, -1, Quantity.of(two_valleys(LONG), "k*m"))
    all_tasks = [*tasks, quantity]
    sides = dict.fromkeys(all_tasks, OWN)
    assert unchecked(all_tasks, sides, narrow=True) == set()
    beyond = replace(tasks[1], start=(1.0, 2.0))
    stopped = replace(OWN, end="stopped", limit=math.nan)
    assert unchecked(all_tasks, sides | {beyond: stopped}, narrow=True) == {tasks[1]}
    # Any side of a narrow valley may lead to other optima, and no expression is compared with them.
    cut = {task: side for task, side in sides.items() if task != tasks[3]}
    assert unchecked(all_tasks, cut, narrow=True) == set(tasks)
    assert unchecked(all_tasks, cut, narrow=False) == set()


@pytest.mark.slow
def test_a_curve_without_a_limit_is_the_lowest_of_all_valleys_as_well() -> None:
    profile = profile_of_m(two_valleys(LONG, reach=0.45))
    assert profile.ends == ("bound", "bound")
    # The curve of the estimate's own valley reaches three quarters of the limit at the bounds.
    lowest = [two_valleys_deviance(m) for m in profile.values]
    assert profile.deviances == pytest.approx(lowest, abs=0.002 * LIMIT)
    assert profile.values[[0, -1]].tolist() == [-0.45, 0.45]


def test_the_curve_is_right_where_it_passes_to_another_valley() -> None:
    profile = long_profile_of_m()
    curve: Any = CubicHermiteSpline(profile.values, profile.deviances, profile.slopes)
    at = np.linspace(profile.lower, profile.upper, 201)
    exact = [two_valleys_deviance(m) for m in at]
    # Without points beside the kinks, at 0.117, it is 0.021 of the limit below.
    assert curve(at) == pytest.approx(exact, abs=0.003 * LIMIT)


def test_a_point_is_added_to_its_curve_unless_it_lies_in_another_valley() -> None:
    best, task, known = crossing()
    own, other = known
    at = known[own].at[:1] + 0.05
    near = replace(task, at=float(at[0]), fit=(1.0, 1.0, 1.0))
    expected = float(4 * (at[0] - first(best)) ** 2)
    for deviance, by_itself in ((expected + 0.1, False), (expected - 0.5, True)):
        point = side(at, np.array([deviance]), slopes=np.zeros(1), vectors=np.ones((1, 3)))
        found = with_points(best, {**known, near: point})
        assert (near in found) == by_itself
        assert (near.at in found[own].at) != by_itself
        assert sum(s.evaluations for s in found.values()) == 3
        assert found[other] is known[other]


def test_a_point_above_a_cubic_that_is_too_low_is_added_to_its_curve() -> None:
    best, task, known = crossing()
    steep = replace(known[task], slopes=np.array([1.6, 40.0, 8.0]))
    at = steep.at[:1] + 0.2
    point = replace(task, at=float(at[0]), fit=(1.0, 1.0, 1.0))
    there = side(at, np.array([4 * 0.4**2]), slopes=np.zeros(1), vectors=np.ones((1, 3)))
    # The cubic is at -1.12 there; the points on both sides are at 0.16 and 1.44.
    assert with_points(best, {task: steep, point: there})[task].at.tolist()[-1] == at[0]


def test_both_sides_of_a_kink_get_points() -> None:
    best, task, known = crossing()
    low, high = passages(best, [task], known)
    kink = first(best) + 1 / 3  # 4 x^2 = (x - 1)^2
    assert low.at is not None
    assert high.at is not None
    assert low.at < kink < high.at
    assert high.at - low.at < 0.1
    assert (low.curve, high.curve) == tuple(known)
    # With these points, the cubics are close to both curves.
    points = {low: point_at(best, low, 2.0, 0.0), high: point_at(best, high, 1.0, 1.0)}
    assert passages(best, [task], {**known, **points}) == []


def test_a_point_is_asked_for_where_the_cubic_of_the_lowest_curve_is_uncertain() -> None:
    best, task, known = crossing()
    own = known[task]
    steep = replace(own, slopes=np.array([1.6, 20.0, 8.0]))
    assert passages(best, [task], {task: own}) == []
    found = passages(best, [task], {task: steep})[0]
    assert found.curve == task
    assert found.at == pytest.approx(first(best) + 0.4)
    # Where no fit is reached from the better end, one begins at the other.
    assert found.fit == tuple(own.vectors[0])
    nothing = replace(own, at=own.at[:0], deviances=own.deviances[:0], slopes=own.slopes[:0])
    again = passages(best, [task], {task: steep, found: replace(nothing, vectors=np.ones((0, 3)))})
    assert (again[0].at, again[0].fit) == (found.at, tuple(own.vectors[1]))


def point_at(best: Optimum, task: Task, root: float, shift: float) -> Side:
    """The point of a task on the curve (root x - shift)^2."""
    assert task.at is not None
    x = task.at - first(best)
    left = root * x - shift
    at, deviances, slopes = (np.array([v]) for v in (task.at, left**2, 2 * root * left))
    return side(at, deviances, slopes=slopes, vectors=np.ones((1, 3)))


def crossing() -> tuple[Optimum, Task, dict[Task, Side]]:
    """The curve 4 x^2 from the estimate, and (x - 1)^2 from another optimum, by log10(c)."""
    best = threshold()
    task = Task("c", 1, best.problem.keys.index("c"), None)
    here = first(best)
    x, y = np.array([0.2, 0.6, 1.0]), np.array([0.0, 0.2, 0.8, 2.0, 3.0])
    none = {"reason": "lost"}
    own = side(
        here + x, 4 * x**2, slopes=8 * x, vectors=np.array([[1.0], [2], [3]]) * np.ones(3), **none
    )
    other = side(here + y, (y - 1) ** 2, slopes=2 * (y - 1), vectors=np.ones((5, 3)), **none)
    return best, task, {task: own, replace(task, start=vector(best, 1.0)): other}


def first(best: Optimum) -> float:
    return float(np.log10(best.vector[best.problem.keys.index("c")]))


def profile_of_m(problem: Problem) -> Profile:
    """The profile of m beside that of k, which passes the barrier to the other valley."""
    forward = ForwardMap(problem)
    guesses = np.array([u.parameter.guess for u in problem.unknowns])
    vector = POLISH.run(forward, 0, guesses, Control()).vector
    return profile_all(problem, vector, 0.95, Control(jobs=1), keys=["k", "m"]).profiles[1]


@cache
def long_profile_of_m() -> Profile:
    return profile_of_m(two_valleys(LONG))
