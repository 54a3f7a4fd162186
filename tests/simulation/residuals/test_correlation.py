"""Noise that is correlated in time: the likelihood, its derivatives, and what has to be refused."""

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import multivariate_normal

import odefit
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.evaluation import CostGradient
from odefit.simulation.residuals.correlation import chains_of
from odefit.simulation.simulated_data import with_simulated_data

VALUES = {"k": 0.33, "x": 1.9, "y_sd": 0.12, "y_correlation_time": 1.1, "tau": 0.6, "s": 0.04}
DECAY = odefit.Model(ode={"x": "-k*x"}, observables={"y": "x"})
TIMES = np.array([0.0, 0.3, 0.35, 1.0, 2.4, 2.5, 4.0, 4.1, 7.0, 9.0, 0.35, 2.4, 2.4])


def problem_of(noise: Any, times: Array = TIMES, seed: int = 0) -> odefit.Problem:
    rng = np.random.default_rng(seed)
    parameters: dict[str, Any] = {"k": {"lower": 0, "upper": 2}}
    if "tau" in str(noise):
        parameters |= {"tau": {"lower": 0.01, "upper": 10}, "s": {"lower": 0, "upper": 2}}
    return odefit.Problem(
        DECAY,
        data={"t": times, "y": 2 * np.exp(-0.3 * times) * np.exp(rng.normal(0, 0.05, len(times)))},
        t0=0.0,
        parameters=parameters,
        initial={"x": {"lower": 0, "upper": 5}},
        noise={"y": noise},
    )


def moments(noise: Any, problem: odefit.Problem, vector: Array) -> tuple[Array, Array, Array]:
    """Return measured values, mean and covariance, on the scale of the noise, the dense way."""
    values = dict(zip(problem.keys, vector, strict=True))
    series = problem.conditions[0].series["y"]
    times = problem.conditions[0].times[series.rows]
    mean, measured = values["x"] * np.exp(-values["k"] * times), series.values
    sd = np.full(len(times), values.get("y_sd", 0.1))
    if "s" in values:
        sd = 0.05 + values["s"] * mean
    if "relative" in noise:
        sd = 0.1 * measured
    if "transform" in noise:
        mean, measured = np.log(mean), np.log(measured)
    time = 2 * values["tau"] if "tau" in values else values.get("y_correlation_time", 1.3)
    replicate = np.array([np.sum(times[:i] == times[i]) for i in range(len(times))])
    correlation = np.exp(-np.abs(times[:, None] - times) / time)
    correlation *= replicate[:, None] == replicate
    return measured, mean, correlation * sd[:, None] * sd


def evaluated(problem: odefit.Problem, vector: Array) -> Evaluation:
    found = ForwardMap(problem).evaluate(vector)
    assert isinstance(found, Evaluation)
    return found


NOISES: tuple[dict[str, Any], ...] = (
    {"sd": "estimate", "correlation": "ou"},
    {"sd": "0.05 + s*y", "correlation": "ou", "correlation_time": "2*tau"},
    {"sd": 0.1, "correlation": "ou"},
    {"sd": "estimate", "correlation": "ou", "correlation_time": 1.3},
    {"sd": 0.1, "correlation": "ou", "correlation_time": 1.3},
    {"sd": "estimate", "transform": "log", "correlation": "ou"},
    {"relative": 0.1, "correlation": "ou"},
)


