"""Proofs for likelihoods that are no sums of squares, against samples and searches by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import odefit
from odefit import BranchAndBound, Model, Problem
from odefit.common.arrays import Array
from tests.enclosure.likelihood.noisy_problems import COUNTS, POISSON, TIMES, VALUES

Objective = Callable[[Array], Array]
"""The objective of unknowns, shape (m, n), by formulas of SciPy alone, shape (m,)."""

SAMPLES, SEARCHES = 10_000, 20
DAYS = np.arange(1.0, 16.0)
INFECTED = np.array([12, 44, 56, 114, 177, 204, 220, 199, 185, 134, 123, 79, 55, 36, 26], float)


def means(v: Array) -> Array:
    """The decay x0 exp(-k t), for rows of k and x0."""
    return np.asarray(v[:, 1:2] * np.exp(-v[:, :1] * TIMES))


def poisson_deviance(m: Array, y: Array) -> Array:
    excess = stats.poisson.logpmf(y, np.maximum(y, 1e-300)) - stats.poisson.logpmf(y, m)
    return np.asarray(2 * np.sum(excess, axis=1))


def of_poisson(v: Array) -> Array:
    return poisson_deviance(means(v), POISSON)


def of_dispersion(v: Array) -> Array:
    k, m = 1 / v[:, 2:3], means(v)
    return np.asarray(-2 * np.sum(stats.nbinom.logpmf(COUNTS, k, k / (k + m)), axis=1))


def of_log_normal(v: Array) -> Array:
    logs = stats.norm.logpdf(np.log(VALUES), np.log(means(v)), v[:, 2:3]) - np.log(VALUES)
    return np.asarray(-2 * np.sum(logs, axis=1))


def of_huber(v: Array) -> Array:
    u, k = np.abs(means(v) - VALUES) / 0.5, 1.345
    return np.asarray(np.sum(np.where(u <= k, u * u, 2 * k * u - k * k), axis=1))


def of_laplace(v: Array) -> Array:
    u, e = (means(v) - VALUES) / 0.5, 1e-4  # the size within which its kink is rounded off
    return np.asarray(np.sum(np.sqrt(8.0) * (np.hypot(u, e) - e), axis=1))


def of_gamma_prior(v: Array) -> Array:
    squares = (((means(v) - VALUES) / 0.5) ** 2).sum(axis=1)
    prior = stats.gamma(3.0, scale=0.2)
    return np.asarray(squares + 2 * (prior.logpdf(0.4) - prior.logpdf(v[:, 0])))


def of_censored(v: Array) -> Array:
    u, seen = (means(v) - VALUES) / 0.5, VALUES > 2
    rest = -2 * stats.norm.logcdf((2.0 - means(v)) / 0.5)
    return np.asarray(np.sum(np.where(seen, u * u, rest), axis=1))


def infected(v: Array) -> Array:
    """All epidemics at once by classical Runge-Kutta steps, for rows of beta and gamma."""

    def rates(x: Array) -> Array:
        new = v[:, 0] * x[0] * x[1] / 1000
        return np.stack([-new, new - v[:, 1] * x[1]])

    x, h, found = np.stack([np.full(len(v), 990.0), np.full(len(v), 10.0)]), 0.05, []
    for step in range(1, round(DAYS[-1] / h) + 1):
        a = rates(x)
        b = rates(x + h / 2 * a)
        c = rates(x + h / 2 * b)
        d = rates(x + h * c)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
        if step % 20 == 0:
            found.append(x[1])
    return np.array(found).T


def decay(noise: dict[str, Any], data: Array, **rate: Any) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        {"t": TIMES, "y": data},
        {"k": {"lower": 0.1, "upper": 2.0, **rate}},
        {"x": {"lower": 2.0, "upper": 40.0}},
        noise={"y": noise},
        t0=0.0,
    )


def epidemic() -> Problem:
    return Problem(
        Model(
            ode={"S": "-beta*S*I/1000", "I": "beta*S*I/1000 - gamma*I"}, observables={"cases": "I"}
        ),
        {"t": DAYS, "cases": INFECTED},
        {"beta": {"lower": 0.38, "upper": 3.8}, "gamma": {"lower": 0.158, "upper": 1.58}},
        {"S": 990.0, "I": 10.0},
        noise={"cases": {"distribution": "poisson"}},
        t0=0.0,
    )


GAMMA = {"distribution": "gamma", "shape": 3.0, "scale": 0.2}
LIMITED = {"sd": 0.5, "lower_limit": 2.0}
CASES: dict[str, tuple[Problem, dict[str, Any] | None, Objective]] = {
    "Poisson": (decay({"distribution": "poisson"}, POISSON), None, of_poisson),
    "negative binomial": (
        decay({"distribution": "negative-binomial", "dispersion": "estimate"}, COUNTS),
        {"y_dispersion": (0.01, 3.0)},
        of_dispersion,
    ),
    "log-normal": (
        decay({"distribution": "log-normal", "sd": "estimate"}, VALUES),
        {"y_sd": (0.02, 2.0)},
        of_log_normal,
    ),
    "Huber": (decay({"sd": 0.5, "loss": "huber"}, VALUES), None, of_huber),
    "Laplace": (decay({"sd": 0.5, "distribution": "laplace"}, VALUES), None, of_laplace),
    "gamma prior": (decay({"sd": 0.5}, VALUES, prior=GAMMA), None, of_gamma_prior),
    "censored": (decay(LIMITED, np.maximum(VALUES, 2.0)), None, of_censored),
    "epidemic": (epidemic(), None, lambda v: poisson_deviance(infected(v), INFECTED)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_no_sample_and_no_search_is_below_the_proved_bound(name: str) -> None:
    problem, given, objective = CASES[name]
    gap = 1e-3 if name == "Laplace" else 0.01
    method = BranchAndBound(gap=gap, bounds=given, starts=2)
    result = odefit.fit(problem, method, seed=1, jobs=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.gap <= gap * (1 + 1e-9)
    if name == "Laplace":
        assert result.starts[0].evaluations < 150  # 603 without supporting lines at the kinks
    ends = {
        k: bounds.assumed.get(k, (a, b))
        for k, a, b in zip(problem.keys, problem.lower, problem.upper, strict=True)
    }
    lower, upper = np.array(list(ends.values())).T
    rng = np.random.default_rng(41)
    points = np.exp(rng.uniform(np.log(lower), np.log(upper), (SAMPLES, len(lower))))
    with np.errstate(all="ignore"):
        values = np.nan_to_num(objective(points), nan=np.inf)
        least = float(values.min())
        for point in points[np.argsort(values)[: SEARCHES // 2]]:
            found = minimize(
                partial(_at_logarithms, objective),
                np.log(point),
                method="Nelder-Mead",
                bounds=list(zip(np.log(lower), np.log(upper), strict=True)),
                options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 600},
            )
            least = min(least, float(found.fun))
    assert least >= bounds.lower
    assert least == pytest.approx(bounds.upper, rel=1e-4, abs=1e-4)


def _at_logarithms(objective: Objective, x: Array) -> float:
    return float(objective(np.exp(x)[None])[0])


def test_the_samples_of_the_epidemic_are_those_of_scipy() -> None:
    path = solve_ivp(
        lambda _, x: [-1.3 * x[0] * x[1] / 1000, 1.3 * x[0] * x[1] / 1000 - 0.5 * x[1]],
        (0.0, 15.0), [990.0, 10.0], t_eval=DAYS, rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    np.testing.assert_allclose(infected(np.array([[1.3, 0.5]]))[0], path.y[1], rtol=1e-5)


@pytest.mark.slow
def test_the_region_of_counts_contains_the_intervals_of_profiles() -> None:
    result = odefit.fit(decay({"distribution": "poisson"}, POISSON), certify="region", seed=1)
    region, profiles = result.assessment.region, result.profile()
    assert region is not None
    assert region.complete
    for one, profile in zip(region.intervals, profiles.profiles, strict=True):
        assert one.lower <= profile.lower < profile.upper <= one.upper
        assert one.upper - one.lower <= 1.5 * (profile.upper - profile.lower)


@pytest.mark.slow
def test_the_region_of_an_estimated_deviation_is_proved() -> None:
    problem = decay({"sd": "estimate"}, VALUES)
    method = BranchAndBound(bounds={"y_sd": (0.05, 5.0)}, starts=2)
    result = odefit.fit(problem, method, certify="region", seed=1)
    region = result.assessment.region
    assert region is not None
    assert region.measure == "-2 log L"
    profiles = result.profile()
    # The profile of a standard deviation has a limit of its own.
    for one, profile in list(zip(region.intervals, profiles.profiles, strict=True))[:2]:
        assert one.lower <= profile.lower < profile.upper <= one.upper
