"""Perfect fits, curves that are zero, derivatives without bounds: what is made of such answers.

Warnings are errors here, as in all tests.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Model, Problem
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.on_nodes import HeldOnNodes
from odefit.simulation.engines.engine_choice import UNDECIDED

TIMES = np.array([0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0])


def rise(observed: str = "x", scatter: float = 0.02, **options: Any) -> Problem:
    """A state that rises from zero to p/k."""
    course = 1.2 / 0.6 * (1 - np.exp(-0.6 * TIMES)) * np.exp(scatter * np.cos(7 * TIMES))
    seen = {"x": course, "sqrt(x)": np.sqrt(course)}[observed]
    return Problem(
        Model(ode={"x": "p - k*x"}, observables={"y": observed}),
        {"t": TIMES, "y": seen},
        {"p": {"lower": 0.1, "upper": 9.0}, "k": {"lower": 0.05, "upper": 5.0}},
        {"x": 0.0},
        t0=0.0,
        **options,
    )


@pytest.mark.slow
def test_a_curve_from_zero_has_bands_where_noise_is_logarithmic(tmp_path: Path) -> None:
    """There is no logarithm of zero; elsewhere the bands are relative."""
    problem = rise(noise={"y": {"transform": "log10", "sd": 0.02}})
    result = odefit.fit(problem, seed=1, jobs=1)
    result.report(tmp_path / "report.html")
    table = result.predict(np.array([0.0, 1.0]))
    own = table[table["name"] == "y"]
    assert own["value"].iloc[0] == 0.0
    assert math.isnan(own["pi_low"].iloc[0])
    ratio = own["pi_high"].iloc[1] / own["value"].iloc[1]
    assert 10 ** (1.96 * 0.02) < ratio < 10 ** (1.5 * 1.96 * 0.02)


@pytest.mark.slow
def test_an_observable_with_an_unbounded_derivative_has_no_band(
    tmp_path: Path,
) -> None:
    result = odefit.fit(rise("sqrt(x)"), seed=1, jobs=1)
    result.report(tmp_path / "report.html")
    table = result.predict(np.array([0.0, 1.0]))
    errors = table[table["name"] == "y"]["std_error"]
    assert errors.iloc[1] > 0
    assert not errors.iloc[0] > 0


def test_residuals_of_a_perfect_fit_have_no_size_in_standard_deviations() -> None:
    result = odefit.fit(rise(scatter=0.0), seed=1, jobs=1)
    table = result.residuals
    assert np.abs(table["residual"]).max() < 1e-7
    assert result.uncertainty is not None
    if result.uncertainty.variance == 0:
        assert table["weighted"].isna().all()
    assert "rounding" in str(result.assessment.local)


def test_an_overflowing_deviance_is_infinite() -> None:
    judged = Deviance(minimum=-5.0, variance=1.0, degrees=4.0, estimated=3)
    assert judged.root(1e9) == math.inf
    assert math.isfinite(judged.root(100.0))


@pytest.mark.slow
def test_nodes_hold_the_constants_that_events_assign() -> None:
    """A comparison of the time is a constant that an event sets: it is one of a node's values."""
    times = np.linspace(0.0, 6.0, 13)
    problem = Problem(
        Model(ode={"x": "-k*x + s*if(t < 2.2, 1, 0)"}),
        {"t": times, "x": np.where(times < 2.2, times, 2.0) + 0.01 * np.cos(5 * times)},
        {"k": {"lower": 0.01, "upper": 3.0}, "s": {"lower": 0.1, "upper": 5.0}},
        {"x": 0.0},
    )
    result = odefit.fit(problem, seed=1, jobs=1)
    forward = odefit.ForwardMap(problem)
    unit = float(result.objective) / 11
    held = HeldOnNodes(forward, 0, result.best.vector, UNDECIDED, unit, lambda: False)
    first = held.first()
    assert not isinstance(first, str), first
    assert first.cost <= 0.5 * result.objective * (1 + 1e-6)
