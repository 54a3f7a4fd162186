"""Derivatives of formulas agree with differences of their values."""

from __future__ import annotations

import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from odefit.certificates.verification.balls import Balls, arb
from odefit.certificates.verification.formulas import Formulas

TEXTS = [
    "((2*(x^3)) - (y/(x + 0.5)))",
    "exp((-(k*x))*y)",
    "log((x + (y^2)))",
    "sqrt((x*y))",
    "(sin((x*k)) + (cos(y)*tan(x)))",
    "(asin((x/2)) + acos((y/3)))",
    "atan((x*y))",
    "(tanh(x) - (x^(-2)))",
    "(x^(k + y))",
    "log10((x^1.5))",
    "k",
]


@pytest.mark.parametrize("text", TEXTS)
def test_slopes_are_the_limits_of_differences(text: str) -> None:
    formulas = Formulas([text], ["k", "x", "y"])
    at = {"k": arb("1.3"), "x": arb("0.7"), "y": arb("1.1")}
    slopes = formulas.slopes(["x", "y"]).evaluate(at, Balls())
    small = arb("1e-10")
    for name, slope in zip(["x", "y"], slopes, strict=True):
        ends = [
            formulas.evaluate({**at, name: at[name] + sign * small}, Balls())[0] for sign in (1, -1)
        ]
        difference = (ends[0] - ends[1]) / (2 * small)
        assert float(slope) == pytest.approx(float(difference), rel=1e-8, abs=1e-12)


def test_slopes_by_names_that_do_not_occur_are_zero() -> None:
    slopes = Formulas(["x^2", "k"], ["k", "x"]).slopes(["k"]).evaluate({"k": arb(1)}, Balls())
    assert [float(s) for s in slopes] == [0.0, 1.0]
