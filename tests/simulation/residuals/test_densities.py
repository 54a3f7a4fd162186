"""Log-likelihoods against SciPy's densities, their gradients against finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import odefit
from odefit.problem.noise import Noise
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.noise import Density

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
VALUES = np.array([2.1, 1.4, 0.9, 3.0, 0.5, 0.12])
COUNTS = np.array([21.0, 14.0, 9.0, 30.0, 0.0, 1.0])
CENSORED = np.array([0, 0, 1, 0, -1, 1])
SD = 0.2
HUBER_NORM = integrate.quad(
    lambda u: math.exp(-0.5 * u * u if abs(u) < 1.345 else -1.345 * abs(u) + 1.345**2 / 2),
    -40,
    40,
    points=[-1.345, 1.345],
)[0]


def huber(y: Any, f: Any, s: float) -> Any:
    u = np.abs(y - f) / s
    rho = np.where(u < 1.345, u * u / 2, 1.345 * u - 1.345**2 / 2)
    return -rho - math.log(s * HUBER_NORM)


def censored(y: Any, f: Any, s: float) -> Any:
    z = (y - f) / s
    found = np.where(CENSORED == 1, stats.norm.logcdf(z), stats.norm.logsf(z))
    return np.where(CENSORED == 0, stats.norm.logpdf(y, f, s), found)


def negative_binomial(y: Any, f: Any, a: float) -> Any:
    return stats.nbinom.logpmf(y, 1 / a, 1 / (1 + a * f))


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "normal": ({}, lambda y, f, s: stats.norm.logpdf(y, f, s)),
    "huber": ({"loss": "huber"}, huber),
    "student": ({"loss": "student"}, lambda y, f, s: stats.t.logpdf(y, 4, f, s)),
    "student with 2.5 degrees": (
        {"loss": "student", "degrees": 2.5},
        lambda y, f, s: stats.t.logpdf(y, 2.5, f, s),
    ),
    "student of logarithms": (
        {"loss": "student", "transform": "log"},
        lambda y, f, s: stats.t.logpdf(np.log(y), 4, np.log(f), s) - np.log(y),
    ),
    "laplace": (
        {"distribution": "laplace"},
        lambda y, f, s: stats.laplace.logpdf(y, f, s / math.sqrt(2)),
    ),
    "log-normal": (
        {"distribution": "log-normal"},
        lambda y, f, s: stats.lognorm.logpdf(y, s, scale=f),
    ),
    "censored": ({}, censored),
    "poisson": ({"distribution": "poisson"}, lambda y, f, s: stats.poisson.logpmf(y, f)),
    "negative binomial": ({"distribution": "negative-binomial"}, negative_binomial),
}


def problem(name: str, spread: Any = SD) -> odefit.Problem:
    noise, _ = CASES[name]
    noise = dict(noise)
    counts = name in ("poisson", "negative binomial")
    if name == "negative binomial":
        noise["dispersion"] = spread
    elif not counts:
        noise["sd"] = spread
    data = {"t": TIMES, "y": COUNTS if counts else VALUES}
    if name == "censored":
        data["y_cens"] = CENSORED
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "scale*x"}),
        data=data,
        parameters={"k": {"lower": 0}, "scale": {"lower": 0}, "a": {"lower": 0}}
        if spread not in (SD, "estimate")
        else {"k": {"lower": 0}, "scale": {"lower": 0}},
        initial={"x": 10.0 if counts else 1.0},
        noise={"y": noise},
    )


def evaluated(forward: ForwardMap, vector: Any) -> Any:
    found = forward.evaluate(np.asarray(vector))
    assert not isinstance(found, Failure)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("estimated", [False, True])
def test_the_log_likelihood_is_that_of_the_density(name: str, estimated: bool) -> None:
    if name == "poisson" and estimated:
        pytest.skip("Poisson counts have no spread of their own")
    one = problem(name, "estimate" if estimated else SD)
    counts = name in ("poisson", "negative binomial")
    predicted = 2.0 * (10.0 if counts else 1.0) * np.exp(-0.6 * TIMES)
    expected = float(np.sum(CASES[name][1](COUNTS if counts else VALUES, predicted, SD)))
    found = evaluated(ForwardMap(one), [0.6, 2.0, SD] if estimated else [0.6, 2.0])
    assert found.log_likelihood == pytest.approx(expected, rel=1e-9, abs=2e-3 * (name == "laplace"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("spread", [SD, "estimate", "a + 0.1*y"])
def test_residuals_and_jacobian_are_the_gradient_of_the_cost(name: str, spread: Any) -> None:
    if name == "poisson" and spread != SD:
        pytest.skip("Poisson counts have no spread of their own")
    forward = ForwardMap(problem(name, spread))
    vector = np.array([0.6, 2.0, SD])[: len(forward.problem.unknowns)]
    found = evaluated(forward, vector)
    slopes = [
        (forward.cost(vector + step) - forward.cost(vector - step)) / 2e-6
        for step in 1e-6 * np.eye(len(vector))
    ]
    assert found.jacobian.T @ found.residuals == pytest.approx(slopes, rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_cost_and_the_log_likelihood_differ_by_a_constant(name: str) -> None:
    forward = ForwardMap(problem(name, SD if name == "poisson" else "estimate"))
    vectors = [np.array([0.6, 2.0, 0.2]), np.array([0.7, 1.8, 0.5])]
    count = len(forward.problem.unknowns)
    sums = [e.cost + e.log_likelihood for e in (evaluated(forward, v[:count]) for v in vectors)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)


def test_the_cost_of_large_counts_is_of_the_size_of_their_log_likelihood() -> None:
    # Stopping rules are relative to the cost: without factorials it would be some y log y.
    times = np.arange(1.0, 11.0)
    counts = np.round(100.0 * np.exp(0.5 * times))
    found = odefit.Problem(
        odefit.Model(ode={"y": "k*y"}),
        {"t": times, "y": counts},
        {"k": {"guess": 0.5}},
        {"y": 100.0},
        noise={"y": {"distribution": "negative-binomial", "dispersion": "estimate"}},
        t0=0.0,
    )
    evaluation = evaluated(ForwardMap(found), np.array([0.5, 0.05]))
    density = negative_binomial(counts, 100.0 * np.exp(0.5 * times), 0.05).sum()
    assert evaluation.log_likelihood == pytest.approx(density, rel=1e-9)
    rest = len(times) * 0.5 * math.log(2 * math.pi)
    assert evaluation.cost == pytest.approx(-density - rest, rel=1e-9)


def expected_information(logpdf: Any, at: tuple[float, float], support: Any) -> np.ndarray:
    """The expectation of the outer product of the scores, summed or integrated over the data."""

    def scores(y: Any) -> np.ndarray:
        h = 1e-5
        by_mean = (logpdf(y, at[0] + h, at[1]) - logpdf(y, at[0] - h, at[1])) / (2 * h)
        by_scale = (logpdf(y, at[0], at[1] + h) - logpdf(y, at[0], at[1] - h)) / (2 * h)
        return np.stack([by_mean, by_scale])

    values, weights = support
    s = scores(values)
    return np.asarray((s * weights * np.exp(logpdf(values, *at))) @ s.T)


@pytest.mark.parametrize("name", ["huber", "student", "laplace", "poisson", "negative binomial"])
def test_the_information_is_the_expectation_of_squared_scores(name: str) -> None:
    noise = Noise(**CASES[name][0])
    counts = name in ("poisson", "negative binomial")
    at = (12.0, 0.3) if counts else (1.0, 0.4)
    support = (
        (np.arange(400.0), np.ones(400))
        if counts
        else (grid := np.linspace(-60, 62, 400_002), np.full(400_002, grid[1] - grid[0]))
    )
    b, c, d = noise.law.information(np.array([at[0]]), np.array([at[1]]))[0]
    found = np.array([[b * b, b * c], [b * c, c * c + d * d]])
    expected = expected_information(CASES[name][1], at, support)
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("mean", [1e-3, 0.5, 12.0, 300.0])
@pytest.mark.parametrize("name", ["poisson", "negative binomial"])
def test_the_expected_residual_of_counts_is_their_sum(name: str, mean: float) -> None:
    density = Noise(**CASES[name][0]).law
    found = density.expected_residuals(np.array([mean]), np.array([0.3]))
    counts = np.arange(6000.0)
    terms = density.terms(np.full(6000, mean), counts, np.full(6000, 0.3))
    exact = float(np.sum(terms.residuals * np.exp(CASES[name][1](counts, mean, 0.3))))
    assert found == pytest.approx([exact], abs=1e-3)


@pytest.mark.parametrize("limits", [(0.8, np.inf), (-np.inf, 1.6), (0.8, 1.6)])
def test_the_expected_residual_of_censored_values_is_their_integral(
    limits: tuple[float, float],
) -> None:
    f, s = np.array([1.1]), np.array([0.4])
    at = np.array(limits)[:, None]
    found = Density(Noise().law, False, np.array([0]), at).expected_residuals(f, s)
    low, high = limits
    exact = float(
        integrate.quad(lambda y: (f[0] - y) / s[0] * stats.norm.pdf(y, 1.1, 0.4), *limits)[0]
    )
    for side, limit, p in ((1, low, stats.norm.cdf), (-1, high, stats.norm.sf)):
        if np.isfinite(limit):
            terms = Density(Noise().law, False, np.array([side]), at).terms(f, np.array([limit]), s)
            exact += float(terms.residuals[0] * p(limit, 1.1, 0.4))
    assert abs(exact) > 0.01
    assert found == pytest.approx([exact], abs=1e-9)


def test_the_information_of_censored_values_counts_both_outcomes() -> None:
    low, high, f, s = 0.8, 1.6, 1.0, 0.4
    limits = np.array([[low], [high]])
    density = Density(Noise().law, False, np.array([1]), limits)
    b, c, d = density.information(np.array([f]), np.array([s]))[0]
    found = np.array([[b * b, b * c], [b * c, c * c + d * d]])

    def outer(of: Any, weight: float) -> np.ndarray:
        h = 1e-6
        score = np.array(
            [(of(f + h, s) - of(f - h, s)) / (2 * h), (of(f, s + h) - of(f, s - h)) / (2 * h)]
        )
        return weight * np.outer(score, score)

    y = np.linspace(low, high, 401)
    inside = integrate.simpson(
        [outer(lambda m, w, v=v: stats.norm.logpdf(v, m, w), stats.norm.pdf(v, f, s)) for v in y],
        x=y,
        axis=0,
    )
    below = outer(lambda m, w: stats.norm.logcdf(low, m, w), stats.norm.cdf(low, f, s))
    above = outer(lambda m, w: stats.norm.logsf(high, m, w), stats.norm.sf(high, f, s))
    assert found == pytest.approx(inside + below + above, rel=1e-5)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["huber", "student", "laplace", "poisson", "negative binomial"]),
    st.floats(1e-6, 1e6),
    st.integers(0, 10**6),
    st.floats(1e-6, 10),
)
def test_half_the_squared_residual_rises_as_the_log_density_falls(
    name: str, predicted: float, measured: int, scale: float
) -> None:
    density = Noise(**CASES[name][0]).law
    y, f, s = np.array([float(measured)]), np.array([predicted]), np.array([scale])
    terms = density.terms(f, y, s)
    assert all(np.isfinite(v).all() for v in vars(terms).values())
    assert (terms.slopes > 0).all()
    assert np.sign(terms.residuals) == np.sign(predicted - measured)
    # The others' values are tested above; SciPy loses digits where the dispersion is small.
    if name in ("student", "poisson") or (name == "negative binomial" and scale > 0.01):
        law, top = CASES[name][1], np.maximum(y, 1e-9)
        best = density.terms(top, y, s)
        drop = law(y, top, s) - law(y, f, s)
        assert 0.5 * (terms.residuals**2 - best.residuals**2) == pytest.approx(
            drop, rel=1e-6, abs=1e-6 * (1 + measured)
        )


@pytest.mark.parametrize("y", [0.0, 1.0, 37.0, 1e6])
@pytest.mark.parametrize("a", [1e-10, 1e-4, 0.0333, 0.0334, 1.0, 20.0])
def test_the_derivative_by_the_dispersion_is_exact_however_small_it_is(y: float, a: float) -> None:
    mpmath = pytest.importorskip("mpmath", reason="the reference needs many digits")
    mpmath.mp.dps = 60
    m = 25.0

    def log_density(dispersion: Any) -> Any:
        k = 1 / dispersion
        return (
            mpmath.loggamma(y + k)
            - mpmath.loggamma(k)
            - y * mpmath.log(1 + k / m)
            - k * mpmath.log(1 + m / k)
        )

    exact = mpmath.mpf(a)
    expected = -float(mpmath.diff(log_density, exact, h=exact * mpmath.mpf("1e-15")))
    density = Noise(**CASES["negative binomial"][0]).law
    found = density.terms(np.array([m]), np.array([y]), np.array([a])).scale_slopes[0]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_far_censored_values_keep_finite_residuals_and_derivatives() -> None:
    density = Density(Noise().law, False, np.ones(5, np.intp), np.full((2, 5), np.inf))
    u = np.array([-60.0, -30.0, 0.0, 60.0, 1e6])
    terms = density.terms(u, np.zeros(5), np.ones(5))
    assert np.isfinite(terms.residuals).all()
    assert np.isfinite(terms.slopes).all()
    assert terms.residuals[-1] == pytest.approx(1e6, rel=1e-6)
    assert terms.slopes[-1] == pytest.approx(1.0, rel=1e-6)
    assert terms.residuals[0] == 0.0


@pytest.mark.parametrize("beyond", [10.0, 20.0, 45.0])
def test_values_that_are_sure_to_be_censored_have_no_information(beyond: float) -> None:
    n = 9
    predicted = np.linspace(beyond, 1.5 * beyond, n)
    for side in (1.0, -1.0):
        limits = np.stack([np.full(n, -np.inf), np.zeros(n)])
        if side < 0:  # above an upper limit, or below a lower one
            limits = np.stack([np.zeros(n), np.full(n, np.inf)])
        density = Density(Noise().law, False, np.full(n, -int(side)), limits)
        assert np.abs(density.information(side * predicted, np.ones(n))).max() < 1e-8
