"""Priors in the forward map: costs, gradients, failures and fits."""

import math
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Model, Prior, Problem
from odefit.problem.priors import FAMILIES
from odefit.simulation import Evaluation, Failure, ForwardMap

FIELDS: dict[str, dict[str, float]] = {
    "normal": {"mean": 0.4, "sd": 0.2},
    "laplace": {"location": 0.4, "scale": 0.1},
    "log-normal": {"mean": -0.5, "sd": 0.4},
    "log-laplace": {"location": -0.5, "scale": 0.3},
    "uniform": {"lower": 0.1, "upper": 0.9},
    "log-uniform": {"lower": 0.1, "upper": 0.9},
    "cauchy": {"location": 0.4, "scale": 0.1},
    "chi-square": {"degrees": 2.5},
    "exponential": {"scale": 0.3},
    "gamma": {"shape": 2.0, "scale": 0.2},
    "rayleigh": {"scale": 0.4},
}


def problem_with(prior: Any, noise: Any = 0.1, **field: Any) -> Problem:
    times = np.linspace(0.0, 2.0, 9)
    data = {"t": times, "x": 2.0 * np.exp(-0.5 * times) + 0.05 * np.cos(40 * times)}
    return Problem(
        Model(ode={"x": "-k*x"}),
        data,
        {"k": {"prior": prior, **field}},
        {"x": {"guess": 2.0}},
        noise={"x": {"sd": noise}} if noise is not None else {},
    )


def test_all_families_are_examined() -> None:
    assert set(FIELDS) == set(FAMILIES)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["linear", "log", "log10"])
@pytest.mark.parametrize("name", FIELDS)
def test_the_gradient_of_the_cost_is_that_of_the_negative_log_posterior(name: str, on: Any) -> None:
    fields: dict[str, Any] = {"distribution": name, **FIELDS[name]}
    problem, bare = problem_with({**fields, "on": on}), problem_with(None)
    prior = problem.unknowns[0].parameter.prior
    assert prior is not None
    base = {"linear": None, "log": math.e, "log10": 10.0}[on]
    for z in (0.23, 0.52):
        at = np.array([z if base is None else base**z, 1.9])
        found, without = ForwardMap(problem).evaluate(at), ForwardMap(bare).evaluate(at)
        assert isinstance(found, Evaluation)
        assert isinstance(without, Evaluation)
        gradient = (found.jacobian.T @ found.residuals) - (without.jacobian.T @ without.residuals)
        h = 1e-5 * at[0]
        # Differences of the density itself: an independent route.
        numeric = -(prior.log_density(at[0] + h) - prior.log_density(at[0] - h)) / (2 * h)
        assert gradient[0] == pytest.approx(numeric, rel=2e-6, abs=1e-7)
        assert found.log_likelihood == without.log_likelihood
        assert found.objective - without.objective == pytest.approx(
            2 * (found.cost - without.cost), abs=1e-10
        )


@pytest.mark.parametrize("on", ["linear", pytest.param("log10", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if i % 2 else ()) for i, n in enumerate(FIELDS)],
)
def test_fits_end_where_the_posterior_density_is_largest(name: str, on: Any) -> None:
    scale = {"lower": 0.01, "upper": 9.0, "scale": "log10"} if on != "linear" else {"lower": 0.0}
    problem = problem_with({"distribution": name, **FIELDS[name], "on": on}, **scale)
    result = odefit.fit(problem, method=odefit.MultiStart(starts=4), seed=1)
    bare = ForwardMap(problem_with(None))

    def negative(k: float) -> float:
        cost = min(bare.cost(np.array([k, x])) for x in np.linspace(1.9, 2.1, 41))
        return cost - float(problem.log_prior(np.array([k, 2.0]))[0])

    best = result.solutions[0].vector
    middle = bare.cost(best) - float(problem.log_prior(best)[0])
    low, high = problem.lower[0], problem.upper[0]
    grid = np.clip(best[0] + np.linspace(-0.2, 0.2, 41), max(low, 1e-6), high)
    assert middle <= min(negative(float(k)) for k in grid) + 2e-4


def test_a_density_of_zero_is_a_failure_with_its_reason() -> None:
    forward = ForwardMap(problem_with({"distribution": "gamma", "shape": 2.0, "scale": 1.0}))
    found = forward.evaluate(np.array([0.0, 2.0]))
    assert isinstance(found, Failure)
    assert "the prior of 'k' has no density at 0" in str(found)


def test_a_uniform_prior_only_bounds() -> None:
    problem = problem_with({"distribution": "uniform", "lower": 0.1, "upper": 0.3})
    assert ForwardMap(problem).evaluate(np.array([0.2, 2.0])).residuals.shape == (9,)  # type: ignore[union-attr]
    result = odefit.fit(problem, method=odefit.MultiStart(starts=2))
    assert result.best.vector[0] == pytest.approx(0.3)


def test_standard_errors_take_the_information_and_not_the_curvature_of_a_kink() -> None:
    own = {"distribution": "laplace", "location": 0.5, "scale": 0.01}
    vector = np.array([0.5, 2.0])
    found = ForwardMap(problem_with(own)).evaluate(vector)
    assert isinstance(found, Evaluation)
    assert found.information[-1, 0] == pytest.approx(100.0)
    assert found.jacobian[-1, 0] > 1000.0


def test_priors_stay_what_they_were_without_a_distribution() -> None:
    found = ForwardMap(problem_with(Prior(0.4, 0.2))).evaluate(np.array([0.5, 2.0]))
    assert isinstance(found, Evaluation)
    assert found.residuals[-1] == pytest.approx(0.5)
    assert found.jacobian[-1] == pytest.approx([5.0, 0.0])
    assert found.information is found.jacobian
