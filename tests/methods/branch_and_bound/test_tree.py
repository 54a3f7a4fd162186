"""The tree loses nothing: neither at interruptions, nor where boxes are too small."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.branch_and_bound.division import Division
from odefit.methods.branch_and_bound.tree import Tree
from tests.methods.branch_and_bound.quartic import BEST, GRID, LOWER, UPPER, Quartic


def finished(tree: Tree, most: int = 2000) -> Tree:
    for turn, _ in enumerate(tree.run(lambda: False)):
        assert turn < most
    return tree


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_least_objective_is_closed_in(degree: int) -> None:
    target = BEST * (1 - 1e-3)
    tree = finished(Tree(Quartic(degree), LOWER, UPPER, BEST, target))
    assert tree.open_nodes == 0
    assert tree.lower_bound == target


def test_an_objective_that_can_be_reached_is_never_refuted() -> None:
    """With a target above the optimum, the search stops at the best objective."""
    tree = Tree(Quartic(), LOWER, UPPER, 10.0, 9.9)
    bounds = []
    for _ in tree.run(lambda: tree.lower_bound > 0.999 * BEST):
        assert tree.lower_bound <= BEST * (1 + 1e-12)
        bounds.append(tree.lower_bound)
        assert len(bounds) < 500
    assert bounds == sorted(bounds)
    assert tree.candidate is not None
    assert float(Quartic.exact(*tree.candidate)) < 10.0
    assert tree.lower_bound == pytest.approx(BEST, rel=1e-3)


@pytest.mark.slow
def test_boxes_cover_what_is_not_refuted() -> None:
    """At any time, every point that is good enough is in a box that waits."""
    rng = np.random.default_rng(0)
    points = rng.uniform(LOWER, UPPER, (20_000, 2))
    objective = Quartic.exact(points[:, 0], points[:, 1])
    target = 3.0
    good = points[objective < target]
    tree = Tree(Quartic(), LOWER, UPPER, 4.0, target)
    for turn, _ in enumerate(tree.run(lambda: False)):
        boxes = np.array([[node.norm, *node.lower, *node.upper] for node in tree.nodes])
        low, high = boxes[:, 1:3], boxes[:, 3:5]
        inside = (good[:, None] >= low[None]) & (good[:, None] <= high[None])
        owners = np.asarray(np.all(inside, axis=2))
        assert np.any(owners, axis=1).all()
        norms = boxes[:, 0]
        least = Quartic.exact(good[:, 0], good[:, 1])
        assert (~owners | (norms[None] ** 2 <= least[:, None] * (1 + 1e-12))).all()
        if turn > 8:
            break


def test_an_interrupted_batch_is_not_refuted() -> None:
    enclosure = Quartic()
    enclosure.fail_at = 4
    tree = Tree(enclosure, LOWER, UPPER, BEST, 0.999 * BEST)
    steps = tree.run(lambda: False)
    for _ in range(3):
        next(steps)
    before, waiting = tree.lower_bound, tree.open_nodes
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert (tree.lower_bound, tree.open_nodes) == (before, waiting)
    finished(tree)
    assert tree.lower_bound == pytest.approx(0.999 * BEST)


def test_boxes_that_cannot_be_divided_keep_their_bound() -> None:
    """A region whose residuals are not enclosed is never fathomed, however small its boxes."""
    at = int(np.argmin(Quartic.exact(*GRID)))
    best = np.array([GRID[0].ravel()[at], GRID[1].ravel()[at]])
    target = 1.01 * BEST
    for width in (0.0, 1e-13, 1e-11):
        blind = Quartic(hidden=lambda middle: bool(np.isfinite(middle).all()))
        tree = finished(Tree(blind, best - width, best + width, 1.02 * BEST, target))
        assert tree.open_nodes == 0
        assert tree.lower_bound <= BEST


def test_a_better_point_lowers_the_target_and_nothing_else() -> None:
    tree = Tree(Quartic(), LOWER, UPPER, 100.0, 99.0)
    steps = tree.run(lambda: False)
    next(steps)
    tree.update_incumbent(BEST, 0.999 * BEST)
    assert tree.lower_bound <= 0.999 * BEST
    tree.update_incumbent(50.0, 49.0)
    assert tree.target == pytest.approx(0.999 * BEST)
    for _ in steps:
        assert tree.lower_bound <= BEST
    assert tree.lower_bound == tree.target


def test_a_point_is_a_box_without_width() -> None:
    at = np.array([1.0, 1.5])
    value = float(Quartic.exact(*at))
    tree = finished(Tree(Quartic(), at, at, 2 * value, 1.999 * value))
    assert tree.lower_bound <= value
    assert tree.lower_bound == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.0, 1.0), (-1.0, 0.0), (1e-6, 1e3), (-1e3, -1e-6), (-2.0, 5.0), (0.0, 1e-300)],
)
def test_halves_make_up_the_whole(lower: float, upper: float) -> None:
    low, high = np.array([lower, 0.0]), np.array([upper, 0.0])
    halves = Division(Quartic(), low, high)._halves(0.1, low, high, np.array([1.0, -1.0]))
    (a, b), (c, d) = ((half.lower, half.upper) for half in halves)
    assert (a == low).all()
    assert (d == high).all()
    assert b[0] == c[0]
    assert lower < b[0] < upper


def test_a_stored_search_continues() -> None:
    first = Tree(Quartic(), LOWER, UPPER, BEST, 0.999 * BEST)
    steps = first.run(lambda: False)
    for _ in range(4):
        next(steps)
    again = Tree(Quartic(), LOWER, UPPER, BEST, 0.9999 * BEST)
    again.resume(
        first.state(), {n.number: np.array([n.norm, *n.lower, *n.upper]) for n in first.nodes}
    )
    assert again.open_nodes == first.open_nodes
    assert again.lower_bound == first.lower_bound
    finished(again)
    # What was refuted before was refuted for the old target alone.
    assert again.lower_bound == pytest.approx(0.999 * BEST, rel=1e-15)
