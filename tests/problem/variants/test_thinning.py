"""A problem with a part of its measurements is the same problem, seen at fewer times."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.problem.variants.thinning import (
    INTERPOLATION_ERROR,
    LEAST_VALUES,
    with_values_by_variation,
)
from tests.simulation.numerics import evaluated

TIMES = np.linspace(0.0, 30.0, 1501)


def oscillation(periods: float, noise: float = 0.0, **more: object) -> Problem:
    """Return a harmonic oscillator over a number of periods."""
    random = np.random.default_rng(3)
    values = np.cos(2 * np.pi * periods * TIMES / 30.0) + noise * random.normal(size=1501)
    model = Model(ode={"x": "w*y", "y": "-w*x"}, observables={"z": "x"})
    unknowns = {"w": {"lower": 0.0, "upper": 100.0}}
    return Problem(model, {"t": TIMES, "z": values, **more}, unknowns, {"x": {}, "y": {}})


def values_kept(problem: Problem) -> int:
    return with_values_by_variation(problem).size


def test_a_series_keeps_as_many_values_as_it_has_turns() -> None:
    kept = [values_kept(oscillation(periods)) for periods in (1, 30, 60, 120)]
    assert kept == sorted(kept)
    assert kept[0] < 250
    assert kept[-1] == 1501  # twelve values a period


@pytest.mark.parametrize("noise", [0.0, 1e-3, 1e-2, 0.1])
def test_the_remaining_values_determine_the_others(noise: float) -> None:
    """The exact solution between them is within the error that is allowed, and the noise."""
    series = with_values_by_variation(oscillation(15, noise)).conditions[0]
    assert LEAST_VALUES <= len(series.times) < 1000
    between = np.interp(TIMES, series.times, np.cos(np.pi * series.times))
    assert np.abs(between - np.cos(np.pi * TIMES)).max() < 3 * INTERPOLATION_ERROR


def test_a_short_transient_among_many_equal_values_is_kept() -> None:
    values = np.exp(-((TIMES - 7.0) ** 2) / 0.01)
    data = {"t": TIMES, "x": values}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}})
    thinned = with_values_by_variation(problem).conditions[0].series["x"]
    assert thinned.values.max() > 0.9
    assert np.sum(thinned.values > 0.1) >= 5


def test_first_and_last_values_and_standard_deviations_stay_with_theirs() -> None:
    sds = np.linspace(1.0, 2.0, 1501)
    problem = oscillation(1, z_sd=sds)
    condition = with_values_by_variation(problem).conditions[0]
    series = condition.series["z"]
    assert condition.times[0] == 0.0
    assert condition.times[-1] == 30.0
    assert LEAST_VALUES <= len(series.values) < 250
    at = condition.times[series.rows]
    assert series.values == pytest.approx(np.cos(2 * np.pi * at / 30.0))
    assert series.sds == pytest.approx(1.0 + at / 30.0)


def test_series_at_different_times_are_thinned_each_on_its_own() -> None:
    x = np.where(np.arange(1501) % 2 == 0, np.cos(TIMES), np.nan)
    y = np.where(np.arange(1501) % 2 == 1, TIMES, np.nan)
    model = Model(ode={"x": "-k*x", "y": "k*x"})
    problem = Problem(model, {"t": TIMES, "x": x, "y": y}, {"k": {}}, {"x": {}, "y": {}})
    condition = with_values_by_variation(problem).conditions[0]
    assert LEAST_VALUES <= len(condition.series["x"].values) < 250
    assert LEAST_VALUES <= len(condition.series["y"].values) < 250
    for name, exact in (("x", np.cos), ("y", np.copy)):
        series = condition.series[name]
        assert series.values == pytest.approx(exact(condition.times[series.rows]))


def test_short_series_are_not_changed() -> None:
    for name in ("alpha-pinene", "rikitake", "hiv-proteinase", "sir"):
        problem = library.load(name)
        assert with_values_by_variation(problem) is problem


def test_residuals_of_the_thinned_problem_are_among_those_of_the_whole() -> None:
    problem = oscillation(5, 0.05)
    forward = ForwardMap(problem)
    thinned = with_values_by_variation(problem)
    vector = np.array([1.1, 0.9, 0.2])
    whole, part = evaluated(forward, vector), evaluated(forward.of(thinned), vector)
    rows = np.searchsorted(TIMES, thinned.conditions[0].times)
    assert part.residuals == pytest.approx(whole.residuals[rows], abs=1e-9)
    assert part.jacobian == pytest.approx(whole.jacobian[rows], abs=1e-8)
