"""Residuals in boxes: lower bounds of their squares, and those that give none."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.enclosure.residuals import Residuals


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_below_all_sums_of_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c, remainder = rng.normal(size=(5, 3, 4)), np.abs(rng.normal(size=(5, 4))) * 0.3
    c[:, 0] *= 5.0
    least = Residuals(c, remainder).squares_bound()
    for _ in range(200):
        d = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 2)
        r = c[:, 0] + d[0] * c[:, 1] + d[1] * c[:, 2]
        r += remainder * rng.choice([-1.0, 1.0, 0.3], remainder.shape)
        assert (least <= (r**2).sum(axis=0)).all()
    assert Residuals(c, np.full((5, 4), np.inf)).squares_bound().tolist() == [0.0] * 4


def test_residuals_without_a_bound_are_unknown_where_they_are_coarse() -> None:
    found = Residuals(np.array([[[1.0]], [[1.0]], [[1.0]]]), np.array([[0.5], [2.0], [2.0]]))
    told = found.informative(np.array([[True], [True], [False]]))
    assert told.remainder[:, 0].tolist() == [0.5, np.inf, 2.0]
