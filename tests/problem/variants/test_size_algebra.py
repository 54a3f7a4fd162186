"""The algebra of sizes: products add exponents, sums wish for equal terms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odefit.expressions.expressions import parse
from odefit.problem.variants.size_algebra import (
    MOST_NAMES,
    Monomial,
    SizeAlgebra,
    equations,
    solved,
)


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
def test_terms_that_are_added_or_compared_have_the_same_size(text: str, equal: set[str]) -> None:
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


@pytest.mark.parametrize("size", [3, MOST_NAMES + 1])
def test_a_level_cannot_change_values_that_an_earlier_one_determines(size: int) -> None:
    first = np.zeros((1, size))
    first[0, :2] = 1.0  # the sum of the first two
    levels = [first, np.eye(size)]
    found = solved(levels, [np.array([[10.0]]), np.ones((size, 1))])[:, 0]
    assert found[:2].sum() == pytest.approx(10.0, rel=1e-3)
    assert found[0] == pytest.approx(found[1])
    assert found[2:] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "multiples"),
    [
        ("exp(l)*a", {"l": 1.0}),
        ("a/exp(m - l)", {"m": -1.0, "l": 1.0}),
        ("a*10^(l - 2)", {"l": 1.0}),
        ("a*exp(l)*10^(-l)", {"l": 1.0 - math.log(10)}),
        ("a*exp(-l + 0.5)", {"l": -1.0}),
    ],
)
def test_the_exponential_of_a_logarithm_is_a_separate_quantity(
    text: str, multiples: dict[str, float]
) -> None:
    algebra = SizeAlgebra({})
    values = {name: algebra.name(f"parameter {name}") for name in "alm"}
    (term,) = parse(text).evaluate(values, algebra).terms
    assert algebra.rows == []
    expected = {
        algebra.logarithms[f"parameter {name}"].quantity: v for name, v in multiples.items()
    }
    assert dict(term.exponents) == pytest.approx({"parameter a": 1.0} | expected)


@pytest.mark.parametrize("text", ["exp(a*l)", "exp(-300*l)", "2^l", "exp(l/a)", "exp(l + t)"])
def test_other_arguments_are_not_logarithms(text: str) -> None:
    algebra = SizeAlgebra({})
    values = {name: algebra.name(f"parameter {name}") for name in "al"}
    parse(text).evaluate({**values, "t": algebra.name("time t")}, algebra)
    assert algebra.logarithms == {}


def test_the_work_on_a_sum_is_proportional_to_its_summands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partial sum was searched for a point of time: 50,000 summands took a quarter hour."""
    taken: list[float] = []

    def counted(term: Monomial) -> float:
        taken.append(term.sign * math.exp(term.constant))
        return taken[-1]

    monkeypatch.setattr(Monomial, "factor", property(counted))
    counts = []
    for summands in (500, 1000):
        taken.clear()
        algebra = SizeAlgebra({})
        parse("+".join(["x"] * summands)).evaluate({"x": algebra.name("state x")}, algebra)
        counts.append(len(taken))
    assert counts[1] <= 2 * counts[0]
    assert counts[0] > 0
