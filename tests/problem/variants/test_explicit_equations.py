"""Tests of explicit expressions in place of algebraic variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Model, Problem
from odefit.methods.starts import sample
from odefit.problem.variants.explicit_equations import replaced, substitutions
from odefit.problem.variants.reduction import reduced
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED

T = [0.5, 1.0, 2.0, 4.0]


def problem(
    algebraic: Mapping[str, str], rate: str = "-v", observable: str = "s", **more: Any
) -> Problem:
    model = Model({"s": rate}, {"y": observable}, algebraic)
    data = {"t": np.array(T), "y": np.array([0.8, 0.65, 0.4, 0.15])}
    unknowns = {"vmax": (0.1, 2.0), "km": (0.1, 2.0)}
    return Problem(model, data, unknowns, {"s": 1.0}, **more)


def check_same_cost(whole: Problem) -> Problem:
    """Return the smaller problem, after comparing it with the whole one at random unknowns."""
    smaller = reduced(whole)
    assert smaller is not None
    of_whole, of_smaller = ForwardMap(whole), ForwardMap(smaller.problem)
    for vector in sample(whole, 0, 3, 1):
        expected, found = (f.evaluate(vector, UNDECIDED) for f in (of_whole, of_smaller))
        assert isinstance(expected, Evaluation)
        assert isinstance(found, Evaluation)
        assert found.residuals == pytest.approx(expected.residuals, rel=1e-7, abs=1e-9)
        assert found.jacobian == pytest.approx(expected.jacobian, rel=1e-5, abs=1e-8)
    return smaller.problem


@pytest.mark.parametrize(
    "equation",
    [
        "v - vmax*s/(km + s)",
        "vmax*s/(km + s) - v",
        "2*(v - 0.5*vmax*s/(km + s)) - v",
        "0 - v/4 + 0.25*vmax*s/(km + s)",
    ],
)
def test_a_linear_equation_gives_its_variable(equation: str) -> None:
    smaller = check_same_cost(problem({"v": equation}, observable="s + 0.1*v"))
    assert not smaller.model.algebraic
    assert smaller.model.ode["s"].names == smaller.model.observables["y"].names


def test_variables_that_depend_on_others_are_replaced_in_turn() -> None:
    chain = {"v": "v - vmax*w", "w": "w - s/total", "total": "total - km - s"}
    smaller = check_same_cost(problem(chain))
    assert not smaller.model.algebraic
    assert smaller.model.ode["s"].names == {"vmax", "km", "s"}


def test_the_key_of_an_equation_need_not_be_the_variable_that_it_gives() -> None:
    crossed = {"v": "w - s/(km + s)", "w": "v - vmax*w"}
    assert not check_same_cost(problem(crossed)).model.algebraic


def test_an_equation_that_is_not_linear_remains() -> None:
    whole = problem({"v": "v^3 + v - vmax*w", "w": "w - s/(km + s)"})
    assert substitutions(whole) == [("w", "w")]
    smaller = check_same_cost(whole)
    assert list(smaller.model.algebraic) == ["v"]
    assert smaller.conditions[0].algebraic_guess.keys() == {"v"}


@pytest.mark.parametrize("equation", ["max(v, 0) - s", "km*v - s", "v*s - vmax", "exp(v) - s - v"])
def test_a_variable_without_a_constant_coefficient_remains(equation: str) -> None:
    assert substitutions(problem({"v": equation})) == []


def test_a_variable_in_a_noise_model_remains() -> None:
    explicit = {"v": "v - vmax*s/(km + s)"}
    assert substitutions(problem(explicit, noise={"y": {"sd": "0.1 + 0.1*v"}})) == []
    assert substitutions(problem(explicit, noise={"y": {"sd": "0.1 + 0.1*s"}})) == [("v", "v")]


def test_equations_do_not_become_much_longer() -> None:
    doubling = {f"v{k}": f"v{k} - 0.2*v{k + 1}*(1 + v{k + 1})" for k in range(5)}
    whole = problem({**doubling, "v5": "v5 - vmax*s/(km + s)"}, rate="-v0")
    pairs = substitutions(whole)
    assert 0 < len(pairs) < 6
    before, after = (
        sum(len(e.program) for e in (*m.ode.values(), *m.algebraic.values()))
        for m in (whole.model, replaced(whole.model, pairs))
    )
    assert after <= 5 * before
    check_same_cost(whole)


def test_a_fit_equals_that_of_the_differential_equation() -> None:
    data = {"t": T, "y": [0.8, 0.65, 0.4, 0.15]}
    plain = Problem(
        Model({"s": "-vmax*s/(km + s)"}, {"y": "s"}),
        data,
        {"vmax": (0.1, 2.0), "km": (0.1, 2.0)},
        {"s": 1.0},
    )
    expected = odefit.fit(plain, seed=1)
    found = odefit.fit(problem({"v": "v - vmax*s/(km + s)"}), seed=1)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert len(found.starts) == len(expected.starts)
    assert [r.name for r in found.routes] == [r.name for r in expected.routes]
