"""Noise that is not normal: every method works with it, or refuses it in a sentence."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.methods.registry import METHODS, make_method

TIMES = np.linspace(0.0, 4.0, 24)
TRUTH = {"k": 0.7, "scale": 2.0}
CURVE = 2.0 * np.exp(-0.7 * TIMES)

NOISE: dict[str, dict[str, Any]] = {
    "huber": {"sd": 0.05, "loss": "huber"},
    "student": {"sd": "estimate", "loss": "student"},
    "laplace": {"sd": 0.05, "distribution": "laplace"},
    "log-normal": {"sd": 0.1, "distribution": "log-normal"},
    "censored": {"sd": "estimate", "lower_limit": 0.3},
    "poisson": {"distribution": "poisson"},
    "negative binomial": {"distribution": "negative-binomial", "dispersion": "estimate"},
}


def problem(name: str, seed: int = 2) -> odefit.Problem:
    random = np.random.default_rng(seed)
    noise = NOISE[name]
    first = 1.0
    if name == "poisson":
        values, first = random.poisson(50 * CURVE).astype(float), 50.0
    elif name == "negative binomial":
        mean = 50 * CURVE
        values, first = random.negative_binomial(10, 10 / (10 + mean)).astype(float), 50.0
    elif name == "log-normal":
        values = CURVE * np.exp(0.1 * random.standard_normal(24))
    else:
        values = CURVE + 0.05 * random.standard_normal(24)
    bounds = {"k": {"lower": 0.05, "upper": 5}, "scale": {"lower": 0.1, "upper": 20}}
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "scale*x"}),
        data={"t": TIMES, "y": values},
        parameters=bounds,
        initial={"x": first},
        noise={"y": noise},
    )


PROVING = {"branch-and-bound", "outer-approximation"}
QUICK = {"automatic", "single-shooting", "algebraic"}


def in_the_fast_tests(method: str, noise: str) -> bool:
    """Are both quick? An unknown scale of a loss takes most methods a second or more."""
    return noise == "poisson" or (noise == "student" and method in QUICK)


@cache
def default_log_likelihood(noise: str) -> float:
    found = odefit.fit(problem(noise), seed=1).log_likelihood
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("method", "noise"),
    [
        pytest.param(m, n, marks=() if in_the_fast_tests(m, n) else pytest.mark.slow)
        for m in METHODS
        for n in NOISE
        if m not in PROVING
    ],
)
def test_methods_end_at_the_optimum_of_the_likelihood(method: str, noise: str) -> None:
    one = problem(noise)
    result = odefit.fit(one, make_method(method), seed=1)
    assert result.log_likelihood == pytest.approx(default_log_likelihood(noise), abs=2e-3)
    for name, value in TRUTH.items():
        assert result.best.parameters[name] == pytest.approx(value, rel=0.25)


@pytest.mark.parametrize("noise", [n for n in NOISE if n != "log-normal"])
def test_outer_approximation_refuses_in_a_sentence_and_names_the_method_that_proves(
    noise: str,
) -> None:
    expected = r"noise\.y, .*BranchAndBound\(\) in continuous time bounds others as well"
    with pytest.raises(odefit.InputError, match=expected) as refused:
        odefit.fit(problem(noise), make_method("outer-approximation"))
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "noise",
    [
        "log-normal",
        pytest.param("poisson", marks=pytest.mark.slow),
    ],
)
def test_branch_and_bound_proves_the_optimum_of_the_likelihood(noise: str) -> None:
    """Within proposed bounds; tests of likelihoods prove those of other noise in given ones."""
    result = odefit.fit(problem(noise), odefit.BranchAndBound(gap=0.05, bounds="propose"), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert result.log_likelihood == pytest.approx(default_log_likelihood(noise), abs=2e-3)


@pytest.mark.slow
def test_a_certificate_needs_bounds_of_the_noise() -> None:
    result = odefit.fit(problem("student"), certify=True)
    assert result.assessment.bounds is None
    assert any(
        warning.startswith("No certificate: ") and '"y_sd": (' in warning
        for warning in result.warnings
    )


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(
            n, marks=pytest.mark.slow if n in {"negative binomial", "huber", "laplace"} else ()
        )
        for n in NOISE
    ],
)
def test_starts_and_solutions_show_the_same_measure(noise: str) -> None:
    result = odefit.fit(problem(noise), odefit.MultiStart(starts=3))
    assert result.log_likelihood is not None
    best = min(result.value_of(start) for start in result.starts)
    assert result.measure == "-2 log L"
    assert best == pytest.approx(-2 * result.log_likelihood, abs=0.02)
