"""The best of all points that were evaluated is known, whoever evaluated them."""

from __future__ import annotations

import math

import numpy as np

import odefit
from odefit.methods.starts import with_guess
from odefit.problem.variants.thinning import with_horizon
from odefit.simulation import ForwardMap
from odefit.simulation.best_seen import BestSeen, best_seen, noting, same_task


def decay(**given: float) -> odefit.Problem:
    """Return x' = -k x from x(0) = 1 with k = 1/2, measured at ten times."""
    times = np.linspace(0.0, 4.0, 10)
    unknown = {"k": {"lower": 0.0, "upper": 5.0, **given}}
    data = {"t": times, "x": np.exp(-0.5 * times)}
    return odefit.Problem(odefit.Model(ode={"x": "-k*x"}), data, unknown, {"x": 1.0})


def test_the_point_of_lowest_cost_is_kept() -> None:
    problem = decay()
    forward = ForwardMap(problem)
    seen = BestSeen(problem)
    assert (seen.vector, seen.cost, seen.count) == (None, math.inf, 0)
    with noting(seen):
        costs = [forward.cost(np.array([k])) for k in (3.0, 0.7, 2.0)]
    assert seen.vector is not None
    assert seen.vector.tolist() == [0.7]
    assert seen.cost == min(costs) == costs[1]
    assert seen.objective == 2 * seen.cost
    assert seen.count == 3


def test_problems_that_differ_in_guesses_and_bounds_count_and_others_do_not() -> None:
    problem = decay()
    other = decay(upper=2.0)
    assert same_task(problem, other)
    assert same_task(problem, with_guess(problem, np.array([1.0])))
    assert not same_task(problem, with_horizon(problem, 0.5))
    noisy = odefit.Problem(
        problem.model,
        problem.data(),
        {"k": {"lower": 0.0, "upper": 5.0}},
        {"x": 1.0},
        noise={"x": {"sd": 0.1}},
    )
    assert not same_task(problem, noisy)
    seen = BestSeen(problem)
    with noting(seen):
        ForwardMap(with_horizon(problem, 0.5)).cost(np.array([0.5]))
        assert seen.vector is None
        ForwardMap(other).cost(np.array([0.6]))
    assert seen.vector is not None
    assert seen.vector.tolist() == [0.6]


def test_points_outside_the_bounds_do_not_count() -> None:
    problem = decay(upper=0.4)
    seen = BestSeen(problem)
    with noting(seen):
        ForwardMap(problem).cost(np.array([0.5]))
    assert (seen.vector, seen.count) == (None, 1)


def test_nothing_is_noted_outside_of_the_block() -> None:
    seen = BestSeen(decay())
    with noting(seen):
        assert best_seen() is seen
    assert best_seen() is None
