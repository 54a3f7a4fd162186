"""Where a discretised problem starts."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import (
    DIVERGENCE_RATIO,
    guess_from_data,
    guess_from_simulation,
)
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.problem.variants.data_scales import data_size
from tests.methods.problems import explosive

NAN = float("nan")


def discretised(problem: Problem, steps: int = 4) -> Discretisation:
    return Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(steps))


def chain() -> Problem:
    """x is measured as it is, v as a multiple, u is not; z follows from an equation."""
    return Problem(
        Model(
            ode={"x": "-k*x", "u": "k*x", "v": "k*u"},
            algebraic={"z": "z + z^3 - x"},
            observables={"x": "x", "w": "3*v", "y": "z"},
        ),
        {
            "t": [0.0, 1.0, 2.0],
            "x": [4.0, NAN, 2.0],
            "w": [0.0, 5.0, -9.0],
            "y": [1.0, 1.0, 1.0],
        },
        {"k": {}},
        {"x": {}, "u": "2*k", "v": 0.5},
    )


def test_measured_states_are_straight_lines_between_their_measurements() -> None:
    d = discretised(chain())
    values = guess_from_data(d, np.array([0.7, 3.0]))
    assert values[:, d.variables.index("x")].tolist() == [4.0, 3.5, 3.0, 2.5, 2.0]


def test_an_algebraic_variable_that_is_measured_has_its_measurements() -> None:
    d = discretised(chain())
    assert guess_from_data(d, np.array([0.7, 3.0]))[:, d.variables.index("z")].tolist() == [1.0] * 5


def test_states_that_are_not_measured_as_they_are_keep_their_initial_values() -> None:
    d = discretised(chain())
    values = guess_from_data(d, np.array([0.7, 3.0]))
    assert values[:, d.variables.index("u")] == pytest.approx(1.4)
    assert values[:, d.variables.index("v")] == pytest.approx(0.5)


def test_a_nonfinite_initial_value_gets_its_size_from_the_data() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "u": "k*x"}, observables={"x": "x"}),
        {"t": [0.0, 1.0], "x": [-7.0, 2.0]},
        {"k": {}},
        {"x": 1.0, "u": "1/k"},
    )
    d = discretised(problem)
    assert guess_from_data(d, np.array([0.0]))[:, 1] == pytest.approx([7.0] * 5, rel=0.5)


def test_the_guess_is_constant_outside_the_measurements() -> None:
    times = {"t": [0.0, 1.0, 2.0, 4.0], "x": [NAN, 5.0, 3.0, NAN], "y": [1.0, 1.0, 1.0, 1.0]}
    model = Model(ode={"x": "-k*x"}, observables={"x": "x", "y": "2*x"})
    d = discretised(Problem(model, times, {"k": {}}, {"x": {}}))
    assert guess_from_data(d, np.ones(2))[:, 0].tolist() == [5.0, 5.0, 3.0, 3.0, 3.0]


def test_the_line_passes_one_of_several_measurements_at_a_time() -> None:
    data = {"t": [0.0, 1.0, 1.0, 2.0], "x": [4.0, 3.0, 2.0, 1.0]}
    d = discretised(Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}}), 2)
    assert guess_from_data(d, np.ones(2))[:, 0].tolist() == [4.0, 3.0, 1.0]


def test_experiments_start_at_their_own_data() -> None:
    experiments = [
        Experiment(name, {"t": [0.0, 1.0], "x": [size, size]})
        for name, size in (("a", 2.0), ("b", 50.0))
    ]
    problem = Problem(
        Model(ode={"x": "-k*x"}), parameters={"k": {}}, initial={"x": {}}, experiments=experiments
    )
    d = discretised(problem, 1)
    assert guess_from_data(d, np.ones(2))[:, 0].tolist() == [2.0, 2.0, 50.0, 50.0]


def test_a_simulation_is_the_exact_solution_at_every_point() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": {}},
        experiments=[
            Experiment("a", {"t": [0.3, 1.0], "x": [1.0, 1.0]}, 0.0),
            Experiment(
                "b", {"t": [0.3, 2.0], "x": [1.0, 1.0]}, 0.0, events=[Event((1.0,), {"k": 0})]
            ),
        ],
    )
    d = discretised(problem, 7)
    found = guess_from_simulation(d, ForwardMap(problem), np.array([0.9, 1.5]))
    assert found is not None
    assert d.variables == ("x", "k")
    moving = np.where(d.condition_of == 0, d.times, np.minimum(d.times, 1.0))
    assert found[:, 0] == pytest.approx(1.5 * np.exp(-0.9 * moving), rel=1e-8)


def test_a_simulation_has_the_algebraic_variables_too() -> None:
    problem = chain()
    d = discretised(problem)
    found = guess_from_simulation(d, ForwardMap(problem), np.array([0.7, 3.0]))
    assert found is not None
    x, z = found[:, d.variables.index("x")], found[:, d.variables.index("z")]
    assert x == pytest.approx(3 * np.exp(-0.7 * d.times), rel=1e-7)
    assert z + z**3 == pytest.approx(x, rel=1e-7)


def test_a_point_that_cannot_be_integrated_is_not_a_start() -> None:
    problem = explosive()
    d = discretised(problem)
    assert guess_from_simulation(d, ForwardMap(problem), np.array([0.1])) is not None
    assert guess_from_simulation(d, ForwardMap(problem), np.array([2.0])) is None


def test_a_trajectory_far_beyond_the_data_is_not_a_start() -> None:
    problem = Problem(
        Model(ode={"x": "k*x"}), {"t": [0.0, 1.0], "x": [-2.0, 1.0]}, {"k": {}}, {"x": 1.0}
    )
    d = discretised(problem)
    limit = np.log(2.0 * DIVERGENCE_RATIO)
    forward = ForwardMap(problem)
    assert guess_from_simulation(d, forward, np.array([limit - 0.01])) is not None
    assert guess_from_simulation(d, forward, np.array([limit + 0.01])) is None


def test_data_that_are_all_zero_have_size_one() -> None:
    model = Model(ode={"x": "-k*x"})
    for values, size in (([0.0, 0.0], 1.0), ([-3.0, 2.0], 3.0)):
        problem = Problem(model, {"t": [0.0, 1.0], "x": values}, {"k": {}}, {"x": {}})
        assert data_size(problem.conditions[0]) == size
