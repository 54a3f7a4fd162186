"""One start of single shooting."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from odefit import Control, ForwardMap, Model, Problem, SingleShooting, Status, library
from tests.simulation.test_library_accuracy import at_reference


def growth(**more: object) -> Problem:
    times = np.linspace(0.0, 2.0, 5)
    return Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": times, "x": 1 / (1 - 0.25 * times)},
        {"k": {"guess": 0.1, **more}},
        {"x": 1.0},
    )


def test_single_shooting_finds_the_answer_near_its_guess() -> None:
    found = SingleShooting().solve(growth(), Control())
    (start,) = found.starts
    assert found.status is Status.CONVERGED
    assert start.vector == pytest.approx([0.25], rel=1e-9)
    assert start.start.tolist() == [0.1]
    assert start.objective == pytest.approx(0.0, abs=1e-15)


def test_failed_integrations_on_the_way_are_counted_with_their_reasons() -> None:
    """The data are close to a blow-up, and the first steps lead beyond it."""
    times = np.linspace(0.0, 4.0, 6)
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": times, "x": 1 / (1 - 0.24 * times)},
        {"k": {"guess": 1e-3}},
        {"x": {"guess": 1.0}},
    )
    (start,) = SingleShooting().solve(problem, Control()).starts
    assert start.vector == pytest.approx([0.24, 1.0], rel=1e-6)
    assert sum(start.failures.values()) >= 1
    assert all("without bound" in reason for reason in start.failures)


def test_a_start_that_fails_says_where_and_why() -> None:
    found = SingleShooting().solve(growth(guess=2.0), Control())
    assert found.status is Status.FAILED
    assert found.best is None
    assert found.message.startswith('experiment "data", t = 0.5: ')
    assert found.starts[0].cost == np.inf


def test_a_log_scale_gives_the_same_answer() -> None:
    found = SingleShooting().solve(growth(scale="log10"), Control())
    assert found.starts[0].vector == pytest.approx([0.25], rel=1e-9)


def test_evaluations_are_limited() -> None:
    problem, _ = at_reference("fitzhugh-nagumo")
    forward = ForwardMap(problem)
    start = SingleShooting(evaluations=4).run(forward, 7, np.array([1.0, 1.0, 1.0]), Control())
    assert start.status is Status.NOT_CONVERGED
    assert start.index == 7
    assert 4 <= start.evaluations <= 5


def test_a_deadline_that_has_passed_is_a_time_limit() -> None:
    control = Control(deadline=time.monotonic() - 1)
    found = SingleShooting().solve(growth(), control)
    assert found.status is Status.TIME_LIMIT
    assert found.best is not None  # the start itself


def test_an_interruption_is_distinguished_from_a_time_limit() -> None:
    event = threading.Event()
    event.set()
    found = SingleShooting().solve(growth(), Control(interrupted=event))
    assert found.status is Status.INTERRUPTED


def test_the_result_does_not_depend_on_what_was_computed_before() -> None:
    problem = library.load("lotka-volterra-p")
    forward = ForwardMap(problem)
    at = np.array([0.05, 0.02, 0.03, 95.0, 105.0])
    first = SingleShooting().run(forward, 0, at, Control())
    forward.evaluate(np.array([1.0, 1.0, 1.0, 110.0, 110.0]))
    second = SingleShooting().run(forward, 0, at, Control())
    assert np.array_equal(first.vector, second.vector)
    assert first.evaluations == second.evaluations


def test_without_a_guess_it_starts_at_a_sample() -> None:
    problem = library.load("lotka-volterra-f")
    one = SingleShooting().solve(problem, Control(seed=1)).starts[0]
    two = SingleShooting().solve(problem, Control(seed=2)).starts[0]
    assert not np.array_equal(one.start, two.start)


def test_an_estimated_sd_ends_at_the_root_mean_square_of_the_residuals() -> None:
    random = np.random.default_rng(1)
    times = np.linspace(0, 3, 40)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(-times) + 0.1 * random.normal(size=40)},
        {"k": {"guess": 0.5}},
        {"x": 1.0},
        noise={"x": {"sd": "estimate"}},
    )
    (start,) = SingleShooting().solve(problem, Control()).starts
    k, sd = start.vector
    residuals = np.exp(-k * times) - problem.data()["x"].to_numpy()
    assert start.status is Status.CONVERGED
    assert sd == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-5)
    assert start.objective == pytest.approx(40.0, rel=1e-5)
