"""Derivatives along a motion, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.expressions.formulas import number
from odefit.expressions.time_derivatives import SLOPES, time_derivative

TEXTS = [
    *(f"{function}(0.3 + x*y)" for function in SLOPES),
    "x^2*y - c*t", "x^c", "2^x", "x^y", "-x/(y + c)", "x^1 + x^3", "c^2",
    "min(x, y, c)", "max(x, 2*y, t)", "if(x > y, x, y*t)", "if(x > c, c, if(y > x, x, y))",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_time_derivative_agrees_with_differences(text: str) -> None:
    expression = parse(text)
    rates = {"x": 0.7, "y": -0.4, "t": 1.0}
    found = time_derivative(expression, {n: number(v) for n, v in rates.items()}).expression()
    at = {"x": 0.5, "y": 0.8, "c": 0.9, "t": 0.6}

    def value(h: float) -> float:
        moved = {n: np.float64(v + h * rates.get(n, 0.0)) for n, v in at.items()}
        return float(expression.evaluate(moved, NUMPY))

    expected = (8 * (value(1e-4) - value(-1e-4)) - value(2e-4) + value(-2e-4)) / 12e-4
    numbers = {n: np.float64(v) for n, v in at.items()}
    assert float(found.evaluate(numbers, NUMPY)) == pytest.approx(expected, rel=1e-8, abs=1e-10)
