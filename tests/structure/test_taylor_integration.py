"""States carried by their own Taylor series, beside an integration that knows nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odefit import Model, Problem
from odefit.common.arrays import Array, ComplexArray
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from odefit.structure.taylor_integration import taylor_integrate
from tests.structure.models import problem


def system_at(
    given: Problem, values: Mapping[str, float]
) -> tuple[DifferentiatedSystem, ComplexArray]:
    """Free states, and all unknowns: by state or parameter, lifted ones filled in at t = 0."""
    system = DifferentiatedSystem(given, free_states=True)
    vector = np.ones(len(system.names), dtype=complex)
    for name, value in values.items():
        vector[system.names.index(system.expansions[0].states.get(name, name))] = value
    return system, fill_dependent_states(system, 0, vector, 0.0)


def states(system: DifferentiatedSystem, values: ComplexArray, names: Sequence[str]) -> Array:
    places = [system.names.index(system.expansions[0].states[n]) for n in names]
    return np.asarray(values[places].real)


def tight(
    slope: Callable[[float, Array], Sequence[float]],
    start: Sequence[float],
    low: float,
    high: float,
) -> Array:
    run = solve_ivp(slope, (low, high), start, method="DOP853", rtol=1e-13, atol=1e-15)
    end: Array = run.y[:, -1]
    return end


MODELS = {
    "prey and predator": (
        {"r": "a*r - b*r*w", "w": "b*r*w - c*w"},
        {"a": 0.7, "b": 0.9, "c": 0.5, "r": 1.2, "w": 0.4},
        lambda t, z: [0.7 * z[0] - 0.9 * z[0] * z[1], 0.9 * z[0] * z[1] - 0.5 * z[1]],
    ),
    "van der Pol": (
        {"x": "v", "v": "m*(1 - x^2)*v - x"},
        {"m": 0.5, "x": 2.0, "v": 0.3},
        lambda t, z: [z[1], 0.5 * (1 - z[0] ** 2) * z[1] - z[0]],
    ),
    "saturation": (
        {"x": "-v*x/(m + x)"},
        {"v": 0.8, "m": 0.3, "x": 2.0},
        lambda t, z: [-0.8 * z[0] / (0.3 + z[0])],
    ),
    "pendulum": (
        {"p": "q", "q": "-g*sin(p)"},
        {"g": 2.0, "p": 1.0, "q": 0.5},
        lambda t, z: [z[1], -2.0 * np.sin(z[0])],
    ),
    "with the time": (
        {"x": "-k*x + sin(2*t)*exp(-t)"},
        {"k": 0.5, "x": 1.0},
        lambda t, z: [-0.5 * z[0] + np.sin(2 * t) * np.exp(-t)],
    ),
    "a root": (
        {"x": "-k*sqrt(x) + j"},
        {"k": 0.3, "j": 0.8, "x": 1.5},
        lambda t, z: [-0.3 * np.sqrt(z[0]) + 0.8],
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("end", [0.05, 2.0, 6.0])
def test_states_are_those_of_a_tight_integration_there_and_back(name: str, end: float) -> None:
    ode, values, slope = MODELS[name]
    parameters = [n for n in values if n not in ode]
    system, start = system_at(problem(ode, {"y": next(iter(ode))}, parameters), values)
    there = taylor_integrate(system, 0, start, 0.0, end)
    assert there is not None
    expected = tight(slope, [values[n] for n in ode], 0.0, end)
    assert states(system, there, list(ode)) == pytest.approx(expected, rel=1e-10, abs=1e-11)
    again = taylor_integrate(system, 0, there, end, 0.0)
    assert again is not None
    assert again == pytest.approx(start, rel=1e-8)


def test_parameters_stay_unchanged() -> None:
    ode, values, _ = MODELS["prey and predator"]
    system, start = system_at(problem(ode, {"y": "r"}, ["a", "b", "c"]), values)
    kept = start.copy()
    there = taylor_integrate(system, 0, start, 0.0, 3.0)
    assert there is not None
    assert np.array_equal(start, kept)
    columns = [system.names.index(n) for n in "abc"]
    assert np.array_equal(there[columns], start[columns])


def test_without_a_step_the_point_stays() -> None:
    ode, values, _ = MODELS["van der Pol"]
    system, start = system_at(problem(ode, {"y": "x"}, ["m"]), values)
    there = taylor_integrate(system, 0, start, 0.7, 0.7)
    assert there is not None
    assert np.array_equal(there, start)


def test_a_solution_that_ends_early_is_not_a_trajectory() -> None:
    """x' = k x^2 from 1: x = 1/(1 - k t)."""
    system, start = system_at(problem({"x": "k*x^2"}, {"y": "x"}, ["k"]), {"k": 0.5, "x": 1.0})
    there = taylor_integrate(system, 0, start, 0.0, 1.99)
    assert there is not None
    assert states(system, there, ["x"]) == pytest.approx([200.0], rel=1e-8)
    assert taylor_integrate(system, 0, start, 0.0, 2.01) is None


