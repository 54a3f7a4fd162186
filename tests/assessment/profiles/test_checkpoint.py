"""Finished sides of profiles in a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

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
    for again in (False, True):  # and as well in a file that is opened anew
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
