"""A search that was stopped continues where it was."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.common.errors import InputError
from odefit.methods.branch_and_bound import chunks
from odefit.methods.branch_and_bound.search import SearchState, TreeCheckpoint
from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.estimate import BoundStep
from odefit.methods.running.checkpoint import Checkpoint
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic, slices
from tests.methods.checkpoints import execute
from tests.methods.problems import decay

TARGET = 0.999 * BEST


def tree() -> Tree:
    return Tree(Quartic(), LOWER, UPPER, BEST, TARGET)


def kept(path: Path) -> TreeCheckpoint:
    return TreeCheckpoint(Checkpoint(path, "tree", "work"))


def state(batch: int = 3) -> SearchState:
    steps = (BoundStep("boxes", 2, 0.1, 1 / 3, 0.5), BoundStep("boxes", 3, 0.2, math.inf, 1.5))
    return SearchState(batch, np.array([0.1, 1 / 3]), 2.0, 0.1, steps, 12.5)


def begun(path: Path, turns: int) -> Tree:
    """A tree that is saved after each of its first turns."""
    found = tree()
    with kept(path) as file:
        for turn, _ in enumerate(found.run(lambda: False)):
            file.save(found, state(turn))
            if turn == turns:
                break
    return found


def test_a_resumed_tree_ends_like_one_without_interruption(tmp_path: Path) -> None:
    whole = tree()
    for _ in whole.run(lambda: False):
        pass
    first = begun(tmp_path / "boxes", 2)
    resumed = tree()
    assert kept(tmp_path / "boxes").resume(resumed) is not None
    assert resumed.lower_bound == first.lower_bound
    assert (resumed.evaluated, resumed.open_nodes) == (first.evaluated, first.open_nodes)
    for one, other in zip(sorted(resumed.nodes), sorted(first.nodes), strict=True):
        assert (one.norm, one.number) == (other.norm, other.number)
        assert one.lower.tobytes() == other.lower.tobytes()
        assert one.upper.tobytes() == other.upper.tobytes()
    for _ in resumed.run(lambda: False):
        pass
    assert resumed.evaluated == whole.evaluated
    assert resumed.lower_bound == whole.lower_bound == TARGET


def test_chunks_under_way_are_under_way_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other chunks would divide other boxes first, and so the end would be another one."""
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 2)
    whole, first, resumed = (tree() for _ in range(3))
    whole.continue_from(slices(16), 0, 0.0)
    first.continue_from(slices(16), 0, 0.0)
    for _ in whole.run(lambda: False):
        pass
    steps = first.run(lambda: False)
    with kept(tmp_path / "boxes") as file:
        next(steps)
        next(steps)
        file.save(first, state())
    assert kept(tmp_path / "boxes").resume(resumed) is not None
    assert resumed.state() == first.state()
    assert len(first.state()["flying"]) == 3
    assert {node.number for node in resumed.nodes} == {node.number for node in first.nodes}
    for _ in resumed.run(lambda: False):
        pass
    assert resumed.state() == whole.state()


def test_the_search_comes_back_with_its_tree(tmp_path: Path) -> None:
    begun(tmp_path / "boxes", 2)
    found = kept(tmp_path / "boxes").resume(tree())
    assert found is not None
    assert found.to_json() == state(2).to_json()


def test_a_known_target_is_not_exceeded(tmp_path: Path) -> None:
    with kept(tmp_path / "boxes") as file:
        file.save(tree(), state())
    higher = Tree(Quartic(), LOWER, UPPER, 2 * BEST, 1.9 * BEST)
    assert kept(tmp_path / "boxes").resume(higher) is not None
    assert higher.target == TARGET


@pytest.mark.slow
def test_a_fit_continues_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    bounds = {"k": {"lower": 0.0, "upper": 10.0}, "s": {"lower": 0.0, "upper": 20.0}}
    problem = decay(0.05, parameters=bounds)
    method = odefit.BranchAndBound(gap=0.1, starts=1)
    first = odefit.fit(problem, method, seed=1, checkpoint=path)
    again = odefit.fit(problem, method, seed=1, checkpoint=path)
    assert first.assessment.bounds is not None
    assert again.assessment.bounds is not None
    assert again.assessment.bounds.closed
    assert "resumed" in {step.stage for step in again.assessment.bounds.history}
    assert again.assessment.bounds.lower == first.assessment.bounds.lower


DAMAGES = [
    "UPDATE records SET value = '[1, 2]' WHERE key = '{node}'",
    "DELETE FROM records WHERE key = '{node}'",
    "DELETE FROM records WHERE key = 'state'",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_incomplete_tree_proves_nothing(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "boxes"
    first = begun(path, 2)
    number = min(node.number for node in first.nodes)
    execute(path, damage.format(node=number))
    with pytest.raises(InputError, match=r"is damaged .*; remove it to start again"):
        kept(path).resume(tree())


def test_an_unfinished_file_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    path.touch()
    assert kept(path).resume(tree()) is None
