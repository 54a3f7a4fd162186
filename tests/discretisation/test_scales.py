"""Sizes: from the data and the bounds alone, and never zero."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import (
    SCALED_OBJECTIVE,
    Scales,
    data_variation,
    row_sizes,
    variable_sizes,
)
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from tests.discretisation.test_discretisation import CASES

MODEL = Model(ode={"x": "-k*x"}, observables={"x": "x", "y": "2*x"})


def discretised(problem: Problem, scheme: str = "trapezoid") -> Discretisation:
    return Discretisation(problem, SCHEMES[scheme], UniformMesh(4))


def test_the_spread_is_the_sum_over_series_of_squares_about_their_means() -> None:
    """x of a: 2 (about 3); y of a: 8/4; x of b: 0, whatever its mean."""
    experiments = [
        Experiment("a", {"t": [1.0, 2.0], "x": [2.0, 4.0], "y": [1.0, 5.0]}),
        Experiment("b", {"t": [1.0, 2.0], "x": [50.0, 50.0]}),
    ]
    problem = Problem(
        MODEL,
        parameters={"k": {}},
        initial={"x": {}},
        noise={"x": {"sd": 1.0}, "y": {"sd": 2.0}},
        experiments=experiments,
    )
    assert data_variation(discretised(problem)) == pytest.approx(2.0 + 8.0 / 4.0)


def test_the_spread_counts_standard_deviations() -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 2.0, 3.0]}
    noise = {"x": {"sd": 0.1}}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}}, noise=noise)
    assert data_variation(discretised(problem)) == pytest.approx(200.0)


def test_data_without_spread_have_size_one() -> None:
    data = {"t": [0.0, 1.0], "x": [3.0, 3.0]}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}})
    assert data_variation(discretised(problem)) == 1.0


def test_the_objective_of_constant_predictions_is_scaled_to_a_hundred() -> None:
    """Predictions that are the mean of the data: their objective is the spread."""
    data = {"t": [0.0, 1.0, 2.0], "x": [1e-7, 2e-7, 6e-7]}
    d = discretised(Problem(Model(ode={"x": "0*k"}), data, {"k": {}}, {"x": {}}))
    mean = np.full((d.points, 1), 3e-7)
    assert d.objective(mean, np.array([1.0, 3e-7])) / Scales.of(d).objective == pytest.approx(
        SCALED_OBJECTIVE
    )


@pytest.mark.parametrize("name", CASES)
def test_all_sizes_are_positive_and_finite(name: str) -> None:
    problem, _ = CASES[name]()
    d = discretised(problem, "radau")
    scales = Scales.of(d)
    for part in (scales.values, scales.unknowns, scales.rows, np.array([scales.objective])):
        assert np.all(np.isfinite(part) & (part > 0))
    assert scales.values.shape == (d.points, len(d.variables))
    assert scales.rows.shape == d.rows.dynamic.shape


def test_a_size_is_the_largest_value_of_the_data_of_its_own_experiment() -> None:
    experiments = [
        Experiment("a", {"t": [1.0, 2.0], "x": [-2.0, 1.0]}),
        Experiment("b", {"t": [1.0, 2.0], "x": [0.0, 0.0], "y": [30.0, 10.0]}),
    ]
    problem = Problem(MODEL, parameters={"k": {}}, initial={"x": {}}, experiments=experiments)
    d = discretised(problem)
    found = variable_sizes(d)[:, 0]
    assert set(found[d.condition_of == 0]) == {2.0}
    # It has no size of its own there. What else is measured may be in another unit.
    other = found[d.condition_of == 1]
    assert ((other >= 2.0) & (other <= 30.0)).all()
    assert Scales.of(d).unknowns[0] == 1.0


def test_a_state_that_is_not_measured_has_the_size_of_its_initial_value_or_like_the_data() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x*u*v", "u": "-u", "v": "-v"}, observables={"x": "x"}),
        {"t": [1.0, 2.0], "x": [3.0, 1.0]},
        {"k": {}},
        {"x": 3.0, "u": -40.0, "v": 0.0},
    )
    assert variable_sizes(discretised(problem))[0] == pytest.approx([3.0, 40.0, 3.0])


def test_a_row_has_the_size_of_its_variable() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "u": "k*x"}, observables={"x": "x"}),
        {"t": [1.0, 2.0], "x": [3e-6, 1e-6]},
        {"k": {}},
        {"x": {}, "u": 5e4},
    )
    d = discretised(problem)
    found = row_sizes(d, variable_sizes(d))
    assert set(found) == {3e-6, 5e4}
    per_state = d.rows.dynamic.sum() // 2
    assert np.sum(found[d.rows.dynamic] == 3e-6) == per_state == 4


def test_sizes_do_not_depend_on_guesses() -> None:
    data = {"t": [0.0, 1.0], "x": [1.0, 2.0]}
    found = [
        Scales.of(
            discretised(
                Problem(Model(ode={"x": "-k*x"}), data, {"k": {"guess": g}}, {"x": {"guess": g}})
            )
        )
        for g in (1e-3, 1e3)
    ]
    assert np.array_equal(found[0].values, found[1].values)
    assert np.array_equal(found[0].unknowns, found[1].unknowns)
    assert found[0].objective == found[1].objective


def test_without_scales_nothing_changes() -> None:
    problem, _ = CASES[next(iter(CASES))]()
    none = Scales.none(discretised(problem))
    assert set(none.values.ravel()) | set(none.unknowns) | set(none.rows) == {1.0}
    assert none.objective == 1.0
