"""Ends on one ridge are one solution that fits, and ends with a valley between them are two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from odefit import Experiment, Model, Problem, SingleShooting, Status
from odefit.assessment.continuation import FEW, LEAST, Continuation, between
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Trouble
from odefit.common.arrays import Array
from odefit.fitting.fit_notices import _uncertain_solutions
from odefit.fitting.fit_stages import FitState, Wishes
from odefit.fitting.one_hill import reaching, with_hills
from odefit.fitting.solutions import solution
from odefit.methods.estimate import Completeness
from odefit.methods.polish import Answer, answer
from odefit.methods.running.control import Control
from odefit.reporting.notices import notice_sentence
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.linspace(0.0, 6.0, 30)

Make = Callable[[], tuple[ForwardMap, Array, Array]]


def product() -> tuple[ForwardMap, Array, Array]:
    """x = a b exp(-k t) where a weak term tells a from b: a ridge along a b = 6."""
    bounds = {"lower": 0.1, "upper": 60.0}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "a*b*x + 0.001*a"}),
        {"t": TIMES, "y": 6.0 * np.exp(-0.5 * TIMES) + 0.002},
        {"k": bounds, "a": bounds, "b": bounds},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.5, 2.0, 3.0]), np.array([0.5, 12.0, 0.5])


def bent() -> tuple[ForwardMap, Array, Array]:
    """The sum of a and b is determined: a straight way in logarithms leaves the ridge."""
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "(a + b)*x + 0.0001*a"}),
        {"t": TIMES, "y": 6.0 * np.exp(-0.5 * TIMES)},
        {key: {"lower": 0.1, "upper": 60.0} for key in ("k", "a", "b")},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.5, 0.2, 5.8]), np.array([0.5, 5.8, 0.2])


def circle() -> tuple[ForwardMap, Array, Array]:
    """The data determine the sum of the squares of a and b alone, and k."""
    signed, positive = {"lower": -3.0, "upper": 3.0}, {"lower": 0.1, "upper": 3.0}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "(a^2 + b^2)*x"}),
        {"t": TIMES, "y": np.exp(-0.5 * TIMES)},
        {"a": signed, "b": signed, "k": positive},
        {"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    return ForwardMap(problem), np.array([0.6, 0.8, 0.5]), np.array([-0.8, -0.6, 0.5])


def turns() -> tuple[ForwardMap, Array, Array]:
    """x = cos(w t) at whole numbers, where w and 2 pi - w fit alike."""
    times = np.arange(12.0)
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}),
        {"t": times, "x": np.cos(times)},
        {"w": {"lower": 0.2, "upper": 6.0}},
        {"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.2}},
        t0=0.0,
    )
    return ForwardMap(problem), np.array([1.0]), np.array([2 * np.pi - 1.0])


def test_refits_lead_along_a_ridge_whichever_end_is_first() -> None:
    forward, one, other = product()
    highest = forward.cost(one) + 1.92
    middle = 0.5 * (one + other)
    assert forward.cost(middle) > highest  # the straight way in natural units leads over a valley
    for first, last in ((one, other), (other, one)):
        refits = Continuation(forward, Control(jobs=1), 0)
        for extrapolated in (False, True):
            places = refits._refits(first, last, highest, extrapolated)
            assert places
            costs = [forward.cost(x) for _, x in places]
            assert [cost for cost, _ in places] == pytest.approx(costs)
            assert max(costs) <= highest
        assert refits.way(first, last, highest) is not None


def test_a_bent_ridge_needs_refits() -> None:
    forward, one, other = bent()
    highest = forward.cost(one) + 1.92
    refits = Continuation(forward, Control(jobs=1), 0)
    assert not refits._straight(one, other, highest)
    assert refits.way(one, other, highest)
    spent = Continuation(forward, Control(jobs=1), 0)
    spent._left = 0.0
    assert spent.way(one, other, highest) is None


def test_turns_of_an_oscillation_are_apart() -> None:
    forward, one, other = turns()
    highest = forward.cost(one) + 1.92
    refits = Continuation(forward, Control(jobs=1), 0)
    assert refits.way(one, other, highest) is None
    assert refits.rise(one, other) > 1e3 * 3.84


def test_the_path_is_geometric_for_positive_unknowns() -> None:
    forward, one, other = product()
    assert between(forward.problem, one, other, 0.5) == pytest.approx(np.sqrt(one * other))
    signed = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": np.exp(-TIMES)},
        {"k": {"lower": -3.0, "upper": 3.0}},
        {"x": 1.0},
    )
    assert between(signed, np.array([1.0]), np.array([2.0]), 0.5)[0] == 1.5


def test_intervals_reach_the_other_values_of_the_hill_and_say_so() -> None:
    forward, one, _ = turns()
    evaluation = forward.evaluate(one)
    assert isinstance(evaluation, Evaluation)
    found = assess_uncertainty(forward, one, evaluation, 0.95)
    low, high = found.intervals[0]
    assert reaching(found, [one]).trouble == {}
    reached = reaching(found, [np.array([high + 1.0])])
    assert reached.intervals[0].tolist() == [low, high + 1.0]
    assert reached.trouble == {"w": Trouble.NOT_LINEAR}
    assert "a profile can tell more" in reached.notes["w"]
    withheld = replace(found, intervals=np.full((1, 2), np.nan))
    assert np.isnan(reaching(withheld, [np.array([9.0])]).intervals).all()


def two_ends(make: Make) -> tuple[FitState, Array]:
    """Return the state of a fit with a second solution that fits, and that solution."""
    forward, one, other = make()
    problem, control = forward.problem, Control(jobs=1)
    estimate = SingleShooting().solve(
        problem.with_unknowns(guess=dict(zip(problem.keys, one.tolist(), strict=True))), control
    )
    found = answer(problem, estimate, control, True)
    assert isinstance(found, Answer)
    ends = []
    for x in (found.start.vector, other):
        at = forward.evaluate(x)
        assert isinstance(at, Evaluation)
        ends.append(solution(problem, replace(found.start, vector=x), at, 1))
    state = FitState(
        problem=problem,
        control=control,
        estimate=estimate,
        wishes=Wishes(0.95, True, True, False, "as-is"),
        status=Status.CONVERGED,
        message="",
        outcome=found,
        solutions=tuple(ends),
        equal=tuple(ends[:1]),
        near=tuple(ends[1:]),
        uncertainty=assess_uncertainty(*found_at(found), 0.95),
    )
    return state, other


@pytest.mark.parametrize(("make", "hills"), [(product, 1), (turns, 2)])
def test_solutions_that_fit_are_counted_by_hill(make: Make, hills: int) -> None:
    state, other = two_ends(make)
    counted = with_hills(state)
    assert len([*counted.equal, *counted.near]) == hills
    assert counted.solutions == state.solutions
    assert counted.unsure == 0
    assert counted.uncertainty is not None
    if hills == 1:
        low, high = counted.uncertainty.intervals.T
        assert ((low <= other) & (other <= high)).all()
    else:
        assert counted.uncertainty is state.uncertainty


def test_a_ridge_that_turns_back_in_every_unknown_is_followed() -> None:
    forward, one, other = circle()
    refits = Continuation(forward, Control(jobs=1), 10_000)
    cost = forward.cost(one)
    ridge = refits.ridges(one, cost + 0.1)
    places = np.array([x for _, x in ridge])
    assert np.hypot(*places[:, :2].T) == pytest.approx(1.0, abs=1e-3)
    turns = np.sort(np.arctan2(places[:, 1], places[:, 0]))
    assert np.diff(turns).max() < 0.7
    assert turns[0] + 2 * np.pi - turns[-1] < 0.7
    few = Continuation(forward, Control(jobs=1), 0)
    assert 10 < len(few.ridges(one, cost + 0.1)) < len(ridge)
    assert few._left >= 0.5 * LEAST - 2 * FEW
    # Refits that hold one unknown do not lead to the other side.
    alone = Continuation(forward, Control(jobs=1), 0)
    assert alone.way(one, other, cost + 0.1) is None
    state, _ = two_ends(circle)
    best = state.solutions[0]
    counted = with_hills(replace(state, equal=(best, replace(best, vector=other)), near=()))
    assert (len(counted.equal), counted.unsure) == (1, 0)


def test_determined_unknowns_have_no_ridge() -> None:
    forward, one, _ = turns()
    assert Continuation(forward, Control(jobs=1), 0).ridges(one, forward.cost(one) + 0.1) == []


def test_ends_of_one_ridge_are_one_solution_although_the_equations_distinguish_them() -> None:
    """A count by the equations is of copies of the answer, not of places of its hill."""
    state, other = two_ends(product)
    told = replace(state, complete=Completeness(1, 1))
    assert len([*(counted := with_hills(told)).equal, *counted.near]) == 1
    copied = replace(state, complete=Completeness(2, 2), copies=(other,))
    assert len([*(counted := with_hills(copied)).equal, *counted.near]) == 2


def test_solutions_that_differ_in_separate_experiments_are_not_compared() -> None:
    """Each differs from the answer in one experiment, as the deviance is a sum over these."""
    times = np.arange(12.0)
    data = {"t": times, "x": np.cos(times)}
    experiments = [Experiment(n, data, t0=0.0, constants={"w": f"w{n}"}) for n in "ab"]
    problem = Problem(
        Model(ode={"x": "w*v", "v": "-w*x"}, constants={"w": 1.0}),
        parameters={name: {"lower": 0.2, "upper": 6.0} for name in ("wa", "wb")},
        initial={"x": 1.0, "v": 0.0},
        noise={"x": {"sd": 0.2}},
        experiments=experiments,
    )
    alias = 2 * np.pi - 1.0
    ends = [np.array([1.0, 1.0]), np.array([alias, 1.0]), np.array([1.0, alias])]
    state, _ = two_ends(lambda: (ForwardMap(problem), ends[0], ends[1]))
    one, other = state.solutions
    state = replace(state, near=(other, replace(other, vector=ends[2])))
    pairs = []

    def way(refits: Continuation, first: Array, last: Array, highest: float) -> None:
        pairs.append((first.tolist(), last.tolist()))

    with (
        patch.object(Continuation, "way", way),
        patch.object(Continuation, "rise", return_value=0.0),
    ):
        assert len(with_hills(state).near) == 2
    best = one.vector.tolist()
    assert pairs == [(best, ends[1].tolist()), (best, ends[2].tolist())]


def test_an_unfinished_comparison_is_reported() -> None:
    """No refit from one solution to the other was possible, and the straight way is too high."""
    state, _ = two_ends(bent)
    with_time = with_hills(state)
    assert (len(with_time.near), with_time.unsure) == (0, 0)
    control = Control(jobs=1)
    control.interrupted.set()
    counted = with_hills(replace(state, control=control))
    assert (len(counted.near), counted.unsure) == (1, 1)
    (notice,) = _uncertain_solutions(False, counted.unsure)
    sentence = notice_sentence(notice)
    assert sentence.startswith("It is not known whether one solution listed is an optimum of its")
    (both,) = _uncertain_solutions(True, 2)
    assert "there may be more than those listed" in notice_sentence(both)
    assert "2 solutions listed are optima of their own" in notice_sentence(both)
    assert _uncertain_solutions(False, 0) == []


def found_at(found: Answer) -> tuple[ForwardMap, Array, Evaluation]:
    return found.forward, found.start.vector, found.evaluation
