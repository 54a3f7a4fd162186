"""What the curve of an answer does instead of the data, as values and in words."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Automatic, Model, Problem, fit
from odefit.common.arrays import Array
from odefit.fitting.fit_notices import _astray
from odefit.methods.fit_quality.misfit import Run, assess_misfit
from odefit.reporting.notices import notice_sentence
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.linspace(0.0, 10.0, 60)
SWINGS = np.exp(-0.075 * TIMES) * np.cos(3.5 * TIMES)


def pendulum(amplitude: float) -> Problem:
    """Return a pendulum whose angle was measured in degrees, in a model in radians."""
    noise = 0.025 * np.random.default_rng(1).standard_normal(len(TIMES))
    return Problem(
        Model(ode={"theta": "omega", "omega": "-9.81/L*sin(theta) - b*omega"}),
        {"t": TIMES, "theta": amplitude * (SWINGS + noise)},
        {"L": {"lower": 0.0}, "b": {"lower": 0.0}},
        {"theta": amplitude, "omega": 0.0},
    )


def words(problem: Problem, vector: Array) -> list[str]:
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    return [notice_sentence(n) for n in _astray(assess_misfit(forward, vector, evaluation))]


def test_degrees_for_radians_are_reported_with_the_behaviour_of_the_curve() -> None:
    (said,) = words(pendulum(20.0), np.array([0.8, 0.15]))
    assert said.startswith("No curve comes near theta: the data run from -18.")
    assert "and pass the middle 11 times; the curve of this answer runs from" in said
    assert "Sines and cosines take radians: if these are degrees" in said


def test_a_constant_curve_is_reported_without_a_remark_on_angles() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": 2.0 * SWINGS + 0.01 * np.cos(40.0 * TIMES)},
        {"k": {"lower": 0.0, "upper": 5.0}},
        {"x": 0.5},
    )
    (said,) = words(problem, np.array([0.0]))
    assert "the curve of this answer stays near 0.5" in said
    assert said.endswith("Check units, signs, initial values and observables")


def test_a_curve_near_the_data_gives_no_remark() -> None:
    small = np.deg2rad(20.0)
    assert not words(pendulum(small), np.array([0.8, 0.15]))


def test_small_swings_about_the_middle_are_not_passes() -> None:
    assert Run.of(np.array([0.0, 1.0, 0.0, 1.0])) == Run(0.0, 1.0, 3)
    assert Run.of(np.array([0.0, 0.45, 0.55, 0.45, 1.0])).passes == 1
    assert Run.of(np.full(5, 3.0)) == Run(3.0, 3.0, 0)


@pytest.mark.slow
def test_a_pendulum_in_degrees_ends_soon_without_an_acceptable_fit() -> None:
    result = fit(pendulum(20.0), Automatic(), jobs=1, seed=1)
    assert len(result.starts) < 100
    assert result.status.value == "not converged"
    assert "independent starts came near the data" in result.message
    assert any(w.startswith("No curve comes near theta") for w in result.warnings)
