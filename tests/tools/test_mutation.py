"""What an exit status of pytest says of a mutant."""

from __future__ import annotations

import pytest

from mutation import BROKEN, moved, verdict
from mutations import Mutation

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
def test_the_verdict_follows_from_the_exit_status(
    ended: int | None, text: str, outcome: str, by: str
) -> None:
    assert verdict(ended, text) == (outcome, by)


def test_a_mutation_is_found_again_where_its_lines_have_moved() -> None:
    before = b"a = 1\nx = a + 1\ny = 2\nx = a + 1\n"
    start = before.rindex(b"a + 1")
    mutation = Mutation("m.py", 4, start, start + 5, "a + 1", "a - 1", "arithmetic")
    after = b"b = 1\n" + before
    found = moved(mutation, before, after)
    assert found is not None
    assert found.of(after) == b"b = 1\na = 1\nx = a + 1\ny = 2\nx = a - 1\n"
    assert moved(mutation, before, before.replace(b"a + 1", b"a + 2")) is None
