"""How many solutions there are, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odefit.assessment.completeness import assess_completeness
from odefit.methods.estimate import Completeness

ONE = Completeness(possible=1, found=1, real=1, lost=0, doubt=0.0)
TWO = Completeness(possible=2, found=2, real=2, lost=0, doubt=0.0)


def said(counted: Completeness, inside: int | None = None) -> str:
    found = assess_completeness(counted, counted.real if inside is None else inside)
    assert found is not None
    return found.sentence


def test_a_method_that_does_not_count_leaves_it_open() -> None:
    assert assess_completeness(None, 1) is None


def test_a_single_solution_is_called_the_only_one() -> None:
    found = assess_completeness(ONE, 1)
    assert found is not None
    assert (found.possible, found.found) == (1, 1)
    assert found.sentence == "The equations admit no second solution with the same outputs."


def test_all_solutions_are_reported_and_real_ones_marked() -> None:
    found = assess_completeness(TWO, 2)
    assert found is not None
    assert (found.possible, found.found) == (2, 2)
    assert found.sentence == (
        "The equations admit 2 solutions with the same outputs, of which 2 were found, "
        "2 of them real."
    )


def test_bounds_may_leave_some_out() -> None:
    assert "2 of them real and 1 within the bounds" in said(TWO, 1)


def test_complex_ones_count_as_found() -> None:
    sentence = said(replace(TWO, possible=4, found=4, real=2))
    assert "admit 4 solutions" in sentence
    assert "4 were found, 2 of them real" in sentence
    assert "within the bounds" not in sentence


def test_a_missing_solution_shows_in_the_counts() -> None:
    found = assess_completeness(replace(TWO, found=1, real=1, lost=1), 1)
    assert found is not None
    assert (found.possible, found.found) == (2, 1)


@pytest.mark.parametrize("counted", [replace(ONE, known=False), replace(TWO, known=False)])
@pytest.mark.parametrize("lost", [0, 3])
def test_without_a_count_only_found_solutions_are_claimed(counted: Completeness, lost: int) -> None:
    sentence = said(replace(counted, lost=lost))
    assert "admit" not in sentence
    assert "one solution was found" in sentence or "2 solutions were found" in sentence
    assert "their total number is not known" in sentence


def test_lost_paths_are_reported_where_a_solution_is_missing() -> None:
    missing = replace(TWO, found=1, real=1, lost=3)
    assert "3 paths of the search did not reach a solution" in said(missing)
    assert "paths" not in said(replace(TWO, lost=3))


def test_solutions_that_coincide_are_the_reason_where_one_is_missing() -> None:
    assert "solutions coincide there" in said(replace(TWO, found=1, real=1, coincide=True))
    assert "coincide" not in said(replace(TWO, coincide=True))
    assert "3 of them real and different" in said(Completeness(6, 6, real=3, coincide=True))


def test_more_solutions_than_expected_are_no_contradiction() -> None:
    """Then the count was wrong, and what was seen counts."""
    found = assess_completeness(replace(TWO, possible=1), 2)
    assert found is not None
    assert found.possible == 2


@pytest.mark.parametrize("doubt", [1e-7, 3e-5])
def test_a_doubt_with_consequences_is_reported(doubt: float) -> None:
    assert f"about {doubt:.0e}" in said(replace(ONE, doubt=doubt))


def test_a_doubt_without_consequence_is_not_reported() -> None:
    assert "probability" not in said(replace(ONE, doubt=1e-12))


def test_five_of_many_solutions_outside_the_bounds_are_listed() -> None:
    outside = tuple({f"k[{i}]": float(i)} for i in range(1, 33))
    found = assess_completeness(Completeness(33, 33, real=33, outside=outside), 1)
    assert found is not None
    assert found.sentence.endswith(
        "Outside the bounds: k[5] = 5. 27 more solutions lie outside the bounds."
    )
    assert found.outside == outside
    found = assess_completeness(Completeness(7, 7, real=7, outside=outside[:6]), 1)
    assert found is not None
    assert found.sentence.endswith("1 more solution lies outside the bounds.")
