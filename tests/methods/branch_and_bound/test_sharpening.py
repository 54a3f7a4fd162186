"""The level of the enclosures that fathoms most for its work, and how seldom it is looked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.methods.branch_and_bound.sharpening import COMPARED_SHARE, SAMPLE_SIZE, Sharpening
from odefit.methods.branch_and_bound.tree import COMPILED_FROM, Tree
from odefit.simulation.engines.cut_off import count_work
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic

RADIUS = 1.0


class Levelled(Quartic):
    """An enclosure that fathoms a share of all boxes for some work, by level."""

    def __init__(self, shares: list[float], works: list[float], level: int = 0) -> None:
        super().__init__()
        self.monomials = Monomials.of(2, 2 + level)
        self._shares, self._works, self._level = shares, works, level

    def sharper(self, level: int) -> Levelled | None:
        return None if level >= len(self._shares) else Levelled(self._shares, self._works, level)

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        count_work(self._works[self._level] * len(lower))
        found = Residuals.zeros(self.size, len(self.monomials), len(lower))
        found.c[0, 0, : int(self._shares[self._level] * len(lower))] = 10 * RADIUS
        return found


def compared(sharpening: Sharpening, times: int = 1, boxes: int = 4 * SAMPLE_SIZE) -> int:
    lower, upper = np.tile(LOWER, (boxes, 1)), np.tile(UPPER, (boxes, 1))
    for _ in range(times):
        sharpening.compare(lower, upper, RADIUS, lambda: False)
    return sharpening.level


@pytest.mark.parametrize(
    ("shares", "works", "level"),
    [
        ([0.3, 0.8, 0.9], [1.0, 1.5, 3.0], 1),
        ([0.3, 0.8, 0.99], [1.0, 1.5, 2.0], 2),
        ([0.3, 0.4, 0.99], [1.0, 3.0, 4.0], 0),  # the next level does not pay
        ([0.0, 0.0], [1.0, 1.01], 0),
        ([0.0, 0.1], [1.0, 1.5], 1),
        ([0.5], [1.0], 0),
    ],
)
def test_the_level_that_leaves_least_for_its_work_is_taken(
    shares: list[float], works: list[float], level: int
) -> None:
    enclosure = Levelled(shares, works)
    assert compared(Sharpening(enclosure), 4) == level


def test_a_level_that_no_longer_pays_is_left() -> None:
    sharpening = Sharpening(Levelled([0.3, 0.8], [1.0, 1.5]))
    assert compared(sharpening) == 1
    sharpening._enclosure = Levelled([0.3, 0.31], [1.0, 1.5])
    assert compared(sharpening) == 0


def test_few_boxes_are_not_compared() -> None:
    sharpening = Sharpening(Levelled([0.3, 0.8], [1.0, 1.5]))
    assert compared(sharpening, boxes=SAMPLE_SIZE - 1) == 0
    assert sharpening.work == 0.0


def test_comparisons_are_a_small_share_of_all_work() -> None:
    sharpening = Sharpening(Levelled([0.3, 0.8, 0.9], [1.0, 1.5, 3.0]))
    work, boxes, times = 0.0, 0, 0
    for _ in range(400):
        work, boxes = work + 100.0, boxes + 100
        if sharpening.due(work, boxes):
            before = sharpening.work
            compared(sharpening)
            work, times = work + sharpening.work - before, times + 1
    assert times > 3
    assert 0 < sharpening.work <= 1.5 * COMPARED_SHARE * work


def test_without_other_levels_nothing_is_due() -> None:
    assert not Sharpening(Quartic()).due(1e12, 1)


def test_a_tree_takes_its_level_from_its_checkpoint() -> None:
    enclosure = Levelled([0.3, 0.8], [1.0, 1.5])
    first, again = (Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST) for _ in range(2))
    first._sharpening.resume(1, 7.0)
    again.resume(first.state(), {})
    assert (again._sharpening.level, again._sharpening.work) == (1, 7.0)
    with pytest.raises(ValueError, match="there is no level 2"):
        again.resume(first.state() | {"level": 2}, {})


def test_a_long_search_raises_its_level() -> None:
    work = COMPILED_FROM / 1000
    enclosure = Levelled([0.0, 1.0], [work, 1.5 * work])
    tree = Tree(enclosure, LOWER, UPPER, 1.0, 1.0)
    for _ in tree.run(lambda: False):
        assert tree.work < 1e3 * COMPILED_FROM
    assert tree._sharpening.level == 1
    assert tree.lower_bound == 1.0
    assert math.isfinite(tree.work)
