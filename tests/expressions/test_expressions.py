"""Expressions mean what mathematics means by them, and execute nothing."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY, NumpyAlgebra
from odefit.expressions.expressions import (
    FUNCTIONS,
    MAX_EXPONENT,
    MAX_LENGTH,
    ExpressionError,
    as_expression,
    parse,
)
from odefit.expressions.grammar import MAX_DIGITS

NAMES = ("x", "y", "k_1")
PYTHON = {
    **{n: getattr(np, n) for n in "exp log log10 sqrt sin cos tan sinh cosh tanh".split()},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "abs": np.abs,
    "min": lambda *a: np.min(a),
    "max": lambda *a: np.max(a),
    "N": np.float64,
}


class PythonPower(NumpyAlgebra):
    """Powers by ``**``: NumPy's own function can differ from it in the last digit."""

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent


def value(text: str, **names: float) -> float:
    with np.errstate(all="ignore"):
        return float(parse(text).evaluate({k: np.float64(v) for k, v in names.items()}, NUMPY))


def refused(text: str) -> str | None:
    """Why `text` is no expression, None if it is one."""
    try:
        parse(text)
    except ExpressionError as error:
        return str(error)
    return None


def expressions() -> st.SearchStrategy[tuple[str, str]]:
    """Random expressions: in our grammar, and as Python."""
    numbers = st.sampled_from(["0", "1", "2", "3", "0.5", "1.", ".25", "1e-3", "2.5E+2"])
    leaves = st.one_of(
        st.sampled_from(NAMES).map(lambda n: (n, n)), numbers.map(lambda n: (n, f"N('{n}')"))
    )

    def larger(
        inner: st.SearchStrategy[tuple[str, str]],
    ) -> st.SearchStrategy[tuple[str, str]]:
        space = st.sampled_from(["", " ", "\t "])
        binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "^", "**"]), inner, space)
        call = st.one_of(
            st.tuples(
                st.sampled_from([f for f, (_, most) in FUNCTIONS.items() if most == 1]),
                st.lists(inner, min_size=1, max_size=1),
            ),
            st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=4)),
        )
        return st.one_of(
            # Without parentheses of our own: precedence must be that of Python.
            binary.map(
                lambda b: (
                    f"{b[0][0]}{b[3]}{b[1]}{b[3]}{b[2][0]}",
                    f"{b[0][1]} {b[1].replace('^', '**')} {b[2][1]}",
                )
            ),
            inner.map(lambda e: (f"({e[0]})", f"({e[1]})")),
            st.tuples(st.sampled_from("+-"), inner).map(
                lambda s: (f"{s[0]}{s[1][0]}", f"{s[0]} {s[1][1]}")
            ),
            call.map(
                lambda c: (
                    f"{c[0]}({', '.join(a for a, _ in c[1])})",
                    f"{c[0]}({', '.join(b for _, b in c[1])})",
                )
            ),
        )

    return st.recursive(leaves, larger, max_leaves=12)


