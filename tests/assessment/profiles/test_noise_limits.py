"""Profiles of a standard deviation: the interval is exact where the model is linear."""

from __future__ import annotations

import math

import pytest
from scipy import stats

import odefit
from odefit import SingleShooting
from odefit.assessment.profiles.noise_limits import noise_limits
from tests.assessment.lines import least_squares, line


def test_the_interval_of_a_line_is_one_of_chi_square_with_its_degrees_of_freedom() -> None:
    problem = line(noise={"x": {"sd": "estimate"}})
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    (profile,) = result.profile(["x_sd"], jobs=1).profiles
    _, variance, _ = least_squares(problem)
    low, high = (10 * variance / end**2 for end in (profile.upper, profile.lower))
    assert stats.chi2.cdf(high, 10) - stats.chi2.cdf(low, 10) == pytest.approx(0.95, abs=1e-3)
    # The restricted likelihood is the same at both ends.
    assert low - 10 * math.log(low) == pytest.approx(high - 10 * math.log(high), abs=0.02)
    assert profile.lower < math.sqrt(variance) < profile.upper


def test_many_measurements_have_the_usual_limit() -> None:
    low, high = noise_limits(1e5, 1e5 - 3, 0.9)
    usual = stats.chi2.ppf(0.9, 1)
    assert low == pytest.approx(usual, rel=0.03)
    assert high == pytest.approx(usual, rel=0.03)


def test_an_interval_that_begins_above_the_estimate_begins_at_it() -> None:
    """Of twelve measurements ten have gone into the unknowns: the estimate is far too small."""
    low, high = noise_limits(12, 2, 0.95)
    assert low < 1e-3
    assert high > 10
