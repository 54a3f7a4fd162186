"""Subjects with own constants have a lowest optimum that SciPy finds without odefit."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from evidence.running.campaign import Record
from evidence.zoo import subjects
from evidence.zoo.subjects import concentration, data_set, lowest, problem_of, tables, tasks
from odefit.simulation import Evaluation


def test_the_problem_has_the_solution_in_closed_form() -> None:
    measured = data_set(2, 0)
    problem = problem_of(measured)
    assert problem.keys[0] == "ka"
    assert len(problem.unknowns) == 5
    forward = odefit.ForwardMap(problem)
    at = forward.evaluate(np.array([1.3, 2.0, 1.0, 20.0, 30.0]))
    assert isinstance(at, Evaluation)
    predicted = [concentration(1.3, 2.0, 20.0), concentration(1.3, 1.0, 30.0)]
    misses = np.concatenate(predicted) - np.concatenate(measured)
    assert problem.keys[1] == "CL[subject 1]"
    assert np.sort(np.abs(at.residuals)) == pytest.approx(np.sort(np.abs(misses)), rel=1e-6)


def test_equal_rates_have_the_limit_of_their_solutions() -> None:
    near = concentration(0.1 * (1 + 1e-6), 2.0, 20.0)
    assert concentration(0.1, 2.0, 20.0) == pytest.approx(near, rel=1e-5)


def test_the_lowest_sum_of_squares_is_found_on_a_coarse_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subjects, "RATES", np.geomspace(0.3, 5.0, 7))
    values = [concentration(1.3, 2.0, 20.0), concentration(1.3, 1.0, 30.0)]
    assert lowest(values) < 1e-9
    wrong = [concentration(1.3, 2.0, 20.0), concentration(0.5, 1.0, 30.0)]
    assert lowest(wrong) > 1e-3


def test_a_converged_fit_above_the_lowest_is_counted_as_false() -> None:
    right = {
        "unknowns": 5,
        "status": "converged",
        "objective": 0.5,
        "lowest": 0.5,
        "starts": 7,
        "seconds": 1.0,
    }
    results = [right, {**right, "objective": 0.6}, {**right, "status": "time limit"}]
    records = [
        Record(task["key"], task, "done", found, "", 1.0)
        for task, found in zip(tasks([2], 3), results, strict=True)
    ]
    (row,) = tables(records)["subjects"].to_dict("records")
    assert (row["fits"], row["at the lowest"], row["false converged"]) == (3, 2, 1)
    assert tables([]) == {}
