"""Tests of incremental single shooting."""

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
    simulate,
)
from odefit.methods.incremental_shooting import HORIZONS, IncrementalShooting
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


@pytest.mark.slow
def test_many_periods_are_fitted(predator_and_prey: Problem) -> None:
    found = ends(predator_and_prey, MultiStart(IncrementalShooting()))
    assert sum(objective < 1e-4 for objective in found) >= 3


@pytest.mark.slow
def test_single_shooting_ends_in_local_optima_from_the_same_starts(
    predator_and_prey: Problem,
) -> None:
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
