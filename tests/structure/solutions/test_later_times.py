"""Solutions that agree at the start are compared in later derivatives and at later times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.later_times import same_later
from tests.structure.models import problem

REST = {"x": 1.0, "z": 0.0, "w": 0.0, "v": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ode", "start", "same"),
    [
        # The sign of a shows in derivative 14 or never.
        ({"x": "-a^2*x + z", "z": "w^3", "w": "v^3", "v": "a"}, REST, False),
        ({"x": "-a^2*x + z", "z": "w^2", "w": "v^3", "v": "a"}, REST, True),
        ({"x": "-a^2*x + z", "z": "w^3", "w": "v^4", "v": "a"}, REST, True),
        # It is not the order of derivative that counts: a is determined by the second.
        ({"z": "1", "x": "a^2*x + a*z^5"}, {"x": 1.0, "z": 0.0}, False),
        ({"z": "1", "x": "a^2*x + a^2*z^5"}, {"x": 1.0, "z": 0.0}, True),
        ({"x": "-a^2*x + a*t^9"}, {"x": 1.0}, False),
        ({"x": "-a^2*x + a*(exp(t) - 1)^6"}, {"x": 1.0}, False),
        ({"x": "-a^2*x + a^2*sin(t)^6"}, {"x": 1.0}, True),
    ],
)
def test_another_sign_shows_late_or_never(
    ode: Mapping[str, str], start: Mapping[str, float], same: bool
) -> None:
    square = SquareSystem(
        DifferentiatedSystem(problem(ode, {"y": "x"}, ["a"], start), free_states=False)
    )
    point, parameters = square.generic_point(np.random.default_rng(5))
    both = np.array([point, -point])
    assert same_later(square, both, parameters, 20).tolist() == [True, same]
    # Trajectories tell it where no derivatives beyond the first are compared.
    assert same_later(square, both, parameters, 0).tolist() == [True, same]


def test_rounding_makes_no_difference() -> None:
    # x - z is zero but for rounding.
    model = problem(
        {"x": "-a^2*x", "z": "-a*a*z"}, {"y": "x - z", "u": "x"}, ["a"], {"x": 1.0, "z": 1.0}
    )
    square = SquareSystem(DifferentiatedSystem(model, free_states=False))
    point, parameters = square.generic_point(np.random.default_rng(5))
    both = np.array([point, -point])
    assert same_later(square, both, parameters, 10).tolist() == [True, True]
