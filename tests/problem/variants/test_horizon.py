"""Tests of problems with the first part of their measurements."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from odefit import Experiment, ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.problem.variants.thinning import with_horizon
from odefit.simulation import Evaluation


@pytest.fixture
def problem() -> Problem:
    """Return two experiments, the second with its own times and an observable that begins late."""
    nan = float("nan")
    model = Model(ode={"x": "-k*x"}, observables={"x": "x", "y": "2*x"})
    first = {"t": [0.0, 1.0, 2.0, 4.0], "x": [1.0, 0.6, 0.4, 0.1], "y": [nan, nan, nan, 0.2]}
    second = {"t": [10.0, 18.0], "x": [0.5, 0.4], "y": [1.0, 0.9]}
    return Problem(
        model,
        experiments=[Experiment("a", first), Experiment("b", second, t0=8.0)],
        parameters={"k": {"lower": 0.0}},
        initial={"x": {"lower": 0.0, "upper": 2.0}},
    )


def residuals(problem: Problem, vector: Array) -> Array:
    found = ForwardMap(problem).evaluate(vector)
    assert isinstance(found, Evaluation)
    return found.residuals


def test_each_experiment_keeps_the_first_part_of_its_own_time(problem: Problem) -> None:
    a, b = with_horizon(problem, 0.5).conditions
    assert_array_equal(a.times, [0.0, 1.0, 2.0])
    assert_array_equal(a.series["x"].values, [1.0, 0.6, 0.4])
    assert "y" not in a.series
    assert_array_equal(b.times, [10.0])
    assert_array_equal(b.series["y"].values, [1.0])


def test_unknowns_and_the_problem_itself_stay(problem: Problem) -> None:
    part = with_horizon(problem, 0.5)
    assert part.keys == problem.keys
    assert part.size == 5
    assert problem.size == 9


def test_the_whole_span_is_the_problem_itself(problem: Problem) -> None:
    vector = np.array([0.4, 1.1])
    whole = residuals(with_horizon(problem, 1.0), vector)
    assert_allclose(whole, residuals(problem, vector), rtol=1e-12)


def test_residuals_of_a_part_are_those_of_the_whole_in_that_part(problem: Problem) -> None:
    vector = np.array([0.4, 1.1])
    part = residuals(with_horizon(problem, 0.5), vector)
    decayed = 1.1 * np.exp(-0.4 * np.array([0.0, 1.0, 2.0, 2.0, 2.0]))
    expected = decayed * [1, 1, 1, 1, 2] - [1.0, 0.6, 0.4, 0.5, 1.0]
    assert_allclose(np.sort(part), np.sort(expected), atol=1e-10)


def test_an_experiment_is_never_left_without_a_time(problem: Problem) -> None:
    assert all(len(c.times) == 1 for c in with_horizon(problem, 1e-6).conditions)
