"""The standard form says what the discretised problem says."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.methods.outer_approximation.reformulation import AffineAlgebra, Reformulation
from tests.methods.outer_approximation.problems import CHOICES, define, lifted, planted


@pytest.mark.parametrize("name", CHOICES)
def test_rows_and_objective_are_those_of_the_discretised_problem(name: str) -> None:
    p = planted(name)
    random = np.random.default_rng(1)
    for _ in range(5):
        values = np.where(
            p.d.lower == p.d.upper, p.d.lower, random.uniform(0.1, 1.5, p.d.lower.shape)
        )
        unknowns = random.uniform(p.problem.lower, p.problem.upper)
        w = lifted(p.form, values, unknowns)
        assert p.form.objective(w) == pytest.approx(p.d.objective(values, unknowns))
        defects = p.d.defects(values, unknowns)
        rows = p.form.matrix @ w - p.form.target
        count = int(np.sum(np.abs(defects) > 1e-9))
        assert count > 0
        largest = np.sort(np.abs(defects))[-count:]
        np.testing.assert_allclose(np.sort(np.abs(rows))[-count:], largest, rtol=1e-9)


@pytest.mark.parametrize("name", CHOICES)
def test_terms_hold_at_a_completed_point(name: str) -> None:
    p = planted(name)
    k, i, j = p.form.bilinear.T
    np.testing.assert_allclose(p.w[k], p.w[i] * p.w[j], rtol=1e-12, atol=1e-14)
    assert (p.w >= p.low - 1e-7).all()
    assert (p.w <= p.high + 1e-7).all()


EXPRESSIONS = (
    "a*b - b*a",
    "(a + 2*b)*(b - 3)/(a + 1)",
    "a^2*b + a*b*b/7",
    "max(a, b) - min(a, 2*b, 1)",
    "exp(-a)*log10(b) + tanh(a - b)",
    "a^b + 2^a + b^0.5 + a^-2",
    "abs(a - b)*sinh(a)/cosh(b)",
    "1/(a*b) + asin(a/4) - acos(b/4) + atan(a*b)",
    "(a + b + 1)*(a - b + 2)*(a*b + 3)",
    "cos(a)*tan(b/3) + sqrt(a + b)",
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_keeps_its_value(text: str) -> None:
    a, b = 0.7, 1.9
    terms = Reformulation(["a", "b"])
    algebra = AffineAlgebra(terms)
    values = {"a": terms.variable(0), "b": terms.variable(1)}
    found = algebra.affine(parse(text).evaluate(values, algebra))
    w = np.full(len(terms.names), np.nan)
    w[:2] = a, b
    define(terms.definitions, w)
    exact = parse(text).evaluate({"a": np.float64(a), "b": np.float64(b)}, NUMPY)
    value = found.constant + sum(c * w[i] for i, c in found.coefficients.items())
    assert value == pytest.approx(float(exact), rel=1e-12)


def test_the_same_term_is_one_variable() -> None:
    terms = Reformulation(["a", "b", "c"])
    algebra = AffineAlgebra(terms)
    a, b, c = (terms.variable(k) for k in range(3))
    _ = a * b + (b + c) * a - b * a * 3.0 + a * a
    algebra.power(a, 2.0)
    assert sorted(terms.names[3:]) == ["(a)*(b)", "(a)*(c)", "(a)^2"]


def test_equal_parts_cancel() -> None:
    terms = Reformulation(["a", "b"])
    a, b = terms.variable(0), terms.variable(1)
    assert not (a * b - b * a).coefficients
    assert (a / a).constant == 1.0
