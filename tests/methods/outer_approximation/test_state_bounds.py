"""Signs and totals of states are those that the equations have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Collocation
from odefit.methods.outer_approximation.state_bounds import EquationBounds

TIMES = np.linspace(0.0, 2.0, 4)


def bounds(
    ode: dict[str, str], initial: dict[str, float], inputs: dict[str, Any] | None = None
) -> EquationBounds:
    ranges = {"k": {"lower": 0.0, "upper": 2.0}, "m": {"lower": 0.1, "upper": 2.0}}
    parameters = {name: r for name, r in ranges.items() if name in "".join(ode.values())}
    data = {"t": TIMES, **dict.fromkeys(ode, np.ones(len(TIMES)))}
    data |= dict.fromkeys(inputs or {}, np.maximum(TIMES - 1.0, 0.0))
    problem = Problem(Model(ode=ode, inputs=inputs or {}), data, parameters, initial)
    d = Discretisation(problem, Collocation(2, "legendre"), UniformMesh(2))
    return EquationBounds(d, np.column_stack([problem.lower, problem.upper]))


def test_an_epidemic_has_a_total_that_bounds_all_states() -> None:
    found = bounds({"s": "-k*s*i", "i": "k*s*i - m*i", "r": "m*i"}, {"s": 0.9, "i": 0.1, "r": 0.0})
    assert found.nonnegative.tolist() == [True, True, True]
    assert found.totals(0) == pytest.approx([0.9, 1.0, 1.0], rel=1e-6)


def test_the_bound_of_a_total_is_not_below_it() -> None:
    """The linear program that finds it has a tolerance."""
    found = bounds({"s": "-k*s*i", "i": "k*s*i - m*i", "r": "m*i"}, {"s": 0.9, "i": 0.1, "r": 0.0})
    assert found.totals(0)[0] > 0.9
    assert (found.totals(0)[1:] > 1.0).all()


def test_an_oscillator_has_neither_sum_nor_sign() -> None:
    found = bounds({"x": "k*y", "y": "-m*x"}, {"x": 1.0, "y": 0.0})
    assert found.nonnegative.tolist() == [False, False]
    assert np.isinf(found.totals(0)).all()


def test_a_state_that_grows_has_no_upper_bound() -> None:
    found = bounds({"x": "k*x + m", "y": "-k*y/(m + y)"}, {"x": 1.0, "y": 2.0})
    assert found.nonnegative.tolist() == [True, True]
    assert found.totals(0) == pytest.approx([np.inf, 2.0])


@pytest.mark.parametrize("rate", ["-m", "-k*sqrt(y)", "k*(x - 1)"])
def test_a_state_that_may_leave_zero_downwards_has_no_sign(rate: str) -> None:
    found = bounds({"x": rate, "y": "-k*y"}, {"x": 1.0, "y": 1.0})
    assert found.nonnegative.tolist() == [False, True]


def test_a_state_that_starts_below_zero_has_no_sign() -> None:
    assert bounds({"x": "-k*x"}, {"x": -1.0}).nonnegative.tolist() == [False]


def test_a_total_that_an_input_raises_later_is_not_a_bound() -> None:
    found = bounds({"x": "u - k*x"}, {"x": 1.0}, {"u": "linear"})
    assert found.nonnegative.tolist() == [True]
    assert np.isinf(found.totals(0)).all()
