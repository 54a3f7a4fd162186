"""Rounding outwards matters: enclosures whose rounding is turned inwards miss exact values.

Each test holds with the rounding of odefit and fails without it, so that a lost margin is noticed.
"""

from __future__ import annotations

import importlib
import operator
import pkgutil
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import odefit.enclosure
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, Residuals
from odefit.enclosure.arithmetic import intervals
from odefit.enclosure.arithmetic.intervals import Interval
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.methods.branch_and_bound import node_bounds
from odefit.methods.branch_and_bound.node_bounds import NodeBounder
from tests.enclosure.containment import box
from tests.enclosure.solutions import CASES, holds

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}

COUNT = 200


def inwards(low: Array, high: Array) -> tuple[Array, Array]:
    """Both ends one unit in the last place inwards."""
    return np.nextafter(low, np.inf), np.nextafter(high, -np.inf)


def to_nearest(low: Array, high: Array) -> tuple[Array, Array]:
    """Both ends as they are rounded."""
    return low, high


def missed(operation: Callable[..., object]) -> int:
    """The number of operations on random numbers whose exact result is not enclosed."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0.1, 10.0, (2, COUNT)) * rng.choice([-1.0, 1.0], (2, COUNT))
    found = operation(Interval(x, x), Interval(y, y))
    assert isinstance(found, Interval)
    total = 0
    for k in range(COUNT):
        exact = operation(Fraction(float(x[k])), Fraction(float(y[k])))
        assert isinstance(exact, Fraction)
        total += not Fraction(float(found.low[k])) <= exact <= Fraction(float(found.high[k]))
    return total


@pytest.mark.parametrize("name", OPERATIONS)
def test_intervals_miss_nothing_and_would_without_their_rounding(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missed(OPERATIONS[name]) == 0
    for wrong in (inwards, to_nearest):
        monkeypatch.setattr(intervals, "_rounded", wrong)
        assert missed(OPERATIONS[name]) > COUNT / 4


def without_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no module of the enclosures round outwards."""
    exact = {"UNIT_ROUNDOFF": 0.0, "ROUNDING_MARGIN": 1.0, "UNDERFLOW": 0.0}
    for module in pkgutil.walk_packages(odefit.enclosure.__path__, "odefit.enclosure."):
        if ".kernels" in module.name:
            continue
        place = importlib.import_module(module.name)
        for name, value in exact.items():
            if hasattr(place, name):
                monkeypatch.setattr(place, name, value)


@pytest.mark.parametrize("case", ["logistic", "a quotient", "oscillator"])
def test_solutions_at_points_are_missed_without_margins(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a point, with many orders in time, rounding is all that an enclosure has to cover."""
    problem, vector, solution, _ = CASES[case]
    holds(problem, Enclosure(problem, 1, 24), *box(vector, 0.0), solution, count=1)
    without_margins(monkeypatch)
    with pytest.raises(AssertionError):
        holds(problem, Enclosure(problem, 1, 24), *box(vector, 0.0), solution, count=1)


def excesses() -> list[Fraction]:
    """Proved bounds of linear residuals in one unknown, less the exact minimum."""
    rng = np.random.default_rng(11)
    boxes, rows = COUNT, 3
    m = Monomials.of(1, 1)
    c = rng.normal(size=(rows, 2, boxes))
    norm = NodeBounder(m)(Residuals(c, np.zeros((rows, boxes))), 100.0).norm
    found = []
    for b in range(boxes):
        a, slope = ([Fraction(float(v)) for v in c[:, k, b]] for k in (0, 1))
        best = -sum(p * q for p, q in zip(a, slope, strict=True)) / sum(q * q for q in slope)
        d = min(max(best, Fraction(-1)), Fraction(1))
        least = Fraction(sum((p + q * d) ** 2 for p, q in zip(a, slope, strict=True)))
        found.append(Fraction(float(norm[b])) ** 2 - least)
    return found


def test_bounds_of_nodes_are_below_the_exact_minimum_and_would_exceed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proved = excesses()
    assert max(proved) <= 0
    assert min(proved) > -1e-9
    monkeypatch.setattr(node_bounds, "SUM_MARGIN", 0.0)
    monkeypatch.setattr(node_bounds, "UNIT_ROUNDOFF", 0.0)
    assert sum(excess > 0 for excess in excesses()) > COUNT / 20
