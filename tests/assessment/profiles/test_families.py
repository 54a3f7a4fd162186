"""The next best fit, predicted from the ones before."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.assessment.profiles.coordinates import Coordinates
from odefit.assessment.profiles.families import Point, bend, between, unbound
from odefit.common.arrays import Array
from odefit.simulation.engines.engine_choice import UNDECIDED

NONE = np.zeros(2, dtype=bool)
COORDINATES = Coordinates(NONE, NONE, np.full(2, -np.inf), np.full(2, np.inf))


def on_curve(at: float, vector: Array, tangent: Array) -> Point:
    nothing = np.zeros((0, 2))
    return Point(at, 0.0, 0.0, 0.0, vector, tangent, np.ones(2), nothing[:, 0], nothing, UNDECIDED)


@pytest.mark.parametrize("at", [4.5, 0.5])
def test_tangent_and_bend_predict_a_parabola(at: float) -> None:
    def parabola(at: float) -> Point:
        return on_curve(at, np.array([3 - at + 2 * at**2, at**2]), np.array([4 * at - 1, 2 * at]))

    near = [parabola(2.0), parabola(3.0 if at > 3 else 1.0)]
    here = near[-1]
    predicted = here.vector + here.tangent * (at - here.at) + bend(near, at, COORDINATES)
    assert predicted == pytest.approx(parabola(at).vector)


def test_a_cubic_is_predicted_between_two_points() -> None:
    def cubic(at: float) -> Point:
        return on_curve(at, np.array([at**3 - at, 1.0 - at**3]), np.array([3, -3]) * at**2 - [1, 0])

    near = [cubic(-1.0), cubic(2.0)]
    assert between(near, 1.5, COORDINATES) == pytest.approx(cubic(1.5).vector)
    assert between(near, 2.5, COORDINATES) is None


def test_a_bound_holds_only_values_that_would_pass_it() -> None:
    low, high = np.zeros(7), np.ones(7)
    x = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5])
    gradient = np.array([2.0, 0.0, -2.0, 2.0, 0.0, -2.0, 2.0])
    free = [False, True, True, True, True, False, True]
    assert unbound(x, gradient, low, high).tolist() == free
