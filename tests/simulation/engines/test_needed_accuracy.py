"""Small values count where they are measured accurately."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.simulation.engines.needed_accuracy import finest_noise, measured_sizes


def problem(noise: Any, **columns: Any) -> odefit.Problem:
    data = pd.DataFrame({"t": [0.0, 1.0, 2.0], "x": [100.0, 1.0, 0.01], **columns})
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data=data,
        parameters={"k": {"lower": 0.0, "upper": 10.0}},
        initial={"x": 100.0},
        noise={} if noise is None else {"x": noise},
    )


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (None, math.inf),
        ({"sd": "estimate"}, math.inf),
        ({"sd": 2.0}, 0.02),
        ({"relative": 0.05}, 0.05 * 1e-4),
        ({"sd": 0.3, "transform": "log"}, 1e-5),
        ({"sd": "k*x"}, 1e-5),
    ],
)
def test_the_smallest_noise_is_relative_to_the_largest_value(noise: Any, expected: float) -> None:
    assert finest_noise(problem(noise)) == pytest.approx(expected)


def test_standard_deviations_of_the_data_count() -> None:
    assert finest_noise(problem(None, x_sd=[1.0, 0.1, 1e-6])) == pytest.approx(1e-8)


def test_the_unit_of_an_answer_does_not_matter() -> None:
    found = problem({"relative": 0.05})
    scaled = pd.DataFrame({"t": [0.0, 1.0, 2.0], "x": np.array([100.0, 1.0, 0.01]) * 1e-12})
    other = odefit.Problem(
        found.model,
        data=scaled,
        parameters={"k": {"lower": 0.0, "upper": 10.0}},
        initial={"x": 1e-10},
        noise={"x": {"relative": 0.05}},
    )
    assert finest_noise(other) == pytest.approx(finest_noise(found))


def test_states_that_are_measured_as_they_are_have_the_size_of_their_data() -> None:
    assert measured_sizes(problem(None)) == {"x": 100.0}
    data = pd.DataFrame({"t": [0.0, 1.0], "y": [3.0, 1.0]})
    model = odefit.Model(ode={"x": "-k*x"}, observables={"y": "2*x"})
    scaled = odefit.Problem(model, data=data, parameters={"k": {}}, initial={"x": 1.0})
    assert measured_sizes(scaled) == {}
