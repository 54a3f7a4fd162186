"""The parameter homotopy of square systems."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.structure.homotopy.square import ParameterHomotopy, SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem


@pytest.mark.parametrize(
    "name", ["rational-biohydrogenation", "seasonal-lotka-volterra", "rational-hiv"]
)
def test_derivatives_of_the_homotopy_agree_with_differences(name: str) -> None:
    square = SquareSystem(DifferentiatedSystem(library.load(name), free_states=True))
    rng = np.random.default_rng(1)
    (point, start), (_, end) = square.generic_point(rng), square.generic_point(rng)
    homotopy = ParameterHomotopy(square, start[None], end[None], np.array([np.exp(0.7j)]))
    paths, t, h = np.array([0]), np.array([0.6]), 1e-6
    _, jacobian, by_t = homotopy.evaluate(paths, point[None], t)
    up, down = (homotopy.evaluate(paths, point[None], t + s * h)[0] for s in (1, -1))
    scale = np.abs(by_t).max()
    np.testing.assert_allclose(by_t, (up - down) / (2 * h), atol=1e-4 * scale)
    for k in range(square.size):
        step = np.zeros(square.size)
        step[k] = h
        up, down = (homotopy.evaluate(paths, (point + s * step)[None], t)[0] for s in (1, -1))
        column = jacobian[0, :, k]
        scale = np.abs(column).max() + 1.0
        np.testing.assert_allclose(column, ((up - down) / (2 * h))[0], atol=1e-4 * scale)


def test_the_ends_of_a_homotopy_are_the_parameters_given() -> None:
    square = SquareSystem(DifferentiatedSystem(library.load("rational-seir"), free_states=True))
    rng = np.random.default_rng(2)
    (first, start), (second, end) = square.generic_point(rng), square.generic_point(rng)
    homotopy = ParameterHomotopy(square, start[None], end[None], np.array([np.exp(-2j)]))
    for t, point in ((1.0, first), (0.0, second)):
        values, _, _ = homotopy.evaluate(np.array([0]), point[None], np.array([t]))
        assert np.abs(values).max() < 1e-10
