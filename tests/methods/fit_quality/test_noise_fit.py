"""Tests of the comparison of residuals with the noise of the data."""

import re

import numpy as np
import pytest
from scipy.fft import dct
from scipy.stats import chi2, f

from odefit import ForwardMap, Model, Noise, Problem, Start, Status
from odefit.common.arrays import Array
from odefit.methods.fit_quality.limits import MIN_PATTERN_CHANCE, most_chi_square
from odefit.methods.fit_quality.noise_fit import NoiseFit, NoiseLevels, slow_parts, slow_pattern

TIMES = np.linspace(0.0, 6.0, 301)
TRUE = np.array([0.5])


def decay(
    sd: float | None, given: bool = True, times: Array = TIMES, noise: Noise | None = None
) -> Problem:
    """Return an exponential decay at rate 0.5 with noise, which is given or not."""
    values = np.exp(-0.5 * times)
    if sd is not None:
        values = values + sd * np.random.default_rng(1).standard_normal(len(times))
    model = Model(ode={"x": "-k*x"})
    known = {"x": noise or Noise(sd=sd)} if given and sd is not None else None
    return Problem(model, {"t": times, "x": values}, {"k": {"lower": 0.0}}, {"x": 1.0}, noise=known)


def end(vector: Array) -> Start:
    return Start(0, vector, vector, 0.0, Status.CONVERGED, "", 1, 0.0, 0.0)


def judged(problem: Problem, k: float) -> NoiseFit:
    return NoiseLevels(ForwardMap(problem)).fit(end(np.array([k])))


class TestGivenNoise:
    def test_the_data_at_the_truth_are_explained(self) -> None:
        fit = judged(decay(0.01), 0.5)
        assert fit.explained is True
        assert fit.values == 301
        assert fit.chi_square == pytest.approx(301, abs=75)
        assert fit.freedom == 300
        assert re.fullmatch(r"chi-square is \S+ for 301 values", fit.sentence)

    def test_other_values_are_not_explained(self) -> None:
        fit = judged(decay(0.01), 0.6)
        assert fit.explained is False
        assert "more than the noise explains" in fit.sentence

    def test_a_slow_misfit_below_the_spread_of_chi_square_is_seen(self) -> None:
        """Its chi-square is as the noise says, but the residuals have a pattern."""
        fit = judged(decay(0.01), 0.5125)
        assert fit.chi_square < most_chi_square(301)
        assert fit.pattern < MIN_PATTERN_CHANCE
        assert fit.explained is False
        assert "vary slowly in time" in fit.sentence


class TestEstimatedNoise:
    @pytest.mark.parametrize("noise", [Noise(sd="estimate"), None])
    def test_fits_are_compared_with_the_scatter_of_the_data(self, noise: Noise | None) -> None:
        problem = decay(0.01, noise is not None, noise=noise)
        vector = [0.5] if noise is None else [0.5, 0.02]
        levels = NoiseLevels(ForwardMap(problem))
        assert levels.fit(end(np.array(vector))).explained is True
        wrong = levels.fit(end(np.array([0.6, *vector[1:]])))
        assert wrong.explained is False
        assert "times the scatter of the data" in wrong.sentence

    def test_a_pattern_that_given_noise_can_explain_is_doubted(self) -> None:
        """Sizes say less where they are compared with a scatter that is estimated."""
        given, estimated = judged(decay(0.01), 0.505), judged(decay(0.01, False), 0.505)
        assert 0.1 < given.pattern < estimated.pattern < 0.2
        assert given.explained is True
        assert estimated.explained is False

    def test_few_times_give_no_verdict(self) -> None:
        fit = judged(decay(0.01, False, np.linspace(0.0, 6.0, 12)), 0.6)
        assert fit.explained is None
        assert not fit.sentence

    def test_an_unresolved_signal_gives_no_noise_estimate(self) -> None:
        problem = decay(None, False)
        rough = np.sign(np.sin(100.0 * TIMES**2))
        assert judged(problem.with_data({"data": {"t": TIMES, "x": rough}}), 0.5).explained is None

    def test_data_without_noise(self) -> None:
        assert judged(decay(None), 0.5).explained is True
        slightly_off = judged(decay(None), 0.5 + 1e-6)
        assert slightly_off.explained is False
        assert 1e-8 < slightly_off.relative < 1e-5


