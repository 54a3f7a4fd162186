"""Estimated noise in small samples: exact where theory is, and intervals that cover the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from odefit import Control, Experiment, ForwardMap, Model, Problem, SingleShooting, Status
from odefit.assessment import Uncertainty
from odefit.assessment.intervals.degrees_of_freedom import NoiseFreedom, effective_degrees
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.common.arrays import Array
from odefit.simulation import Evaluation

TIMES = np.linspace(0.0, 5.0, 6)
NOISE = np.array([0.3, -0.5, 0.1, 0.6, -0.2, -0.4])


def assessed(problem: Problem) -> tuple[Array, Uncertainty]:
    (start,) = SingleShooting(evaluations=200).solve(problem, Control()).starts
    assert start.status is Status.CONVERGED, start.message
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    return start.vector, assess_uncertainty(forward, start.vector, evaluation)


def line(**more: Any) -> Problem:
    """x = a + b t with six measurements: linear regression."""
    data = {"t": TIMES, "x": 1 + 2 * TIMES + NOISE}
    return Problem(
        Model(ode={"x": "b"}), data, {"b": {"guess": 2.0}}, {"x": {"guess": 1.0}}, **more
    )


def two_means(first: Array, second: Array) -> Problem:
    """x stays at its mean and z is larger by d."""
    samples = {"x": first, "z": second}
    runs = [
        Experiment(name, {"t": np.arange(len(values), dtype=float), name: values})
        for name, values in samples.items()
    ]
    return Problem(
        Model(ode={"m": "0"}, observables={"x": "m", "z": "m + d"}),
        parameters={"d": {"guess": 1.0}},
        initial={"m": {"guess": 1.0}},
        experiments=runs,
        noise={"x": {"sd": "estimate"}, "z": {"sd": "estimate"}},
    )


def test_with_one_estimated_sd_a_line_has_the_intervals_of_linear_regression() -> None:
    _, plain = assessed(line())
    _, estimated = assessed(line(noise={"x": {"sd": "estimate"}}))
    assert estimated.degrees_of_freedom == pytest.approx(4.0, rel=1e-6)
    assert estimated.intervals[:2] == pytest.approx(plain.intervals, rel=1e-5)
    assert estimated.standard_errors[:2] == pytest.approx(plain.standard_errors, rel=1e-5)
    assert "allow for the unknowns that were fitted" in estimated.sentence
    assert "with 4 degrees of freedom" in estimated.sentence


def test_the_interval_of_an_estimated_sd_is_that_of_the_chi_square_distribution() -> None:
    vector, found = assessed(line(noise={"x": {"sd": "estimate"}}))
    squares = 6 * vector[2] ** 2
    expected = np.sqrt(squares / stats.chi2(4).ppf([0.975, 0.025]))
    assert found.intervals[2] == pytest.approx(expected, rel=1e-5)
    assert found.corrected_noise["x_sd"] == pytest.approx(math.sqrt(squares / 4), rel=1e-5)


def test_a_factor_of_an_expression_is_corrected_like_an_estimated_sd() -> None:
    """With twice the factor as the standard deviation, the factor is half of it."""
    plain = line()
    problem = Problem(
        plain.model,
        plain.data(),
        {"b": {"guess": 2.0}, "f": {"guess": 0.2, "lower": 1e-3}},
        {"x": {"guess": 1.0}},
        noise={"x": {"sd": "2*f"}},
    )
    vector, found = assessed(problem)
    _, estimated = assessed(line(noise={"x": {"sd": "estimate"}}))
    f, b, x = (found.keys.index(k) for k in ("f", "b", "x"))
    assert found.intervals[f] == pytest.approx(estimated.intervals[2] / 2, rel=1e-4)
    assert found.intervals[[b, x]] == pytest.approx(estimated.intervals[:2], rel=1e-4)
    assert vector[f] < found.corrected_noise["f"]


def test_the_difference_of_two_means_agrees_with_welch_s_test() -> None:
    """B. L. Welch, Biometrika 34, 1947: each sample has its own variance."""
    first = np.array([1.2, 0.7, 1.9, 1.1])
    second = np.array([3.4, 5.1, 2.2, 4.9, 6.3, 1.8, 4.4])
    vector, found = assessed(two_means(first, second))
    d = found.keys.index("d")
    welch = stats.ttest_ind(second, first, equal_var=False)
    assert vector[d] == pytest.approx(second.mean() - first.mean(), rel=1e-5)
    assert found.degrees_by_key["d"] == pytest.approx(welch.df, rel=1e-4)
    assert found.intervals[d] == pytest.approx(welch.confidence_interval(0.95), rel=1e-4)
    assert found.degrees_of_freedom == pytest.approx(3.0, rel=1e-4)  # of the first mean


def test_a_single_measurement_more_than_unknowns_leaves_one_degree_of_freedom() -> None:
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES[:3], "x": [1.0, 3.1, 4.8]},
        {"b": {"guess": 2.0}, "s": {"guess": 0.1, "lower": 0.05, "upper": 10.0}},
        {"x": {"guess": 1.0}},
        noise={"x": {"sd": "s"}},
    )
    forward = ForwardMap(problem)
    vector = np.array([{"b": 1.9, "s": 0.07, "x": 1.05}[k] for k in problem.keys])
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    assert assess_uncertainty(forward, vector, evaluation).degrees_of_freedom == pytest.approx(1.0)


@pytest.mark.parametrize("length", [1e-160, 1.0, 1e90, 1e200])
def test_degrees_of_freedom_do_not_depend_on_the_length_of_a_combination(length: float) -> None:
    """A mean of six values with one standard deviation has five, in every unit."""
    six = np.arange(6)
    freedom = NoiseFreedom(
        six, six, np.full(6, 1 / 6), np.full(6, 5 / 6), np.array([1]), np.ones((6, 1))
    )
    mean = np.full((6, 1), 6**-0.5)
    covariance = np.array([[1.2]])
    found = effective_degrees(mean, freedom, np.array([[length], [0.0]]), covariance)
    assert found[0] == pytest.approx(5.0)
    assert found[1] == math.inf


def test_there_are_never_more_degrees_of_freedom_than_measurements() -> None:
    """Of 64 values, 60 with a given noise tell the mean: 9083.1 were told of 180."""
    precise, rough = np.resize([1.0, 1.02], 60), np.array([0.9, 1.3, 1.1, 0.8])
    runs = [
        Experiment(name, {"t": np.arange(len(values), dtype=float), name: values})
        for name, values in (("x", precise), ("z", rough))
    ]
    problem = Problem(
        Model(ode={"m": "0"}, observables={"x": "m", "z": "m"}),
        initial={"m": {"guess": 1.0}},
        experiments=runs,
        noise={"x": {"sd": 0.05}, "z": {"sd": "estimate"}},
    )
    _, found = assessed(problem)
    assert found.degrees_by_key["m"] == pytest.approx(63.0)


def subjects(generator: np.random.Generator, limit: float) -> Problem:
    """Five decays with unknowns of their own, 10 % of noise, and a limit of quantification."""
    times = np.array([0.25, 0.5, 1, 2, 3, 4, 6, 8])
    runs = []
    for i, rate in enumerate((0.3, 0.38, 0.45, 0.52, 0.6)):
        values = 10 * np.exp(-rate * times) * (1 + 0.1 * generator.normal(size=8))
        below = values < limit
        data = {"t": times, "y": np.where(below, limit, values), "y_cens": 1.0 * below}
        runs.append(Experiment(f"s{i}", data, t0=0.0))
    own = {"lower": 0.01, "upper": 100.0, "per_experiment": True}
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        experiments=runs,
        parameters={"k": {**own, "guess": 0.45}, "r": {"lower": 1e-3, "upper": 2, "guess": 0.1}},
        initial={"x": {**own, "guess": 10.0}},
        noise={"y": {"sd": "r*y", "lower_limit": limit}},
    )


@pytest.mark.slow
def test_a_noise_with_values_below_the_limit_is_corrected_as_without() -> None:
    """11 unknowns of 40 values: S/n is too small for both, and both say so."""
    vector, found = assessed(subjects(np.random.default_rng(3), 1e-9))
    fewer, censored = assessed(subjects(np.random.default_rng(3), 1.0))
    r = found.keys.index("r")
    whole = vector[r] * math.sqrt(40 / 30)  # but that relative noise tells of means, too
    assert found.corrected_noise["r"] == pytest.approx(whole, rel=5e-3)
    assert 1.1 < censored.corrected_noise["r"] / fewer[r] < 1.3
    assert 15 < censored.degrees_of_freedom < found.degrees_of_freedom == pytest.approx(30.0)


@pytest.mark.slow
def test_intervals_with_censored_values_have_their_nominal_coverage() -> None:
    """Without the correction the mean is 0.083 of 0.1, and 58 % of the intervals hold it."""
    generator, corrected, covered = np.random.default_rng(1), [], []
    for _ in range(60):
        _, found = assessed(subjects(generator, 1.0))
        low, high = found.intervals[found.keys.index("r")]
        corrected.append(found.corrected_noise["r"])
        covered.append(low <= 0.1 <= high)
    assert np.mean(corrected) == pytest.approx(0.1, abs=0.005)
    assert np.mean(covered) > 0.88


def test_given_noise_has_no_degrees_of_freedom() -> None:
    _, found = assessed(line(noise={"x": {"sd": 0.4}}))
    assert math.isinf(found.degrees_of_freedom)
    assert found.degrees_by_key == {}
    assert found.corrected_noise == {}


def decay(generator: np.random.Generator) -> Problem:
    """x' = -k x, six measurements."""
    times = np.linspace(0.5, 3.0, 6)
    values = 10 * np.exp(-0.7 * (times - 0.5)) + 0.5 * generator.normal(size=6)
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"guess": 0.7}},
        {"x": {"guess": 10.0}},
        noise={"x": {"sd": "estimate"}},
    )


@pytest.mark.slow
def test_six_points_of_a_decay_are_covered_as_often_as_the_level_says() -> None:
    """The issue's case: with the maximum of the likelihood and normal quantiles it was 78 %."""
    generator = np.random.default_rng(1)
    truth = np.array([0.7, 10.0, 0.5])
    hits = np.zeros(3)
    normal = 0
    count = 200
    for _ in range(count):
        vector, found = assessed(decay(generator))
        hits += (found.intervals[:, 0] <= truth) & (truth <= found.intervals[:, 1])
        small = found.standard_errors[0] * math.sqrt(4 / 6)
        normal += abs(vector[0] - 0.7) <= 1.96 * small
    # Three standard errors of a share of 95 % are 4.6 %.
    assert (hits / count >= 0.904).all(), hits
    assert (hits / count <= 0.996).all(), hits
    assert normal / count < 0.88, "the case must be one in which the correction matters"
