"""Simulated fits of the linearised model have the limits of theory where theory has any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from odefit import Control, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment import Uncertainty
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.simulated_fits import SAMPLES, SimulatedFits
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.profiles.noise_limits import limits_by_unknown
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, Failure

COUNT = 11
ALMOST_NORMAL: dict[str, Any] = {"loss": "huber", "threshold": 30.0}
"""Huber's loss without tails: for this, normal theory has the limits."""


def mean_of(count: int = COUNT, **noise: Any) -> Problem:
    """Values about an unknown mean."""
    values = 3 + np.random.default_rng(5).laplace(0, 0.5, count)
    return Problem(
        Model(ode={"m": "0"}, observables={"y": "m"}),
        {"t": np.arange(count, dtype=float), "y": values},
        initial={"m": {"guess": 3.0}},
        noise={"y": noise},
    )


def solved(problem: Problem) -> tuple[ForwardMap, Array, Evaluation]:
    forward = ForwardMap(problem)
    (start,) = SingleShooting(evaluations=300).solve(problem, Control()).starts
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    return forward, start.vector, evaluation


def assessed(problem: Problem) -> Uncertainty:
    return assess_uncertainty(*solved(problem))


@pytest.mark.slow
def test_without_tails_intervals_are_those_of_students_t_and_of_chi_square() -> None:
    """The error of 2,000 fits is about 3 % of the limits."""
    normal, simulated = (
        assessed(mean_of(sd="estimate")),
        assessed(mean_of(sd="estimate", **ALMOST_NORMAL)),
    )
    widths = [float(np.diff(found.intervals[0])[0]) for found in (simulated, normal)]
    assert widths[0] == pytest.approx(widths[1], rel=0.07)
    assert widths[0] > 1.1 * 2 * 1.96 * normal.standard_errors[0] * math.sqrt(1 - 1 / COUNT)
    assert simulated.intervals[1] == pytest.approx(normal.intervals[1], rel=0.07)
    assert simulated.standard_errors[0] == pytest.approx(normal.standard_errors[0], rel=0.07)
    assert simulated.corrected_noise["y_sd"] == pytest.approx(
        normal.corrected_noise["y_sd"], rel=0.05
    )
    assert f"{SAMPLES} simulated fits of the linearised model" in simulated.sentence


@pytest.mark.slow
def test_without_tails_the_limit_of_the_deviance_is_that_of_f() -> None:
    at = solved(mean_of(sd="estimate", **ALMOST_NORMAL))
    deviance = Deviance.of(*at)
    exact = COUNT * math.log1p(stats.f.ppf(0.95, 1, COUNT - 1) / (COUNT - 1))
    assert deviance.limit(0.95) == pytest.approx(exact, rel=0.12)
    assert deviance.limit(0.95) > 1.05 * stats.chi2.ppf(0.95, 1)
    # The profile of the scale ends where chi-square with 10 degrees of freedom has its quantiles.
    low, high = limits_by_unknown(*at, 0.95)[1]
    for limit, chi_square in zip(
        (low, high), (stats.chi2.ppf(p, 10) for p in (0.975, 0.025)), strict=True
    ):
        ratio = COUNT / chi_square
        assert limit == pytest.approx(COUNT * (math.log(ratio) + 1 / ratio - 1), rel=0.2)


def test_the_interval_of_a_median_is_that_of_its_exact_distribution() -> None:
    """The median of eleven values is the sixth, whose probability has a beta distribution."""
    found = assessed(mean_of(sd=0.7, distribution="laplace"))
    share = stats.beta(6, 6).ppf(0.975)
    exact = stats.laplace(scale=0.7 / math.sqrt(2)).ppf(share)
    width = float(np.diff(found.intervals[0])[0])
    assert 0.5 * width == pytest.approx(exact, rel=0.06)
    asymptotic = 1.96 * 0.7 / math.sqrt(2 * COUNT)
    assert 0.5 * width > 1.2 * asymptotic


def test_the_scale_of_laplace_noise_has_an_interval_that_holds_for_few_values() -> None:
    """Its estimate, times n, nearly has a chi-square distribution with 2 (n - 1) degrees."""
    problem = mean_of(sd="estimate", distribution="laplace")
    _, vector, _ = solved(problem)
    ends = vector[1] * 2 * COUNT / stats.chi2.ppf([0.975, 0.025], 2 * (COUNT - 1))
    assert assessed(problem).intervals[1] == pytest.approx(ends, rel=0.08)


@pytest.mark.slow
def test_large_samples_have_the_usual_limits() -> None:
    """Of Student's loss, whose density has no kink."""
    forward, vector, evaluation = solved(mean_of(600, sd="estimate", loss="student"))
    fits = SimulatedFits.of(forward, vector, evaluation)
    assert fits is not None
    information = evaluation.information
    usual = np.sqrt(np.diag(np.linalg.inv(information.T @ information)))
    gradient = np.array([[1.0, 0.0]])
    assert fits.errors(gradient)[0] == pytest.approx(usual[0], rel=0.06)
    assert fits.half_widths(gradient, 0.95)[0] == pytest.approx(1.96 * usual[0], rel=0.08)
    assert fits.limit(0.95) == pytest.approx(3.84, rel=0.15)


@pytest.mark.slow
def test_useless_simulations_are_skipped() -> None:
    assert SimulatedFits.of(*solved(mean_of(sd="estimate"))) is None
    at = solved(mean_of(sd="estimate", loss="student"))
    assert SimulatedFits.of(*at) is SimulatedFits.of(*at)  # made once
    large = mean_of(12_000, sd=0.7, loss="student")
    assert SimulatedFits.of(*solved(large)) is None
    assert "less often than stated" in assessed(large).sentence


@pytest.mark.slow
def test_a_part_with_known_normal_noise_keeps_its_errors() -> None:
    """Two observables without common unknowns: only one of them has Laplace noise."""
    random = np.random.default_rng(2)
    problem = Problem(
        Model(ode={"a": "0", "b": "0"}),
        {"t": np.arange(20.0), "a": 1 + random.normal(0, 0.1, 20), "b": random.laplace(2, 1, 20)},
        initial={"a": {"guess": 1.0}, "b": {"guess": 2.0}},
        noise={"a": {"sd": 0.1}, "b": {"sd": "estimate", "distribution": "laplace"}},
    )
    found = assessed(problem)
    assert found.standard_errors[0] == pytest.approx(0.1 / math.sqrt(20), rel=0.06)
    assert float(np.diff(found.intervals[0])[0]) == pytest.approx(
        2 * 1.96 * 0.1 / math.sqrt(20), rel=0.06
    )
    assert found.correlation[0, 1] == pytest.approx(0.0, abs=0.08)


@pytest.mark.slow
def test_a_band_of_an_observable_is_as_wide_as_the_interval_of_its_unknown() -> None:
    forward, vector, evaluation = solved(mean_of(sd="estimate", distribution="laplace"))
    interval = assess_uncertainty(forward, vector, evaluation).intervals[0]
    bands = LinearBands(forward, vector).bands(
        forward.problem.conditions[0], np.array([1.0, 2.0]), 0.95
    )
    assert not isinstance(bands, Failure)
    band = next(b for b in bands if b.name == "y")
    assert band.confidence[:, 0] == pytest.approx(interval, rel=1e-3)
