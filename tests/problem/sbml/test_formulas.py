"""Formulas of PEtab become expressions of the same value."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from odefit.expressions.expressions import ExpressionError, parse
from odefit.problem.sbml import condition_text, formula_text

SUITE = Path(__file__).parents[2] / "data" / "petab" / "math_tests.yaml"
CASES = [
    (str(case["expression"]), case["expected"])
    for case in yaml.safe_load(SUITE.read_text(encoding="utf-8"))["cases"]
]
FINITE = [(e, v) for e, v in CASES if isinstance(v, (int, float)) and abs(v) < float("inf")]


@pytest.mark.parametrize(("formula", "value"), FINITE)
def test_the_conformity_suite_has_the_same_values(formula: str, value: float) -> None:
    assert parse(formula_text(formula)).constant == pytest.approx(value, rel=1e-14, abs=1e-15)


def test_only_nonfinite_values_are_refused() -> None:
    others = [e for e, v in CASES if v in {"inf", "-inf"}]
    assert len(others) + len(FINITE) == len(CASES) - 1  # one case is symbolic
    for formula in others:
        with pytest.raises(ExpressionError, match="finite"):
            parse(formula_text(formula))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("time + t_0", "t + t_0"),
        ("log(x)*log2(y)", "log(x)*log(y)/log(2)"),
        ("a - (b - c) - (d + e)", "a - (b - c) - (d + e)"),
        ("a + (b + c)", "a + b + c"),
        ("a*(b*c)/(d*e)", "a*b*c/(d*e)"),
        ("-(a + b)^2", "-(a + b)^2"),
        ("(-a)^2", "(-a)^2"),
        ("2^-x", "2^(-x)"),
        ("a / -b", "a/(-b)"),
        ("sign(x)", "piecewise(1, x > 0, -1, x < 0, 0)"),
        ("piecewise(1, !(a < b), 0)", "piecewise(1, a >= b, 0)"),
        ("piecewise(1, a < b && c < d || e, 0)",
         "piecewise(1, (a < b && c < d) || e != 0, 0)"),
    ],
)  # fmt: skip
def test_formulas_keep_their_structure(formula: str, text: str) -> None:
    assert formula_text(formula) == text
    parse(text)


def test_names_are_replaced_by_expressions() -> None:
    assert formula_text("2*x^2", {"x": "a + b"}) == "2*(a + b)^2"
    assert formula_text("t*time", {"t": "t_"}) == "t_*t"


def test_a_trigger_is_a_comparison() -> None:
    assert condition_text("time >= 10 && x < 0.1") == "t >= 10 && x < 0.1"
    assert condition_text("x") == "x != 0"


def test_a_sum_of_thousands_of_terms_is_not_nested() -> None:
    text = formula_text(" + ".join(f"x{i}" for i in range(5000)))
    assert len(parse(text).names) == 5000


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "the formula is empty"),
        ("a +", "ends where a number, a name or '\\(' is expected"),
        ("a b", "unexpected 'b' at position 3 of 'a b'; expected an operator"),
        ("a $ b", r"unexpected '\$' at position 3"),
        ("f(x)", "unknown function 'f' at position 1"),
        ("sin(x, y)", "the function 'sin' takes 1 argument, got 2"),
        ("floor(x)", "expressions have no 'floor', and nothing can stand for it"),
        ("piecewise(1, x > 0)", "piecewise has no value where none of its conditions holds"),
        ("1 + inf", "'inf' at position 5 of '1 \\+ inf' is not a finite number"),
        ("(" * 200 + "x", "nested too deeply"),
        ("x + " * 200 + "(" * 200 + "x", "nested too deeply"),
    ],
)
def test_text_that_is_not_a_formula_is_refused_with_its_place(formula: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        formula_text(formula)
