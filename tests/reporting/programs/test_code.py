"""Expressions keep their meaning in other languages."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.reporting.programs.code import safe_names, written
from odefit.reporting.programs.languages import JULIA, MATLAB, PYTHON, C

LEAVES = st.sampled_from(["a", "b", "2", "0.5", "1e-3"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda t: f"({t[0]}){t[1]}({t[2]})"
    )
    bare = st.tuples(LEAVES, st.sampled_from("+-*/"), inner).map(lambda t: f"{t[0]}{t[1]}{t[2]}")
    powers = st.tuples(inner, st.sampled_from(["2", "3", "-1", "0.5", "a", "(-b)"])).map(
        lambda t: f"({t[0]})^{t[1]}"
    )
    signs = inner.map(lambda t: f"-({t})")
    calls = st.tuples(st.sampled_from(["exp", "sin", "abs", "tanh", "atan"]), inner).map(
        lambda t: f"{t[0]}({t[1]})"
    )
    many = st.tuples(inner, inner, inner).map(lambda t: f"max({t[0]}, {t[1]}, {t[2]})")
    pieces = st.tuples(inner, inner, inner).map(
        lambda t: f"piecewise({t[0]}, {t[1]} < b && !(a == {t[2]}) || a > 5, {t[2]})"
    )
    return st.one_of(pairs, bare, powers, signs, calls, many, pieces)


@given(st.recursive(LEAVES, _larger, max_leaves=8))
def test_python_computes_what_odefit_computes(text: str) -> None:
    expression = parse(text)
    values = {"a": np.float64(1.25), "b": np.float64(0.75)}
    with np.errstate(all="ignore"):
        expected = float(expression.evaluate(values, NUMPY))
        code = written(expression, PYTHON, {"a": "a", "b": "b"})
        code = re.sub(r"(?<![\w.])(\d[\d.e-]*)", r"np.float64(\1)", code)  # which do not raise
        found = float(eval(code, {"np": np, **values}))
    assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (C, "-pow(a, 2.0) + pow(b, a) - fmax(fmax(a, b), 2.0)/(a - (b - 1.0))"),
        (JULIA, "-a^(2) + b^a - max(max(a, b), 2.0)/(a - (b - 1.0))"),
        (MATLAB, "-a^(2) + b^a - max(max(a, b), 2.0)/(a - (b - 1.0))"),
    ],
)
def test_an_expression_is_written_in_each_language(language: object, text: str) -> None:
    expression = parse("-a^2 + b^a - max(a, b, 2)/(a - (b - 1))")
    assert written(expression, language, {"a": "a", "b": "b"}) == text  # type: ignore[arg-type]


def test_names_avoid_words_of_the_language_and_each_other() -> None:
    names = safe_names(["double", "Double", "x", "__switch1", "a_b", "end", "k"], C)
    assert len(set(names.values())) == len(names)
    assert names["k"] == "k"
    assert names["end"] == "end"
    assert names["double"] != "double"
    assert names["x"] != "x"
    assert names["__switch1"] == "switch1"
