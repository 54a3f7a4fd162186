"""A search that was stopped continues where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import odefit
from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.branch_and_bound.tree_checkpoint import TreeCheckpoint
from odefit.methods.checkpoint import ForeignCheckpointError
from odefit.problem.errors import InputError
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic
from tests.methods.problems import decay

TARGET = 0.999 * BEST


def tree() -> Tree:
    return Tree(Quartic(), LOWER, UPPER, BEST, TARGET)


def test_what_was_left_is_found_again_and_ends_alike(tmp_path: Path) -> None:
    whole = tree()
    for _ in whole.run(lambda: False):
        pass
    path = tmp_path / "boxes"
    begun = tree()
    for turn, _ in enumerate(begun.run(lambda: False)):
        if turn == 2:
            break
    saved = TreeCheckpoint(path, "work")
    saved.save(begun, now=True)
    resumed = tree()
    assert TreeCheckpoint(path, "work").resume(resumed)
    assert resumed.lower_bound == begun.lower_bound
    assert (resumed.evaluated, resumed.open_nodes) == (begun.evaluated, begun.open_nodes)
    for _ in resumed.run(lambda: False):
        pass
    assert resumed.evaluated == whole.evaluated
    assert resumed.lower_bound == whole.lower_bound == TARGET


def test_a_target_that_was_looked_for_before_is_not_exceeded(tmp_path: Path) -> None:
    begun = tree()
    TreeCheckpoint(tmp_path / "boxes", "work").save(begun, now=True)
    higher = Tree(Quartic(), LOWER, UPPER, 2 * BEST, 1.9 * BEST)
    assert TreeCheckpoint(tmp_path / "boxes", "work").resume(higher)
    assert higher.target == TARGET


def test_it_is_not_written_at_every_turn(tmp_path: Path) -> None:
    saved = TreeCheckpoint(tmp_path / "boxes", "work")
    saved.save(tree())
    assert not (tmp_path / "boxes").exists()


def test_a_fit_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
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


def test_other_work_and_damage_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    TreeCheckpoint(path, "work").save(tree(), now=True)
    with pytest.raises(ForeignCheckpointError, match="another problem"):
        TreeCheckpoint(path, "other work")
    path.write_text(path.read_text().splitlines()[0] + '\n{"target": 1}\n')
    with pytest.raises(InputError, match="damaged"):
        TreeCheckpoint(path, "work").resume(tree())
    path.write_text("a text")
    with pytest.raises(InputError, match="is no checkpoint"):
        TreeCheckpoint(path, "work")
    with pytest.raises(InputError, match="does not exist"):
        TreeCheckpoint(tmp_path / "nowhere" / "boxes", "work")


def test_a_file_that_was_only_begun_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "boxes"
    path.touch()
    assert not TreeCheckpoint(path, "work").resume(tree())
