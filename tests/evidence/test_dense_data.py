"""Dense series: what the campaign `automatic` fits is sound, and known to the last digit."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.front_door import dense_data
from evidence.front_door.dense_data import BOUNDS, LEVELS, TRUE_VALUES, dense_problem, parameters
from evidence.front_door.dense_systems import SYSTEMS
from odefit.common.errors import InputError
from odefit.simulation import Evaluation, ForwardMap


def objective(system: str, noise: float, draw: int) -> tuple[float, int]:
    problem, truth = dense_problem(system, noise, draw)
    found = ForwardMap(problem).evaluate(problem.vector(truth))
    assert isinstance(found, Evaluation)
    return found.objective, problem.size


def test_there_are_enough_systems_from_every_field() -> None:
    fields = {s.field_of_use for s in SYSTEMS.values()}
    assert len(SYSTEMS) >= 22
    assert {"circuits", "mechanics", "reactors", "epidemics", "gene circuits"} < fields
    assert sum(bool(s.inputs) for s in SYSTEMS.values()) >= 2
    assert sum(bool(s.events) for s in SYSTEMS.values()) >= 4
    assert sum(len(s.observed) < len(s.ode) for s in SYSTEMS.values()) >= 10


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_dense_data_of_values_within_its_bounds(system: str) -> None:
    problem, truth = dense_problem(system, 1e-2, 0)
    (condition,) = problem.conditions
    assert all(len(s.values) in (1001, 1501) for s in condition.series.values())
    assert tuple(truth) == problem.keys
    assert all(TRUE_VALUES[0] <= v <= TRUE_VALUES[1] for v in truth.values())
    assert (problem.lower == BOUNDS[0]).all()
    assert (problem.upper == BOUNDS[1]).all()
    assert set(parameters(SYSTEMS[system])) <= set(truth)


@pytest.mark.parametrize("system", ["rlc-driven", "switched-converter", "dc-motor", "robertson"])
def test_the_truth_has_one_unit_of_the_objective_for_each_measurement(system: str) -> None:
    value, size = objective(system, 1e-4, 3)
    assert abs(value - size) < 5 * np.sqrt(2 * size)  # chi-square: variance of twice its mean


def test_without_noise_the_truth_fits_exactly_and_no_standard_deviation_is_given() -> None:
    problem, _ = dense_problem("coupled-oscillators", 0.0, 1)
    assert problem.noise == {}
    value, size = objective("coupled-oscillators", 0.0, 1)
    assert value < 1e-18 * size


def test_levels_differ_in_the_size_of_the_noise_alone() -> None:
    truths, errors = [], []
    exact = dense_problem("pendulum", 0.0, 2)[0].conditions[0].series["phi"].values
    for noise in LEVELS[1:]:
        problem, truth = dense_problem("pendulum", noise, 2)
        truths.append(truth)
        errors.append((problem.conditions[0].series["phi"].values - exact) / noise)
    assert truths[0] == truths[1] == truths[2]
    np.testing.assert_allclose(errors[0], errors[2], rtol=1e-6, atol=1e-8)


def test_draws_differ() -> None:
    first, second = (tuple(dense_problem("goodwin", 0.0, d)[1].values()) for d in (0, 1))
    assert not set(first) & set(second)


@pytest.mark.slow
def test_a_system_at_rest_is_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_data, "LIVELY", 1e3)
    with pytest.raises(InputError, match="pendulum: none of 100 draws"):
        dense_problem("pendulum", 0.0, 0)
