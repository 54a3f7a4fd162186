"""The algebra of sizes: products add exponents, sums wish for equal terms."""

from __future__ import annotations

import math

import pytest

from odefit.expressions.expressions import parse
from odefit.problem.variants.size_algebra import SizeAlgebra, equations


def evaluated(text: str) -> tuple[SizeAlgebra, list[tuple[float, dict[str, float]]]]:
    algebra = SizeAlgebra({})
    values = {name: algebra.name(name) for name in "abcn"}
    size = parse(text).evaluate(values, algebra)
    return algebra, [(term.constant, dict(term.exponents)) for term in size.terms]


def test_the_size_of_a_product_is_a_monomial() -> None:
    algebra, terms = evaluated("2*a^2*sqrt(b)/c")
    assert terms == [(math.log(2), {"a": 2.0, "b": 0.5, "c": -1.0})]
    assert algebra.rows == []


def test_numbers_are_computed() -> None:
    ((constant, exponents),) = evaluated("a*(1 - 0.5*exp(0))")[1]
    assert constant == pytest.approx(math.log(0.5))
    assert exponents == {"a": 1.0}
    assert evaluated("0*a + b - (2 - 2)*c")[1] == [(0.0, {"b": 1.0})]


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("c/(a + b)", {"a", "b"}),
        ("max(a, b)*c", {"a", "b"}),
        ("c*piecewise(1, a < b, 2)", {"a", "b"}),
        ("c*exp(-a/b)", {"a", "b"}),
        ("a^n/(b^n + a^n)", {"a", "b"}),
    ],
)
def test_what_is_added_or_compared_is_of_the_same_size(text: str, equal: set[str]) -> None:
    """Each wish is homogeneous in two names: it asks that they are equal, and nothing else."""
    algebra, _ = evaluated(text)
    rows = [dict(r.monomial.exponents) for r in algebra.rows]
    wishes = [{k: v for k, v in row.items() if v} for row in rows]
    both = [w for w in wishes if set(w) == equal]
    assert both
    assert all(sum(w.values()) == 0 for w in both)


def test_equations_have_a_column_for_each_name() -> None:
    algebra, _ = evaluated("c*exp(2*a/b)")
    matrix, right = equations(algebra.rows, ["a", "b", "c"])
    assert matrix.tolist() == [[0.5, -0.5, 0.0]]
    assert right.tolist() == [pytest.approx(-0.5 * math.log(2))]


def test_an_exponential_of_a_multiple_of_one_unknown_has_a_name_of_its_own() -> None:
    algebra = SizeAlgebra({})
    values = {n: algebra.name(f"parameter {n}") for n in "AE"} | {"T": algebra.known(300.0)}
    values |= {"t": algebra.name("time t"), "b": algebra.name("state b")}
    (term,) = parse("A*exp(-E/(0.008*T))").evaluate(values, algebra).terms
    assert term.exponents == {"parameter A": 1.0, "exp 0": 1.0}
    (found,) = algebra.exponentials.values()
    assert (found.name, found.sign) == ("parameter E", -1)
    assert found.factor.constant == pytest.approx(-math.log(0.008 * 300.0))
    parse("exp(-E*t) + exp(E*(1/T - 1/b)) + exp(A*E)").evaluate(values, algebra)
    assert len(algebra.exponentials) == 1
