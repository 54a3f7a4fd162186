"""Programs compute what CasADi computes, at one point and over whole arrays."""

from __future__ import annotations

import casadi as ca
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from odefit.expressions.expressions import FUNCTIONS, parse
from odefit.expressions.grammar import ExpressionError
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, Symbol, symbols_of
from odefit.simulation.engines.programs import ARRAY_FUNCTIONS, OPERATIONS, ArrayFunction, program

Array = npt.NDArray[np.float64]


def values(variables: ca.SX, expressions: list[ca.SX], at: Array) -> Array:
    made = program(variables, ca.densify(ca.vertcat(*expressions)))
    out = np.full(len(expressions), np.nan)
    evaluate(made, at, registers(made), out)
    return out


def expected(variables: ca.SX, expressions: list[ca.SX], at: Array) -> Array:
    function = ca.Function("f", [variables], [ca.densify(ca.vertcat(*expressions))])
    return np.asarray(function(at), dtype=float).ravel()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_and_its_derivatives_are_right(name: str) -> None:
    fewest, _ = FUNCTIONS[name]
    text = f"{name}({', '.join(['0.3*x + y/4', 'x*y', 'y'][:fewest])})"
    x = ca.SX.sym("x", 2)
    value = parse(text).evaluate({"x": Symbol(x[0]), "y": Symbol(x[1])}, CasadiAlgebra()).sx
    expressions = [value, *ca.vertsplit(ca.jacobian(value, x).T)]
    at = np.array([0.7, 0.4])
    assert values(x, expressions, at) == pytest.approx(expected(x, expressions, at), rel=1e-15)


EXPRESSION = st.recursive(
    st.sampled_from(["x", "y", "z", "2", "0.5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(st.sampled_from(["exp", "sqrt", "tanh", "abs"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.tuples(inner, st.sampled_from(["2", "3", "0.5", "z"])).map(
            lambda parts: f"({parts[0]})^({parts[1]})"
        ),
    ),
    max_leaves=30,
)


@given(st.lists(EXPRESSION, min_size=1, max_size=6))
def test_registers_that_are_used_again_do_not_disturb(texts: list[str]) -> None:
    x = ca.SX.sym("x", 3)
    names = dict(zip("xyz", symbols_of(x), strict=True))
    try:
        expressions = [parse(text).evaluate(names, CasadiAlgebra()).sx for text in texts]
    except ExpressionError:  # such as the root of a negative number
        assume(False)
    at = np.array([0.7, 1.3, 2.1])
    found, wanted = values(x, expressions, at), expected(x, expressions, at)
    assert np.allclose(found, wanted, rtol=1e-12, atol=0.0, equal_nan=True)


def test_outputs_may_be_variables_constants_and_the_same() -> None:
    x = ca.SX.sym("x", 2)
    expressions = [x[1], ca.SX(3.0), x[0] * x[1], x[0] * x[1], ca.SX(0.0)]
    assert values(x, expressions, np.array([2.0, 5.0])).tolist() == [5.0, 3.0, 10.0, 10.0, 0.0]


def test_a_program_may_have_no_values() -> None:
    made = program(ca.SX.sym("x", 2), ca.SX(0, 1))
    out = np.zeros(0)
    evaluate(made, np.ones(2), registers(made), out)
    assert len(made.instructions) == 0


def test_every_operation_of_programs_is_known() -> None:
    assert set(ARRAY_FUNCTIONS) == set(OPERATIONS)


def test_values_are_those_of_casadi_at_each_point() -> None:
    x = ca.SX.sym("x", 3)
    a, b, c = ca.vertsplit(x)
    values = ca.vertcat(
        a + b * c, a / b - c, a**b, a**2, 2 * a, 1 / b, -c, ca.exp(-a), ca.log(b), ca.sqrt(b),
        ca.sin(a) + ca.cos(b), ca.tan(c), ca.asin(a / 4) + ca.acos(a / 4), ca.atan(c),
        ca.sinh(a) - ca.cosh(b), ca.tanh(c), ca.fabs(c), ca.sign(c), ca.fmin(a, c), ca.fmax(a, c),
        ca.if_else(a < b, c, a), ca.if_else(ca.logic_and(a <= b, c != 0), 1, b),
        ca.if_else(ca.logic_or(a == b, c > 0), a, 2), ca.if_else(ca.logic_not(a < b), 3, c),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    points = rng.uniform([0.1, 0.1, -2.0], [2.0, 2.0, 2.0], (50, 3)).T
    points[:, 0] = [1.0, 1.0, 0.0]
    exact = np.array(ca.Function("f", [x], [values])(points))
    assert np.allclose(ArrayFunction(x, values)(list(points), 50), exact, rtol=1e-14, atol=1e-300)


def test_a_constant_fills_all_points() -> None:
    x = ca.SX.sym("x")
    found = ArrayFunction(x, ca.densify(ca.vertcat(x, 3.0)))([np.array([1.0, 2.0])], 2)
    assert np.array_equal(found, [[1.0, 2.0], [3.0, 3.0]])
