"""Lines keep univariate functions between them, images contain their values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odefit.methods.outer_approximation.functions import domain, evaluate, image, lines, preimage

CASES = [
    ("exp", 0.0), ("log", 0.0), ("sqrt", 0.0), ("sin", 0.0), ("cos", 0.0), ("tan", 0.0),
    ("asin", 0.0), ("acos", 0.0), ("atan", 0.0), ("sinh", 0.0), ("cosh", 0.0), ("tanh", 0.0),
    ("abs", 0.0), ("power", 2.0), ("power", 3.0), ("power", -1.0), ("power", -2.0),
    ("power", 0.5), ("power", 1.7), ("power", -0.3), ("power", 5.0), ("power", -3.0),
]  # fmt: skip


def intervals(function: str, exponent: float, count: int = 60) -> list[tuple[float, float]]:
    random = np.random.default_rng(0)
    least, most = domain(function, exponent)
    least, most = max(least, -4.0), min(most, 4.0)
    found = []
    for _ in range(count):
        a, b = np.sort(random.uniform(least, most, 2))
        if random.random() < 0.3:
            b = a + 1e-3 * (b - a)
        if function == "power" and exponent < 0 and a <= 0 <= b:
            continue
        found.append((float(a), float(b)))
    return found


@pytest.mark.parametrize(("function", "exponent"), CASES)
def test_no_line_cuts_a_value_off(function: str, exponent: float) -> None:
    seen = 0
    for a, b in intervals(function, exponent):
        own = lines(function, a, b, exponent)
        xs = np.clip(np.linspace(a, b, 201), a, b)
        values = np.array([evaluate(function, x, exponent) for x in xs])
        for line in own:
            gap = values - (line.slope * xs + line.offset)
            slack = 1e-15 * (np.abs(values) + np.abs(line.slope * xs) + abs(line.offset))
            assert (gap <= slack).all() if line.above else (gap >= -slack).all()
            seen += 1
    assert seen > 50 or function == "tan"


@pytest.mark.parametrize(("function", "exponent"), CASES)
def test_lines_are_close_on_short_intervals(function: str, exponent: float) -> None:
    """Both sides come together with the square of the length."""
    a, b = 0.5, 0.501
    own = lines(function, a, b, exponent)
    x = 0.5005
    above = min(s.slope * x + s.offset for s in own if s.above)
    below = max(s.slope * x + s.offset for s in own if not s.above)
    assert 0 <= above - below < 1e-4


@pytest.mark.parametrize(("function", "exponent"), CASES)
def test_images_and_inverse_images_contain_all_values(function: str, exponent: float) -> None:
    for a, b in intervals(function, exponent):
        low, high = image(function, a, b, exponent)
        xs = np.clip(np.linspace(a, b, 101), a, b)
        values = np.array([evaluate(function, x, exponent) for x in xs])
        assert (values >= low).all()
        assert (values <= high).all()
        c, d = np.quantile(values, [0.3, 0.6])
        least, most = preimage(function, float(c), float(d), (a, b), exponent)
        inside = xs[(values >= c) & (values <= d)]
        assert (inside >= least).all()
        assert (inside <= most).all()


@pytest.mark.parametrize(
    ("function", "exponent", "at", "expected"),
    [
        ("exp", 0.0, (-math.inf, 0.0), (0.0, 1.0)),
        ("log", 0.0, (0.0, 1.0), (-math.inf, 0.0)),
        ("power", -1.0, (0.0, 2.0), (0.5, math.inf)),
        ("power", -1.0, (-1.0, 1.0), (-math.inf, math.inf)),
        ("power", 2.0, (-3.0, 2.0), (0.0, 9.0)),
        ("tan", 0.0, (1.0, 2.0), (-math.inf, math.inf)),
        ("sin", 0.0, (0.0, 100.0), (-1.0, 1.0)),
        ("atan", 0.0, (-math.inf, math.inf), (-math.pi / 2, math.pi / 2)),
    ],
)
def test_images_at_the_edges(
    function: str, exponent: float, at: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert image(function, *at, exponent) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_nothing_lies_outside_the_domain() -> None:
    assert image("log", -2.0, -1.0) == (math.inf, -math.inf)
    assert preimage("exp", -2.0, -1.0, (-5.0, 5.0)) == (math.inf, -math.inf)