def test_a_missing_trajectory_gives_no_verdict() -> None:
    """The solution of x' = k x^2 from 1 ends at 1/k."""
    model = Model(ode={"x": "k*x^2"})
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 1.0, 1.0]}
    problem = Problem(model, data, {"k": {"lower": 0.0}}, {"x": 1.0})
    assert repr(judged(problem, 1.0)) == repr(NoiseFit(None))  # with NaN, which equals nothing


class TestSlowPattern:
    @pytest.mark.parametrize("n", [100, 101, 1000])
    def test_parts_are_those_of_the_cosine_transform(self, n: int) -> None:
        residuals = np.random.default_rng(n).standard_normal(n)
        squares = dct(residuals, norm="ortho") ** 2
        expected = [squares[:k].sum() if 4 * k <= n else np.nan for k in (4, 10, 25, 60)]
        np.testing.assert_allclose(slow_parts(residuals, 1.0), expected, rtol=1e-9)

    def test_the_variance_may_be_that_of_the_fast_half(self) -> None:
        """The parts are then as improbable as the ratio of the mean squares, by its F."""
        residuals = np.random.default_rng(4).standard_normal(200)
        squares = dct(residuals, norm="ortho") ** 2
        for part, k in zip(slow_parts(residuals), (4, 10, 25), strict=False):
            ratio = squares[:k].mean() / squares[100:].mean()
            assert chi2.sf(part, k) == pytest.approx(f.sf(ratio, k, 100), rel=1e-9)

    @pytest.mark.parametrize("series", [1, 2, pytest.param(8, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("variance", [1.0, None])
    def test_noise_seldom_has_a_pattern(self, series: int, variance: float | None) -> None:
        """The probability is right for one series and for many, to the factor of Bonferroni."""
        rng = np.random.default_rng(2)

        def chance() -> float:
            blocks = [rng.standard_normal(200) for _ in range(series)]
            return slow_pattern([slow_parts(block, variance) for block in blocks])

        found = np.array([chance() for _ in range(600)])
        assert 0.01 < np.mean(found < 0.1) < 0.12
        assert np.mean(found < MIN_PATTERN_CHANCE) < 0.02

    def test_a_wave_has_a_pattern(self) -> None:
        noise = np.random.default_rng(3).standard_normal(1000)
        wave = 0.35 * np.sin(np.linspace(0.0, 20.0, 1000))
        assert slow_pattern([slow_parts(noise + wave)]) < MIN_PATTERN_CHANCE

    def test_all_series_together_may_show_a_pattern_that_none_shows_alone(self) -> None:
        one = np.array([9.0, 14.0, 25.0, 58.0])
        assert slow_pattern([one]) == pytest.approx(4 * chi2.sf(9.0, 4))
        assert slow_pattern([one] * 9) == pytest.approx(40 * chi2.sf(81.0, 36))

    def test_residuals_beyond_all_noise_have_a_pattern(self) -> None:
        assert slow_pattern([slow_parts(np.full(200, 1e6), 1.0)]) == 0.0

    def test_few_residuals_give_no_verdict(self) -> None:
        assert slow_pattern([slow_parts(np.arange(60.0), 1.0)]) == 1.0
        assert slow_pattern([slow_parts(np.arange(60.0))]) == 1.0
        assert slow_pattern([]) == 1.0


def test_scatter_that_grows_with_the_counts_is_not_a_misfit() -> None:
    """Waves between 2 and 400: one scatter that is estimated for all is that of low counts."""
    rng = np.random.default_rng(2)
    times = np.linspace(0.0, 60.0, 240)
    mean = 200.0 + 198.0 * np.cos(2 * np.pi * times / 12.0)
    counts = rng.negative_binomial(10, 10 / (10 + mean)).astype(float)
    model = Model(ode={"p": "w"}, observables={"y": "200 + 198*cos(p)"})
    noise = {"y": Noise(distribution="negative-binomial", dispersion="estimate")}
    problem = Problem(model, {"t": times, "y": counts}, {"w": (0.1, 2.0)}, {"p": 0.0}, noise=noise)

    def explained(rate: float, dispersion: float) -> bool | None:
        vector = problem.vector({"w": rate, "y_dispersion": dispersion})
        return NoiseLevels(ForwardMap(problem)).fit(end(vector)).explained

    assert explained(2 * np.pi / 12.0, 0.1) is True
    assert explained(0.4, 3.0) is False
