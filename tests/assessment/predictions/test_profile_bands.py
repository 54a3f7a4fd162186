"""Bands by profile likelihood: those of linear models, and where linear ones are wrong."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit import Model, Problem, SingleShooting
from odefit.assessment.predictions.bands import Band
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.predictions.profile_bands import MAX_TIMES, ProfileBands
from odefit.common.arrays import Array
from odefit.methods.running.control import Control, Progress
from odefit.simulation import ForwardMap
from tests.assessment.lines import line


def both(problem: Problem, times: Array, level: float = 0.95) -> tuple[list[Band], list[Band]]:
    vector = odefit.fit(problem, SingleShooting(), jobs=1).best.vector
    forward, condition = ForwardMap(problem), problem.conditions[0]
    linear = LinearBands(forward, vector).uncut(condition, times, level)
    profiled = ProfileBands(forward, vector).bands(condition, times, level)
    assert isinstance(linear, list)
    assert isinstance(profiled, list)
    return linear, profiled


def test_profile_bands_of_a_linear_model_equal_linear_bands() -> None:
    linear, profiled = both(line(), np.linspace(0.0, 8.0, 3 * MAX_TIMES))
    assert profiled[0].confidence == pytest.approx(linear[0].confidence, rel=1e-3)
    assert profiled[0].prediction == pytest.approx(linear[0].prediction, rel=1e-3)


def test_profile_bands_hold_for_strongly_nonlinear_models() -> None:
    """With x(0) known, x(5) = exp(-5 k) increases with k alone: its limits are those of k."""
    times = np.array([0.5, 1.0])
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": [0.55, 0.42]},
        {"k": {"lower": 0.0, "upper": 20.0, "guess": 1.0}},
        {"x": 1.0},
        noise={"x": {"sd": 0.1}},
        t0=0.0,
    )
    (linear,), (profiled,) = both(problem, np.array([0.0, 5.0]))
    k = odefit.fit(problem, SingleShooting(), jobs=1).profile(jobs=1).profiles[0]
    exact = np.exp(-5 * np.array([k.upper, k.lower]))
    assert profiled.confidence[:, 1] == pytest.approx(exact, rel=1e-3)
    assert linear.confidence[0, 1] < 0 < profiled.confidence[0, 1]
    assert profiled.confidence[:, 0] == pytest.approx([1.0, 1.0])  # the initial value is known


def test_prediction_bands_join_curve_and_noise_in_logarithms_where_the_noise_is_in_them() -> None:
    """Logarithms of an exponential decay are a straight line, whose band is known."""
    times, logs = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.2, -0.1, -0.2, -2.0])
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(logs)},
        {"k": {"lower": -5.0, "upper": 20.0, "guess": 1.0}},
        {"x": {"lower": 0.01, "upper": 100.0, "guess": 3.0, "scale": "log10"}},
        noise={"x": {"sd": 0.5, "distribution": "log-normal"}},
    )
    at = np.array([0.5, 4.0])
    _, (profiled,) = both(problem, at)
    slope, intercept = np.polyfit(times, logs, 1)
    centre = times - times.mean()
    error = 0.5 * np.sqrt(0.25 + (at - times.mean()) ** 2 / (centre @ centre))
    reach = 1.959964 * np.hypot(error, 0.5)
    exact = np.exp(intercept + slope * at + np.array([[-1.0], [1.0]]) * reach)
    assert profiled.prediction == pytest.approx(exact, rel=2e-3)


def test_prediction_bands_of_counts_are_not_negative() -> None:
    times = np.arange(8.0)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": [21.0, 12.0, 9.0, 3.0, 2.0, 0.0, 1.0, 0.0]},
        {"k": {"lower": 0.0, "upper": 5.0, "guess": 0.5}},
        {"x": {"lower": 0.1, "upper": 100.0, "guess": 20.0}},
        noise={"x": {"distribution": "negative-binomial", "dispersion": 0.1}},
    )
    (linear,), (profiled,) = both(problem, np.linspace(0.0, 12.0, 5))
    assert (linear.prediction[0] >= 0).all()
    assert profiled.prediction[0].tolist()[-1] == 0.0
    assert (profiled.prediction[0] >= 0).all()


def test_a_value_that_is_always_zero_has_no_width() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "k*z"}, observables={"y": "x"}),
        {"t": [0.5, 1.0, 2.0], "y": [0.61, 0.36, 0.14]},
        {"k": {"lower": 0.0, "upper": 20.0, "guess": 1.0}},
        {"x": 1.0, "z": 0.0},
        noise={"y": {"sd": 0.01}},
        t0=0.0,
    )
    bands = both(problem, np.array([1.0, 3.0]))[1]
    (zero,) = (band for band in bands if band.name == "z")
    assert not zero.values.any()
    assert not zero.confidence.any()


def test_a_band_needs_one_continuation_instead_of_many_profiles() -> None:
    """The Michaelis constant is hardly determined, so that linear bands are far from right."""
    times = np.array([0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    values = [8.66, 7.38, 4.97, 1.62, 0.35, 0.11, -0.04]
    problem = Problem(
        Model(ode={"s": "-v*s/(m + s)", "p": "v*s/(m + s)"}, observables={"y": "s"}),
        {"t": times, "y": values},
        {
            "v": {"lower": 0.1, "upper": 100.0, "guess": 3.0, "scale": "log10"},
            "m": {"lower": 0.01, "upper": 100.0, "guess": 2.0, "scale": "log10"},
        },
        {"s": {"lower": 5.0, "upper": 20.0, "guess": 10.0}, "p": 0.0},
        noise={"y": {"sd": 0.3}},
        t0=0.0,
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    seen: list[Progress] = []
    source = ProfileBands(ForwardMap(problem), result.best.vector, Control(report=seen.append))
    grid = np.linspace(0.0, 10.0, 4 * MAX_TIMES)
    found = source.bands(problem.conditions[0], grid, 0.95, ["y", "p"])
    assert isinstance(found, list)
    y, p = found
    assert (y.unfinished, p.unfinished) == (0, 0)
    assert seen[-1].done < 4 * 2 * 2 * MAX_TIMES  # of all ends, four evaluations each
    at = int(np.linspace(0, len(grid) - 1, MAX_TIMES).round()[7])
    for name, band in (("y", y), ("p", p)):
        text = f"{name}@{float(grid[at])!r}"
        profile = result.profile(expressions=[text], jobs=1).profiles[0]
        width = profile.upper - profile.lower
        assert band.confidence[:, at] == pytest.approx(
            [profile.lower, profile.upper], abs=0.005 * width
        )


def test_an_unbounded_band_has_no_end_and_a_note() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "c"}, observables={"y": "x"}),
        {"t": times, "y": [1.0, 0.5, 0.3, 0.1]},
        {"k": {"lower": 0.0, "guess": 1.0}, "c": {"lower": 0.0, "guess": 1.0}},
        {"x": 1.0, "z": 0.0},
        noise={"y": {"sd": 0.05}},
    )
    table = odefit.fit(problem, SingleShooting(), jobs=1).predict(by="profile")
    hidden = table.query("name == 'z' and t > 0")
    assert np.isposinf(hidden.ci_high).all()
    assert hidden.ci_low.to_numpy() == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(table.query("name != 'z'")[["ci_low", "ci_high"]]).all(axis=None)
    assert table.attrs["notes"] == [
        "the band of z has no end: neither the data nor bounds of c limit it"
    ]


def test_as_many_unknowns_as_values_leave_no_band_and_a_reason() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.4]},
        {"k": {"lower": 0.0, "guess": 1.0}},
        {"x": {"lower": 0.0, "guess": 1.0}},
    )
    table = odefit.fit(problem, SingleShooting(), jobs=1).predict()
    assert table.ci_low.isna().all()
    (said,) = table.attrs["notes"]
    assert said.startswith("no band of x: too few measurements are left to estimate the noise")
