"""The boxes of a region hold every point that fits, at any time of the search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.methods.branch_and_bound.region_tree import RegionGoal, RegionTree
from odefit.methods.branch_and_bound.search import TreeCheckpoint
from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.running.checkpoint import Checkpoint
from tests.methods.branch_and_bound.quartic import BEST, GRID, LOWER, UPPER, Quartic
from tests.methods.branch_and_bound.test_tree_checkpoint import state

VALUES = Quartic.exact(*GRID)
AT = int(np.argmin(VALUES))
INCUMBENT = np.array([GRID[0].ravel()[AT], GRID[1].ravel()[AT]])
POINTS = np.column_stack([GRID[0].ravel(), GRID[1].ravel()])[::61]
OBJECTIVES = Quartic.exact(POINTS[:, 0], POINTS[:, 1])


def tree(excess: float, enclosure: Quartic | None = None, start: Array = INCUMBENT) -> RegionTree:
    goal = RegionGoal(excess, 0.0, ((), ()), np.zeros((0, 2)))
    objective = float(Quartic.exact(*start))
    return RegionTree(enclosure or Quartic(), LOWER, UPPER, start, objective, goal)


def finished(region: RegionTree) -> RegionTree:
    for turn, _ in enumerate(region.run(lambda: False)):
        assert turn < 500
        if region.candidate is not None:
            objective = float(Quartic.exact(*region.candidate))
            if objective < region.upper_bound:
                region.update_incumbent(objective, region.candidate)
            region.candidate = None
    assert region.open_nodes == 0
    return region


def missing(region: RegionTree) -> int:
    """Return how many points that fit lie in no box."""
    good = POINTS[region.cut >= OBJECTIVES]
    assert len(good) > 10
    lower, upper = region.corners
    inside = (good[:, None] >= lower[None]) & (good[:, None] <= upper[None])
    return int((~np.asarray(np.all(inside, axis=2)).any(axis=1)).sum())


@pytest.mark.parametrize("excess", [0.05, 0.5, 3.0])
def test_the_region_is_held_and_hardly_more(excess: float) -> None:
    """All optima that fit are found from one of them, and each has its own interval."""
    region = finished(tree(excess))
    assert missing(region) == 0
    good = POINTS[region.cut >= OBJECTIVES]
    for k in range(2):
        proved = region.intervals(k)
        assert proved[0, 0] <= good[:, k].min()
        assert proved[-1, 1] >= good[:, k].max()
        exact = np.unique(np.round(good[:, k], 9))
        gaps = np.flatnonzero(np.diff(exact) > 0.2)
        length = float(np.ptp(exact) - np.diff(exact)[gaps].sum())
        assert len(proved) == 1 + len(gaps)
        assert float(np.diff(proved).sum()) <= 1.25 * length


def test_no_point_that_fits_is_left_out_at_any_time() -> None:
    region = tree(1.0)
    assert missing(region) == 0
    for turn, _ in enumerate(region.run(lambda: False)):
        assert missing(region) == 0
        if turn > 12:
            break


def test_a_better_incumbent_makes_the_region_smaller_but_never_too_small() -> None:
    """From a poor point, the optimum is found on the way."""
    region = finished(tree(0.3, start=np.array([0.0, 0.5])))
    assert region.upper_bound < BEST + 0.1
    assert region.cut == pytest.approx(region.upper_bound + 0.3, rel=1e-9)
    assert missing(region) == 0


def test_the_boxes_of_a_region_hold_the_optimum() -> None:
    """What is outside exceeds the cut, so that a search of these boxes alone closes the gap."""
    region = finished(tree(0.5))
    rest = Tree(Quartic(), LOWER, UPPER, BEST, BEST * (1 - 1e-3))
    rest.continue_from(region.nodes, region.evaluated, region.work)
    for _ in rest.run(lambda: False):
        pass
    assert rest.lower_bound == BEST * (1 - 1e-3)
    assert rest.evaluated > region.evaluated


def test_an_interrupted_batch_is_kept() -> None:
    enclosure = Quartic()
    region = tree(0.5, enclosure)
    steps = region.run(lambda: False)
    for _ in range(3):
        next(steps)
    enclosure.fail_at = enclosure.calls + 1
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert missing(region) == 0


def test_a_stopped_and_continued_search_ends_at_the_same_point(tmp_path: Path) -> None:
    whole, first = finished(tree(0.5)), tree(0.5)
    with TreeCheckpoint(Checkpoint(tmp_path / "boxes", "region", "work")) as file:
        for turn, _ in enumerate(first.run(lambda: False)):
            first.candidate = None
            file.save(first, state(turn))
            if turn == 3:
                break
    again = tree(0.5)
    resumed = TreeCheckpoint(Checkpoint(tmp_path / "boxes", "region", "work")).resume(again)
    assert resumed is not None
    assert again.evaluated == first.evaluated
    for k in range(2):
        assert again.intervals(k).tolist() == first.intervals(k).tolist()
    finished(again)
    assert again.evaluated == whole.evaluated
    for k in range(2):
        assert again.intervals(k).tolist() == whole.intervals(k).tolist()
