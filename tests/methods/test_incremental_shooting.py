"""Tests of incremental single shooting."""

from pathlib import Path

import numpy as np
import pytest

from odefit import (
    Control,
    ForwardMap,
    Model,
    MultiStart,
    Problem,
    SingleShooting,
    Status,
    fit,
    load,
    simulate,
)
from odefit.methods.incremental_shooting import HORIZONS, SLOWLY, IncrementalShooting
from odefit.simulation import Evaluation, Simulation

TRUTH = np.array([0.55, 0.45, 0.6, 0.7, 0.3])


@pytest.fixture(scope="module")
def predator_and_prey() -> Problem:
    """Return a Lotka-Volterra system over about fifteen periods, the prey alone observed."""
    times = np.linspace(0.0, 200.0, 801)
    model = Model(ode={"x": "a*x - 0.35*x*y", "y": "-c*y + d*x*y"}, observables={"prey": "x"})
    wide = {"lower": 1e-5, "upper": 10.0}
    unknowns = dict.fromkeys("acd", wide), {"x": wide, "y": wide}

    def made(values: object) -> Problem:
        return Problem(model, {"t": times, "prey": values}, unknowns[0], unknowns[1])

    found = simulate(made(np.ones(801)), TRUTH, times)
    assert isinstance(found, Simulation)
    return made(found.observables["prey"])


def ends(problem: Problem, search: MultiStart, count: int = 6) -> list[float]:
    forward = search.forward(problem)
    return [search.run(forward, i, Control(seed=1)).objective for i in range(count)]


def test_many_periods_are_no_obstacle(predator_and_prey: Problem) -> None:
    found = ends(predator_and_prey, MultiStart(IncrementalShooting()))
    assert sum(objective < 1e-4 for objective in found) >= 3


@pytest.mark.slow
def test_they_are_one_for_single_shooting(predator_and_prey: Problem) -> None:
    """Over the whole time it ends in local optima from all of the same starts."""
    assert min(ends(predator_and_prey, MultiStart(SingleShooting()))) > 1.0


def test_the_answer_is_one_of_the_whole_time(predator_and_prey: Problem) -> None:
    search = MultiStart(IncrementalShooting())
    forward = search.forward(predator_and_prey)
    end = search.run(forward, 0, Control(seed=1))
    whole = forward.evaluate(end.vector)
    assert isinstance(whole, Evaluation)
    assert end.objective == pytest.approx(whole.objective, abs=1e-12)
    np.testing.assert_allclose(end.vector, TRUTH, rtol=1e-3)


def test_parts_with_too_few_measurements_are_left_out(predator_and_prey: Problem) -> None:
    method = IncrementalShooting()
    forward = ForwardMap(predator_and_prey)
    shortest = min(HORIZONS[0])
    sizes = [part.problem.size for part in method.parts(forward, 0)]
    assert sizes[0] == 1 + int(800 * shortest)
    times = np.linspace(0.0, 200.0, 21)
    few = predator_and_prey.with_data({"data": {"t": times, "prey": np.ones(21)}})
    assert [part.problem.size for part in method.parts(ForwardMap(few), 0)] == []
    assert method.screening_map(forward, 3) is forward


def test_starts_use_the_same_maps_of_the_parts(predator_and_prey: Problem) -> None:
    method = IncrementalShooting()
    forward = ForwardMap(predator_and_prey)
    assert method.parts(forward, 0)[-1] is method.parts(forward, 4)[-1]


def test_a_start_that_is_interrupted_returns_where_it_is(predator_and_prey: Problem) -> None:
    control = Control()
    control.interrupted.set()
    forward = ForwardMap(predator_and_prey)
    end = IncrementalShooting().run(forward, 0, 1.1 * TRUTH, control)
    assert end.status is Status.INTERRUPTED
    assert np.isfinite(end.cost)
    np.testing.assert_allclose(end.vector, 1.1 * TRUTH)


THERMOSTAT = Path(__file__).parents[1] / "cases" / "thermostat"
"""A heater that goes on at lo and off at hi, both unknown: see :data:`SWITCHED`."""

SWITCHED = {"tau": 40.0289, "K": 25.0118, "lo": 19.19134, "hi": 21.29256}
"""The best values by exact simulation and Nelder-Mead's method, of sum of squares 0.28958295."""


@pytest.mark.slow
def test_thresholds_are_found_in_parts_that_grow_slowly() -> None:
    problem = load(THERMOSTAT / "p.toml")
    search = MultiStart(IncrementalShooting(SLOWLY, trials=True), screening=8)
    forward = search.forward(problem, 10_000)
    end = search.run(forward, 0, Control(seed=1))
    assert 2.0 * end.cost == pytest.approx(0.28958295, rel=1e-7)
    np.testing.assert_allclose(end.vector, list(SWITCHED.values()), rtol=1e-5)


def test_a_part_for_trials_has_more_values_than_unknowns_and_than_the_part_before() -> None:
    problem = load(THERMOSTAT / "p.toml")
    parts = IncrementalShooting(SLOWLY, trials=True).parts(ForwardMap(problem), 0)
    sizes = [part.problem.size for part in parts]
    assert sizes[0] == 5
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 1 + int(150 / 1.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p.toml", "pg.toml"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_default_finds_the_thresholds_of_a_thermostat(name: str, seed: int) -> None:
    result = fit(load(THERMOSTAT / name), seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(0.28958295, rel=1e-7)
    for key, value in SWITCHED.items():
        assert result.params[key].value == pytest.approx(value, rel=1e-5)
