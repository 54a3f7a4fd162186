"""Standard errors of a match, by matching simulated data."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError, IntegralMatching, Noise, Problem
from odefit.methods.integral_matching import MatchErrors
from tests.methods.integral_matching.problems import DECAY, T, decay

METHOD = IntegralMatching()


def noisy(sd: float, seed: int, **more: object) -> Problem:
    values = DECAY + sd * np.random.default_rng(seed).normal(size=len(T))
    return decay(data={"t": T, "x": values}, **more)


def errors(problem: Problem, samples: int = 60, seed: int = 0) -> MatchErrors:
    return METHOD.standard_errors(problem, METHOD.match(problem), samples=samples, seed=seed)


@pytest.mark.slow
def test_bootstrap_errors_are_the_scatter_of_matches_of_new_data() -> None:
    """60 data sets with a noise of 0.02, beside the errors that one of them has."""
    matches = np.array([METHOD.match(noisy(0.02, seed)).vector for seed in range(60)])
    scatter = matches.std(axis=0, ddof=1)
    problem = noisy(0.02, 0)
    found = errors(problem, samples=60)
    assert found.failures == 0
    assert found.vectors.shape == (60, 2)
    assert list(found.errors.values()) == pytest.approx(scatter, rel=0.35)
    correlation = np.corrcoef(matches.T)[0, 1]
    covariance = found.covariance
    own = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert own == pytest.approx(correlation, abs=0.2)


@pytest.mark.slow
def test_given_noise_is_taken_instead_of_the_smoothers() -> None:
    small, large = (
        errors(noisy(0.02, 0, noise={"x": Noise(sd=sd)})).errors["a"] for sd in (0.01, 0.04)
    )
    assert large == pytest.approx(4 * small, rel=0.3)


def test_noise_of_a_logarithm_multiplies() -> None:
    noise = {"x": Noise(sd=0.05, transform="log")}
    found = errors(noisy(0.001, 0, noise=noise))
    assert 0.001 < found.errors["a"] < 0.1


def test_names_matrix_and_bias_belong_together() -> None:
    problem = noisy(0.02, 1)
    match, found = METHOD.match(problem), errors(noisy(0.02, 1))
    assert tuple(found.errors) == problem.keys
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(list(found.errors.values()))
    bias = found.vectors.mean(axis=0) - match.vector
    assert list(found.bias.values()) == pytest.approx(bias)


def test_the_same_seed_gives_the_same_errors() -> None:
    problem = noisy(0.02, 1)
    assert errors(problem, 12, 3).errors == errors(problem, 12, 3).errors
    assert errors(problem, 12, 3).errors != errors(problem, 12, 4).errors


def test_the_problem_s_own_data_are_left_alone() -> None:
    problem = noisy(0.02, 1)
    before = problem.conditions[0].series["x"].values.copy()
    errors(problem, 10)
    assert np.array_equal(problem.conditions[0].series["x"].values, before)


def test_too_few_samples_are_refused() -> None:
    problem = noisy(0.02, 1)
    with pytest.raises(InputError, match="samples: expected a whole number of at least 10, got 9"):
        METHOD.standard_errors(problem, METHOD.match(problem), samples=9)
