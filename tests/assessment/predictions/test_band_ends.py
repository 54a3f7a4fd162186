"""Tests of :mod:`odefit.assessment.predictions.band_ends`."""

import math

import numpy as np
import pytest

import odefit
from odefit.assessment.predictions.band_ends import ends_about, ends_of_curve, joined_ends

VALUES, HALF = np.array([2.0, 0.5]), np.array([1.0, 1.0])


def test_half_widths_are_of_values_or_of_their_logarithms() -> None:
    np.testing.assert_allclose(ends_about(VALUES, HALF, logs=False), [[1.0, -0.5], [3.0, 1.5]])
    np.testing.assert_allclose(
        ends_about(VALUES, HALF, logs=True), [VALUES / math.e, VALUES * math.e], rtol=1e-14
    )


def test_a_logarithm_of_what_is_not_positive_has_no_ends() -> None:
    assert np.isnan(ends_about(np.array([0.0, -1.0]), np.ones(2), logs=True)).all()


def test_expected_counts_stay_above_zero() -> None:
    low, high = ends_of_curve(VALUES, HALF, logs=False, counted=True)
    np.testing.assert_allclose(low * high, VALUES**2)
    np.testing.assert_allclose(np.log(high / low), 2 * HALF / VALUES)


def test_a_count_expected_to_be_zero_has_ends() -> None:
    ends = ends_of_curve(np.zeros(2), np.array([0.0, 0.3]), logs=False, counted=True)
    np.testing.assert_array_equal(ends, [[0.0, -0.3], [0.0, 0.3]])


def test_curve_and_noise_are_joined_as_squares_on_the_scale_of_the_noise() -> None:
    curve, noise = (
        ends_about(VALUES, 3 * HALF, logs=False),
        ends_about(VALUES, 4 * HALF, logs=False),
    )
    np.testing.assert_allclose(
        joined_ends(VALUES, curve, noise, logs=False), ends_about(VALUES, 5 * HALF, logs=False)
    )
    curve, noise = (ends_about(VALUES, k * HALF, logs=True) for k in (3, 4))
    np.testing.assert_allclose(
        joined_ends(VALUES, curve, noise, logs=True), ends_about(VALUES, 5 * HALF, logs=True)
    )


def test_the_band_of_a_constant_count_is_that_of_poisson_regression() -> None:
    counts = [1.0, 3.0, 0.0, 2.0]
    problem = odefit.Problem(
        odefit.Model(ode={"x": "0"}, observables={"seen": "x"}),
        parameters={},
        initial={"x": {"lower": 0.01, "upper": 100.0}},
        noise={"seen": {"distribution": "poisson"}},
        experiments=[odefit.Experiment("run", data={"t": [0.0, 1.0, 2.0, 3.0], "seen": counts})],
    )
    table = odefit.fit(problem, jobs=1).predict([1.0])
    row = table[table["name"] == "seen"].iloc[0]
    # The logarithm of the mean of n counts has the standard error 1/sqrt(their sum).
    factor = np.exp(1.959963984540054 / np.sqrt(sum(counts)))
    assert row["value"] == pytest.approx(1.5, rel=1e-6)
    assert row["ci_low"] == pytest.approx(1.5 / factor, rel=1e-5)
    assert row["ci_high"] == pytest.approx(1.5 * factor, rel=1e-5)
    assert row["pi_low"] == 0
    assert row["pi_high"] > row["ci_high"]