@pytest.mark.parametrize("noise", NOISES)
def test_the_likelihood_is_that_of_a_dense_normal_distribution(noise: dict[str, Any]) -> None:
    problem = problem_of(noise)
    vector = np.array([VALUES[key] for key in problem.keys])
    evaluation = evaluated(problem, vector)

    def log_density(at: Array) -> float:
        measured, mean, covariance = moments(noise, problem, at)
        jacobian = -math.fsum(measured) if "transform" in noise else 0.0
        return float(multivariate_normal(mean, covariance).logpdf(measured)) + jacobian

    assert evaluation.log_likelihood == pytest.approx(log_density(vector), abs=1e-9)
    step = 1e-5
    slopes = [
        (log_density(vector - step * e) - log_density(vector + step * e)) / (2 * step)
        for e in np.eye(len(vector))
    ]
    gradient = evaluation.residuals @ evaluation.jacobian
    assert np.allclose(gradient, slopes, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("noise", NOISES)
def test_the_information_is_fishers(noise: dict[str, Any]) -> None:
    problem = problem_of(noise)
    vector = np.array([VALUES[key] for key in problem.keys])
    evaluation = evaluated(problem, vector)
    step = 1e-5
    _, _, covariance = moments(noise, problem, vector)
    inverse = np.linalg.inv(covariance)
    slopes = []
    for e in np.eye(len(vector)):
        above, below = (moments(noise, problem, vector + s * e) for s in (step, -step))
        slopes.append([(a - b) / (2 * step) for a, b in zip(above[1:], below[1:], strict=True)])
    dense = [
        [a[0] @ inverse @ b[0] + 0.5 * np.trace(inverse @ a[1] @ inverse @ b[1]) for b in slopes]
        for a in slopes
    ]
    found = evaluation.information.T @ evaluation.information
    assert np.allclose(found, dense, rtol=1e-6, atol=1e-6 * np.max(dense))


@settings(max_examples=15, deadline=None)
@given(
    times=st.lists(st.integers(0, 12), min_size=2, max_size=10),
    log_time=st.floats(-3, 4),
    sd=st.floats(0.01, 10),
)
def test_the_likelihood_holds_at_all_times(times: list[int], log_time: float, sd: float) -> None:
    noise = {"sd": sd, "correlation": "ou", "correlation_time": math.exp(log_time)}
    problem = problem_of(noise, np.array([*times, 1.5], dtype=float))
    series = problem.conditions[0].series["y"]
    at = problem.conditions[0].times[series.rows]
    replicate = np.array([np.sum(at[:i] == at[i]) for i in range(len(at))])
    covariance = sd**2 * np.exp(-np.abs(at[:, None] - at) / math.exp(log_time))
    covariance *= replicate[:, None] == replicate
    vector = np.array([0.4, 1.8])
    normal = multivariate_normal(1.8 * np.exp(-0.4 * at), covariance)
    evaluation = evaluated(problem, vector)
    assert evaluation.log_likelihood == pytest.approx(normal.logpdf(series.values), rel=1e-8)


def test_a_short_correlation_time_makes_noise_white() -> None:
    times = np.linspace(0, 9, 12)
    noise = {"sd": "estimate", "correlation": "ou", "correlation_time": 1e-3}
    vector = np.array([0.33, 1.9, 0.12])
    plain = evaluated(problem_of({"sd": "estimate"}, times), vector)
    found = evaluated(problem_of(noise, times), vector)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    gradient, of_plain = (e.residuals @ e.jacobian for e in (found, plain))
    assert np.allclose(gradient, of_plain, rtol=1e-12)


def test_values_after_an_infinite_time_depend_on_none_before() -> None:
    order, distances = chains_of(np.array([math.inf, 0.0, 2.0, 2.0, math.inf]))
    assert order.tolist() == [1, 2, 0, 3, 4]
    assert np.array_equal(distances, [math.inf, 2.0, math.inf, math.inf, math.inf])


@pytest.mark.slow
def test_simulated_data_have_the_correlation() -> None:
    noise = {"sd": 0.1, "correlation": "ou", "correlation_time": 1.3}
    problem = problem_of(noise)
    forward, vector = ForwardMap(problem), np.array([0.33, 1.9])
    along, rng = forward.trajectories(vector), np.random.default_rng(5)
    assert isinstance(along, list)
    sets = []
    for _ in range(4000):
        drawn = with_simulated_data(
            forward, vector, along, lambda _, count: rng.standard_normal(count), 1.0, rng
        )
        assert isinstance(drawn, odefit.Problem)
        sets.append(drawn.conditions[0].series["y"].values)
    _, mean, covariance = moments(noise, problem, vector)
    assert np.allclose(np.mean(sets, axis=0), mean, atol=0.006)
    assert np.allclose(np.cov(np.array(sets).T), covariance, atol=0.001)


def test_an_evaluation_without_derivatives_has_the_same_values() -> None:
    problem = problem_of(NOISES[0])
    vector = np.array([VALUES[key] for key in problem.keys])
    forward = ForwardMap(problem)
    with_derivatives, without = evaluated(problem, vector), forward.evaluate_cost(vector)
    gradient = forward.gradient(vector)
    assert isinstance(without, Evaluation)
    assert isinstance(gradient, CostGradient)
    assert without.cost == pytest.approx(with_derivatives.cost, rel=1e-9)
    assert gradient.cost == pytest.approx(with_derivatives.cost, rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ({"sd": 0.1, "correlation": "ar1"}, 'expected "ou"'),
        ({"sd": 0.1, "correlation_time": 2.0}, 'belongs to correlation = "ou"'),
        ({"correlation": "ou"}, "needs the standard deviation"),
        ({"sd": 0.1, "correlation": "ou", "loss": "huber"}, "normal or log-normal"),
        ({"distribution": "poisson", "correlation": "ou"}, "normal or log-normal"),
        ({"sd": 0.1, "correlation": "ou", "lower_limit": 0.1}, "limits of quantification"),
        ({"sd": 0.1, "correlation": "ou", "correlation_time": -1.0}, "must be positive"),
        (
            {"sd": 0.1, "correlation": "ou", "correlation_time": "x"},
            "only parameters and constants",
        ),
        ({"sd": 0.1, "correlation": "ou", "correlation_time": "zeta"}, "unknown name"),
    ],
)
def test_noise_that_cannot_be_correlated_is_refused(noise: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        problem_of(noise)


def test_censored_values_and_partial_columns_are_refused() -> None:
    data = {"t": [0.0, 1.0, 2.0], "y": [2.0, 1.5, 1.0]}
    given: dict[str, Any] = {"parameters": {"k": {}}, "initial": {"x": 2.0}}
    noise = {"y": {"sd": "estimate", "correlation": "ou"}}
    with pytest.raises(InputError, match="censored values have no residual"):
        odefit.Problem(DECAY, data={**data, "y_cens": [0, 0, 1]}, noise=noise, **given)
    with pytest.raises(InputError, match="some fields are empty"):
        odefit.Problem(DECAY, data={**data, "y_sd": [0.1, math.nan, 0.1]}, noise=noise, **given)


@pytest.mark.parametrize(
    "method",
    [
        odefit.MultipleShooting(),
        odefit.IntegralMatching(),
        odefit.Transcription(),
        odefit.Algebraic(),
        odefit.BranchAndBound(),
    ],
)
def test_methods_that_cannot_use_it_refuse_it_by_name(method: Any) -> None:
    problem = problem_of({"sd": 0.1, "correlation": "ou", "correlation_time": 1.0})
    with pytest.raises(InputError, match='the noise of y has correlation = "ou"'):
        odefit.fit(problem, method)


def test_correlation_times_can_be_fixed_and_freed() -> None:
    problem = problem_of({"sd": "estimate", "correlation": "ou"})
    assert problem.keys == ("k", "x", "y_sd", "y_correlation_time")
    fixed = problem.with_unknowns(fix={"y_correlation_time": 2.0})
    assert fixed.keys == ("k", "x", "y_sd")
    assert fixed.noise["y"].correlation_time == 2.0
    assert fixed.with_unknowns(free=["y_correlation_time"]).keys == problem.keys
