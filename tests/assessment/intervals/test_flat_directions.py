"""A flat direction takes the intervals of those unknowns alone that it moves."""

from __future__ import annotations

import re

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, Problem
from odefit.assessment.intervals.flat_directions import (
    moved_by_flat_directions,
    of_what_is_lost,
    small_moves,
)
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Direction, Trouble
from odefit.simulation import Evaluation
from tests.assessment.ridges import ring


def late_samples() -> Problem:
    """Absorption with 2/h is over at the first sample, after 24 h."""
    times = np.array([24.0, 36.0, 48.0, 72.0, 96.0, 120.0])
    noise = np.array([0.02, -0.03, 0.01, 0.02, -0.02, 0.015])
    values = 100 / 8.0 * np.exp(-0.13 / 8.0 * times) * (1 + noise)
    return Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - CL/V*blood"}, observables={"c": "blood/V"}),
        data={"t": times, "c": values},
        t0=0.0,
        parameters={
            "ka": {"lower": 0.7, "upper": 20.0, "scale": "log10", "guess": 15.0},
            "CL": {"lower": 0.01, "upper": 10.0, "scale": "log10", "guess": 0.13},
            "V": {"lower": 0.1, "upper": 100.0, "scale": "log10", "guess": 8.0},
        },
        initial={"gut": 100.0, "blood": 0.0},
        noise={"c": {"sd": "0.03*c"}},
    )


@pytest.mark.slow
@pytest.mark.parametrize("ka", [3.0, 8.0, 15.0])
def test_an_absorption_that_is_over_leaves_clearance_and_volume_their_intervals(ka: float) -> None:
    """They are longer than where it is known: down to 0.7/h it moves CL by 1.8 standard errors."""
    problem = late_samples()
    known = odefit.fit(problem.with_unknowns(fix={"ka": ka}), odefit.SingleShooting())
    vector = np.array([ka, *known.best.vector])
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found = assess_uncertainty(forward, vector, evaluation)
    assert found.trouble == {"ka": Trouble.NOT_DETERMINED}
    assert found.directions[0].keys[0] == "ka"
    assert np.isnan(found.standard_errors[0])
    assert known.uncertainty is not None
    ratio = found.standard_errors[1:] / known.uncertainty.standard_errors
    assert ((ratio > 0.999) & (ratio < 2.1)).all()


@pytest.mark.slow
def test_a_sum_whose_small_part_may_grow_withholds_the_large_one_too() -> None:
    """The null vector moves a by a hundredth while b doubles, and b may become any number."""
    times = np.linspace(0.0, 2.0, 8)
    values = np.exp(-1.01 * times) + 0.05 * np.array([1, -1, 0.5, 0.2, -0.6, 0.1, -0.3, 0.4])
    problem = Problem(
        Model(ode={"x": "-(a + b)*x"}),
        data={"t": times, "x": values},
        parameters={
            "a": {"lower": 0.0, "upper": 10.0, "guess": 1.0},
            "b": {"lower": 0.0, "upper": 10.0, "guess": 0.01},
        },
        initial={"x": 1.0},
        noise={"x": {"sd": 0.05}},
    )
    result = odefit.fit(problem, odefit.SingleShooting())
    assert result.uncertainty is not None
    assert result.uncertainty.trouble["a"] is Trouble.NOT_DETERMINED
    assert result.uncertainty.trouble["b"] is Trouble.NOT_DETERMINED


@pytest.mark.parametrize("huge", [1e149, 1e158])
def test_an_unknown_too_large_to_be_held_is_not_determined(huge: float) -> None:
    """Values a hundred times as large could not be given to a problem."""
    times = np.linspace(0.0, 2.0, 6)
    problem = Problem(
        Model(ode={"x": "-k*x", "far": "1e-140*a - far"}, observables={"y": "x"}),
        data={"t": times, "y": np.exp(-times)},
        parameters={"k": {"lower": 0.1, "upper": 9.0}, "a": {}},
        initial={"x": 1.0, "far": 0.0},
        noise={"y": {"sd": 0.05}},
    )
    vector = np.array([1.0, huge])
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found = assess_uncertainty(forward, vector, evaluation)
    assert found.trouble["a"] is Trouble.NO_EFFECT
    moves, _ = small_moves(
        forward, vector, np.array([[0.0, 1.0]]), np.ones(2, dtype=bool), np.ones(2), 1.0
    )
    assert np.isinf(moves[1])


