"""States that no observable has in common share a direction, and the gradient stays the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from odefit import ForwardMap, Model, Problem
from odefit.simulation.evaluation import CostGradient
from odefit.simulation.watched import Watched
from tests.simulation.numerics import evaluated

CHAIN = 12


def chain(observables: dict[str, str]) -> Problem:
    """A chain of states, each with a rate of its own."""
    ode = {"x1": "k1 - x1"} | {f"x{i}": f"k{i}*x{i - 1} - x{i}" for i in range(2, CHAIN + 1)}
    times = np.array([0.5, 1.0, 1.0, 4.0])  # one of them measured twice
    data = {"t": times} | {name: np.linspace(0.3, 0.7, 4) for name in observables}
    parameters = {f"k{i}": {"lower": 0.01, "upper": 100.0} for i in range(1, CHAIN + 1)}
    initial = {f"x{i}": 0.1 for i in range(1, CHAIN + 1)}
    return Problem(Model(ode=ode, observables=observables), data, parameters, initial, t0=0.0)


def test_states_of_one_observable_each_share_one_direction() -> None:
    problem = chain({f"y{i}": f"x{i}" for i in range(1, CHAIN + 1)})
    watched = Watched.of(problem, ForwardMap(problem).field)
    assert len(watched.states) == CHAIN
    assert watched.count == 1


def test_states_of_an_observable_have_separate_directions() -> None:
    problem = chain({"a": "x1 + x2", "b": "x2*x3^2", "c": "x3 + x1", "d": "x9"})
    watched = Watched.of(problem, ForwardMap(problem).field)
    assert watched.count == 3
    for places in watched.by_observable.values():
        for one, other in combinations(places, 2):
            assert watched.directions[one] != watched.directions[other]


def test_the_gradient_with_shared_directions_is_that_of_the_sensitivities() -> None:
    problem = chain({"a": "x1 + x2", "b": "x2*x3^2", "c": "exp(-x3) + x1", "d": "k2*x12"})
    forward, vector = ForwardMap(problem, "bdf", 1e-10), np.linspace(0.8, 1.3, CHAIN)
    found, evaluation = forward.gradient(vector), evaluated(forward, vector)
    assert isinstance(found, CostGradient)
    expected = evaluation.residuals @ evaluation.jacobian
    np.testing.assert_allclose(found.gradient, expected, atol=1e-6 * np.abs(expected).max())
    assert found.adjoint
