"""Searches that know squares alone get a problem of about the same size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.normal_approximation import normal_approximation


def problem(noise: dict[str, Any], values: Any) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        data={"t": np.arange(4.0), "y": values},
        parameters={"k": {"lower": 0}},
        initial={"x": 9.0},
        noise={"y": noise},
    )


def test_normal_noise_is_its_own_approximation() -> None:
    one = problem({"sd": 0.1}, [9, 4, 2, 0])
    assert normal_approximation(one) is one


def test_priors_become_normal_ones() -> None:
    laplace = {"distribution": "laplace", "location": 1.0, "scale": 0.1}
    one = problem({"sd": 0.1}, [9, 4, 2, 0]).with_parameters(k={"prior": laplace})
    approximate = normal_approximation(one)
    assert approximate.keys == one.keys
    assert approximate.priors["k"].distribution == "normal"
    assert approximate.priors["k"].mean == pytest.approx(1.0)
    assert one.priors["k"].distribution == "laplace"
    on_log10 = problem({"sd": 0.1}, [9, 4, 2, 0]).with_parameters(
        k={"prior": {"mean": 0.0, "sd": 0.1, "on": "log10"}}
    )
    assert normal_approximation(on_log10) is on_log10


@pytest.mark.parametrize(
    ("noise", "sds"),
    [
        ({"sd": 0.5, "loss": "student"}, [0.5, 0.5, 0.5, 0.5]),
        ({"sd": 0.5, "lower_limit": 2.0}, [0.5, 0.5, 0.5, 0.5]),
        ({"distribution": "poisson"}, [3.0, 2.0, np.sqrt(2), 1.0]),
        (
            {"distribution": "negative-binomial", "dispersion": 0.5},
            np.sqrt([9 + 40.5, 4 + 8, 2 + 2, 1 + 0.5]),
        ),
        ({"distribution": "negative-binomial", "dispersion": "estimate"}, [3, 2, np.sqrt(2), 1]),
    ],
)
def test_residuals_are_differences_over_the_usual_deviations(
    noise: dict[str, Any], sds: Any
) -> None:
    one = problem(noise, [9, 4, 2, 0])
    approximate = normal_approximation(one)
    assert approximate.keys == one.keys
    forward = ForwardMap(approximate)
    assert forward.gaussian
    vector = np.array([0.8, 0.3])[: len(one.keys)]
    found = forward.evaluate(vector)
    assert not isinstance(found, Failure)
    measured = np.maximum([9, 4, 2, 0], noise.get("lower_limit", 0.0))
    expected = (9 * np.exp(-0.8 * np.arange(4)) - measured) / sds
    assert found.residuals[:4] == pytest.approx(expected, rel=1e-9)
