"""The SBML test suite, where it is present: right, or refused for a reason that the docs name."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.agreement import sbml_suite
from evidence.running.campaign import Task

TASKS = sbml_suite.tasks("", ())
FAST = TASKS[3::20]  # those among the fast tests
SLOW = [task for task in TASKS if task not in FAST]

NOT_RIGHT = {
    "00374": "events ever faster",
    "00748": "events ever faster",
}
"""Cases that are not right for a reason that the documentation names, without a refusal."""

pytestmark = pytest.mark.skipif(
    not TASKS, reason=f"the SBML test suite is not there; {sbml_suite.VARIABLE} names it"
)


def check(task: Task) -> None:
    found = sbml_suite.run(task)
    if task["case"] in NOT_RIGHT:
        assert found["verdict"] != "right", "take it from the list"
    else:
        assert found["verdict"] in {"right", "refused"}, found["reason"]


@pytest.mark.parametrize("task", FAST, ids=[task["case"] for task in FAST])
def test_a_case_of_a_sample_is_right_or_refused(task: Task) -> None:
    check(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", SLOW, ids=[task["case"] for task in SLOW])
def test_a_case_is_right_or_refused(task: Task) -> None:
    check(task)


def test_expected_values_cover_times_and_variables_of_the_comparison() -> None:
    one = sbml_suite.case(TASKS[0]["case"], sbml_suite.suite() or sbml_suite.BESIDE)
    assert all(len(column) == len(one.times) for column in one.expected.values())
    assert set(one.variables) <= one.expected.keys()
    assert np.all(np.diff(one.times) > 0)
