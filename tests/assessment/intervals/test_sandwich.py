"""Intervals of least squares that hold where the noise is correlated in time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import odefit
from odefit.assessment.intervals.correlated_regressions import Chains
from odefit.assessment.intervals.sandwich import correlated, with_correlated_noise
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Uncertainty
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

TRUTH = {"a": 2.0, "b": 0.5, "w": -1.0}
SD, TIME = 0.3, 1.5
RUNS = {"first": np.linspace(0.0, 20.0, 40), "second": np.cumsum(np.linspace(0.2, 0.9, 30))}


def curve(times: Array, a: float, b: float, w: float) -> Array:
    return np.asarray(a + b * np.sin(times) + w * times / 20)


def correlation(times: Array, time: float) -> Array:
    return np.asarray(np.exp(-np.abs(np.subtract.outer(times, times)) / time))


def noisy(random: np.random.Generator, time: float | None = TIME) -> dict[str, Array]:
    """Return measurements of the two runs with Ornstein-Uhlenbeck noise, white for no time."""
    data = {}
    for name, times in RUNS.items():
        root: Array = np.eye(len(times))
        if time is not None:
            root = np.asarray(np.linalg.cholesky(correlation(times, time)), dtype=float)
        data[name] = curve(times, **TRUTH) + SD * root @ random.standard_normal(len(times))
    return data


def problem_of(data: dict[str, Array], noise: dict[str, object] | None = None) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model(ode={"x": "0*x"}, observables={"y": "a + b*sin(t) + w*t/20 + 0*x"}),
        experiments=[
            odefit.Experiment(name, {"t": times, "y": data[name]}, t0=0.0)
            for name, times in RUNS.items()
        ],
        parameters={key: {"lower": -50.0, "upper": 50.0} for key in TRUTH},
        initial={"x": 1.0},
        noise=None if noise is None else {"y": noise},
    )


def fitted(data: dict[str, Array]) -> tuple[ForwardMap, Array, Evaluation, Uncertainty]:
    """Return the least-squares fit, which one Gauss-Newton step from the truth reaches."""
    forward = ForwardMap(problem_of(data))
    vector = np.array([TRUTH[key] for key in forward.problem.keys])
    at = forward.evaluate(vector, UNDECIDED)
    assert isinstance(at, Evaluation)
    vector = vector - np.linalg.lstsq(at.jacobian, at.residuals, rcond=None)[0]
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    return forward, vector, evaluation, assess_uncertainty(forward, vector, evaluation)


def test_the_sandwich_is_that_of_dense_matrices() -> None:
    """The correlation time maximises the restricted likelihood, and degrees are Satterthwaite's."""
    data = noisy(np.random.default_rng(3))
    sandwich = with_correlated_noise(*fitted(data))
    times = np.concatenate(list(RUNS.values()))
    apart = np.repeat([0, 1], [len(t) for t in RUNS.values()])
    design = np.column_stack([np.ones(len(times)), np.sin(times), times / 20])
    values = np.concatenate(list(data.values()))
    inverse = np.linalg.pinv(design)
    left = np.eye(len(times)) - design @ inverse
    residuals = left @ values

    def matrix(time: float) -> Array:
        return np.where(apart[:, None] == apart, correlation(times, time), 0.0)

    def restricted(time: float) -> float:
        white = np.linalg.inv(matrix(time))
        inner = design.T @ white @ design
        project = white - white @ design @ np.linalg.solve(inner, design.T @ white)
        squares = float(values @ project @ values)
        logs = np.linalg.slogdet(matrix(time))[1] + np.linalg.slogdet(inner)[1]
        return float(0.5 * ((len(times) - 3) * np.log(squares) + logs))

    grid = np.exp(np.arange(np.log(0.2 / 8), np.log(19.3), 0.05))
    best = min(grid.tolist(), key=restricted)
    order = {key: k for k, key in enumerate(sandwich.keys)}
    at = [order[key] for key in ("a", "b", "w")]

    def errors(time: float) -> tuple[Array, float]:
        product = left @ matrix(time)
        variance = float(residuals @ residuals) / float(np.trace(product))
        degrees = float(np.trace(product)) ** 2 / float(np.trace(product @ product))
        return np.sqrt(variance * np.diag(inverse @ matrix(time) @ inverse.T)), degrees

    told = re.search(r"the correlation time is (\S+) for y", sandwich.sentence)
    assert told is not None
    time = float(told[1])  # of a coarser grid
    assert abs(np.log(time / best)) < 0.13
    right, degrees = errors(time)
    found = sandwich.standard_errors[at]
    assert found == pytest.approx(right, rel=5e-3)  # the time is told to three digits
    assert sandwich.degrees_of_freedom == pytest.approx(degrees, rel=5e-3)
    half = stats.t.ppf(0.975, sandwich.degrees_of_freedom) * found
    widths = (sandwich.intervals[:, 1] - sandwich.intervals[:, 0])[at]
    assert widths == pytest.approx(2 * half, rel=1e-9)
    assert sandwich.treatment == "sandwich"