def seen_late() -> Problem:
    """A subject whose absorption may be over at the first sample, or slower than elimination."""
    times = np.array([24.0, 36.0, 48.0, 72.0, 96.0, 120.0])
    return Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - CL/V*blood"}, observables={"c": "blood/V"}),
        data={"t": times, "c": [8.338, 6.592, 5.608, 3.602, 2.197, 1.654]},
        t0=0.0,
        parameters={
            "ka": {"lower": 0.01, "upper": 20.0},
            "CL": {"lower": 0.005, "upper": 5.0},
            "V": {"lower": 0.5, "upper": 100.0},
        },
        initial={"gut": 100.0, "blood": 0.0},
        noise={"c": {"sd": 0.4}},
    )


@pytest.mark.slow
def test_a_clearance_that_moves_many_small_errors_has_the_interval_of_its_profile() -> None:
    """ka is flat from 0.14 up; CL changes by a seventh on the way, which is 3.5 errors."""
    result = odefit.fit(seen_late(), seed=0, jobs=1)
    assert result.uncertainty is not None
    trouble = result.uncertainty.trouble
    assert trouble["ka"] is Trouble.NOT_DETERMINED
    assert trouble["CL"] is Trouble.BY_PROFILE
    sentence = result.uncertainty.directions[0].sentence
    assert sentence == "The data do not determine ka, with which CL and V hardly change."
    (profile,) = result.profile(["CL"], jobs=1).profiles
    interval = result.uncertainty.intervals[1]
    assert interval == pytest.approx((profile.lower, profile.upper), rel=0.01)
    assert np.isfinite(result.uncertainty.intervals[2]).all()


@pytest.mark.slow
def test_an_absorption_slower_than_elimination_is_reported_beside_one_that_is_over() -> None:
    """The mirror solution lies far outside the bounds of V, but at its bound the fit is as good."""
    for seed in range(2):
        fast, slow = odefit.fit(seen_late(), seed=seed, jobs=1).fitting
        assert fast.vector[2] == pytest.approx(7.94, abs=0.1)
        assert slow.vector == pytest.approx([0.0175, 0.147, 0.5], rel=0.01)
        assert slow.deviance == pytest.approx(0.004, abs=0.002)


def test_a_flat_direction_does_not_equate_a_volume_and_its_half() -> None:
    problem = seen_late()
    forward, vector = ForwardMap(problem), np.array([5.09, 0.13892, 7.9386])
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    assert moved_by_flat_directions(forward, vector, evaluation).tolist() == [True, False, False]


@pytest.mark.parametrize("angle", [0.4, 1.5, 2.9, 3.3, 4.5, 5.9])
def test_the_verdict_does_not_depend_on_the_place_on_a_ridge(angle: float) -> None:
    """Near a turn, one of the two unknowns hardly changes with the other."""
    forward, vector = ring(angle)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found = assess_uncertainty(forward, vector, evaluation)
    assert found.trouble == dict.fromkeys("ab", Trouble.NOT_DETERMINED)
    (direction,) = found.directions
    ranges = re.findall(r"([ab]) from ([0-9.]+) to ([0-9.]+)", direction.sentence)
    assert {name for name, *_ in ranges} == {"a", "b"}
    for _, low, high in ranges:
        assert float(low) == pytest.approx(2.0, abs=0.15)
        assert float(high) == pytest.approx(4.0, abs=0.15)


def test_only_undetermined_unknowns_are_described() -> None:
    direction = Direction(("a", "b", "c"), (1.0, 0.01, 0.003), "a, b and c cannot be told apart.")
    lost, within = Trouble.NOT_DETERMINED, {"b": (1.23, 4.0), "d": (1.0, 2.0)}
    (one,) = of_what_is_lost([direction], {"a": lost}, [within])
    assert one.sentence == "The data do not determine a, with which b and c hardly change."
    (two,) = of_what_is_lost([direction], {"a": lost, "b": lost, "c": lost}, [within])
    assert two.sentence == f"{direction.sentence} Fits as good have about b from 1.2 to 4."
    (three,) = of_what_is_lost([direction], {"a": lost, "b": lost, "c": lost}, [{}])
    assert three.sentence == direction.sentence
