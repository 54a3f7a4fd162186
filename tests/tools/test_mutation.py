"""What an exit status of pytest says of a mutant."""

from __future__ import annotations

import pytest

from mutation import BROKEN, verdict

NOT_FOUND = "ERROR: not found: tests/test_a.py::test_b\n(no match in any of [<Module test_a.py>])"
UNCOLLECTED = f"ERROR tests/test_a.py - NameError\n{NOT_FOUND}"
FAILED = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed"


@pytest.mark.parametrize(
    ("ended", "text", "outcome", "by"),
    [
        (0, "1 passed", "survived", ""),
        (1, FAILED, "killed", "FAILED tests/test_a.py::test_b"),
        (None, "", "killed", "time"),
        (-11, "", "killed", "exit status -11"),
        # A module that cannot be imported any more is noticed; a test that is not there is not.
        (4, UNCOLLECTED, "killed", "ERROR tests/test_a.py"),
        (2, UNCOLLECTED, "killed", "ERROR tests/test_a.py"),
        (4, NOT_FOUND, "broken", "ERROR: not found: tests/test_a.py::test_b"),
        (5, "no tests ran", "broken", "no tests ran"),
        (BROKEN, "Traceback", "broken", "Traceback"),
    ],
)
def test_what_an_exit_status_says(ended: int | None, text: str, outcome: str, by: str) -> None:
    assert verdict(ended, text) == (outcome, by)
