"""Tests of the scales of the data."""

import math

import numpy as np

from odefit import Experiment, Model, Problem
from odefit.problem.variants.data_scales import data_size, data_sizes, largest_value, time_scale


def problem() -> Problem:
    first = {"t": [0.0, 0.5, 4.0], "x": [-3.0, 1.0, 2.0]}
    second = {"t": [1.0, 9.0], "x": [2.5, math.nan], "y": [0.0, 7.0]}
    model = Model({"x": "-k*x", "y": "-y"})
    runs = [Experiment("first", first), Experiment("second", second)]
    return Problem(model, None, {"k": {}}, {"x": 1.0, "y": 1.0}, experiments=runs)


def test_the_time_scale_is_the_shortest_interval_and_the_longest_span() -> None:
    assert time_scale(problem()) == (0.5, 8.0)


def test_the_size_of_an_observable_is_its_largest_magnitude() -> None:
    assert data_sizes(problem()) == {"x": 3.0, "y": 7.0}


def test_the_largest_value_has_a_sign() -> None:
    given = problem()
    assert largest_value(given, "x") == 2.5
    assert largest_value(given, "nothing") == 0.0


def test_the_size_of_a_condition_is_never_zero() -> None:
    first, second = problem().conditions
    assert (data_size(first), data_size(second)) == (3.0, 7.0)
    data = {"t": np.array([1.0, 2.0]), "x": np.zeros(2)}
    zero = Problem(Model({"x": "-k*x"}), data, {"k": {}}, {"x": 1.0})
    assert data_size(zero.conditions[0]) == 1.0
