"""Observables along a trajectory, with derivatives by the unknowns."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import Dual
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.observation import observe

TIMES = np.array([0.0, 0.5, 1.0, 2.0])


def problem() -> Problem:
    """Two states, an algebraic variable, a scalar that an event assigns, and scales."""
    model = Model(
        ode={"x": "-k*x + g", "y": "k*x - y"},
        algebraic={"z": "z - x*y - s"},
        observables={
            "plain": "x",
            "ratio": "s*x/(x + y + k)",
            "total": "x + y + z^2 + g",
            "start": "sqrt(abs(y)) + piecewise(s, x > 1, x)",
            "scale": "s^2",
        },
    )
    data = {"t": TIMES} | {name: np.ones(4) for name in model.observables}
    return Problem(
        model,
        None,
        {"k": (0.1, 2.0), "s": (0.1, 2.0), "g": (0.0, 1.0)},
        {"x": (0.5, 3.0), "y": 0.0},
        experiments=[Experiment("one", data, events=[Event((0.7,), {"g": "g + 0.3*k"})])],
    )


VECTOR = np.array([0.6, 1.3, 0.2, 2.0])


def at(vector: Array, only: set[str] | None = None) -> dict[str, Dual]:
    forward = ForwardMap(problem())
    trajectory = forward.trajectory(vector, "one")
    assert not isinstance(trajectory, Failure)
    with np.errstate(all="ignore"):
        return observe(forward.field, forward.problem.conditions[0], vector, trajectory, (), only)


def test_derivatives_are_those_of_central_differences() -> None:
    found = at(VECTOR)
    for k in range(len(VECTOR)):
        step = np.zeros(len(VECTOR))
        step[k] = 1e-5
        above, below = at(VECTOR + step), at(VECTOR - step)
        for name, value in found.items():
            slope = (above[name].array(4) - below[name].array(4)) / 2e-5
            given = value.gradient(len(VECTOR), len(TIMES))[:, k]
            if name == "start":  # the root of a state that is zero has no slope at t0
                slope, given = slope[1:], given[1:]
            np.testing.assert_allclose(given, slope, rtol=2e-5, atol=2e-7, err_msg=name)


def test_a_root_at_zero_does_not_spoil_unknowns_without_influence() -> None:
    gradient = at(VECTOR)["start"].gradient(len(VECTOR), len(TIMES))
    assert gradient[0, 0] == 0.0 or np.isfinite(gradient[0, 0])
    assert gradient[0, 1] == 1.0  # of s, by the first piece
    assert gradient[0, 2] == 0.0


@pytest.mark.parametrize("only", [{"ratio"}, {"plain", "scale"}, set()])
def test_observables_can_be_selected(only: set[str]) -> None:
    found, every = at(VECTOR, only), at(VECTOR)
    assert found.keys() == only
    for name in only:
        np.testing.assert_array_equal(found[name].value, every[name].value)
