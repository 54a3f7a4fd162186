"""Values that fit: intervals that grow with what is found, and the part of a box outside them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odefit.methods.branch_and_bound.fitting_values import FittingValues, add_around, union
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic

INTERVALS = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1])),
    min_size=1,
    max_size=8,
)


@given(INTERVALS)
def test_a_union_has_the_same_values_in_disjoint_intervals(parts: list[tuple[int, int]]) -> None:
    joined = union(np.array(parts, dtype=float))
    grid = np.arange(-84, 112) / 4.0  # exact, so that ends count alike
    whole = np.array([any(a <= x <= b for a, b in parts) for x in grid])
    assert (np.array([any(a <= x <= b for a, b in joined) for x in grid]) == whole).all()
    assert (joined[1:, 0] > joined[:-1, 1]).all()


def test_only_values_beyond_the_tolerance_lie_outside() -> None:
    fit = FittingValues(np.array([0.0]), np.array([10.0]))
    fit.add(0, 2.0, 4.0)
    boxes = np.array([[2.5, 3.0], [1.91, 4.09], [1.0, 3.0], [5.0, 6.0], [0.0, 10.0]])
    outside = fit.outside(boxes[:, :1], boxes[:, 1:])[:, 0]
    np.testing.assert_allclose(outside, [0.0, 0.0, 0.9, 1.0, 7.8], atol=1e-12)


def test_two_solutions_keep_their_intervals_and_near_values_extend_one() -> None:
    fit = FittingValues(np.array([0.0]), np.array([10.0]))
    fit.add(0, 1.0, 2.0)
    fit.add(0, 6.0, 8.0)
    fit.add_points(np.array([[2.2], [7.0]]))
    assert fit.intervals(0).tolist() == [[1.0, 2.2], [6.0, 8.0]]
    fit.add_points(np.array([[4.0]]))
    assert len(fit.intervals(0)) == 3


def test_intervals_added_around_an_optimum_fit() -> None:
    """Both ends of each interval are values of points that fit, by the exact objective."""
    fit = FittingValues(LOWER, UPPER)
    cut = BEST + 0.5
    best = np.array([-1.01, -1.42])
    add_around(fit, Quartic(), best, cut, LOWER, UPPER)
    grid = np.linspace(LOWER[0], UPPER[0], 2001)
    for k in range(2):
        ((low, high),) = fit.intervals(k)
        assert low < best[k] < high
        for end in (low, high):
            points = [grid, np.full_like(grid, end)] if k else [np.full_like(grid, end), grid]
            assert Quartic.exact(*points).min() <= cut