@given(expressions(), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_an_expression_has_the_value_that_python_gives_it(
    texts: tuple[str, str], values: list[float]
) -> None:
    ours, python = texts
    names = {k: np.float64(v) for k, v in zip(NAMES, values, strict=True)}
    refusal = refused(ours)
    if refusal:
        # Parts without names that have no finite value are refused: nothing else may be.
        assert "has no finite value" in refusal or "the exponent" in refusal
        return
    expression = parse(ours)
    with np.errstate(all="ignore"):
        expected = eval(python, {"__builtins__": {}}, {**PYTHON, **names})
        found = expression.evaluate(names, PythonPower())
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@given(st.text(alphabet="xy12.e+-*/^(), minexplog_", max_size=60) | st.text(max_size=20))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    refusal = refused(text)
    if refusal is None:
        assert parse(text) == parse(parse(text).text)
    else:
        assert refusal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^3^2", 512),
        ("(2^3)^2", 64),
        ("2**3", 8),
        ("6/3/2", 1),
        ("1-2-3", -4),
        ("--1", 1),
        ("2*-3", -6),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("abs(-3)", 3),
        ("0^0", 1),
        ("  1 +\n1\t", 2),
        ("log(exp(2))*log10(100)", 4),
    ],
)
def test_precedence_is_that_of_mathematics(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected, rel=1e-15)
    assert parse(text).constant == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("x +", "'x +' ends where"),
        ("x y", "unexpected 'y' at position 3"),
        ("2x", "a product needs a *, as in 2*x"),
        ("(x", "expected"),
        ("x)", "unexpected ')'"),
        ("x ** ** y", "unexpected '**'"),
        ("a == b", "write piecewise(value, condition, otherwise)"),
        ("a if b else c", "unexpected 'if'"),
        ("a.b", "a dot is part of a number"),
        ("x\N{MINUS SIGN}y", "write '-'"),
        ("x\N{SUPERSCRIPT TWO}", "write '^2'"),
        ("arcsin(x)", "did you mean 'asin'?"),
        ("eq(x, 2)", "write a == b"),
        ("sine(x)", "did you mean 'sin'?"),
        ("k(x + 1)", "a product needs a *"),
        ("exp", "write exp(...)"),
        ("exp()", "one argument, got 0"),
        ("exp(1, 2)", "one argument, got 2"),
        ("min(1)", "2 to 64 arguments, got 1"),
        ("min(" + ",".join("1" * 65) + ")", "2 to 64 arguments, got 65"),
        ("1e999", "out of range"),
        ("1e-99999999999999999999", "out of range"),
        ("x*1." + "1" * MAX_DIGITS, "has more than 1000 digits; round it"),
        ("x*(1/0)", "'/' at position 5 of 'x*(1/0)' has no finite value"),
        ("log(-1)", "no finite value"),
        ("exp(1000)", "no finite value"),
        ("x^1000000000", "the exponent at position 2"),
        ("(2^1000)^1000", "no finite value"),
        ("(2^(0-1000))^1000", "no finite value"),
        ("'x'", 'unexpected "\'"'),
        ("\u0663", "unexpected"),
        ("\u0445", "unexpected"),
    ],
)
def test_a_mistake_is_named_with_its_position(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch /tmp/executed')",
        "(lambda: 1)()",
        "x.__class__",
        "eval(x)",
        "[x for x in y]",
        "x; y",
        "x := 1",
        "@x",
        "f'{x}'",
    ],
)
def test_python_is_not_spoken(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000 + "x" + ")" * 50_000,
        "-" * 50_000 + "x",
        "x" + "^x" * 40_000,
        "exp(" * 20_000 + "x" + ")" * 20_000,
        "x" + "+1" * MAX_LENGTH,
        "1" * (MAX_LENGTH + 1),
    ],
    ids=["parentheses", "signs", "powers", "calls", "sum", "number"],
)
def test_nesting_and_length_are_bounded(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert len(str(caught.value)) < 300
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_a_long_sum_does_not_count_as_nesting() -> None:
    assert value("x" + " + x" * 20_000, x=1.0) == 20_001


def test_moderate_nesting_is_allowed() -> None:
    assert value("(" * 90 + "x" + ")" * 90, x=3.0) == 3.0


def test_the_largest_exponent_is_allowed() -> None:
    assert value(f"x^{MAX_EXPONENT}", x=1.0) == 1.0


def test_names_and_functions_are_distinguished() -> None:
    expression = parse("exp(-k*x) + max(x, t)")
    assert expression.names == {"k", "x", "t"}
    assert expression.functions == {"exp", "max"}
    assert expression.name is None
    assert parse(" k1 ").name == "k1"


def test_an_expression_with_names_is_not_a_constant() -> None:
    assert parse("0*x").constant is None


@pytest.mark.parametrize("number", [0.1, -3.0, 1e-300, 5, np.float64(2.5), np.int64(7)])
def test_a_number_becomes_an_expression_of_that_value(number: float) -> None:
    assert as_expression(number).constant == number


@pytest.mark.parametrize("wrong", [True, np.True_, None, [], (1, 2), {"a": 1}, np.zeros(2)])
def test_an_expression_of_another_type_is_refused(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        as_expression(wrong)  # type: ignore[arg-type] # the point of the test


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_numbers_that_are_not_finite_are_refused(wrong: float) -> None:
    with pytest.raises(ExpressionError, match="finite"):
        as_expression(wrong)


def test_a_name_without_a_value_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        parse("x + 1").evaluate({}, NUMPY)


def test_an_expression_survives_pickling() -> None:
    expression = parse("exp(-k*x)")
    assert expression.names
    assert pickle.loads(pickle.dumps(expression)) == expression
