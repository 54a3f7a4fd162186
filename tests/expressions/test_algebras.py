"""Dual numbers carry the derivatives that calculus gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import parse

ANALYTIC = "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh".split()


class ComplexAlgebra:
    """Complex numbers: the imaginary part of f(x + ih) / h is f'(x) to the last digit."""

    def number(self, text: str) -> np.complex128:
        return np.complex128(float(text))

    def power(self, base: Any, exponent: Any) -> Any:
        return np.power(base, exponent)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
        return getattr(np, names.get(function, function))(arguments[0])


def dual(text: str, **values: float | Array) -> Dual:
    """The expression with derivatives in the direction of each name, in the order given."""
    names = {k: Dual(v, {i: np.ones_like(v)}) for i, (k, v) in enumerate(values.items())}
    with np.errstate(all="ignore"):
        result: Dual = parse(text).evaluate(names, DUAL)
    return result


def analytic() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["x", "y", "2", "0.5", "3"])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda b: f"({''.join(b)})"),
            st.tuples(inner, st.sampled_from(["2", "3", "(0-1)", "0.5", "y"])).map(
                lambda p: f"({p[0]})^{p[1]}"
            ),
            st.tuples(st.sampled_from(ANALYTIC), inner).map(lambda c: f"{c[0]}({c[1]})"),
            inner.map(lambda e: f"(-{e})"),
        )

    return st.recursive(leaves, larger, max_leaves=6)


@given(analytic(), st.floats(0.2, 1.5), st.floats(0.2, 1.5))
def test_dual_derivatives_agree_with_the_complex_step(text: str, x: float, y: float) -> None:
    try:
        expression = parse(text)
    except ValueError:
        return  # a part without names that has no finite value
    found = dual(text, x=x, y=y)
    h = 1e-30
    for direction in range(2):
        steps = [1j * h * (direction == i) for i in range(2)]
        point = {"x": np.complex128(x + steps[0]), "y": np.complex128(y + steps[1])}
        with np.errstate(all="ignore"):
            exact = expression.evaluate(point, ComplexAlgebra())
        derivative = found.gradient(2)[direction]
        regular = np.isfinite([exact.real, exact.imag, found.value, derivative]).all()
        # Off the real axis a real function may be on another branch: (-1)^0.5, asin(2).
        if not regular or not np.isclose(exact.real, found.value, rtol=1e-9, atol=1e-9):
            continue
        if abs(exact.imag / h) > 1e8 or abs(exact.real) > 1e8:
            continue  # next to a pole rounding decides
        assert derivative == pytest.approx(exact.imag / h, rel=1e-5, abs=1e-5)


@given(analytic(), st.floats(0.2, 1.5), st.floats(0.2, 1.5))
def test_dual_values_are_the_plain_values(text: str, x: float, y: float) -> None:
    try:
        expression = parse(text)
    except ValueError:
        return
    with np.errstate(all="ignore"):
        plain = expression.evaluate({"x": np.float64(x), "y": np.float64(y)}, NUMPY)
    np.testing.assert_allclose(dual(text, x=x, y=y).value, plain, rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "x", "slope"),
    [
        ("x^0", 0.0, 0.0),
        ("x^1", 0.0, 1.0),
        ("x^2", 0.0, 0.0),
        ("x^3", 0.0, 0.0),
        ("x^3", -2.0, 12.0),
        ("x^0.5", 0.0, np.inf),
        ("abs(x)", -2.0, -1.0),
        ("abs(x)", 0.0, 0.0),
        ("min(x, 1)", 0.5, 1.0),
        ("min(x, 1)", 1.5, 0.0),
        ("max(x, 1)", 0.5, 0.0),
        ("max(x, 1, 2*x)", 1.5, 2.0),
        ("max(0, sqrt(x - 1))", 1.0, 0.0),
        ("2^x", 3.0, 8 * np.log(2)),
        ("0^x", 2.0, 0.0),
        ("x/x", 3.0, 0.0),
        ("1/x", 2.0, -0.25),
    ],
)
def test_corners_have_the_slope_of_one_side_or_the_limit(text: str, x: float, slope: float) -> None:
    assert dual(text, x=x).gradient(1)[0] == pytest.approx(slope)


def test_an_exponent_that_varies_has_its_derivative() -> None:
    found = dual("x^y", x=np.array([2.0, 0.0]), y=np.array([3.0, 2.0]))
    np.testing.assert_allclose(found.gradient(2, 2), [[12, 8 * np.log(2)], [0, 0]])


@pytest.mark.parametrize("text", ["sqrt(x)", "x^0.5", "log(x + 1) + sqrt(x)"])
def test_a_direction_without_motion_stays_zero_on_a_vertical_slope(text: str) -> None:
    x = Dual(np.array([0.0, 4.0]), {0: np.array([0.0, 1.0])})
    with np.errstate(all="ignore"):
        slope = parse(text).evaluate({"x": x}, DUAL).gradient(1, 2)[:, 0]
    assert slope[0] == 0.0
    assert np.isfinite(slope[1])


def test_arrays_have_the_derivatives_of_their_elements() -> None:
    xs = np.linspace(0.1, 2, 7)
    together = dual("x*exp(-x) + min(x, 1)", x=xs).gradient(1, 7)
    for x, row in zip(xs, together, strict=True):
        assert row == pytest.approx(dual("x*exp(-x) + min(x, 1)", x=float(x)).gradient(1))


def test_directions_that_do_not_occur_are_zero() -> None:
    assert dual("2*y", x=1.0, y=1.0).gradient(3).tolist() == [0.0, 2.0, 0.0]


def test_a_numpy_number_on_the_left_defers_to_the_dual() -> None:
    with pytest.raises((TypeError, AttributeError)):
        _ = np.float64(2.0) * Dual(1.0)  # type: ignore[operator] # never an array of objects
