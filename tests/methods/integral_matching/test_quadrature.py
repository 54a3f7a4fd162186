"""Integrals from the start: of order 4, and across the corners of inputs."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.integral_matching.segments import MIN_PANEL_POINTS, Grid

NONE = np.zeros(0)


@pytest.mark.parametrize("degree", range(4))
def test_cubics_are_integrated_exactly(degree: int) -> None:
    grid = Grid.over(-1.0, 2.0, NONE, 12)
    found = grid.cumulative(grid.times**degree)
    exact = (grid.times ** (degree + 1) - (-1.0) ** (degree + 1)) / (degree + 1)
    assert np.abs(found - exact).max() < 1e-13


def test_the_order_is_four_at_least() -> None:
    errors = []
    for points in (21, 41, 81, 161):
        grid = Grid.over(0.0, 3.0, NONE, points)
        errors.append(np.abs(grid.cumulative(np.exp(grid.times)) - np.expm1(grid.times)).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.7).all()
    assert (orders < 5.5).all()


def test_several_functions_are_integrated_at_once() -> None:
    grid = Grid.over(0.0, 3.0, np.array([1.0]), 30)
    both = grid.cumulative(np.array([np.sin(grid.times), np.cos(grid.times)]))
    assert both[1] == pytest.approx(grid.cumulative(np.cos(grid.times)), abs=1e-14)


def test_corners_are_met_twice_and_integrated_over() -> None:
    """The integral of a step and of a kink at 1 and 2.5."""
    grid = Grid.over(0.0, 3.0, np.array([-1.0, 0.0, 1.0, 2.5, 3.0, 9.0]), 30)
    assert (grid.times == 1.0).sum() == 2
    assert (grid.times == 0.0).sum() == 1
    assert len(grid.panels) == 4
    step = np.where(grid.interior > 1.0, 2.0, 0.0)
    assert grid.cumulative(step) == pytest.approx(2 * np.maximum(grid.times - 1, 0), abs=1e-14)
    kink = np.maximum(grid.times - 2.5, 0)
    assert grid.cumulative(kink) == pytest.approx(kink**2 / 2, abs=1e-14)


def test_inside_a_panel_inputs_have_its_values() -> None:
    grid = Grid.over(0.0, 2.0, np.array([1.0]), 10)
    ends = grid.panels[1]
    assert grid.times[ends - 1] == grid.times[ends] == 1.0
    assert grid.interior[ends - 1] < 1.0 < grid.interior[ends]
    assert np.abs(grid.interior - grid.times).max() < 1e-8


@pytest.mark.parametrize("corners", [[], [0.3], [0.3, 0.30001, 2.9999]])
def test_weights_are_those_of_the_trapezoid(corners: list[float]) -> None:
    grid = Grid.over(0.0, 3.0, np.array(corners), 40)
    assert grid.weights.sum() == pytest.approx(3.0)
    assert grid.weights @ grid.times == pytest.approx(4.5)
    assert (grid.weights > 0).all()


def test_short_panels_have_enough_points_for_the_rule() -> None:
    grid = Grid.over(0.0, 100.0, np.array([1e-6, 50.0]), 20)
    assert np.diff(grid.panels).min() >= MIN_PANEL_POINTS
    assert len(grid.times) >= 20
