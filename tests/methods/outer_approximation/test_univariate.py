"""Images and inverse images contain all values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odefit.methods.outer_approximation.univariate import EMPTY, FUNCTIONS, Univariate, power

CASES = [*FUNCTIONS.values(), *map(power, (2.0, 3.0, -1.0, -2.0, 0.5, 1.7, -0.3, 5.0, -3.0))]


def label(f: Univariate) -> str:
    return f"power {f.exponent:g}" if f.name == "power" else f.name


def intervals(f: Univariate, count: int = 60) -> list[tuple[float, float]]:
    random = np.random.default_rng(0)
    least, most = max(f.domain[0], -4.0), min(f.domain[1], 4.0)
    found = []
    for _ in range(count):
        a, b = np.sort(random.uniform(least, most, 2))
        if random.random() < 0.3:
            b = a + 1e-3 * (b - a)
        if f.name == "power" and f.exponent < 0 and a <= 0 <= b:
            continue
        found.append((float(a), float(b)))
    return found


@pytest.mark.parametrize("f", CASES, ids=label)
def test_images_and_inverse_images_contain_all_values(f: Univariate) -> None:
    for a, b in intervals(f):
        low, high = f.image(a, b)
        xs = np.clip(np.linspace(a, b, 101), a, b)
        values = np.array([f.at(x) for x in xs])
        assert (values >= low).all()
        assert (values <= high).all()
        c, d = np.quantile(values, [0.3, 0.6])
        least, most = f.preimage(float(c), float(d), (a, b))
        inside = xs[(values >= c) & (values <= d)]
        assert (inside >= least).all()
        assert (inside <= most).all()


@pytest.mark.parametrize("f", CASES, ids=label)
def test_derivatives_are_those_of_the_values(f: Univariate) -> None:
    for x in (0.3, 0.5, 0.8):
        h = 1e-6
        assert f.slope_at(x) == pytest.approx((f.at(x + h) - f.at(x - h)) / (2 * h), rel=1e-7)


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (FUNCTIONS["exp"], (-math.inf, 0.0), (0.0, 1.0)),
        (FUNCTIONS["log"], (0.0, 1.0), (-math.inf, 0.0)),
        (power(-1.0), (0.0, 2.0), (0.5, math.inf)),
        (power(-1.0), (-1.0, 1.0), (-math.inf, math.inf)),
        (power(2.0), (-3.0, 2.0), (0.0, 9.0)),
        (FUNCTIONS["tan"], (1.0, 2.0), (-math.inf, math.inf)),
        (FUNCTIONS["sin"], (0.0, 100.0), (-1.0, 1.0)),
        (FUNCTIONS["atan"], (-math.inf, math.inf), (-math.pi / 2, math.pi / 2)),
    ],
)
def test_images_at_the_edges(
    f: Univariate, at: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert f.image(*at) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_nothing_lies_outside_the_domain() -> None:
    assert FUNCTIONS["log"].image(-2.0, -1.0) == EMPTY
    assert FUNCTIONS["exp"].preimage(-2.0, -1.0, (-5.0, 5.0)) == EMPTY
