"""Linear equations by their eigenvectors, beside exponentials of block matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from odefit import ForwardMap, Model, Problem
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.linear.closed_form import Eigenvectors
from tests.simulation.numerics import Array, by_unknown, evaluated, integrated


def compartments(rng: np.random.Generator, n: int) -> Array:
    rates = rng.uniform(0.0, 1.0, (n, n))
    return rates - np.diag(rates.sum(axis=0) + rng.uniform(0.1, 1.0, n))


def springs(rng: np.random.Generator, n: int) -> Array:
    rates = rng.normal(size=(n, n))
    return rates - rates.T - 0.1 * np.eye(n)


def closed(rng: np.random.Generator, n: int) -> Array:
    """Return compartments that lose nothing, so that one eigenvalue is zero."""
    rates = rng.uniform(0.0, 1.0, (n, n))
    return rates - np.diag(rates.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [compartments, springs, closed])
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_states_and_sensitivities_are_those_of_block_exponentials(
    kind: object, forced: bool, n: int
) -> None:
    assert callable(kind)
    rng = np.random.default_rng([n, forced])
    a, m = kind(rng, n), 4
    along = rng.normal(size=(m, n, n)) * (rng.random((m, 1, 1)) < 0.7)
    b, b_along = forced * rng.normal(size=n), forced * rng.normal(size=(m, n))
    states, sensitivities = rng.random(n), rng.normal(size=(n, m))
    times = np.concatenate([[1e-5, 1e-2], np.sort(rng.uniform(0.0, 5.0, 6))])
    vectors = Eigenvectors.of(a, b, along, b_along)
    assert vectors is not None
    both = vectors.at(times, states, sensitivities)
    assert both is not None
    found, found_along = both
    for j in range(m):
        block = np.zeros((2 * n + 1, 2 * n + 1))
        block[:n, :n], block[:n, n] = a, b
        block[n + 1 :, :n], block[n + 1 :, n], block[n + 1 :, n + 1 :] = along[j], b_along[j], a
        for k, time in enumerate(times):
            exact = expm(block * time) @ np.concatenate([states, [1.0], sensitivities[:, j]])
            scale = np.abs(exact).max()
            assert found[k] == pytest.approx(exact[:n], abs=1e-12 * scale)
            assert found_along[k, :, j] == pytest.approx(exact[n + 1 :], abs=1e-11 * scale)


@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_nearly_parallel_eigenvectors_are_left_to_other_engines(apart: float, unit: float) -> None:
    times, nothing = np.linspace(0.1, 3.0, 30), (np.zeros((0, 2, 2)), np.zeros((0, 2)))
    a = np.array([[-1.0, 0.0], [unit, -1.0 - apart]])
    vectors = Eigenvectors.of(a, np.zeros(2), *nothing)
    found = vectors and vectors.at(times, np.array([1.0, 0.0]), np.zeros((2, 0)))
    assert found is None
    distinct = np.array([[-1.0, 0.0], [unit, -1.5]])
    vectors = Eigenvectors.of(distinct, np.zeros(2), *nothing)
    assert vectors is not None
    assert vectors.at(times, np.array([1.0, 0.0]), np.zeros((2, 0))) is not None


def test_a_non_finite_matrix_has_no_eigenvectors() -> None:
    nothing = np.zeros((0, 1, 1)), np.zeros((0, 1))
    assert Eigenvectors.of(np.array([[np.inf]]), np.zeros(1), *nothing) is None


def test_fast_reversible_reactions_over_long_times_are_left_to_other_engines() -> None:
    vectors = Eigenvectors.of(
        np.array([[-1e6, 1.0], [1e6, -2.0]]), np.zeros(2), *(np.zeros((0, 2, 2)), np.zeros((0, 2)))
    )
    assert vectors is not None
    assert vectors.can_reach(0.01)
    assert not vectors.can_reach(10.0)


def oral(times: Array) -> Problem:
    model = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"})
    data = {"t": times, "blood": np.ones(len(times))}
    return Problem(model, data, {"ka": {}, "ke": {}}, {"gut": {}, "blood": 0.0}, t0=0.0)


def exact_oral(ka: float, ke: float, dose: float, t: Array) -> tuple[Array, Array]:
    """Return the amount in blood, and its derivative by ka."""
    fading, leaving = np.exp(-ka * t), np.exp(-ke * t)
    amount = dose * ka / (ka - ke) * (leaving - fading)
    by_ka = dose * (-ke / (ka - ke) ** 2 * (leaving - fading) + ka / (ka - ke) * t * fading)
    return amount, by_ka


@pytest.mark.parametrize("ka", [1.3, 1e4, 1e7])
def test_stiffness_costs_no_digits(ka: float) -> None:
    times = np.linspace(0.05, 20.0, 400)
    found = integrated(ForwardMap(oral(times)), np.array([ka, 0.2, 5.0]))
    amount, by_ka = exact_oral(ka, 0.2, 5.0, times)
    assert not found.choice.stiff
    assert found.states[:, 1] == pytest.approx(amount, rel=1e-11)
    assert by_unknown(found, 3)[:, 1, 0] == pytest.approx(by_ka, rel=1e-8, abs=1e-11 / ka)


def test_equal_rates_are_integrated() -> None:
    times = np.linspace(0.05, 20.0, 400)
    for rate in (0.2, 0.2 + 1e-6):
        found = integrated(ForwardMap(oral(times)), np.array([rate, 0.2, 5.0]))
        limit = 5.0 * 0.2 * times * np.exp(-0.2 * times)
        assert found.states[:, 1] == pytest.approx(limit, rel=1e-4)


def test_stiff_equations_with_few_outputs_are_solved_in_closed_form() -> None:
    """The digits are more than those of the implicit engine, 1e-9."""
    times = np.array([1.0, 5.0, 20.0])
    forward = ForwardMap(oral(times))
    vector = np.array([1e8, 0.2, 5.0])
    amount, _ = exact_oral(1e8, 0.2, 5.0, times)
    for choice in (UNDECIDED, EngineChoice(stiff=True)):
        found = evaluated(forward, vector, choice)
        assert found.residuals == pytest.approx(amount - 1.0, rel=1e-11)


@pytest.mark.parametrize("engine", ["runge-kutta", "bdf"])
def test_a_requested_engine_is_used(engine: str) -> None:
    times = np.linspace(0.05, 20.0, 400)
    vector = np.array([1.3, 0.2, 5.0])
    asked = integrated(ForwardMap(oral(times), engine), vector)  # type: ignore[arg-type]
    free = integrated(ForwardMap(oral(times)), vector)
    assert not np.array_equal(asked.states, free.states)
    assert asked.states == pytest.approx(free.states, rel=1e-6, abs=1e-8)
