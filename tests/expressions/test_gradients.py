"""Derivatives of expressions by the names in them, against dual numbers and exact values."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import parse
from odefit.expressions.gradients import Gradient

TEXTS = [
    "x",
    "2.5",
    "-x + y - z",
    "x*y/z + x",
    "a*x^2 + b",
    "x^y",
    "2^x - x**-1.5",
    "exp(x)*log(y) + log10(z) + sqrt(x*y)",
    "sin(x) + cos(y)*tan(z) + atan(x/y)",
    "asin(x/10) + acos(y/10) + sinh(x) + cosh(y) + tanh(z)",
    "abs(x - y) + min(x, y, z) - max(x, y)",
    "s*(o + k*(2*x + 3*y*(r + z)))/(1 + x/k)",
    "((x + y)/(x + y))^3",
]


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_derivatives_are_those_of_dual_numbers(text: str) -> None:
    expression = parse(text)
    rng = np.random.default_rng(1)
    names = sorted(expression.names)
    values = {
        n: rng.uniform(0.3, 2.0, size=5) if n in "xyz" else rng.uniform(0.3, 2.0) for n in names
    }
    duals = {n: Dual(np.asarray(v), {i: 1.0}) for i, (n, v) in enumerate(values.items())}
    expected: Dual = expression.evaluate(duals, DUAL)
    gradient = Gradient(expression, names)
    value, partials = gradient({n: np.asarray(v) for n, v in values.items()})
    assert np.array_equal(np.broadcast_to(value, 5), np.broadcast_to(expected.value, 5))
    assert list(partials) == names
    for i, name in enumerate(names):
        wanted = np.broadcast_to(expected.partials.get(i, 0.0), 5)
        assert np.broadcast_to(partials[name], 5) == pytest.approx(wanted, rel=1e-13, abs=1e-15)
    assert np.array_equal(
        gradient.value({n: np.asarray(v) for n, v in values.items()}), np.asarray(value)
    )


def test_only_the_wanted_names_have_derivatives() -> None:
    gradient = Gradient(parse("a*x + b*y"), {"a", "y", "not there"})
    assert gradient.names == ("a", "y")
    _, partials = gradient({n: np.float64(i) for i, n in enumerate("abxy")})
    assert partials == {"a": 2.0, "y": 1.0}


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("max(sqrt(x), y)", {"x": 0.0, "y": 1.0}, {"x": 0.0, "y": 1.0}),  # not chosen
        ("x^p", {"x": 0.0, "p": 0.0}, {"x": 0.0, "p": -np.inf}),
        ("x^p", {"x": 0.0, "p": 2.0}, {"x": 0.0, "p": 0.0}),
        ("p*log(x)", {"x": 0.0, "p": 0.0}, {"x": 0.0, "p": -np.inf}),
    ],
)
def test_a_name_without_influence_keeps_a_derivative_of_zero(
    text: str, at: dict[str, float], expected: dict[str, float]
) -> None:
    with np.errstate(all="ignore"):
        _, partials = Gradient(parse(text), at)({n: np.float64(v) for n, v in at.items()})
    assert {n: float(v) for n, v in partials.items()} == expected


def test_the_first_of_equal_arguments_is_chosen() -> None:
    both = {"x": np.float64(1.0), "y": np.float64(1.0)}
    _, partials = Gradient(parse("min(x, y) + 10*max(x, y)"), "xy")(both)
    assert partials == {"x": 11.0, "y": 0.0}
