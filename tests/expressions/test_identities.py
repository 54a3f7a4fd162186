"""Exact tests of whether an expression has one value wherever another one is zero."""

from __future__ import annotations

from fractions import Fraction

import pytest

from odefit.expressions.expressions import parse
from odefit.expressions.formulas import Part
from odefit.expressions.identities import value_on


def part(text: str) -> Part:
    return Part(parse(text).program)


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("0", "x"),
        ("a*x - a*b", "x - b"),
        ("x^2 - 4*b^2", "x - 2*b"),
        ("x^-3*b^3 - 1", "b - x"),
        ("x/(k + x) - b/(k + b)", "x - b"),
        ("exp(x) - exp(b)", "x - b"),
        ("x^n/(k^n + x^n) - k^n/(k^n + k^n)", "x - k"),
        ("a*x*y - a", "x*y - 1"),
    ],
)
def test_a_part_that_vanishes_there_has_the_value_zero(text: str, quantity: str) -> None:
    assert value_on(part(text), part(quantity)) == 0


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("(x - b)/(x - b)", "x - b"),
        ("a*x", "x - b"),
        ("sqrt(x)", "x"),
        ("x - 2", "x^2 - 4"),
    ],
)
def test_a_part_that_may_differ_there_has_no_value(text: str, quantity: str) -> None:
    assert value_on(part(text), part(quantity)) is None


def test_values_are_exact() -> None:
    assert value_on(part("x - b + 1e-300"), part("x - b")) == Fraction("1e-300")
    assert value_on(part("x - 3*b + 1/3"), part("x - 3*b")) == Fraction(1, 3)
