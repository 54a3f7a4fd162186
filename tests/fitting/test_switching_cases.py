"""Fits of right-hand sides that switch, as they were brought."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.methods import MultiStart

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p", "pe"])
def test_a_degradation_that_ends_at_zero_has_the_standard_error_of_two_points(name: str) -> None:
    """By hand: the noise over the root of the sum of (2 t)^2, t = 20 and 40."""
    problem = odefit.load(CASES / "degrade-if-positive" / f"{name}.toml")
    result = odefit.fit(problem, MultiStart(starts=2), seed=0)
    k = result.params["k"]
    assert result.success
    assert k.value == pytest.approx(0.010012, abs=1e-6)
    noise = np.sqrt(result.objective / 15)
    assert k.stderr == pytest.approx(noise / np.sqrt(40.0**2 + 80.0**2), rel=1e-3)


@pytest.mark.slow
def test_a_motor_with_friction_stops_and_starts() -> None:
    """Values of an exact integration between the switches, where w rests while |u| <= Fc."""
    problem = odefit.load(CASES / "coulomb-friction" / "stick.toml")
    result = odefit.fit(problem, MultiStart(starts=1), seed=0)
    assert result.success
    assert result.objective == pytest.approx(0.42778828, rel=1e-7)
    found = [(result.params[n].value, result.params[n].stderr) for n in ("J", "b", "Fc")]
    expected = [(0.0199965, 2.64593e-5), (0.0499434, 3.5676e-4), (0.301209, 2.00750e-3)]
    for (value, error), (right, sd) in zip(found, expected, strict=True):
        assert value == pytest.approx(right, rel=1e-5)
        assert error == pytest.approx(sd, rel=1e-3)
