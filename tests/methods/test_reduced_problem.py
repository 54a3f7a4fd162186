"""Searches on a smaller problem with the same cost."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.common.arrays import Array
from odefit.methods import reduced_problem
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.reduced_problem import fitted_reduced
from odefit.methods.running.control import Control


@pytest.mark.parametrize("late", [False, True])
def test_removed_states_are_checked_unless_the_search_was_ended_early(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Smith's model of 94 states took 1.3 s for this after a time limit of 5 s."""
    problem = Problem(
        Model({"x": "-k*x", "sink": "k*x"}, {"x": "x"}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]},
        {"k": {}},
        {"x": 1.0, "sink": 0.0},
    )
    solved, checked = [], []

    def solve(of: Problem, control: Control) -> Estimate:
        solved.append(of)
        end = Start(0, np.ones(1), np.ones(1), 0.1, Status.CONVERGED, "", 1, 0.0)
        return Estimate((end,), Status.CONVERGED, "")

    def check(of: Problem, vector: Array) -> bool:
        checked.append(of)
        return False

    monkeypatch.setattr(reduced_problem, "_solvable", check)
    control = Control()
    if late:
        control.interrupted.set()
    fitted_reduced(problem, solve, control)
    assert solved[0].model.states == ("x",)
    assert solved[1:] == checked == ([] if late else [problem])
