"""Linear bands hold what is at a bound, and are one-sided where it may leave the bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odefit import Model, Problem
from odefit.assessment.predictions.bands import Band, NoBand
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.predictions.profile_bands import ProfileBands
from odefit.common.arrays import Array
from odefit.simulation import ForwardMap

TIMES = np.linspace(0.0, 4.0, 9)
SD = 0.2
QUANTILE = stats.norm.ppf(0.975)


def rising(slope: float) -> Problem:
    """x = a + b t with b >= 0, whose least squares have this slope: a negative one ends at 0."""
    even = np.cos(5.0 * TIMES) + np.cos(5.0 * TIMES[::-1])  # orthogonal to a slope
    values = 1.0 + slope * (TIMES - TIMES.mean()) + 0.05 * (even - even.mean())
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": values},
        {"b": {"lower": 0.0, "upper": 5.0}},
        {"x": {"lower": -9.0, "upper": 9.0}},
        noise={"x": {"sd": SD}},
    )


def band(source: type[LinearBands] | type[ProfileBands], slope: float, at: Array) -> Band:
    problem = rising(slope)
    vector = np.zeros(2)
    vector[problem.keys.index("x")] = 1.0  # the mean, as b is held at zero
    found = source(ForwardMap(problem), vector).bands(problem.conditions[0], at, 0.95)
    assert isinstance(found, list)
    return found[0]


def test_a_band_equals_that_of_regression_where_the_unknown_may_leave_its_bound() -> None:
    """At a slope of zero exactly, one half is as if it were free, the other as if it were known."""
    at = TIMES.mean() + np.array([-1.0, -0.3, 0.0, 0.3, 1.0])
    found = band(LinearBands, 0.0, at)
    distance = at - TIMES.mean()
    held = QUANTILE * SD / np.sqrt(len(TIMES)) * np.ones(len(at))
    free = QUANTILE * SD * np.sqrt(1 / len(TIMES) + distance**2 / np.sum((TIMES - 2.0) ** 2))
    # With a slope, values after the mean rise and those before it fall.
    assert found.confidence[1] == pytest.approx(1 + np.where(distance > 0, free, held), rel=1e-6)
    assert found.confidence[0] == pytest.approx(1 - np.where(distance < 0, free, held), rel=1e-6)
    assert found.widening == ("b",)
    assert found.errors == pytest.approx(held / QUANTILE)


def test_a_value_that_mostly_follows_a_bound_has_a_reason_instead_of_a_band() -> None:
    found = band(LinearBands, 0.0, np.array([2.0, 12.0]))
    assert np.isfinite(found.confidence[:, 0]).all()
    assert np.isnan(found.confidence[:, 1]).all()
    assert (found.lacking, found.at_bounds) == ((NoBand.AT_A_BOUND,), ("b",))


@pytest.mark.parametrize("slope", [0.0, -0.02, -0.1])
def test_linear_and_profile_bands_agree_at_a_bound(slope: float) -> None:
    at = TIMES.mean() + np.array([-1.0, 0.0, 1.0])
    linear, profile = band(LinearBands, slope, at), band(ProfileBands, slope, at)
    width = np.ptp(profile.confidence, axis=0)
    # The linear one is as wide or wider: it leaves out that the cost rises from the bound on.
    assert (linear.confidence[1] >= profile.confidence[1] - 0.01 * width).all()
    assert (linear.confidence[0] <= profile.confidence[0] + 0.01 * width).all()
    assert np.ptp(linear.confidence, axis=0) == pytest.approx(width, rel=0.1)
