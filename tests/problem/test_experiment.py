"""Inputs run through their knots as their interpolation says."""

from __future__ import annotations

import pickle
from typing import get_args

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from odefit.problem.experiment import Input
from odefit.problem.model import Interpolation

KNOTS = np.array([0.0, 1.0, 1.5, 4.0, 5.0])
VALUES = np.array([1.0, -2.0, 0.5, 3.0, 3.0])


@pytest.mark.parametrize("interpolation", get_args(Interpolation))
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_an_input_goes_through_its_knots_and_is_constant_beyond(
    interpolation: str, count: int
) -> None:
    given = Input(KNOTS[:count], VALUES[:count], interpolation)
    np.testing.assert_allclose(given(KNOTS[:count]), VALUES[:count], rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(given(np.array([-9.0, -0.1])), VALUES[0])
    np.testing.assert_array_equal(given(KNOTS[count - 1] + np.array([0.1, 9])), VALUES[count - 1])


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_cubic_input_is_the_spline_of_scipy(count: int) -> None:
    given = Input(KNOTS[:count] + 1000.0, VALUES[:count], "cubic")
    times = np.linspace(1000.0, 1000.0 + KNOTS[count - 1] - 1e-9, 101)
    spline = CubicSpline(KNOTS[:count] + 1000.0, VALUES[:count])
    np.testing.assert_allclose(given(times), spline(times), rtol=1e-12, atol=1e-12)


def test_a_linear_input_agrees_with_numpy() -> None:
    times = np.linspace(-1, 6, 200)
    expected = np.interp(times, KNOTS, VALUES)
    np.testing.assert_allclose(Input(KNOTS, VALUES, "linear")(times), expected, atol=1e-13)


def test_a_constant_input_is_held_from_the_left() -> None:
    given = Input(KNOTS, VALUES, "constant")
    np.testing.assert_array_equal(given(np.array([0.0, 0.99, 1.0, 1.49, 1.5])), [1, 1, -2, -2, 0.5])


def test_an_input_survives_pickling() -> None:
    given = Input(KNOTS, VALUES, "cubic")
    times = np.linspace(0, 5, 11)
    expected = given(times)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(given))(times), expected)
