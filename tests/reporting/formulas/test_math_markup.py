"""Formulas for reports in Markdown say what those of the HTML report say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import FUNCTIONS, parse
from odefit.reporting.formulas.math_markup import LATEX, latex_equations
from odefit.reporting.formulas.mathml import Symbols, derivative, equation


def latex(text: str) -> str:
    expression = parse(text)
    return LATEX.write(Symbols(expression.names).formula(expression).markup)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-(p1 + p2)*x1", r"- \left(p_{1} + p_{2}\right)\thinspace x_{1}"),
        ("a/b/c", r"\frac{\frac{a}{b}}{c}"),
        ("(a/b)^2", r"{\left(\frac{a}{b}\right)}^{2}"),
        ("exp(-k*t)", r"{\mathrm{e}}^{ - k\thinspace t}"),
        ("log(x)*log10(y)", r"\ln \left(x\right)\thinspace \log_{10}\left(y\right)"),
        ("sqrt(a + b)*c", r"\sqrt{a + b}\thinspace c"),
        ("abs(a - b)", r"\left|a - b\right|"),
        ("max(a, b)", r"\max \left(a, b\right)"),
        ("1.5e-3*mu_N", r"1.5 \times {10}^{ - 3}\thinspace \mu_{N}"),
        ("k_cat*Vmax", r"k_{\mathrm{cat}}\thinspace \mathrm{Vmax}"),
        ("k21 + k_21", r"\mathrm{k21} + \mathrm{k\_21}"),
        (
            "piecewise(x, t <= 1, 0)",
            r"\begin{cases} x & \text{if }t \le 1 \cr 0 & \text{otherwise } \end{cases}",
        ),
    ],
)
def test_latex_has_commands_for_fractions_powers_and_names(text: str, shown: str) -> None:
    assert latex(text) == shown


names = st.sampled_from(["x", "mu_N", "k21", "Vmax", "k_on_off", "epsilon", "k_21", "2", "1e-6"])
expressions = st.recursive(
    names,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/^"), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
        inner.map(lambda e: f"-({e})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(
            lambda t: f"{t[0]}({t[1]}, 1)" if t[0] in ("min", "max") else f"{t[0]}({t[1]})"
        ),
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(expressions)
def test_any_formula_in_latex_can_be_read(text: str) -> None:
    """Matplotlib reads a part of LaTeX, by a grammar of its own."""
    MathTextParser("path").parse(f"${latex(text).replace('thinspace', ',')}$")


@given(
    st.recursive(
        st.sampled_from(["a", "b", "c"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/^"), inner).map(
                lambda t: f"({t[0]}){t[1]}({t[2]})"
            ),
            inner.map(lambda e: f"-({e})"),
        ),
        max_leaves=10,
    )
)
def test_latex_has_the_value_of_the_expression(text: str) -> None:
    shown = latex(text).replace(r"\thinspace", "*").replace(r"\left", "").replace(r"\right", "")
    fraction = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")
    again, group = shown, re.compile(r"(?<!frac)(?<!\})\{([^{}]*)\}(?!\{)")
    while "{" in again:  # the innermost braces first
        again = group.sub(r"(\1)", fraction.sub(r"((\1)/(\2))", again))
    values = {"a": np.float64(1.25), "b": np.float64(0.75), "c": np.float64(1.5)}
    with np.errstate(all="ignore"):
        left = float(parse(text).evaluate(values, NUMPY))
        right = float(parse(again).evaluate(values, NUMPY))
    assert left == pytest.approx(right, rel=1e-9, nan_ok=True)


def test_equations_in_latex_are_aligned_at_their_signs() -> None:
    symbols = Symbols(["x", "k"])
    made = [
        equation(derivative(symbols["x"]), symbols.formula(parse("-k*x")).markup, ""),
        equation(symbols["k"].markup, symbols.formula(parse("piecewise(1, x == 0, 2)")).markup, ""),
    ]
    lines = latex_equations(made).splitlines()
    assert lines[0] == lines[-1] == "$$"
    assert lines[2] == (r"\frac{\mathrm{d}x}{\mathrm{d}t} &= - k\thinspace x \cr")
    assert lines[3].startswith(r"k &= \begin{cases} 1 & \text{if }x = 0")
    assert latex_equations([]) == ""
