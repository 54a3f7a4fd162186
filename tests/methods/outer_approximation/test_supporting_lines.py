"""Lines keep univariate functions between them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from odefit.methods.outer_approximation.univariate import (
    FUNCTIONS,
    Univariate,
    power,
    supporting_lines,
)
from tests.methods.outer_approximation.test_univariate import CASES, intervals, label


@pytest.mark.parametrize("f", CASES, ids=label)
def test_no_line_cuts_a_value_off(f: Univariate) -> None:
    seen = 0
    for a, b in intervals(f):
        xs = np.clip(np.linspace(a, b, 201), a, b)
        values = np.array([f.at(x) for x in xs])
        for line in supporting_lines(f, a, b):
            gap = values - (line.slope * xs + line.offset)
            slack = 1e-15 * (np.abs(values) + np.abs(line.slope * xs) + abs(line.offset))
            assert (gap <= slack).all() if line.above else (gap >= -slack).all()
            seen += 1
    assert seen > 50 or f.name == "tan"


@pytest.mark.parametrize(
    ("f", "exact"),
    [
        (FUNCTIONS["abs"], abs),
        (power(2.0), lambda x: x * x),
        (power(3.0), lambda x: x * x * x),
        (power(-1.0), lambda x: 1 / x),
    ],
    ids=["abs", "square", "cube", "inverse"],
)
def test_rounding_cuts_no_value_off(f: Univariate, exact: Callable[[Fraction], Fraction]) -> None:
    """In rational arithmetic, of which floats are exact members."""
    for a, b in intervals(f):
        for line in supporting_lines(f, a, b):
            for x in map(Fraction, np.clip(np.linspace(a, b, 11), a, b).tolist()):
                gap = exact(x) - (Fraction(line.slope) * x + Fraction(line.offset))
                assert gap <= 0 if line.above else gap >= 0


@pytest.mark.parametrize("f", CASES, ids=label)
def test_lines_are_close_on_short_intervals(f: Univariate) -> None:
    """Both sides come together with the square of the length."""
    lines = supporting_lines(f, 0.5, 0.501)
    x = 0.5005
    above = min(s.slope * x + s.offset for s in lines if s.above)
    below = max(s.slope * x + s.offset for s in lines if not s.above)
    assert 0 <= above - below < 1e-4
