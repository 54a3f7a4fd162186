"""Intervals against exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from odefit.enclosure.arithmetic.intervals import (
    Interval,
    evaluated,
    polynomial,
    real_product,
    relational_quotient,
    squared,
)
from odefit.structure.series.tape import Tape

ENDS = [0.0, 1.0, -1.0, 0.1, -0.1, 3.7, 1e-200, -1e-200, 1e-308, 5e-324, -5e-324, 1e200, 1e308]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """As its users do: overflow is no surprise."""
    with np.errstate(all="ignore"):
        yield


def intervals(seed: int, count: int = 400) -> Interval:
    rng = np.random.default_rng(seed)
    ends = np.where(
        rng.random((2, count)) < 0.5,
        rng.choice(ENDS, (2, count)),
        rng.normal(size=(2, count)) * 10.0 ** rng.integers(-5, 6, (2, count)),
    )
    return Interval(ends.min(axis=0), ends.max(axis=0))


def inside(interval: Interval, rng: np.random.Generator) -> list[Fraction]:
    """A point of each: an end, or something between."""
    share = [Fraction(int(k), 4) for k in rng.integers(0, 5, len(interval.low))]
    return [
        Fraction(low) + s * (Fraction(high) - Fraction(low))
        for low, high, s in zip(interval.low.tolist(), interval.high.tolist(), share, strict=True)
    ]


def holds(found: Interval, exact: list[Fraction]) -> None:
    for low, high, value in zip(found.low.tolist(), found.high.tolist(), exact, strict=True):
        assert low == -np.inf or Fraction(low) <= value
        assert high == np.inf or value <= Fraction(high)
        assert low < np.inf
        assert high > -np.inf


@pytest.mark.parametrize("operation", "+-*/")
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.slow if n > 0 else ()) for n in range(6)]
)
def test_points_lie_in_their_enclosures(operation: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    a, b = intervals(2 * seed), intervals(2 * seed + 1)
    for _ in range(10):
        x, y = inside(a, rng), inside(b, rng)
        if operation == "+":
            holds(a + b, [p + q for p, q in zip(x, y, strict=True)])
        elif operation == "-":
            holds(a - b, [p - q for p, q in zip(x, y, strict=True)])
        elif operation == "*":
            holds(a * b, [p * q for p, q in zip(x, y, strict=True)])
        else:
            y = [q if q else Fraction(1) for q in y]
            found = a / b
            whole = (b.low <= 0) & (b.high >= 0)
            assert np.isinf(found.low[whole]).all()
            assert np.isinf(found.high[whole]).all()
            held = np.flatnonzero(~whole)
            holds(found.take(held), [x[i] / y[i] for i in held])
    holds(squared(a), [p * p for p in inside(a, rng)])


def test_signs_are_exact() -> None:
    zero, tiny = Interval(np.zeros(1), np.ones(1)), Interval(np.full(1, 5e-324), np.ones(1))
    for found in (zero * zero, tiny * tiny, zero + zero, zero / tiny, squared(zero - tiny)):
        assert found.low[0] == 0.0
    assert (tiny * -tiny).high[0] == 0.0
    none = Interval(np.zeros(1), np.zeros(1))
    assert ((none * zero).low[0], (none * zero).high[0]) == (0.0, 0.0)


def test_operations_without_a_number_may_give_any_value() -> None:
    anything, one = Interval.anything(1), Interval(np.ones(1), np.ones(1))
    none = Interval(np.zeros(1), np.zeros(1))
    with np.errstate(all="ignore"):
        for found in (anything * none, none * anything, anything - anything, squared(anything)):
            assert (found.low[0], found.high[0]) == (-np.inf, np.inf)
        assert not (one / anything).finite[0]
        half = Interval(np.zeros(1), np.full(1, np.inf))
        assert (half * half).low[0] == 0.0
        assert (one / (one + half)).low[0] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_relations_between_real_numbers_hold_at_all_points(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    a, b = intervals(2 * seed), intervals(2 * seed + 1)
    for _ in range(10):
        x, y = inside(a, rng), inside(b, rng)
        holds(real_product(a, b), [p * q for p, q in zip(x, y, strict=True)])
        held = np.flatnonzero([q != 0 for q in y])
        holds(relational_quotient(a, b).take(held), [x[i] / y[i] for i in held])


def test_real_numbers_are_finite_and_divisors_may_end_at_zero() -> None:
    zero, half = Interval(np.zeros(1), np.zeros(1)), Interval(np.zeros(1), np.full(1, np.inf))
    assert real_product(zero, Interval.anything(1)).high[0] == 0.0
    one = Interval(np.ones(1), np.ones(1))
    found = relational_quotient(one, Interval(np.zeros(1), np.full(1, 2.0)))
    assert 0.5 * (1 - 1e-15) < found.low[0] <= 0.5
    assert found.high[0] == np.inf
    assert relational_quotient(one, half).low[0] == 0.0
    assert not np.isfinite(relational_quotient(one, zero).low[0])


def test_numbers_and_polynomials() -> None:
    third = Interval.number(Fraction(1, 3), 2)
    assert (third.low < 1 / 3 + 1e-16).all()
    assert Fraction(third.low[0]) <= Fraction(1, 3) <= Fraction(third.high[0])
    assert not Interval.number(Fraction(10) ** 400, 1).finite[0]
    at = Interval(np.array([0.3]), np.array([0.3]))
    found = polynomial([1.0, -2.0, 0.5], at)
    x = Fraction(0.3)
    holds(found, [1 - 2 * x + x * x / 2])
    middle, radius = Interval(np.array([-1.0, 0.0]), np.array([2.0, np.inf])).middle()
    assert middle[0] + radius[0] >= 2.0
    assert middle[0] - radius[0] <= -1.0
    assert not np.isfinite(radius[1])


def test_a_tape_encloses_all_its_terms() -> None:
    tape = Tape()
    x, y = tape.variable("x"), tape.variable("y")
    term = (x - y * x / (y + tape.number(Fraction(1, 3)))) * (x * x)
    e = tape.apply("exp", x, x)
    terms = [term, e, tape.apply("sin", y, y), tape.apply("log", y, y)]
    a, b = Interval(np.array([-1.0]), np.array([2.0])), Interval(np.array([0.5]), np.array([0.7]))
    order = range(len(tape.entries))
    found = evaluated(tape, order, {x.index: a, y.index: b}, 1)
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, q = inside(a, rng)[0], inside(b, rng)[0]
        holds(found[term.index], [(p - q * p / (q + Fraction(1, 3))) * p * p])
        with mpmath.workdps(40):
            true = mpmath.exp(mpmath.mpf(p.numerator) / p.denominator)
            assert found[e.index].low[0] <= true <= found[e.index].high[0]
    assert (found[terms[2].index].low[0], found[terms[2].index].high[0]) == (-1.0, 1.0)
    assert not found[terms[3].index].finite[0]


def test_overflowing_exponentials_have_infinite_bounds() -> None:
    tape = Tape()
    x = tape.variable("x")
    e = tape.apply("exp", x, x)
    low, high = np.array([800.0, -np.inf]), np.array([900.0, -800.0])
    found = evaluated(tape, [e.index], {x.index: Interval(low, high)}, 2)[e.index]
    assert found.low.tolist() == [1e300, 0.0]
    assert found.high[0] == np.inf
    assert 0 < found.high[1] < 1e-250
