"""Expressions are typeset with the meaning that they have."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import FUNCTIONS, parse
from odefit.reporting.formulas.mathml import Symbols, typeset_name

GROUPS = {"mrow", "math"}


def read(node: ElementTree.Element) -> str:
    """The formula in one line: (a)/(b) for fractions, ^ and _ for raised and lowered."""
    parts = [read(child) for child in node]
    if node.tag == "mfrac":
        return f"{{{parts[0]}}}/{{{parts[1]}}}"
    if node.tag == "msup":
        return f"{parts[0]}^{{{parts[1]}}}"
    if node.tag == "msub":
        return f"{parts[0]}_{parts[1]}"
    if node.tag == "msqrt":
        return f"√{{{parts[0]}}}"
    text = (node.text or "").replace("\N{INVISIBLE TIMES}", "·").replace("−", "-")
    return text.replace("\N{FUNCTION APPLICATION}", "").replace("⋅", "·") + "".join(parts)


def typeset(text: str) -> str:
    expression = parse(text)
    markup = Symbols(expression.names).formula(expression).markup
    return read(ElementTree.fromstring(f"<math>{markup}</math>"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-(p1 + p2)*x1", "-(p_1+p_2)·x_1"),
        ("a - (b - c)", "a-(b-c)"),
        ("a - b - c", "a-b-c"),
        ("a - (b + c)", "a-(b+c)"),
        ("a + (b + c)", "a+b+c"),
        ("a - -b", "a-(-b)"),
        ("a*(-b)", "a·(-b)"),
        ("-a*b", "-a·b"),
        ("-(a*b)", "-a·b"),
        ("-a/b", "-{a}/{b}"),
        ("-(a + b)/c", "-{a+b}/{c}"),
        ("--a", "-(-a)"),
        ("(-a)^2", "(-a)^{2}"),
        ("-a^2", "-a^{2}"),
        ("a/b/c", "{{a}/{b}}/{c}"),
        ("a/(b/c)", "{a}/{{b}/{c}}"),
        ("a/(b*c)", "{a}/{b·c}"),
        ("(a/b)^2", "({a}/{b})^{2}"),
        ("(a + b)^(c + d)", "(a+b)^{c+d}"),
        ("a^b^c", "a^{b^{c}}"),
        ("(a^b)^c", "(a^{b})^{c}"),
        ("a*b^2", "a·b^{2}"),
        ("2*3*x", "2·3·x"),
        ("exp(-k*t)", "e^{-k·t}"),
        ("exp(-k/T)", "exp(-{k}/{T})"),
        ("sin(x)^2", "(sin(x))^{2}"),
        ("log(x)*log10(y)", "ln(x)·log_10(y)"),
        ("sqrt(a + b)*c", "√{a+b}·c"),
        ("abs(a - b)", "|a-b|"),
        ("max(a, b, c)", "max(a,b,c)"),
        ("atan(x)", "arctan(x)"),
        ("1.5e-3*x", "1.5×10^{-3}·x"),
        ("x*1.5e-3", "x·1.5×10^{-3}"),
        ("1e6", "10^{6}"),
        ("x^1e2", "x^{10^{2}}"),
        ("1e2^x", "(10^{2})^{x}"),
    ],
)
def test_precedence_is_kept(text: str, shown: str) -> None:
    assert typeset(text) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("alpha", "α"), ("mu_N", "μ_N"), ("k21", "k_21"), ("k_on", "k_on"), ("Vmax", "Vmax"),
        ("delta_EL", "δ_EL"), ("Gamma", "Γ"), ("x_1_2", "x_1,2"), ("beta2", "β_2"),
        ("_hidden", "_hidden"), ("k_", "k_"), ("x", "x"), ("tau_alpha", "τ_α"),
        ("EC50", "EC_50"), ("k1f", "k1f"), ("lambda", "λ"),
    ],
)  # fmt: skip
def test_names_have_greek_letters_and_subscripts(name: str, shown: str) -> None:
    assert read(ElementTree.fromstring(f"<math>{typeset_name(name)}</math>")) == shown


def test_names_of_the_same_look_are_shown_as_written() -> None:
    symbols = Symbols(["k21", "k_21", "k3"])
    shown = [read(ElementTree.fromstring(f"<m>{symbols[n].markup}</m>")) for n in symbols]
    assert shown[:3] == ["k21", "k_21", "k_3"]


names = st.sampled_from(["x", "mu_N", "k21", "Vmax"])
products = st.sampled_from(["2*x", "0.5*k21", "1e-6*x", "Vmax*3"])
expressions = st.recursive(
    names | products,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/^"), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
        inner.map(lambda e: f"-({e})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(
            lambda t: f"{t[0]}({t[1]}, 1)" if t[0] in ("min", "max") else f"{t[0]}({t[1]})"
        ),
    ),
    max_leaves=12,
)


@given(expressions)
def test_any_expression_is_well_formed(text: str) -> None:
    typeset(text)


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
def test_a_formula_has_the_same_value_after_writing_and_reading(text: str) -> None:
    """Reading the typeset formula by the usual precedence gives the same function."""
    shown = typeset(text)
    again = shown.replace("·", "*").replace("{", "(").replace("}", ")")
    values = {"a": np.float64(1.25), "b": np.float64(0.75), "c": np.float64(1.5)}
    with np.errstate(all="ignore"):
        left = float(parse(text).evaluate(values, NUMPY))
        right = float(parse(again).evaluate(values, NUMPY))
    assert left == pytest.approx(right, rel=1e-9, nan_ok=True)


def test_pieces_are_drawn_beside_a_brace_with_their_conditions() -> None:
    found = Symbols([]).formula(parse("2*piecewise(x, x <= 1 && !(y == 2), 0)")).markup
    text = re.sub(r"<[^>]*>", " ", found)
    assert (
        text.split() == "2 \N{INVISIBLE TIMES} ( { x if x ≤ 1 ∧ ¬ ( y = 2 ) 0 otherwise )".split()
    )
