"""Finished sides of profiles in a checkpoint."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from odefit.assessment.profiles.checkpoint import SideCheckpoint
from odefit.assessment.profiles.parts import Side
from odefit.assessment.profiles.tasks import Task
from odefit.methods.running.control import Control
from odefit.methods.running.start_checkpoint import opened
from tests.assessment.profiles.narrow import exact_optimum, threshold_problem

NONE = np.zeros(0)


def test_sides_of_one_profile_with_different_beginnings_are_kept_apart(tmp_path: Path) -> None:
    problem, vector = threshold_problem(4.0), np.array(exact_optimum(4.0))
    control = Control(checkpoint=tmp_path / "sides")
    own = Task("c", 1, 1, None)
    tasks = [
        own,
        replace(own, sign=-1),
        replace(own, start=(1.0, 2.0, 0.5)),
        replace(own, start=(1.0, 2.0, 0.5), inward=True),
        replace(own, start=(1.0, 2.0, 0.6)),
    ]
    for again in (False, True):  # and as well in a file that is opened again
        records = opened(control, "sides of profiles", problem, {})
        assert records is not None
        with SideCheckpoint(records) as kept:
            if not again:
                for number, task in enumerate(tasks):
                    at = np.array([float(number)])
                    side = Side(at, at, at, vector[None, :], 1.0, "limit", "", NONE, number, 0)
                    kept.add(task, vector, side)
            sides = [kept.find(task, vector) for task in tasks]
            assert [None if s is None else s.evaluations for s in sides] == [0, 1, 2, 3, 4]
            assert kept.find(own, 2 * vector) is None


@pytest.mark.parametrize("damage", [math.nan, math.inf, "much"])
def test_a_side_with_a_damaged_coordinate_counts_as_not_done(
    damage: float | str, tmp_path: Path
) -> None:
    """One ended in a traceback of SciPy, which interpolates the side."""
    problem, vector = threshold_problem(4.0), np.array(exact_optimum(4.0))
    control = Control(checkpoint=tmp_path / "sides")
    task = Task("c", 1, 1, None)
    at, vectors = np.arange(3.0), np.tile(vector, (3, 1))
    side = Side(at, at**2, 2 * at, vectors, 1.5, "limit", "", NONE, 1, 0)
    for damaged in (False, True):
        records = opened(control, "sides of profiles", problem, {})
        assert records is not None
        with SideCheckpoint(records) as kept:
            if not damaged:
                kept.add(task, vector, side)
                continue
            (name,) = records.records
            assert kept.find(task, vector) is not None
            records.records[name]["at"][1] = damage
            assert kept.find(task, vector) is None
