"""Sliders reach from bound to bound, and their first values lie on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odefit
from odefit.explorer.sliders import Slider, first_values, misplaced, sliders


def problem(**field: Any) -> odefit.Problem:
    model = odefit.Model(ode={"x": "-k*x"})
    return odefit.Problem(model, {"t": [1, 2], "x": [0.6, 0.3]}, {"k": field}, {"x": 1.0})


def slider(**field: Any) -> Slider:
    made = problem(**field)
    return sliders(made, first_values(made))[0]


@pytest.mark.parametrize(
    ("field", "ends", "logarithmic"),
    [
        ({"lower": 0.5, "upper": 2.0}, (0.5, 2.0), False),
        ({"lower": 0.5, "upper": 2.0, "scale": "log10"}, (0.5, 2.0), True),
        ({"lower": 1e-5, "upper": 1e5}, (1e-5, 1e5), True),
        ({"lower": -1.0, "upper": 1.0}, (-1.0, 1.0), False),
    ],
)
def test_a_slider_reaches_from_bound_to_bound(
    field: dict[str, Any], ends: tuple[float, float], logarithmic: bool
) -> None:
    made = slider(**field)
    assert (made.low, made.high) == ends
    assert made.logarithmic is logarithmic


def test_without_bounds_it_covers_the_range_of_start_values_and_a_decade_around_the_guess() -> None:
    made = slider(guess=500.0)
    assert made.logarithmic
    assert made.low <= 0.1
    assert made.high == 5000.0
    assert (made.lower, made.upper) == (-math.inf, math.inf)


def test_a_value_that_is_not_positive_has_a_linear_slider() -> None:
    made = slider(lower=0.0, guess=0.0)
    assert not made.logarithmic
    assert made.low == 0.0
    assert made.high > 0.0


bound = st.none() | st.floats(-1e6, 1e6)


@pytest.mark.slow
@given(bound, bound, st.floats(0, 1))
def test_every_slider_holds_its_value_between_its_ends_and_its_ends_between_the_bounds(
    lower: float | None, upper: float | None, share: float
) -> None:
    if lower is not None and upper is not None:
        if upper - lower < 1e-3:
            return
        field = {"lower": lower, "upper": upper, "guess": lower + share * (upper - lower)}
    else:
        field = {k: v for k, v in (("lower", lower), ("upper", upper)) if v is not None}
    made = problem(**field)
    value = first_values(made)
    [found] = sliders(made, value)
    assert found.low < found.high
    assert found.lower <= found.low <= value[0] <= found.high <= found.upper
    assert not found.logarithmic or found.low > 0
    assert misplaced([found], value) == []


def test_values_outside_the_bounds_are_named() -> None:
    made = problem(lower=0.5, upper=2.0)
    found = sliders(made, np.array([1.0]))
    assert misplaced(found, np.array([3.0])) == ["k = 3 is outside its bounds [0.5, 2]"]