@pytest.mark.slow
@pytest.mark.parametrize(("time", "plain_holds"), [(TIME, False), (None, True)])
def test_intervals_hold_the_truth_with_correlated_noise_and_with_white(
    time: float | None, plain_holds: bool
) -> None:
    random, sets = np.random.default_rng(8), 60
    inside = np.zeros((2, 3))
    for _ in range(sets):
        at = fitted(noisy(random, time))
        true = np.array([TRUTH[key] for key in at[0].problem.keys])
        for k, uncertainty in enumerate((at[3], with_correlated_noise(*at))):
            low, high = uncertainty.intervals.T
            inside[k] += (low <= true) & (true <= high)
    plain, sandwich = inside.mean(axis=1) / sets
    # Three unknowns of 60 sets: a standard error of 0.016 or a little more.
    assert 0.90 < sandwich < 0.99
    assert plain > 0.90 if plain_holds else plain < 0.80


def test_products_with_correlations_are_those_of_the_matrix() -> None:
    times = np.array([0.0, 3.0, 1.0, 1.0, np.inf])
    chains = Chains.of([times], 2.0, (2.0, 2.0), None)
    matrix = np.eye(5)
    for i, j in [(0, 2), (2, 1), (0, 1)]:  # the second value at t = 1 depends on nothing
        matrix[i, j] = matrix[j, i] = np.exp(-abs(times[i] - times[j]) / 2.0)
    values = np.random.default_rng(0).standard_normal((5, 2))
    found = correlated(chains, 0, values[chains.order])
    assert found == pytest.approx((matrix @ values)[chains.order], abs=1e-14)


@pytest.mark.slow
def test_an_estimated_standard_deviation_has_the_chi_square_interval_of_fewer_degrees() -> None:
    data = noisy(np.random.default_rng(5))
    plain, sandwich = (
        odefit.fit(
            problem_of(data, {"sd": "estimate"}),
            odefit.SingleShooting(),
            start={**TRUTH, "y_sd": 0.3},
            intervals=intervals,
            jobs=1,
        )
        for intervals in ("as-is", "sandwich")
    )
    of, other = plain.uncertainty, sandwich.uncertainty
    assert of is not None
    assert other is not None
    k = other.keys.index("y_sd")
    degrees = other.degrees_by_key["y_sd"]
    assert 5 < degrees < of.degrees_by_key["y_sd"]
    low, high = other.intervals[k]
    assert high / low == pytest.approx(
        np.sqrt(stats.chi2.ppf(0.975, degrees) / stats.chi2.ppf(0.025, degrees)), rel=1e-9
    )
    assert sandwich.params["a"].value == pytest.approx(plain.params["a"].value, rel=1e-6)
    # Unknown sizes of the noise change nothing for a single observable.
    free = with_correlated_noise(*fitted(data))
    assert other.standard_errors[other.keys.index("a")] == pytest.approx(
        free.standard_errors[free.keys.index("a")], rel=1e-4
    )


@pytest.mark.slow
def test_limits_of_the_sandwich_estimator_are_reported() -> None:
    data = noisy(np.random.default_rng(6))
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"sd": "estimate", "correlation": "ou"}, "the noise model has one already"),
        ({"sd": 0.3, "distribution": "laplace"}, "they need normal noise"),
    )
    for noise, reason in cases:
        forward = ForwardMap(problem_of(data, noise))
        start = {**TRUTH, "y_sd": 0.3, "y_correlation_time": 1.5}
        vector = np.array([start[key] for key in forward.problem.keys])
        evaluation = forward.evaluate(vector, UNDECIDED)
        assert isinstance(evaluation, Evaluation)
        before = assess_uncertainty(forward, vector, evaluation)
        after = with_correlated_noise(forward, vector, evaluation, before)
        assert reason in after.sentence
        assert after.intervals.tolist() == before.intervals.tolist()
        assert after.treatment == "as-is"


def test_a_result_file_keeps_the_sandwich(tmp_path: Path) -> None:
    result = odefit.fit(
        problem_of(noisy(np.random.default_rng(7))),
        odefit.SingleShooting(),
        start=TRUTH,
        intervals="sandwich",
        jobs=1,
    )
    result.save(tmp_path / "r.json")
    back = odefit.load_result(tmp_path / "r.json").uncertainty
    assert result.uncertainty is not None
    assert back is not None
    assert back.treatment == "sandwich"
    assert back.intervals.tolist() == result.uncertainty.intervals.tolist()
