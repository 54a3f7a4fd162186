"""The dispersion of few counts: adjusted profile likelihood beside SciPy's own densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from odefit import Control, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment.intervals.dispersions import adjusted_dispersions
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.profiles.noise_limits import limits_by_unknown
from odefit.common.arrays import Array
from odefit.simulation import Evaluation

COUNTS = np.array([12.0, 31.0, 4.0, 22.0, 15.0, 40.0, 9.0, 18.0, 27.0, 11.0])


def solved(counts: Array) -> tuple[ForwardMap, Array, Evaluation]:
    """Return the fit of counts about an unknown mean."""
    problem = Problem(
        Model(ode={"m": "0"}, observables={"y": "m"}),
        {"t": np.arange(len(counts), dtype=float), "y": counts},
        initial={"m": {"guess": 18.0, "lower": 0}},
        noise={"y": {"distribution": "negative-binomial", "dispersion": "estimate"}},
    )
    forward = ForwardMap(problem)
    (start,) = SingleShooting(evaluations=300, tolerance=1e-12).solve(problem, Control()).starts
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    return forward, start.vector, evaluation


def adjusted(dispersion: float) -> float:
    """Return the adjusted profile log-likelihood: the mean of all dispersions is that of counts."""
    mean, k = COUNTS.mean(), 1 / dispersion
    log_likelihood = stats.nbinom.logpmf(COUNTS, k, k / (k + mean)).sum()
    information = len(COUNTS) / (mean * (1 + dispersion * mean))
    return float(log_likelihood - 0.5 * math.log(information))


def test_the_estimate_and_the_interval_are_those_of_the_adjusted_likelihood() -> None:
    at = solved(COUNTS)
    (found,) = adjusted_dispersions(*at, 0.95)
    around = found.estimate * np.array([0.99, 1.01])
    assert all(adjusted(found.estimate) > adjusted(float(a)) for a in around)
    allowed = adjusted(found.estimate) - 0.5 * stats.chi2.ppf(0.95, 1)
    assert [adjusted(found.lower), adjusted(found.upper)] == pytest.approx([allowed] * 2, abs=1e-5)
    assert found.estimate > 1.05 * at[1][1]  # the maximum of the likelihood is too small
    uncertainty = assess_uncertainty(*at)
    assert uncertainty.intervals[1] == pytest.approx([found.lower, found.upper])
    assert uncertainty.corrected_noise["y_dispersion"] == pytest.approx(found.estimate)
    assert "adjusted profile likelihood" in uncertainty.sentence
    # Counts that scatter more tell less of their mean.
    mean, a = COUNTS.mean(), found.estimate
    assert uncertainty.standard_errors[0] == pytest.approx(
        math.sqrt(mean * (1 + a * mean) / len(COUNTS)), rel=1e-4
    )


def test_a_profile_of_the_dispersion_ends_where_the_interval_does() -> None:
    at = solved(COUNTS)
    (found,) = adjusted_dispersions(*at, 0.95)
    limits = limits_by_unknown(*at, 0.95)[1]
    mean, best = COUNTS.mean(), at[1][1]

    def log_likelihood(dispersion: float) -> float:
        k = 1 / dispersion
        return float(stats.nbinom.logpmf(COUNTS, k, k / (k + mean)).sum())

    expected = [2 * (log_likelihood(best) - log_likelihood(e)) for e in (found.lower, found.upper)]
    assert limits == pytest.approx(expected, rel=1e-4)
    assert limits[0] < stats.chi2.ppf(0.95, 1) < limits[1]


def test_counts_compatible_with_poisson_have_no_lower_limit() -> None:
    counts = np.array([18.0, 22.0, 15.0, 23.0, 19.0, 26.0, 14.0, 20.0, 27.0, 12.0])
    at = solved(counts)
    (found,) = adjusted_dispersions(*at, 0.95)
    assert found.lower == 0.0
    assert 0 < found.estimate < found.upper < 1
    assert assess_uncertainty(*at).intervals[1, 0] == 0.0
