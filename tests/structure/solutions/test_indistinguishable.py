"""Indistinguishable solutions from one of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from odefit.common.arrays import ComplexArray
from odefit.structure.homotopy.square import SquareSystem, distinct_values
from odefit.structure.homotopy.tracker import distinct_rows, track
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.auxiliary_states import consistent_point, on_principal_branch
from odefit.structure.solutions.comparison import OutputComparison
from odefit.structure.solutions.indistinguishable import (
    MovingPointHomotopy,
    MovingProblemHomotopy,
    find_indistinguishable,
)
from tests.structure.models import problem

SWAP = problem({"x": "-a*x", "z": "a*x - b*z"}, {"y": "z"}, ["a", "b"])


def square_of(**more: str) -> SquareSystem:
    return SquareSystem(DifferentiatedSystem(SWAP, free_states=False))


def test_exchanged_rates_are_found() -> None:
    """Of two decays in a row the rates can be exchanged, with x0 = x0 a/b."""
    square = square_of()
    point, parameters = square.generic_point(np.random.default_rng(0))
    found = find_indistinguishable(square, point, parameters)
    assert found.complete
    assert 0 <= found.failed < found.drawn / 4  # nearly all paths arrive
    names = [square.system.names[i] for i in square.solved]
    first, second = (dict(zip(names, s, strict=True)) for s in found.solutions)
    assert second["a"] == pytest.approx(first["b"])
    assert second["b"] == pytest.approx(first["a"])
    values = distinct_values(square, found.solutions, parameters)
    assert values["a"] == values["b"] == 2
    assert values["z"] == 1


def test_indistinguishable_solutions_stay_so_along_the_path() -> None:
    square = square_of()
    rng = np.random.default_rng(1)
    point, parameters = square.generic_point(rng)
    one, other = find_indistinguishable(square, point, parameters).solutions
    target = rng.normal(size=len(one)) + 1j * rng.normal(size=len(one))
    bend = np.full((1, len(one)), 0.3 + 0.4j)
    tracked = track(
        MovingPointHomotopy(square, parameters, one[None], target[None], bend), other[None]
    )
    assert tracked.reached.all()
    there = parameters.copy()
    there[: square.size] = square.values(target[None], parameters[None])[0][0]
    both = OutputComparison(square, there).coefficients(np.array([target, tracked.ends[0]]))
    np.testing.assert_allclose(both[0], both[1], rtol=1e-8)
    names = [square.system.names[i] for i in square.solved]
    a, b = names.index("a"), names.index("b")
    assert tracked.ends[0, a] == pytest.approx(target[b])


def test_a_moving_problem_is_evaluated_in_one_call() -> None:
    """Predictions need the derivative by t; other steps do not, and take less for it."""
    square, rng = square_of(), np.random.default_rng(3)
    (start, known), (end, there) = square.generic_point(rng), square.generic_point(rng)
    bends = rng.normal(size=(1, len(start))).astype(complex)
    homotopy = MovingProblemHomotopy(square, (start, known), (end[None], there[None]), bends)
    arguments = np.array([0]), (start + 0.1)[None], np.array([0.6])
    sizes = []
    values = square.values

    def counted(points: ComplexArray, *more: Any, **named: Any) -> Any:
        sizes.append(len(points))
        return values(points, *more, **named)

    with patch.object(square, "values", counted):
        left, jacobian, by_t = homotopy.evaluate(*arguments)
        other, same, _ = homotopy.evaluate(*arguments, False)
    assert sizes == [4, 2]
    assert other == pytest.approx(left, rel=1e-12)
    assert same == pytest.approx(jacobian, rel=1e-12)
    step = 1e-4
    after, before = (
        homotopy.evaluate(*arguments[:2], arguments[2] + side * step)[0] for side in (1, -1)
    )
    assert by_t == pytest.approx((after - before) / (2 * step), rel=1e-4, abs=1e-6)


def test_a_search_that_is_cut_short_says_so() -> None:
    square = square_of()
    point, parameters = square.generic_point(np.random.default_rng(0))
    found = find_indistinguishable(square, point, parameters, stop=lambda: True)
    assert not found.complete
    assert len(found.solutions) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "algebraic", "real"),
    [
        ("a*sqrt(x)", 2, 1),
        ("a^2*sqrt(x)", 4, 2),
        ("a*x^2", 1, 1),
        ("a^3*x", 3, 3),
        ("(a + b)*x + a*b*x^2", 2, 2),
    ],
)
def test_other_branches_are_left_out(rate: str, algebraic: int, real: int) -> None:
    parameters = [p for p in "ab" if p in rate]
    system = DifferentiatedSystem(
        problem({"x": f"-{rate}"}, {"y": "x"}, parameters), free_states=False
    )
    square = SquareSystem(system)
    base = consistent_point(square, np.random.default_rng(0))
    assert base is not None
    found = find_indistinguishable(square, *base)
    good = on_principal_branch(square, found.solutions, base[1], frozenset(system.names))
    assert (len(found.solutions), int(good.sum())) == (algebraic, real)
    assert good[0]


def test_rows_are_distinct_up_to_rounding() -> None:
    rows = np.array([[1.0, 2.0], [1.0 + 1e-12, 2.0], [1.0, -2.0]], dtype=complex)
    assert distinct_rows(rows) == 2


def test_a_search_with_a_known_count_needs_fewer_drawings() -> None:
    """It ends with the last solution, and need not show by collisions that there is no other."""
    square = square_of()
    point, parameters = square.generic_point(np.random.default_rng(0))
    counted = find_indistinguishable(square, point, parameters, expected=2)
    assert counted.complete
    assert counted.miss_probability == 0
    assert len(counted.solutions) == 2
    assert counted.drawn < find_indistinguishable(square, point, parameters).drawn
