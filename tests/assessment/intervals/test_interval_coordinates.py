"""Coordinates without bounds: there and back, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit import Model, Problem
from odefit.assessment.intervals.interval_coordinates import IntervalCoordinates

PROBLEM = Problem(
    Model(ode={"x": "a + b + c + d - x"}),
    {"t": np.arange(1.0, 8.0), "x": np.arange(1.0, 8.0)},
    {
        "a": {"lower": -1.0, "upper": 4.0},
        "b": {"lower": 2.0},
        "c": {"upper": 5.0},
        "d": {"lower": 1e-6, "upper": 1e3, "scale": "log10"},
    },
    {"x": {}},
    noise={"x": {"sd": "estimate"}},
)
COORDINATES = IntervalCoordinates.of(PROBLEM)
places = st.lists(st.floats(-8.0, 8.0), min_size=6, max_size=6).map(np.array)


@pytest.mark.slow
@given(places)
def test_unknowns_are_inside_their_bounds_and_lead_back(u: np.ndarray) -> None:
    vector = COORDINATES.natural(u)
    assert (vector > PROBLEM.lower).all()
    assert (vector < PROBLEM.upper).all()
    back = COORDINATES.natural(COORDINATES.inside(vector))
    assert back == pytest.approx(vector, rel=1e-6, abs=1e-3)


@given(places)
def test_derivatives_are_those_of_the_differences(u: np.ndarray) -> None:
    derivative = COORDINATES.derivative(u)
    _, gradient = COORDINATES.log_prior(u)
    for i in range(len(u)):
        step = np.zeros(len(u))
        step[i] = 1e-5
        difference = (COORDINATES.natural(u + step) - COORDINATES.natural(u - step))[i] / 2e-5
        assert derivative[i] == pytest.approx(difference, rel=1e-5)
        up, down = COORDINATES.log_prior(u + step)[0], COORDINATES.log_prior(u - step)[0]
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-6)


def test_the_prior_is_uniform_between_two_bounds() -> None:
    """The density of the coordinate is the derivative of the place between the bounds."""
    u = np.array([0.7, 0.0, 0.0, 0.0, 0.0, 0.0])
    place = (COORDINATES.natural(u)[0] + 1.0) / 5.0
    rest = COORDINATES.log_prior(np.zeros(6))[0] - np.log(0.25)
    assert COORDINATES.log_prior(u)[0] == pytest.approx(np.log(place * (1 - place)) + rest)


def test_an_estimate_at_a_bound_is_moved_off_it() -> None:
    vector = np.array([-1.0, 2.0, 5.0, 1e-6, 0.0, 1.0])
    inside = COORDINATES.natural(COORDINATES.inside(vector))
    assert (inside > PROBLEM.lower).all()
    assert (inside < PROBLEM.upper).all()
