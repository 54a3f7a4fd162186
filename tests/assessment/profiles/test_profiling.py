"""Profile likelihoods: exact for linear models, and right where linearisation is not."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import odefit
from odefit import Control, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment.profiles import ProfilesData, tasks
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.estimate import Status

TIMES = np.linspace(0.0, 5.0, 8)
VALUES = 1 + 2 * TIMES + 0.3 * np.random.default_rng(3).normal(size=8)

DECAY_TIMES = np.array([0.5, 1.0, 2.0, 4.0, 6.0, 9.0])
DECAY = 3.0 * np.exp(-0.4 * DECAY_TIMES) + np.array([0.3, -0.2, 0.25, 0.1, -0.3, 0.2])


def line(**more: Any) -> Problem:
    """x = a + b t: linear regression."""
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": VALUES},
        {"b": {"guess": 1.0}},
        {"x": {"guess": 0.0}},
        **more,
    )


def decay(scale: str = "linear") -> Problem:
    """x = a exp(-k t), with noise that is given."""
    k = {"lower": 1e-4, "upper": 100.0, "guess": 0.5, "scale": scale}
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": DECAY_TIMES, "x": DECAY},
        {"k": k, "a": {"guess": 2.0}},
        {"x": "a"},
        noise={"x": {"sd": 0.25}},
    )


def fitted(problem: Problem) -> Array:
    (start,) = SingleShooting().solve(problem, Control()).starts
    assert start.status is Status.CONVERGED, start.message
    return start.vector


def profiled(problem: Problem, *expressions: str, **more: Any) -> ProfilesData:
    control = Control(**{k: more.pop(k) for k in ("executor", "checkpoint") if k in more})
    keys = more.pop("keys", problem.keys)
    return profile_all(problem, fitted(problem), 0.95, control, keys, expressions, **more)


def decay_squares(k: float) -> float:
    """Half the weighted sum of squares with the best a."""
    basis = np.exp(-k * DECAY_TIMES)
    a = float(basis @ DECAY / (basis @ basis))
    return 0.5 * float(np.sum((DECAY - a * basis) ** 2)) / 0.25**2


@pytest.mark.parametrize("noise", [None, {"x": {"sd": "estimate"}}])
def test_intervals_of_a_linear_model_are_those_of_linear_regression(noise: Any) -> None:
    found = profiled(line(noise=noise), "y = x + 3*b", keys=["b"])
    slope, at_three = found.profiles
    textbook = stats.linregress(TIMES, VALUES)
    quantile = stats.t(6).ppf(0.975)
    half = quantile * textbook.stderr
    assert (slope.lower, slope.upper) == pytest.approx(
        (textbook.slope - half, textbook.slope + half), rel=1e-4
    )
    residuals = VALUES - textbook.intercept - textbook.slope * TIMES
    variance = float(residuals @ residuals) / 6
    spread = float(np.sum((TIMES - TIMES.mean()) ** 2))
    half = quantile * math.sqrt(variance * (1 / 8 + (3 - TIMES.mean()) ** 2 / spread))
    middle = textbook.intercept + 3 * textbook.slope
    assert (at_three.lower, at_three.upper) == pytest.approx(
        (middle - half, middle + half), rel=1e-4
    )
    assert slope.verdict == at_three.verdict == "identifiable"
    if noise is None:
        assert slope.linear == pytest.approx((slope.lower, slope.upper), rel=1e-4)


@pytest.mark.parametrize("scale", ["linear", "log10"])
def test_the_interval_of_a_rate_is_that_of_many_refits(scale: str) -> None:
    (rate,) = profiled(decay(scale), keys=["k"]).profiles
    best = optimize.minimize_scalar(decay_squares, bounds=(0.05, 2.0), method="bounded").x
    limit = stats.chi2(1).ppf(0.95)

    def excess(k: float) -> float:
        return 2 * (decay_squares(k) - decay_squares(best)) - limit

    expected = optimize.brentq(excess, 0.01, best), optimize.brentq(excess, best, 5.0)
    width = expected[1] - expected[0]
    assert (rate.lower, rate.upper) == pytest.approx(expected, abs=2e-3 * width)
    for k, deviance in zip(rate.values, rate.deviances, strict=True):
        assert deviance == pytest.approx(
            2 * (decay_squares(float(k)) - decay_squares(best)), abs=2e-3
        )


def test_profiles_of_estimated_noise_take_two_evaluations_a_point_at_most() -> None:
    random, t = np.random.default_rng(3), np.linspace(0, 4, 15)
    data = {
        "t": t,
        "y": 3 * np.exp(-0.7 * t) + 0.3 * random.normal(size=15),
        "z": 6 * np.exp(-0.8 * t) + 0.3 * random.normal(size=15),
    }
    model = Model(ode={"x": "-k*x"}, observables={"y": "x", "z": "s*x"})
    positive = {"lower": 1e-3, "upper": 1e2}
    noise = {"y": {"sd": "a"}, "z": {"sd": "b"}}
    problem = Problem(
        model, data, dict.fromkeys(("k", "s", "a", "b"), positive), {"x": positive}, noise=noise
    )
    for profile in profiled(problem, keys=["a", "b"]).profiles:
        assert profile.closed
        assert profile.evaluations <= 2 * len(profile.values)


def test_an_unknown_and_the_same_as_an_expression_have_the_same_interval() -> None:
    held, pulled = profiled(decay(), "same = k", keys=["k"]).profiles
    width = held.upper - held.lower
    assert (pulled.lower, pulled.upper) == pytest.approx((held.lower, held.upper), abs=2e-3 * width)


def test_a_prediction_is_profiled_like_the_expression_that_it_is() -> None:
    # Without a t0, the trajectory begins at the first data time, 0.5.
    predicted, written = profiled(decay(), "x@3", "x3 = a*exp(-2.5*k)", keys=[]).profiles
    width = written.upper - written.lower
    assert (predicted.lower, predicted.upper) == pytest.approx(
        (written.lower, written.upper), abs=2e-3 * width
    )


def test_a_flat_profile_without_effect_is_structurally_not_identifiable() -> None:
    rates = {n: {"lower": 0.01, "upper": 10.0, "guess": 0.2} for n in ("k1", "k2")}
    problem = Problem(
        Model(ode={"x": "-(k1 + k2)*x"}),
        {"t": DECAY_TIMES, "x": DECAY},
        rates,
        {"x": 3.0},
        noise={"x": {"sd": 0.25}},
    )
    k1, together = profiled(problem, "k1 + k2", keys=["k1"]).profiles
    assert together.verdict == "identifiable"
    # Within the bounds, k1 can be anything below the upper limit of the sum.
    assert k1.lower == -math.inf
    assert k1.upper == pytest.approx(together.upper - 0.01, rel=1e-3)
    assert k1.verdict == "practically not identifiable"
    assert "within the bounds of k2" in k1.sentence


def test_the_profile_of_an_unknown_without_effect_is_flat() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "c - z"}, observables={"x": "x"}),
        {"t": DECAY_TIMES, "x": DECAY},
        {"k": {"lower": 0.0, "upper": 5.0, "guess": 0.4}, "c": {"guess": 1.0, "lower": 0.0}},
        {"x": 3.0, "z": 0.0},
        noise={"x": {"sd": 0.25}},
    )
    (c,) = profiled(problem, keys=["c"]).profiles
    assert c.ends == ("bound", "flat")
    assert c.verdict == "structurally not identifiable"
    assert "c has no effect on any measurement" in c.sentence


def test_a_limit_on_one_side_alone_is_reported_as_such() -> None:
    # Saturation: all large k fit alike.
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    values = np.array([0.0, 2.05, 1.98, 2.02, 1.97])
    problem = Problem(
        Model(ode={"x": "k*(2 - x)"}),
        {"t": times, "x": values},
        {"k": {"lower": 0.01, "upper": 1e3, "guess": 8.0, "scale": "log10"}},
        {"x": 0.0},
        noise={"x": {"sd": 0.1}},
    )
    (k,) = profiled(problem).profiles
    assert k.upper == math.inf
    assert k.verdict == "practically not identifiable"
    assert k.sentence.startswith(f"k > {k.lower:.4g}; no upper limit within the bounds")

    def cost(rate: float) -> float:
        left = values - 2 * (1 - np.exp(-rate * times))
        return float(left @ left) / 0.01

    lowest = min(cost(k) for k in np.geomspace(1, 1e3, 400))
    expected = optimize.brentq(lambda r: cost(r) - lowest - stats.chi2(1).ppf(0.95), 0.5, 4.0)
    assert k.lower == pytest.approx(expected, rel=2e-3)


def two_minima() -> Problem:
    """The fit finds the worse of two minima, and the profile the other."""
    return Problem(
        Model(ode={"x": "0"}, observables={"square": "k^2", "itself": "k"}),
        {"t": [0.0], "square": [1.0], "itself": [0.3]},
        {"k": {"lower": -3.0, "upper": 3.0, "guess": -0.95}},
        {"x": 0.0},
        noise={"square": {"sd": 0.6}, "itself": {"sd": 2.0}},
    )


def test_a_better_optimum_on_the_way_is_adopted() -> None:
    problem = two_minima()
    assert fitted(problem)[0] < 0
    found = profiled(problem)
    assert found.adopted
    assert found.vector[0] > 0
    assert found.profiles[0].deviances.min() == 0.0
    assert "a better optimum was found" in found.message


def test_evaluations_of_abandoned_profiles_and_of_the_refit_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = two_minima()
    vector, made = fitted(problem), []

    def counted(self: ForwardMap, *arguments: Any, **options: Any) -> Any:
        made.append(1)
        return evaluate(self, *arguments, **options)

    evaluate = ForwardMap.evaluate
    monkeypatch.setattr(ForwardMap, "evaluate", counted)
    found = profile_all(problem, vector, 0.95, Control())
    assert found.adopted
    # Those of the two optima themselves, where a side begins, belong to no fit, four sides at most;
    # nor does the one that shows that the usual engines can integrate the first.
    assert len(made) - 3 * 4 - 1 <= found.evaluations < len(made)


def test_the_number_of_workers_does_not_change_the_answer() -> None:
    alone = profiled(decay())
    with ThreadPoolExecutor(2) as executor:
        together = profiled(decay(), executor=executor)
    for one, other in zip(alone.profiles, together.profiles, strict=True):
        assert (one.lower, one.upper) == (other.lower, other.upper)
        assert np.array_equal(one.deviances, other.deviances)


def test_finished_sides_are_found_in_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    first = profiled(decay(), checkpoint=path)
    monkeypatch.setattr(tasks, "trace", None)  # nothing is left to trace
    again = profiled(decay(), checkpoint=path)
    assert [p.sentence for p in again.profiles] == [p.sentence for p in first.profiles]
    with pytest.raises(InputError, match="belongs to another"):
        profiled(line(), checkpoint=path)


def test_a_time_limit_returns_the_finished_parts() -> None:
    problem = decay()
    found = profile_all(problem, fitted(problem), 0.95, Control(deadline=0.0))
    assert found.status is Status.TIME_LIMIT
    assert found.profiles == ()
    assert "not all profiles are complete" in found.message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("k*q", "unknown name 'q'"),
        ("k*", "expression"),
        ("3 + 4", "it contains no unknown"),
        ("q@3", "unknown name 'q'"),
        ("x@now", "expected a number after '@'"),
        ("x@-1", "before t0"),
        ("x[other]@3", "unknown experiment 'other'"),
    ],
)
def test_meaningless_expressions_are_refused(expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        profiled(decay(), expression, keys=[])


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(InputError, match="no unknown 'kk'; did you mean 'k'"):
        profiled(decay(), keys=["kk"])


def test_an_unknown_without_effect_has_a_profile_that_does_not_rise() -> None:
    """Where nothing is left, as counts that are all zero say, its rate does not matter."""
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": np.arange(6.0), "x": np.zeros(6)},
        {"k": {"lower": 0.1, "upper": 2.0, "guess": 0.5}},
        {"x": {"lower": 0.0, "upper": 10.0, "guess": 0.0}},
        noise={"x": {"distribution": "poisson"}},
    )
    (rate,) = profile_all(problem, np.array([0.5, 0.0]), 0.95, Control(), ["k"]).profiles
    assert rate.deviances == pytest.approx(np.zeros(len(rate.values)), abs=1e-9)
    assert (rate.values[0], rate.values[-1]) == (0.1, 2.0)
    assert (rate.lower, rate.upper) == (-math.inf, math.inf)


def test_data_without_noise_have_no_profile() -> None:
    problem = Problem(
        Model(ode={"x": "b"}), {"t": TIMES, "x": 1 + 2 * TIMES}, {"b": {"guess": 1.0}}, {"x": 1.0}
    )
    with pytest.raises(InputError, match="to rounding"):
        profiled(problem)


def test_quantities_of_a_second_experiment_use_its_values() -> None:
    experiments = [
        odefit.Experiment("one", {"t": DECAY_TIMES, "x": DECAY}, constants={"c": 1.0}),
        odefit.Experiment("two", {"t": DECAY_TIMES, "x": 2 * DECAY}, constants={"c": 2.0}),
    ]
    problem = Problem(
        Model(ode={"x": "-k*x"}, constants={"c": 1.0}),
        experiments=experiments,
        parameters={"k": {"guess": 0.4, "lower": 0.0, "upper": 3.0}},
        initial={"x": "3*c"},
        noise={"x": {"sd": 0.3}},
    )
    first, second, product = profiled(
        problem, "x@2", "x[two]@2", "p = c*k in [two]", keys=[]
    ).profiles
    assert second.estimate == pytest.approx(2 * first.estimate)
    assert (second.lower, second.upper) == pytest.approx(
        (2 * first.lower, 2 * first.upper), rel=1e-3
    )
    assert product.estimate == pytest.approx(2 * float(fitted(problem)[0]))
