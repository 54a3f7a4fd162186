"""Inputs from data columns, and explicit time, against integrals by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from odefit import ForwardMap, Model, Problem
from odefit.simulation.engines.registry import EngineName
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

ENGINES: tuple[EngineName, ...] = ("auto", "runge-kutta", "bdf", "casadi")

KNOTS = np.array([0.0, 0.7, 1.1, 2.3, 3.5])
VALUES = np.array([1.0, 3.0, -2.0, 0.5, 2.0])
TIMES = np.array([0.0, 0.5, 1.1, 3.0, 3.3])


def driven(interpolation: str, ode: str = "k*u", t0: float = 0.0, **more: Any) -> Problem:
    """x is measured at `TIMES`, u at `KNOTS`."""
    t = np.concatenate([KNOTS, TIMES])
    nothing = np.full(len(TIMES), np.nan)
    data = {
        "t": t,
        "u": np.concatenate([VALUES, nothing]),
        "x": np.concatenate([np.full(len(KNOTS), np.nan), np.ones(len(TIMES))]),
    }
    # Rows are in no order, and some times are in two of them.
    order = np.random.default_rng(1).permutation(len(t))
    return Problem(
        Model(ode={"x": ode}, inputs={"u": interpolation}, **more),
        {name: column[order] for name, column in data.items()},
        {"k": {}},
        {"x": {}},
        t0=t0,
    )


def integral(interpolation: str, times: Array) -> Array:
    """Of the input from 0, with its last value held."""
    if interpolation == "cubic":
        spline = CubicSpline(KNOTS, VALUES)
        inside = np.array([spline.integrate(0.0, np.clip(t, 0.0, KNOTS[-1])) for t in times])
    else:
        pieces = []
        for time in times:
            total = 0.0
            for a, b, u, w in zip(KNOTS[:-1], KNOTS[1:], VALUES[:-1], VALUES[1:], strict=True):
                if time > a:
                    s = min(time, b) - a
                    slope = (w - u) / (b - a) if interpolation == "linear" else 0.0
                    total += u * s + slope * s * s / 2
            pieces.append(total)
        inside = np.array(pieces)
    return np.asarray(inside + VALUES[-1] * np.maximum(times - KNOTS[-1], 0.0))


def at(problem: Problem) -> Array:
    return problem.vector({"k": 1.7, "x": 0.4})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("interpolation", ["constant", "linear", "cubic"])
def test_an_input_is_integrated_exactly(engine: EngineName, interpolation: str) -> None:
    problem = driven(interpolation)
    found = integrated(ForwardMap(problem, engine), at(problem))
    area = integral(interpolation, found.times)
    # Rows of the input alone are data times as well.
    assert set(found.times) == {*KNOTS, *TIMES}
    assert found.states[:, 0] == pytest.approx(0.4 + 1.7 * area, abs=2e-7)
    expected = np.column_stack([area, np.ones(len(area))])
    assert by_unknown(found, 2)[:, 0] == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("interpolation", ["constant", "linear", "cubic"])
def test_beyond_its_last_knot_an_input_stays(engine: EngineName, interpolation: str) -> None:
    problem = driven(interpolation)
    times = np.array([3.4, 3.5, 3.6, 9.0])
    found = integrated(ForwardMap(problem, engine), at(problem), times)
    assert found.states[:, 0] == pytest.approx(0.4 + 1.7 * integral(interpolation, times), abs=2e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("interpolation", ["constant", "linear", "cubic"])
def test_before_its_first_knot_an_input_has_its_first_value(
    engine: EngineName, interpolation: str
) -> None:
    problem = driven(interpolation, t0=-2.0)
    assert any("starts at t = 0" in warning for warning in problem.warnings)
    times = np.array([-2.0, -1.0, 0.0, 3.0])
    found = integrated(ForwardMap(problem, engine), at(problem), times)
    area = integral(interpolation, times) + np.array([0, 1, 2, 2]) * VALUES[0]
    assert found.states[:, 0] == pytest.approx(0.4 + 1.7 * area, abs=2e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_linear_input_into_a_compartment_has_the_solution_by_hand(engine: EngineName) -> None:
    """x' = u - k x over a piece with u = a + b s: the steady ramp a/k - b/k^2 + b s/k."""
    problem = driven("linear", "u - k*x")

    def exact(v: Array) -> Array:
        k, x = v
        found: list[float] = []
        grid = np.unique([*KNOTS, *TIMES])
        values = np.interp(grid, KNOTS, VALUES)
        for i, time in enumerate(grid):
            found.append(x)
            if i + 1 < len(grid):
                h = grid[i + 1] - time
                a, b = values[i], (values[i + 1] - values[i]) / h
                ramp = a / k - b / k**2
                x = ramp + b * h / k + (x - ramp) * np.exp(-k * h)
        return np.array(found)

    vector = at(problem)
    found = integrated(ForwardMap(problem, engine), vector)
    assert found.states[:, 0] == pytest.approx(exact(vector), abs=2e-7)
    expected = differences(exact, vector, 1e-3)
    assert by_unknown(found, 2)[:, 0] == pytest.approx(expected, abs=2e-7)


