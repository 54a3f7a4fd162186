"""Bands of predictions: against closed forms, and against samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit import InputError, Model, Problem, SingleShooting
from odefit.assessment.predictions.bands import Band
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.predictions.sampled_bands import SampledBands
from odefit.common.arrays import Array
from odefit.methods.running.control import Control
from odefit.methods.starts import guess
from odefit.simulation import ForwardMap
from tests.assessment.lines import design, least_squares, line

AT = np.array([0.0, 2.5, 8.0])


def fitted(problem: Problem) -> Array:
    return odefit.fit(problem, SingleShooting(), jobs=1).best.vector


def linear(problem: Problem, times: Array = AT, level: float = 0.95) -> dict[str, Band]:
    bands = LinearBands(ForwardMap(problem), fitted(problem)).bands(
        problem.conditions[0], times, level
    )
    assert isinstance(bands, list)
    return {band.name: band for band in bands}


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(
    ("noise", "known"),
    [({}, False), ({"x": {"sd": "estimate"}}, False), ({"x": {"sd": 0.3}}, True)],
)
def test_linear_bands_of_a_line_are_those_of_linear_regression(
    noise: dict[str, Any], known: bool, level: float
) -> None:
    problem = line(noise=noise)
    band = linear(problem, level=level)["x"]
    estimate, variance, inverse = least_squares(problem)
    variance = 0.09 if known else variance
    quantile = stats.norm.ppf(0.5 + level / 2) if known else stats.t.ppf(0.5 + level / 2, 10)
    spread = np.einsum("ki,ij,kj->k", design(AT), inverse, design(AT))
    assert band.values == pytest.approx(design(AT) @ estimate, rel=1e-6)
    half = quantile * np.sqrt(variance * spread)
    assert band.confidence[1] - band.values == pytest.approx(half, rel=1e-4)
    half = quantile * np.sqrt(variance * (1 + spread))
    assert band.prediction[1] - band.values == pytest.approx(half, rel=1e-4)
    assert band.values - band.prediction[0] == pytest.approx(half, rel=1e-4)


def test_only_curves_that_the_data_determine_have_a_band() -> None:
    times = np.linspace(0.0, 3.0, 10)
    problem = Problem(
        Model(ode={"x": "-(k1 + k2)*x", "y": "k1*x"}, observables={"x": "x"}),
        {"t": times, "x": np.exp(-times) + 0.01 * np.cos(9 * times)},
        {k: {"lower": 0.0, "upper": 5.0, "guess": g} for k, g in (("k1", 0.4), ("k2", 0.6))},
        {"x": 1.0, "y": 0.0},
    )
    bands = linear(problem, np.array([1.0, 2.0]))
    assert np.isfinite(bands["x"].confidence).all()
    assert np.isnan(bands["y"].errors).all()
    assert not bands["y"].observable


@pytest.mark.parametrize("effect", [1e-17, 1e-30])
def test_an_unknown_without_effect_erases_no_band_that_it_does_not_move(effect: float) -> None:
    """Its derivatives are not exactly zero, as those of an integration hardly ever are."""
    times = np.linspace(0.0, 3.0, 10)

    def problem(rate: str, extra: dict[str, Any]) -> Problem:
        return Problem(
            Model(ode={"x": rate, "free": "c" if extra else "0*x"}, observables={"y": "x"}),
            {"t": times, "y": np.exp(-times) + 0.01 * np.cos(9 * times)},
            {"k": {"lower": 0.0, "upper": 5.0, "guess": 1.0}, **extra},
            {"x": 1.0, "free": 0.0},
        )

    free = {"c": {"lower": 0.1, "upper": 5.0, "guess": 1.0}}
    bands = linear(problem(f"-(k + {effect:g}*c)*x", free), np.array([1.0, 2.0]))
    alone = linear(problem("-k*x", {}), np.array([1.0, 2.0]))
    assert bands["y"].confidence == pytest.approx(alone["y"].confidence, rel=1e-6)
    assert not bands["y"].lacking
    assert np.isnan(bands["free"].confidence).all()
    assert bands["free"].undetermined == ("c",)


def test_bands_of_logarithmic_noise_are_factors() -> None:
    times = np.linspace(0.0, 4.0, 9)
    noise = 0.2 * np.random.default_rng(1).standard_normal(9)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": 3.0 * np.exp(-times + noise)},
        {"k": {"lower": 0.1, "upper": 9.0, "guess": 1.0}},
        {"x": {"lower": 0.1, "upper": 9.0, "guess": 3.0}},
        noise={"x": {"sd": 0.2, "transform": "log"}},
    )
    band = linear(problem, np.array([1.0, 4.0]))["x"]
    # On the logarithmic scale this is the regression of a line.
    design_ = np.column_stack([-times, np.ones(9)])
    inverse = np.linalg.inv(design_.T @ design_)
    at = np.array([[-1.0, 1.0], [-4.0, 1.0]])
    half = 1.959964 * 0.2 * np.sqrt(1 + np.einsum("ki,ij,kj->k", at, inverse, at))
    assert np.log(band.prediction[1] / band.values) == pytest.approx(half, rel=1e-4)
    assert np.log(band.values / band.prediction[0]) == pytest.approx(half, rel=1e-4)


def test_standard_deviations_in_the_data_are_interpolated_between_measurements() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": times, "x": [1.0, 2.1, 2.9, 4.0], "x_sd": [0.1, 0.2, 0.3, 0.4]},
        {"b": {"lower": -9.0, "upper": 9.0}},
        {"x": {"lower": -9.0, "upper": 9.0}},
    )
    band = linear(problem, np.array([0.5, 3.0]))["x"]
    half = 0.5 * (band.prediction[1] - band.prediction[0]) / 1.959964
    assert np.sqrt(half**2 - band.errors**2) == pytest.approx([0.15, 0.4], rel=1e-5)


@pytest.mark.slow
def test_bands_of_samples_agree_with_linear_ones_where_the_model_is_linear() -> None:
    problem = line(noise={"x": {"sd": 0.3}})
    vector = fitted(problem)
    _, _, inverse = least_squares(problem)
    samples = np.random.default_rng(0).multivariate_normal(vector, 0.09 * inverse, 4000)
    forward = ForwardMap(problem)
    found = SampledBands(forward, vector, samples).bands(problem.conditions[0], AT, 0.9)
    assert isinstance(found, list)
    band, exact = found[0], linear(problem, level=0.9)["x"]
    width = exact.confidence[1] - exact.confidence[0]
    assert band.confidence == pytest.approx(exact.confidence, abs=0.06 * width.max())
    width = exact.prediction[1] - exact.prediction[0]
    assert band.prediction == pytest.approx(exact.prediction, abs=0.06 * width.max())


def test_few_samples_make_no_bands() -> None:
    problem = line()
    with pytest.raises(InputError, match="at least 20 samples, and there are 3"):
        SampledBands(ForwardMap(problem), fitted(problem), np.zeros((3, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [{}, {"x": {"sd": "estimate"}}])
def test_bands_hold_the_curve_and_the_next_measurement(noise: dict[str, Any]) -> None:
    """Of 300 samples of six points; the binomial error is 1.3 per cent."""
    times = np.linspace(0.0, 5.0, 6)
    random = np.random.default_rng(0)
    curve = measured = 0
    for _ in range(300):
        problem = Problem(
            Model(ode={"x": "-k*x"}),
            {"t": times, "x": 2 * np.exp(-0.7 * times) + 0.05 * random.standard_normal(6)},
            {"k": {"lower": 0.01, "upper": 5.0, "guess": 0.7}},
            {"x": {"lower": 0.01, "upper": 9.0, "guess": 2.0}},
            noise=noise,
        )
        forward, start = ForwardMap(problem), guess(problem)
        assert start is not None
        # The search alone: what a fit adds to its end is no part of a linear band.
        vector = SingleShooting(tolerance=1e-10).run(forward, 0, start, Control(0)).vector
        bands = LinearBands(forward, vector).bands(problem.conditions[0], np.array([2.5]), 0.95)
        assert isinstance(bands, list)
        (band,) = bands
        truth = 2 * np.exp(-0.7 * 2.5)
        curve += band.confidence[0, 0] <= truth <= band.confidence[1, 0]
        next_one = truth + 0.05 * random.standard_normal()
        measured += band.prediction[0, 0] <= next_one <= band.prediction[1, 0]
    assert curve / 300 == pytest.approx(0.95, abs=0.035)
    assert measured / 300 == pytest.approx(0.95, abs=0.035)
