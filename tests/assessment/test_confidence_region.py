"""Proved intervals against closed forms, and refutations against the chi-square distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit import Model, Noise, Problem
from odefit.assessment.confidence_region import refutation
from odefit.common.arrays import Array
from odefit.methods.estimate import Certificate

TIMES = np.linspace(0.0, 2.0, 7)
VALUES = 1.0 + 0.7 * TIMES + np.array([0.05, -0.1, 0.02, 0.08, -0.06, 0.03, -0.02])


def line(noise: dict[str, Any], values: Array = VALUES, **bounds: tuple[float, float]) -> Problem:
    """A straight line: residuals are linear in both unknowns."""
    ends = {"a": (-5.0, 5.0), "x": (-5.0, 5.0)} | bounds
    ranges = {k: {"lower": low, "upper": high} for k, (low, high) in ends.items()}
    return Problem(
        Model(ode={"x": "a"}),
        {"t": TIMES, "x": values},
        {"a": ranges["a"]},
        {"x": ranges["x"]},
        noise=noise,
    )


def proved(problem: Problem, **options: Any) -> odefit.Result:
    return odefit.fit(problem, "single-shooting", seed=1, jobs=1, certify="region", **options)


def ends(level: float, sd: float | None) -> Array:
    """Return the exact ends of the region's projections on slope and intercept."""
    design = np.column_stack([TIMES, np.ones_like(TIMES)])
    best, squares, *_ = np.linalg.lstsq(design, VALUES)
    covariance = np.linalg.inv(design.T @ design)
    degrees = len(TIMES) - 2
    if sd is None:
        half = stats.t.ppf((1 + level) / 2, degrees) * math.sqrt(squares[0] / degrees)
    else:
        half = stats.norm.ppf((1 + level) / 2) * sd
    errors = half * np.sqrt(np.diagonal(covariance))
    return np.column_stack([best - errors, best + errors])


@pytest.mark.slow
@pytest.mark.parametrize(("level", "sd"), [(0.95, 0.06), (0.8, None)])
def test_the_intervals_of_a_line_hold_the_exact_ones_and_hardly_more(
    level: float, sd: float | None
) -> None:
    result = proved(line({} if sd is None else {"x": Noise(sd=sd)}), level=level)
    region = result.assessment.region
    assert region is not None
    assert region.complete
    assert region.level == level
    assert region.excess < 1.15
    for one, (low, high) in zip(region.intervals, ends(level, sd), strict=True):
        assert one.lower < low
        assert one.upper > high
        assert one.upper - one.lower < 1.15 * (high - low)
        np.testing.assert_allclose(one.profile, (low, high), rtol=1e-4)
        assert one.at_bounds == (False, False)
        assert one.intervals == ()
    assert result.profiles is not None
    assert result.profiles.level == level
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed


@pytest.mark.slow
def test_two_solutions_have_two_intervals() -> None:
    """The sign of k has no effect."""
    times = np.linspace(0.0, 3.0, 8)
    problem = Problem(
        Model(ode={"x": "-k^2*x"}),
        {"t": times, "x": np.exp(-0.5 * times) + 0.02 * np.cos(11 * times)},
        {"k": {"lower": -2.0, "upper": 2.0}},
        {"x": 1.0},
        noise={"x": Noise(sd=0.03)},
    )
    region = proved(problem).assessment.region
    assert region is not None
    assert region.complete
    (one,) = region.intervals
    (a, b), (c, d) = one.intervals
    assert a < -math.sqrt(0.5) < b < -0.5
    assert 0.5 < c < math.sqrt(0.5) < d
    # By symmetry, in spite of the search from one side.
    assert (b - a) / (d - c) == pytest.approx(1.0, abs=0.15)
    assert (one.lower, one.upper) == (a, d)


def test_an_interval_without_a_limit_ends_at_the_bounds() -> None:
    region = proved(line({"x": Noise(sd=50.0)}, a=(-0.5, 2.0))).assessment.region
    assert region is not None
    assert region.complete
    one = region.intervals[0]
    assert (one.lower, one.upper) == (-0.5, 2.0)
    assert one.at_bounds == (True, True)


@pytest.mark.slow
def test_bounds_given_to_the_method_are_reported() -> None:
    free = line({"x": Noise(sd=0.06)}, a=(-math.inf, math.inf))
    method = odefit.BranchAndBound(bounds={"a": (-4.0, 4.0)})
    result = odefit.fit(free, method, seed=1, jobs=1, certify="region")
    region = result.assessment.region
    assert region is not None
    assert region.assumed == {"a": (-4.0, 4.0)}
    without = odefit.fit(free, "single-shooting", seed=1, jobs=1, certify="region")
    assert without.assessment.region is None
    assert any(w.startswith("No confidence region: global opt") for w in without.warnings)
    assert sum(w.startswith("No certificate: global opt") for w in without.warnings) == 1


def test_data_without_noise_have_no_region_but_a_reason() -> None:
    problem = line({}, 1.0 + 0.7 * TIMES)
    result = proved(problem)
    assert result.assessment.region is None
    assert any(w.startswith("No confidence region: the model repro") for w in result.warnings)
    assert result.assessment.bounds is not None


def test_wrong_words_are_refused() -> None:
    with pytest.raises(odefit.InputError, match=r'expected True, False or "region", got .box.'):
        odefit.fit(line({}), certify="box")  # type: ignore[arg-type]


# Refutation ---------------------------------------------------------------------------------------


def bound(lower: float, **facts: Any) -> Certificate:
    return Certificate(lower, 2 * lower, "continuous time", rigorous=True, **facts)


def test_a_bound_above_the_quantile_refutes_with_the_tail_of_chi_square() -> None:
    problem = line({"x": Noise(sd=0.06)})
    quantile = float(stats.chi2.isf(0.05, 5))
    assert refutation(problem, bound(0.999 * quantile), 0.95) is None
    found = refutation(problem, bound(60.0), 0.95)
    assert found is not None
    assert found.degrees_of_freedom == 5
    assert found.p == pytest.approx(float(stats.chi2.sf(60.0, 5)), rel=1e-10)
    assert refutation(problem, bound(1.001 * quantile), 0.95) is not None
    assert refutation(problem, bound(1.001 * quantile), 0.99) is None


def test_only_given_noise_and_continuous_time_refute() -> None:
    given = line({"x": Noise(sd=0.06)})
    assert refutation(line({}), bound(1e6), 0.95) is None
    assert refutation(line({"x": Noise(sd="estimate")}), bound(1e6), 0.95) is None
    assert refutation(given, None, 0.95) is None
    assert refutation(given, bound(1e6, discretised=True), 0.95) is None
    assert refutation(given, Certificate(1e6, 2e6, "continuous time"), 0.95) is None


def test_a_certificate_refutes_a_wrong_model() -> None:
    """A line through a parabola: the least chi-square is that of linear regression."""
    curved = line({"x": Noise(sd=0.05)}, TIMES**2)
    squares = np.polyfit(TIMES, TIMES**2, 1, full=True)[1][0] / 0.05**2
    result = odefit.fit(curved, "single-shooting", seed=1, jobs=1, certify=True)
    found = result.assessment.refutation
    assert found is not None
    assert 0.99 * squares < found.chi_square <= squares
    assert result.assessment.region is None
