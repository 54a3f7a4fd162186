"""Sensitivities of the observables are those of exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError, Model, Problem
from odefit.explorer.live_curves import LiveModel
from odefit.explorer.sensitivity_curves import SensitivityCurves, sensitivity_curves

K, A, C = 0.7, 2.0, 3.0


def model() -> LiveModel:
    """x = a exp(-k t), seen alone and beside a constant."""
    times = [0.0, 1.0, 4.0]
    return LiveModel(
        Problem(
            Model(ode={"x": "-k*x"}, observables={"x": "x", "sum": "10*x + c"}),
            {"t": times, "x": [2.0, 1.0, 0.1], "sum": [23.0, 13.0, 4.0]},
            {"k": {"guess": K}, "a": {"guess": A}, "c": {"guess": C}},
            {"x": "a"},
        )
    )


def test_curves_are_derivatives_by_logarithms_and_magnitudes_their_root_mean_squares() -> None:
    live = model()
    found = sensitivity_curves(live, np.array([K, A, C]), live.problem.conditions[0].name)
    assert isinstance(found, SensitivityCurves)
    t = found.times
    x = A * np.exp(-K * t)
    exact = {
        "x": {"k": -K * t * x, "a": x},
        "sum": {"k": -10 * K * t * x, "a": 10 * x, "c": np.full(len(t), C)},
    }
    assert {name: set(curves) for name, curves in found.curves.items()} == {
        name: set(curves) for name, curves in exact.items()
    }
    for name, curves in exact.items():
        for key, curve in curves.items():
            np.testing.assert_allclose(found.curves[name][key], curve, rtol=1e-6, atol=1e-8)
    largest = {"x": A, "sum": 10 * A + C}
    for key, magnitude in found.magnitudes.items():
        parts = [exact[name].get(key, np.zeros(len(t))) / size for name, size in largest.items()]
        assert magnitude == pytest.approx(np.sqrt(np.mean(np.square(parts))), rel=1e-6)


def test_an_experiment_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError):
        sensitivity_curves(model(), np.array([K, A, C]), "another")
