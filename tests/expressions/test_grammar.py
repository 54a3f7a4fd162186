"""Conditions and piecewise expressions: what they mean, and where they may stand."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odefit
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import ExpressionError, as_expression, parse, parse_condition
from odefit.expressions.gradients import Gradient
from odefit.expressions.grammar import COMPARISONS, RESERVED
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import Model
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, symbols_of
from odefit.simulation.engines.programs import program

NAMES = ("x", "y")


def conditions() -> st.SearchStrategy[tuple[str, str]]:
    """Random conditions: in our grammar, and as Python."""
    numbers = st.sampled_from(["x", "y", "1", "x + y", "2*x - 1", "-y"])
    leaves = st.tuples(numbers, st.sampled_from(COMPARISONS), numbers).map(
        lambda c: (" ".join(c), " ".join(c))
    )

    def larger(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
        joined = st.tuples(inner, st.sampled_from([("&&", "and"), ("||", "or")]), inner)
        return st.one_of(
            # Without parentheses of our own: precedence must be that of Python.
            joined.map(
                lambda j: (f"{j[0][0]} {j[1][0]} {j[2][0]}", f"{j[0][1]} {j[1][1]} {j[2][1]}")
            ),
            joined.map(
                lambda j: (f"{j[0][0]} {j[1][1]} {j[2][0]}", f"{j[0][1]} {j[1][1]} {j[2][1]}")
            ),
            inner.map(lambda c: (f"({c[0]})", f"({c[1]})")),
            inner.map(lambda c: (f"!({c[0]})", f"(not ({c[1]}))")),
            inner.map(lambda c: (f"not {c[0]}", f"not {c[1]}")),
        )

    return st.recursive(leaves, larger, max_leaves=8)


@given(conditions(), st.tuples(st.integers(-2, 2), st.integers(-2, 2)))
def test_a_condition_has_the_value_that_python_gives_it(
    texts: tuple[str, str], values: tuple[int, int]
) -> None:
    names = dict(zip(NAMES, map(np.float64, values), strict=True))
    expected = eval(texts[1], {"__builtins__": {}}, names)
    assert bool(parse_condition(texts[0]).evaluate(names, NUMPY)) == bool(expected)
    chosen = parse(f"piecewise(x + 3, {texts[0]}, y - 3)").evaluate(names, NUMPY)
    assert chosen == (names["x"] + 3 if expected else names["y"] - 3)


def pieces() -> st.SearchStrategy[str]:
    values = st.sampled_from(["x^2", "x*y", "sin(x)", "3", "exp(y) - x", "piecewise(x, y > 0, y)"])
    pair = st.tuples(values, conditions()).map(lambda p: f"{p[0]}, {p[1][0]}")
    return st.tuples(st.lists(pair, min_size=1, max_size=3), values).map(
        lambda p: f"y*piecewise({', '.join(p[0])}, {p[1]})"
    )


@pytest.mark.slow
@given(pieces(), st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=3, max_size=3))
def test_all_algebras_agree_on_values_and_derivatives_of_pieces(
    text: str, points: list[tuple[float, float]]
) -> None:
    expression = parse(text)
    x, y = np.array(points).T
    value, partials = Gradient(expression, NAMES)({"x": x, "y": y})
    dual = expression.evaluate({"x": Dual(x, {0: 1.0}), "y": Dual(y, {1: 1.0})}, DUAL)
    np.testing.assert_array_equal(expression.evaluate({"x": x, "y": y}, NUMPY), value)
    np.testing.assert_array_equal(dual.value, value)
    derivatives = dual.gradient(2, 3)
    for k, name in enumerate(NAMES):
        np.testing.assert_allclose(
            np.broadcast_to(partials.get(name, 0.0), 3), derivatives[:, k], rtol=1e-13, atol=1e-13
        )
    symbols = ca.SX.sym("v", 2)
    written = expression.evaluate(dict(zip(NAMES, symbols_of(symbols), strict=True)), CASADI).sx
    outputs = ca.densify(ca.vertcat(written, ca.jacobian(written, symbols).T))
    straight = program(symbols, outputs)
    for i, point in enumerate(zip(x, y, strict=True)):
        found = np.zeros(3)
        evaluate(straight, np.array(point), registers(straight), found)
        np.testing.assert_allclose(found, [value[i], *derivatives[i]], rtol=1e-12, atol=1e-12)


CASADI = CasadiAlgebra()


def test_inactive_pieces_may_be_undefined() -> None:
    text = "piecewise(log(x), x > 0, 1/x, x < 0, 7)"
    x = np.array([-2.0, 0.0, float(np.exp(1.0))])
    with np.errstate(all="ignore"):
        value, partials = Gradient(parse(text), {"x"})({"x": x})
        dual = parse(text).evaluate({"x": Dual(x, {0: 1.0})}, DUAL)
    np.testing.assert_allclose(value, [-0.5, 7.0, 1.0])
    np.testing.assert_allclose(partials["x"], [-0.25, 0.0, 1 / float(np.exp(1.0))])
    np.testing.assert_allclose(dual.partials[0], [-0.25, 0.0, 1 / float(np.exp(1.0))])


def test_a_name_in_conditions_alone_has_no_derivative() -> None:
    gradient = Gradient(parse("piecewise(a, x > 1 && y < 2, 0)"), {"a", "x", "y"})
    value, partials = gradient({k: np.float64(v) for k, v in {"a": 3, "x": 2, "y": 1}.items()})
    assert value == 3
    assert {k: float(v) for k, v in partials.items()} == {"a": 1.0, "x": 0.0, "y": 0.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("piecewise(1, true, 0)", 1),
        ("piecewise(1, false, 0)", 0),
        ("piecewise(1, !true || 2 >= 2, 0)", 1),
        ("piecewise(1, 1 > 2, 5, 1 < 2 and not 3 < 2, 7)", 5),
        ("piecewise(1, 1 < 2 || 1/2 > 3 && 1 > 2, 0)", 1),
    ],
)
def test_conditions_without_names_are_constants(text: str, expected: float) -> None:
    assert parse(text).constant == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x*(t > 5)", "the condition at position 4 of 'x*(t > 5)' stands where a number"),
        ("-(x < 1)", "stands where a number is expected"),
        ("+(x < 1)", "stands where a number is expected"),
        ("exp(x < 1)", "stands where a number is expected; write piecewise(value, condition"),
        ("piecewise(x < 1, x < 1, 0)", "stands where a number is expected"),
        ("piecewise(1, x, 0)", "argument 2 of piecewise at position 14"),
        ("piecewise(1, !x < 3, 0)", "needs a condition, a comparison such as x < 0.1, as in !("),
        ("piecewise(1, x && y > 1, 0)", "'&&' at position 14"),
        ("piecewise(1, 0 < x < 3, 0)", "several are joined by &&, as in a < b && b < c"),
        ("piecewise(1, (x < 1) == (y < 2), 0)", "comparisons are of two numbers"),
        ("piecewise(1, x > 0)", "3 to 1001 arguments, got 2"),
        ("piecewise(1, x > 0, 2, x < 0)", "an odd number of arguments, got 4"),
        ("piecewise", "write piecewise(...)"),
        ("piecewise(1, x = 0, 2)", "write '=='"),
        ("piecewise(1, x & y, 2)", "write '&&'"),
        ("x > 0 ? 1 : 0", "write piecewise(value, condition, otherwise)"),
        ("iif(x > 0, 1, 0)", "did you mean 'if'?"),
        ("theta(t)", "did you mean 'heaviside'?"),
        ("a + not b > 1", "unexpected 'not'"),
        ("x and", "ends where"),
    ],
)
def test_a_mistake_in_a_condition_is_named_with_its_remedy(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_conditions_and_numbers_are_not_interchangeable() -> None:
    with pytest.raises(ExpressionError, match="a number where a condition is expected"):
        parse_condition("x + 1")
    with pytest.raises(ExpressionError, match="stands where a number is expected"):
        as_expression(parse_condition("x < 1"))


@pytest.mark.parametrize(
    ("text", "limit"),
    [("not " * 20_000 + "x < 1", 0), ("!" * 200 + "(x < 1)", 1), ("(" * 200 + "x < 1", 1)],
)
def test_conditions_nest_as_deep_as_numbers(text: str, limit: int) -> None:
    if limit:
        with pytest.raises(ExpressionError, match="nested deeper than 100 levels"):
            parse_condition(text)
    else:
        assert parse_condition(text).evaluate({"x": np.float64(0.0)}, NUMPY)
    deepest = "(x + 1*(" * 45 + "piecewise(1, x < 1 && x > -1 || x == 7, 0)" + "))" * 45
    assert parse(deepest).evaluate({"x": np.float64(0.0)}, NUMPY) == 1.0


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_words_of_the_grammar_are_not_names(word: str) -> None:
    issues = Issues()
    Model(ode={word: "0"}, issues=issues)
    assert any("choose another name" in e for e in issues.errors)


@pytest.mark.parametrize("wrong", [3.0, True, None, ["x < 1"]])
def test_a_condition_must_be_a_text(wrong: Any) -> None:
    issues = Issues()
    assert issues.condition("when", wrong) is None
    assert "expected a condition such as x < 0.1" in issues.errors[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (odefit.OuterApproximation(), "the model uses piecewise(), which cannot be bounded here"),
        (odefit.BranchAndBound(), "'piecewise' has a kink and cannot be enclosed"),
    ],
)
def test_global_methods_refuse_pieces_by_name(method: Any, sentence: str) -> None:
    problem = odefit.Problem(
        Model(ode={"x": "-k*piecewise(x, x > 0.5, 1)"}),
        data={"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]},
        parameters={"k": {"lower": 0.1, "upper": 2.0}},
        initial={"x": 1.0},
    )
    with pytest.raises(odefit.InputError) as caught:
        odefit.fit(problem, method=method)
    assert sentence in str(caught.value)
