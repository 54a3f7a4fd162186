"""The optimiser's coordinates: log10 where the user asks for it, natural units elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.methods.local.interior_steps import Interior
from odefit.methods.local.scaling import Scaling


def problem() -> Problem:
    return Problem(
        Model(ode={"x": "-k*x + a"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {
            "k": {"lower": 1e-3, "upper": 1e3, "scale": "log10"},
            "a": {"scale": "log10"},
        },
        {"x": {"lower": -1.0, "upper": 2.0}},
    )


def test_coordinates_and_natural_units_are_inverse() -> None:
    scaling = Scaling.of(problem())
    vector = np.array([0.1, 100.0, -0.5])
    assert scaling.coordinates(vector) == pytest.approx([-1.0, 2.0, -0.5])
    assert scaling.natural(scaling.coordinates(vector)) == pytest.approx(vector)


def test_bounds_are_in_coordinates() -> None:
    scaling = Scaling.of(problem())
    assert scaling.lower.tolist() == [-3.0, -np.inf, -1.0]
    assert scaling.upper.tolist() == [3.0, np.inf, 2.0]


def test_the_slope_is_the_derivative_of_natural_units() -> None:
    scaling = Scaling.of(problem())
    z = np.array([-1.0, 2.0, -0.5])
    h = 1e-6
    expected = (scaling.natural(z + h) - scaling.natural(z - h)) / (2 * h)
    assert scaling.derivative(scaling.natural(z)) == pytest.approx(expected, rel=1e-6)


def test_searches_in_six_bounded_logarithms_stay_inside_until_they_are_near() -> None:
    names = [f"k{i}" for i in range(6)]
    many = Problem(
        Model(ode={"x": "-(" + " + ".join(names) + ")*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {name: {"lower": 1e-3, "upper": 1e3, "scale": "log10"} for name in names},
        {"x": {"lower": -1.0, "upper": 2.0}},
    )
    scaling = Scaling.of(many)
    logarithms = np.flatnonzero(scaling.logarithmic)
    assert scaling.interior(logarithms) is Interior.UNTIL_NEAR
    # The initial value is no logarithm.
    assert scaling.interior(np.arange(7)) is Interior.WHILE_BLOCKED
    assert scaling.interior(logarithms[:5]) is Interior.NEVER  # few


def test_searches_without_an_upper_bound_take_any_step() -> None:
    names = [f"k{i}" for i in range(6)]
    unbounded = Problem(
        Model(ode={"x": "-(" + " + ".join(names) + ")*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {name: {"scale": "log10"} for name in names},
        {"x": 1.0},
    )
    assert Scaling.of(unbounded).interior(np.arange(6)) is Interior.NEVER


def test_searches_in_many_linear_coordinates_take_any_step() -> None:
    names = [f"k{i}" for i in range(21)]
    many = Problem(
        Model(ode={"x": "-(" + " + ".join(names) + ")*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {name: {"lower": 1e-3, "upper": 1e3} for name in names},
        {"x": 1.0},
    )
    scaling = Scaling.of(many)
    assert scaling.interior(np.arange(20)) is Interior.WHILE_BLOCKED
    assert scaling.interior(np.arange(21)) is Interior.NEVER
