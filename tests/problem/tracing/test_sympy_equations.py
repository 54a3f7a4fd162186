"""Equations in SymPy are the same equations here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY
from odefit.problem import InputError, Model

sympy = pytest.importorskip("sympy", reason="equations in SymPy need SymPy, which is no dependency")
x, y, k, t = sympy.symbols("x y k t")


def test_symbols_functions_and_derivatives_name_states() -> None:
    f = sympy.Function("x")(t)
    for equations in (
        {x: -k * x},
        {"x": -k * x},
        {f: -k * f},
        {f.diff(t): -k * f},
        [sympy.Eq(f.diff(t), -k * f)],
    ):
        model = Model.from_sympy(equations)
        assert {n: e.text for n, e in model.ode.items()} == {"x": "-k*x"}


def test_observables_and_algebraic_equations_come_along() -> None:
    model = Model.from_sympy({x: y}, observables={"w": x**2 + 1}, algebraic={y: y**3 + x - 1})
    assert model.observables["w"].text == "x^2 + 1"
    assert model.algebraic["y"].text == "x + y^3 - 1"


def expressions() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([x, y, k, t, sympy.Integer(2), sympy.Rational(1, 3), sympy.Float(0.7)])
    one = st.sampled_from(
        [sympy.exp, sympy.sin, sympy.tanh, sympy.Abs, sympy.sign, lambda e: sympy.log(1 + e**2)]
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] / (p[1] ** 2 + 1)),
            inner.map(lambda e: sympy.sqrt(e**2 + 1)),
            inner.map(lambda e: e**2),
            st.tuples(one, inner).map(lambda p: p[0](p[1])),
            st.tuples(inner, inner).map(lambda p: sympy.Max(p[0], p[1])),
            st.tuples(inner, inner, inner).map(
                lambda p: sympy.Piecewise((p[0], p[1] < p[2]), (p[2], True))
            ),
        ),
        max_leaves=6,
    )


@given(expressions(), st.lists(st.floats(0.1, 1.2), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
def test_values_are_those_of_sympy(expression: Any, numbers: list[float]) -> None:
    names = dict(zip("xykt", map(np.float64, numbers), strict=True))
    model = Model.from_sympy({"w": expression})
    expected = complex(expression.subs(dict(zip((x, y, k, t), numbers, strict=True))).evalf())
    found = model.ode["w"].evaluate(names, NUMPY)
    np.testing.assert_allclose(float(found), expected.real, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("equations", "message"),
    [
        ({x: sympy.gamma(x)}, "gamma in the equation of 'x' ('gamma(x)') has no counterpart"),
        ({x: sympy.I * x}, "ImaginaryUnit in the equation of 'x'"),
        ({x: sympy.Symbol("k'") * x}, "\"k'\" in the equation of 'x' is not a name here"),
        (
            {sympy.Function("x")(t).diff(t, 2): x},
            "is not a first derivative; write a state for each",
        ),
        ({x + 1: x}, "'x + 1' is not the name of a state"),
        ([x], "expected equations Eq(x(t).diff(t), ...), got 'x'"),
        ("x", "expected a dict {x: right-hand side}"),
        ({x: sympy.Function("x")(t - 3)}, "has no counterpart in expressions"),
        ({x: "k*x"}, "expected an expression of SymPy for 'x', got str"),
        ({x: sympy.Piecewise((1, x > 0))}, "has no last value for all other cases"),
    ],
)
def test_a_sympy_expression_without_counterpart_is_named(equations: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Model.from_sympy(equations)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "outer",
    [sympy.sin, lambda e: x / sympy.sin(e), lambda e: k ** sympy.sin(e)],
    ids=["functions", "fractions", "powers"],
)
def test_deep_nesting_is_refused_for_every_kind_of_expression(
    outer: Callable[[Any], Any],
) -> None:
    def nested(levels: int) -> Any:
        found = x
        with sympy.evaluate(False):  # by which SymPy itself would be lost in so many levels
            for _ in range(levels):
                found = outer(found)
        return found

    assert Model.from_sympy({x: nested(20)}).ode["x"].text.count("sin") == 20
    with pytest.raises(InputError, match="the equation of 'x' is nested too deeply"):
        Model.from_sympy({x: nested(600)})


@pytest.mark.slow
def test_sympy_is_not_imported_without_a_sympy_expression() -> None:
    code = (
        "import sys, odefit; odefit.Model(ode={'x': '-k*x'}); "
        "odefit.Model.from_function(lambda t, x, k: [-k*x[0]], ['x'], ['k']); "
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
