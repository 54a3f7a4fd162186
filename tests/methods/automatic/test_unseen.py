"""Ends that one start alone has reached show how much may remain unseen."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.automatic.unseen import Unseen
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance

TOLERANCE = CostTolerance(None, 1e-4, 0.0)


def ends(*costs: float) -> list[Start]:
    x = np.array([1.0])
    return [Start(k, x, x, 2 * c, Status.CONVERGED, "", 1, 0.0, c) for k, c in enumerate(costs)]


def test_ends_of_one_cost_are_one_optimum_and_those_above_the_highest_do_not_count() -> None:
    starts = ends(10.0, 11.0, 11.0005, 11.5, 30.0)
    assert Unseen.of(starts, starts[:1], 12.0, TOLERANCE) == Unseen(4, 1)


def test_ends_of_the_best_optimum_count_whatever_their_cost() -> None:
    starts = ends(10.0, 10.5, 40.0)
    assert Unseen.of(starts, [starts[0], starts[2]], 12.0, TOLERANCE) == Unseen(3, 1)


def test_dependent_ends_are_not_a_sample() -> None:
    starts = ends(10.0, 10.0, 10.5)
    assert Unseen.of(starts[:2], starts, 12.0, TOLERANCE) == Unseen(2, 0)


@pytest.mark.parametrize(("alone", "many"), [(0, False), (3, False), (4, True)])
def test_a_share_of_outliers_above_about_a_sixth_is_many(alone: int, many: bool) -> None:
    assert Unseen(20, alone).many is many


def test_without_ends_nothing_is_known_to_remain() -> None:
    assert not Unseen().many


def test_a_single_end_of_few_may_be_chance() -> None:
    assert not Unseen(5, 1).many
    assert Unseen(5, 2).many