def test_complex_states_are_carried_too() -> None:
    system, start = system_at(problem({"x": "k*x"}, {"y": "x"}, ["k"]), {"k": 0.0, "x": 1.0})
    start[system.names.index("k")] = 0.3 + 2j
    there = taylor_integrate(system, 0, start, 0.0, 2.0)
    assert there is not None
    state = system.expansions[0].states["x"]
    assert there[system.names.index(state)] == pytest.approx(np.exp(2 * (0.3 + 2j)), rel=1e-12)


@pytest.mark.parametrize("kind", ["constant", "linear", "cubic"])
def test_corners_of_inputs_are_met(kind: Literal["constant", "linear", "cubic"]) -> None:
    """Each piece of the input is a polynomial of its own: x' = -k x + u, stretch by stretch."""
    knots, values = np.arange(5.0), np.array([0.0, 1.0, 0.5, 2.0, 1.0])
    model = Model(ode={"x": "-k*x + u"}, observables={"y": "x"}, inputs={"u": kind})
    given = Problem(model, {"t": knots, "y": knots, "u": values}, {"k": {}}, {"x": {}})
    system, start = system_at(given, {"k": 0.5, "x": 1.0})
    pieces = given.conditions[0].inputs["u"].polynomials()
    x = 1.0
    for end in (1.0, 2.0, 3.0, 3.5):
        low = np.ceil(end) - 1.0
        c = pieces[int(low) + 1]
        x = float(
            tight(
                lambda t, z, c=c, low=low: [  # type: ignore[misc]
                    -0.5 * z[0] + np.polynomial.polynomial.polyval(t - low, c)
                ],
                [x],
                low,
                end,
            )[0]
        )
        there = taylor_integrate(system, 0, start, 0.0, end)
        assert there is not None
        assert states(system, there, ["x"]) == pytest.approx([x], rel=1e-11)
        again = taylor_integrate(system, 0, there, end, 0.0)
        assert again is not None
        assert again == pytest.approx(start, rel=1e-10)


def test_an_algebraic_variable_is_carried_along() -> None:
    """z^2 + z = x, so that z' = -k z/(2 z + 1)."""
    given = problem({"x": "-k*z"}, {"y": "z"}, ["k"], {"z": 0.5}, algebraic={"z": "z^2 + z - x"})
    system, start = system_at(given, {"k": 0.6, "x": 1.0, "z": 0.5})
    there = taylor_integrate(system, 0, start, 0.0, 2.0)
    assert there is not None
    z = float(tight(lambda t, z: [-0.6 * z[0] / (2 * z[0] + 1)], [(5**0.5 - 1) / 2], 0.0, 2.0)[0])
    assert states(system, there, ["z", "x"]) == pytest.approx([z, z * z + z], rel=1e-11)


def test_a_jump_of_an_input_takes_the_algebraic_variable_with_it() -> None:
    """z = x + u, and u is 0, then 1 from t = 1 on: x' = -z."""
    model = Model(
        ode={"x": "-k*z"},
        algebraic={"z": "z - x - u"},
        observables={"y": "x"},
        inputs={"u": "constant"},
    )
    data = {"t": [0.0, 1.0, 2.0], "y": [1.0, 1.0, 1.0], "u": [0.0, 1.0, 1.0]}
    given = Problem(model, data, {"k": {}}, {"x": {}, "z": 0.5})
    system, start = system_at(given, {"k": 1.0, "x": 1.0, "z": 1.0})
    there = taylor_integrate(system, 0, start, 0.0, 2.0)
    assert there is not None
    x = (np.exp(-1.0) + 1.0) * np.exp(-1.0) - 1.0
    assert states(system, there, ["x", "z"]) == pytest.approx([x, x + 1.0], rel=1e-11)
    again = taylor_integrate(system, 0, there, 2.0, 0.0)
    assert again is not None
    assert again == pytest.approx(start, rel=1e-11)


def test_a_small_state_is_as_accurate_as_a_large_one_beside_it() -> None:
    given = Problem(
        Model(ode={"big": "-a*big", "u": "b*v", "v": "-b*u"}),
        {"t": [0.0, 1.0], "big": [1e6, 1e5], "u": [1e-6, 0.0], "v": [0.0, 1e-6]},
        {"a": {}, "b": {}},
        {"big": 1e6, "u": {}, "v": {}},
    )
    system, start = system_at(given, {"a": 0.3, "b": 40.0, "big": 1e6, "u": 1e-6, "v": 0.0})
    end = taylor_integrate(system, 0, start, 0.0, 1.0)
    assert end is not None
    exact = [1e6 * np.exp(-0.3), 1e-6 * np.cos(40.0), -1e-6 * np.sin(40.0)]
    assert states(system, end, ["big", "u", "v"]) == pytest.approx(exact, rel=1e-10, abs=0.0)