def test_an_input_may_occur_in_an_observable() -> None:
    problem = Problem(
        Model(ode={"x": "-k"}, observables={"y": "x*u"}, inputs={"u": "linear"}),
        {"t": [0.0, 1.0, 2.0], "u": [2.0, None, 6.0], "y": [0.0, 0.0, 0.0]},
        {"k": {}},
        {"x": 1.0},
    )
    found = evaluated(ForwardMap(problem), np.array([0.25]))
    assert found.residuals == pytest.approx([2.0, 0.75 * 4.0, 0.5 * 6.0])
    assert found.jacobian[:, 0] == pytest.approx([0.0, -4.0, -12.0])


def test_two_inputs_have_their_own_knots() -> None:
    problem = Problem(
        Model(ode={"x": "k*u*v"}, inputs={"u": "constant", "v": "linear"}),
        {
            "t": [0.0, 1.0, 1.5, 2.0],
            "u": [1.0, 3.0, None, None],
            "v": [0.0, None, None, 2.0],
            "x": [0.0, 0.0, 0.0, 0.0],
        },
        {"k": {}},
        {"x": 0.0},
    )
    found = integrated(ForwardMap(problem), np.array([1.0]))
    # The integral of t is t^2/2.
    assert found.states[:, 0] == pytest.approx([0, 0.5, 0.5 + 3 * 0.625, 0.5 + 3 * 1.5])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rate", "area"),
    [
        ("sin(t)", lambda t: 1 - np.cos(t)),
        ("exp(-t)*t^2", lambda t: 2 - np.exp(-t) * (t * t + 2 * t + 2)),
        ("abs(t - 1)", lambda t: np.where(t < 1, t - t * t / 2, 0.5 + (t - 1) ** 2 / 2)),
        ("max(t, 2)", lambda t: np.where(t < 2, 2 * t, 4 + (t * t - 4) / 2)),
        ("min(t, 2)", lambda t: np.where(t < 2, t * t / 2, 2 + 2 * (t - 2))),
        (
            "min(max(t - 1, 0), 1, t)",
            lambda t: np.clip(t - 1, 0, 1) ** 2 / 2 + np.clip(t - 2, 0, 9),
        ),
    ],
)
def test_equations_may_contain_the_time(engine: EngineName, rate: str, area: Any) -> None:
    times = np.array([0.0, 0.5, 1.3, 2.9, 4.0])
    problem = Problem(
        Model(ode={"x": f"k*{rate}"}), {"t": times, "x": np.ones(5)}, {"k": {}}, {"x": 0.0}
    )
    found = integrated(ForwardMap(problem, engine), np.array([1.5]))
    assert found.states[:, 0] == pytest.approx(1.5 * area(times), abs=2e-7)
    assert by_unknown(found, 1)[:, 0, 0] == pytest.approx(area(times), abs=2e-7)


def test_a_pulse_between_data_is_not_overlooked() -> None:
    """An input that is nothing but a short pulse in a long gap of the data."""
    problem = Problem(
        Model(ode={"x": "k*u - 0.001*x"}, inputs={"u": "constant"}),
        {
            "t": [0.0, 500.0, 500.01, 1000.0],
            "u": [0.0, 100.0, 0.0, None],
            "x": [0.0, None, None, 1.0],
        },
        {"k": {}},
        {"x": 0.0},
    )
    for engine in ENGINES:
        found = integrated(ForwardMap(problem, engine), np.array([1.0]))
        exact = 100 * (1 - np.exp(-1e-5)) / 0.001 * np.exp(-0.001 * 499.99)
        assert found.states[-1, 0] == pytest.approx(exact, rel=1e-6)
